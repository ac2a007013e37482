//! Exchanges sessions with another store, row by row: push and pull, without the network between them.
//!
//! | file | what is in it |
//! | --- | --- |
//! | `wire.rs` | a stream of archive records as bytes: written to a [`RowSink`], and read from pieces of any size |
//! | `extent.rs` | what a store has of its sessions, for a store that wants to send some |
//! | `send.rs` | writes the rows of one session after those that the receiver has |
//! | `intake.rs` | takes a stream of sessions, and answers for each what became of it |
//! | `beginning.rs`, `receiving.rs`, `received_end.rs` | one session that is taken: lines are compared with the stored rows |
//! | `fields.rs` | the fields that a person set |
//! | `plan.rs` | which rows of a session another store lacks |
//! | `selection.rs` | which sessions are pushed |
//! | `posted.rs` | events that a program posts before its log comes |
//! | `followed.rs` | the place up to which this store has followed another one |
//! | `push.rs`, `pull.rs` | all sessions of a user, to and from another store |
//!
//! - The receiver believes only lines. Texts, titles, turns and times come from them, by its own rules, and secrets are
//!   masked by its own rules. Visibility and vectors are not taken over.
//! - Both stores know the rows that the receiver has by [chains](super::RowChain) of digests. The receiver remembers those of
//!   the lines that it was sent, because its own rows may be masked.
//! - Nothing is deleted. The rows of a session are those of the store that sent the last row. If that store replaces
//!   rows, the old ones become superseded lines. If another one has a copy that goes on differently, its lines are kept
//!   as superseded lines, and the rows stay.
//! - A session may be sent in parts. After an interruption, the next transfer goes on after the last part.

mod beginning;
mod extent;
mod fields;
mod followed;
mod intake;
mod plan;
mod posted;
mod pull;
mod push;
mod received_end;
mod receiving;
mod selection;
mod send;
mod wire;

use std::hash::{BuildHasher, Hasher, RandomState};

pub(super) use self::fields::with_sent_fields;
pub use self::{
    extent::{ExtentPage, ExtentQuery, SentExtent, SessionExtent},
    intake::{ReceiveOptions, ReceiveResult, ReceivedSession, RowIntake},
    posted::{PostResult, PostedEvent},
    pull::{PullOptions, PullReport, RowOrigin},
    push::{
        PlannedTransfer, PushOptions, PushReport, RowTarget, RowUpload, TransferFailure, TransferProgress,
    },
    selection::PushSelection,
    send::{SendRows, SentRows},
    wire::{RowEncoder, RowSink},
};
use super::store::{SessionExchange, StoreContext};
use crate::{
    Result,
    backend::{SequenceRange, StorageBackendExt, meta},
    model::{Digest, LineKind, SessionKey},
};

/// The number of digests of events read at a time.
const DIGESTS: usize = 10_000;

impl SessionExchange<'_> {
    /// The random identity of the store. A store that has none gets one.
    ///
    /// # Errors
    ///
    /// Errors of the backend.
    pub async fn store_id(self) -> Result<String> {
        let backend = &self.store.backend;
        if let Some(id) = backend.meta().await?.remove(meta::STORE_ID) {
            return Ok(id);
        }
        // Unpredictable enough to tell stores apart, which is all that it is for.
        let random = || RandomState::new().build_hasher().finish();
        let id = format!("{:016x}{:016x}", random(), random());
        backend.put_meta_if_absent(meta::STORE_ID, &id).await
    }
}

/// The digests of the first `count` stored rows of a kind, or of all if there are fewer.
async fn row_digests(
    store: &StoreContext,
    key: &SessionKey,
    kind: LineKind,
    count: u32,
) -> Result<Vec<Digest>> {
    let mut digests = Vec::new();
    if count == 0 {
        return Ok(digests);
    }
    match kind {
        LineKind::Message => {
            let states = store.backend.message_states(key).await?;
            digests.extend(states.iter().map(|state| state.digest));
        }
        LineKind::Event => {
            while digests.len() < count as usize {
                let range = SequenceRange { start: digests.len() as u32, limit: DIGESTS };
                let page = store.backend.event_digests(key, range).await?;
                if page.is_empty() {
                    break;
                }
                digests.extend(page);
            }
        }
    }
    digests.truncate(count as usize);
    Ok(digests)
}
