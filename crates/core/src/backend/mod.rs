//! The interface that a store implements.
//!
//! A backend stores rows, reads rows, and finds *candidates* for a text query and for a vector query. Everything else
//! (parsing, validation, turn numbers, chunking, embedding, fusion, context) is written once, in
//! [`SessionStorage`](crate::SessionStorage). The interface has to fit two extremes: a local SQL file, and a remote
//! document store without joins or aggregates that answers in pages.
//!
//! It is the sum of small traits, each about one subject: [`Meta`], [`Sessions`], [`Messages`], [`Events`],
//! [`OtherRows`], [`Vectors`], [`Search`], [`Integrity`], [`Changes`] and [`Scheduling`]. These rules hold for every
//! method:
//!
//! - An unknown session is not an error: the answer is empty or `None`, unless the method says otherwise.
//! - Data of users other than the named one is never touched.
//! - A call can be repeated safely.

mod change;
mod changes;
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
mod other_rows;
mod query;
mod salvage;
mod scheduling;
mod search;
mod sessions;
mod terms;
mod turn_lines;
mod turns;
mod vectors;

use std::{
    fmt::Debug,
    time::{Duration, Instant},
};

use async_trait::async_trait;

pub use change::{
    KeptLine, MessageVectors, MessagesToEmbed, RemovedMessages, RewoundTo, RowChange, SessionChange,
    SkippedLine, StoredSession, StoredSyncState, Version,
};
pub use changes::{
    ChangeCursor, ChangeHints, ChangePage, ChangeSignal, ChangedFrom, Changes, SessionChanged,
};
pub use counts::{
    EventState, EventTime, GenerationCounts, MessageCount, PROMPT, REPEATS, REQUEST_ID, RESPONSE, RowCounts,
    RowSpan, SESSION_ID, UNREADABLE_COST, Usage, VectorCounts, is_background,
};
pub use deletion::{Deletion, NotErased, SessionDeletion};
pub use event_counts::{
    CountedEvents, EventCount, EventCounter, EventGroup, SessionUsage, Tally, UsageRow, repeats_usage,
};
pub use events::Events;
pub use factory::{
    BackendFactory, BackupFile, Open, OpenFile, OpenRequest, OpenService, Opening, RestrictRoles, SalvageFile,
};
pub use info::{ServiceUsage, StoreInfo, StorePlace};
pub use integrity::{IndexCheck, IndexProblem, Integrity, StrayRows};
pub use locks::SessionLocks;
pub use messages::Messages;
pub use meta::Meta;
pub use other_rows::{OtherRow, OtherRowQuery, OtherRows, SupersededQuery};
pub use query::{
    PendingQuery, SequenceRange, SessionCursor, SessionName, SessionQuery, TextQuery, VectorQuery,
    has_required,
};
pub use salvage::{RemainingMessage, RemainingSession, RemainingTurns, SalvageSource};
pub use scheduling::{Scheduling, SyncGuard};
pub use search::{IndexUpdate, Search};
pub use sessions::Sessions;
pub use terms::{TermFinder, TermPattern};
pub use turn_lines::{TurnLine, TurnLines};
pub use turns::SummaryQuery;
pub use vectors::Vectors;

pub use crate::search::{Candidates, DatedMessage, TextCandidate, VectorCandidate};
use crate::{
    Error, ErrorKind, Result, Scope,
    model::{Digest, SessionKey, SupersededPiece, TurnSummary},
};

/// A store: everything that a backend implements.
pub trait StorageBackend:
    Meta + Sessions + Messages + Events + OtherRows + Vectors + Search + Integrity + Changes + Scheduling + Debug
{
}

impl<T> StorageBackend for T where
    T: Meta
        + Sessions
        + Messages
        + Events
        + OtherRows
        + Vectors
        + Search
        + Integrity
        + Changes
        + Scheduling
        + Debug
{
}

/// The traits of a backend, to call their methods on a concrete type. On a `dyn StorageBackend`, only
/// [`StorageBackendExt`] must be imported.
pub mod prelude {
    pub use super::{
        Changes as _, Events as _, Integrity as _, Messages as _, Meta as _, OtherRows as _, Scheduling as _,
        Search as _, Sessions as _, StorageBackend, StorageBackendExt as _, Vectors as _,
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
        self.delete_version(key.into()).await
    }

    /// As [`Self::delete_session`], but only the expected version.
    async fn delete_version(&self, session: SessionDeletion) -> Result<bool> {
        let mut deletion = self.delete_sessions(&[session]).await;
        for NotErased { file, error } in &deletion.remains {
            tracing::warn!(file = %file.display(), %error, "words of a deleted session could not be erased yet");
        }
        let missing =
            || Err(Error::new(ErrorKind::StorageIo, "the backend returned no result for a deletion"));
        deletion.deleted.pop().unwrap_or_else(missing)
    }

    /// A page of the digests of a session's events, in order of sequence.
    async fn event_digests(&self, key: &SessionKey, range: SequenceRange) -> Result<Vec<Digest>> {
        let states = self.event_states(key, range, false).await?;
        Ok(states.into_iter().map(|state| state.digest).collect())
    }

    /// A page of what a session's events say about times, in order of sequence.
    async fn event_times(&self, key: &SessionKey, range: SequenceRange) -> Result<Vec<EventTime>> {
        let states = self.event_states(key, range, true).await?;
        Ok(states.into_iter().filter_map(|state| state.time).collect())
    }

    /// [`OtherRows::list_other_rows`] of superseded lines.
    async fn list_superseded(&self, query: &SupersededQuery) -> Result<Vec<SupersededPiece>> {
        let rows = self.list_other_rows(&OtherRowQuery::Superseded(query.clone())).await?.into_iter();
        Ok(rows.filter_map(|row| if let OtherRow::Superseded(of) = row { Some(of) } else { None }).collect())
    }

    /// [`OtherRows::list_other_rows`] of summaries.
    async fn list_summaries(&self, query: &SummaryQuery) -> Result<Vec<TurnSummary>> {
        let rows = self.list_other_rows(&OtherRowQuery::Summaries(query.clone())).await?.into_iter();
        Ok(rows.filter_map(|row| if let OtherRow::Summary(of) = row { Some(of) } else { None }).collect())
    }

    /// [`OtherRows::list_other_rows`] of failures: the sequences of messages, with the reasons.
    async fn vector_failures(&self, generation: u32, key: &SessionKey) -> Result<Vec<(u32, String)>> {
        let query = OtherRowQuery::Failures { session: key.clone(), generation };
        let reason = |row| match row {
            OtherRow::Failure { sequence, reason } => Some((sequence, reason)),
            _ => None,
        };
        Ok(self.list_other_rows(&query).await?.into_iter().filter_map(reason).collect())
    }

    /// [`Changes::changes`], but waits up to `patience` until there are some. Returns an empty page after that time.
    async fn wait_for_changes(
        &self,
        scope: &Scope,
        after: &ChangeCursor,
        limit: usize,
        patience: Duration,
    ) -> Result<ChangePage> {
        let (begun, mut after, mut is_turn) = (Instant::now(), after.clone(), false);
        // Made before the first look, so that no write is missed between both.
        let mut hints = self.change_hints();
        loop {
            let page = self.changes(scope, Some(&after), limit).await?;
            if is_turn && page.cursor != after {
                hints.wake_others();
            }
            let left = patience.saturating_sub(begun.elapsed());
            if page.reset || !page.changes.is_empty() || left.is_zero() {
                return Ok(page);
            }
            after = page.cursor;
            is_turn = hints.wait(scope, left).await;
        }
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
