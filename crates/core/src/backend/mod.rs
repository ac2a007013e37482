//! The interface that a store implements.
//!
//! A backend stores rows, reads rows, and finds *candidates* for a text query and for a vector query. Everything else
//! (parsing, validation, turn numbers, chunking, embedding, fusion, context) is written once, in
//! [`SessionStorage`](crate::SessionStorage). The interface has to fit two extremes: a local SQL file, and a remote
//! document store without joins or aggregates that answers in pages.
//!
//! It is the sum of small traits, each about one subject: [`Meta`], [`Sessions`], [`Messages`], [`Events`],
//! [`Superseded`], [`Vectors`], [`Turns`], [`Search`], [`Integrity`] and [`Scheduling`]. These rules hold for every method:
//!
//! - An unknown session is not an error: the answer is empty or `None`, unless the method says otherwise.
//! - Data of users other than the named one is never touched.
//! - A call can be repeated safely.

mod change;
mod counts;
mod deletion;
mod event_counts;
mod events;
mod factory;
mod info;
mod integrity;
mod locks;
mod messages;
pub mod meta;
mod query;
mod salvage;
mod scheduling;
mod search;
mod sessions;
mod superseded;
mod terms;
mod turns;
mod vectors;

use std::fmt::Debug;

use async_trait::async_trait;

pub use change::{
    KeptLine, MessageVectors, MessagesToEmbed, RemovedMessages, RewoundTo, RowChange, SessionChange,
    SkippedLine, StoredSession, StoredSyncState, Version,
};
pub use counts::{
    EventTime, GenerationCounts, MessageCount, PROMPT, REPEATS, REQUEST_ID, RESPONSE, RowCounts, RowSpan,
    SESSION_ID, UNREADABLE_COST, Usage, VectorCounts, is_background,
};
pub use deletion::{Deletion, Remains};
pub use event_counts::{EventCount, EventCounter, EventGroup, Tally, UsageRow, repeats_usage};
pub use events::Events;
pub use factory::{
    BackendFactory, BackupFile, Open, OpenFile, OpenRequest, OpenService, Opening, RestrictRoles, SalvageFile,
};
pub use info::{ServiceUsage, StoreInfo, StorePlace};
pub use integrity::{IndexCheck, IndexProblem, Integrity, StrayKind, StrayRows};
pub use locks::SessionLocks;
pub use messages::Messages;
pub use meta::Meta;
pub use query::{
    PendingQuery, SequenceRange, SessionCursor, SessionName, SessionQuery, TextQuery, VectorQuery,
    has_required,
};
pub use salvage::{RemainingMessage, RemainingSession, RemainingTurns, SalvageSource};
pub use scheduling::{Scheduling, SyncGuard};
pub use search::Search;
pub use sessions::Sessions;
pub use superseded::{Superseded, SupersededQuery};
pub use terms::{TermFinder, TermPattern};
pub use turns::{NearestTurns, NewTurn, SummaryQuery, TurnCandidate, TurnQuery, TurnVectorQuery, Turns};
pub use vectors::Vectors;

pub use crate::search::{Candidates, TextCandidate, VectorCandidate};
use crate::{Error, ErrorKind, Result, model::SessionKey};

/// A store: everything that a backend implements.
pub trait StorageBackend:
    Meta + Sessions + Messages + Events + Superseded + Vectors + Turns + Search + Integrity + Scheduling + Debug
{
}

impl<T> StorageBackend for T where
    T: Meta
        + Sessions
        + Messages
        + Events
        + Superseded
        + Vectors
        + Turns
        + Search
        + Integrity
        + Scheduling
        + Debug
{
}

/// The traits of a backend, to call their methods on a concrete type. On a `dyn StorageBackend`, only
/// [`StorageBackendExt`] must be imported.
pub mod prelude {
    pub use super::{
        Events as _, Integrity as _, Messages as _, Meta as _, Scheduling as _, Search as _, Sessions as _,
        StorageBackend, StorageBackendExt as _, Superseded as _, Turns as _, Vectors as _,
    };
}

/// Methods derived from the methods of a backend.
#[async_trait]
pub trait StorageBackendExt: StorageBackend {
    /// [`Sessions::write`] of a single change.
    async fn write_one(&self, change: SessionChange) -> Result<Version> {
        let missing = || Err(Error::new(ErrorKind::StorageIo, "the backend returned no result for a write"));
        self.write(vec![change]).await.pop().unwrap_or_else(missing)
    }

    /// [`Sessions::delete_sessions`] of a single session. What could not be erased is only logged.
    async fn delete_session(&self, key: &SessionKey) -> Result<bool> {
        let mut deletion = self.delete_sessions(std::slice::from_ref(key)).await;
        for Remains { file, error } in &deletion.remains {
            tracing::warn!(file = %file.display(), %error, "words of a deleted session could not be erased yet");
        }
        let missing =
            || Err(Error::new(ErrorKind::StorageIo, "the backend returned no result for a deletion"));
        deletion.deleted.pop().unwrap_or_else(missing)
    }

    /// Stores `value` under `key` unless there is a value. Returns the value that is stored afterwards.
    async fn put_meta_if_absent(&self, key: &str, value: &str) -> Result<String> {
        Ok(self.swap_meta(key, None, value).await?.unwrap_or_else(|| value.to_owned()))
    }

    /// Replaces the value `expected` under `key`. Returns whether `value` is stored now.
    async fn replace_meta(&self, key: &str, expected: &str, value: &str) -> Result<bool> {
        Ok(self.swap_meta(key, Some(expected), value).await?.as_deref() == Some(value))
    }
}

impl<T: StorageBackend + ?Sized> StorageBackendExt for T {}
