//! The stored rows of a session, and missing ones.

use std::ops::RangeInclusive;

use serde::Serialize;

use crate::{
    Error, Result, Scope,
    backend::{RowCounts, SkippedLine},
    model::{Event, Message, SessionId},
    storage::store::{StoreStatistics, Verification},
};

/// The stored rows of a session.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct SyncStatistics {
    /// Its rows.
    #[serde(flatten)]
    pub rows: RowCounts,
    /// Sequences without a message before the last one: empty unless the store was damaged.
    pub missing_messages: Vec<RangeInclusive<u32>>,
    /// Sequences without an event before the last one.
    pub missing_events: Vec<RangeInclusive<u32>>,
    /// Lines of the session's files that were skipped, and why.
    pub skipped: Vec<SkippedLine>,
}

impl StoreStatistics<'_> {
    /// The lines of a session's files that were skipped, and why.
    ///
    /// # Errors
    ///
    /// `SessionNotFound` if the session is not in `scope`; errors of the backend.
    pub async fn skipped_lines(self, scope: &Scope, session_id: &SessionId) -> Result<Vec<SkippedLine>> {
        let key = self.store.existing_session(scope, session_id).await?.key();
        let stored = self.store.backend.get_session(&key).await?;
        Ok(stored.ok_or_else(|| Error::session_not_found(session_id))?.skipped)
    }

    /// The stored rows of a session, and missing ones.
    ///
    /// # Errors
    ///
    /// `SessionNotFound` if the session is not in `scope`; errors of the backend.
    pub async fn get_sync_statistics(self, scope: &Scope, session_id: &SessionId) -> Result<SyncStatistics> {
        let key = self.store.existing_session(scope, session_id).await?.key();
        let stored = self.store.backend.get_session(&key).await?;
        let stored = stored.ok_or_else(|| Error::session_not_found(session_id))?;
        let rows = self.store.backend.session_rows(&key).await?;
        Ok(SyncStatistics {
            missing_messages: ranges(
                Verification::new(self.store).gaps_of::<Message>(&key, rows.messages, 0).await?,
            ),
            missing_events: ranges(
                Verification::new(self.store).gaps_of::<Event>(&key, rows.events, 0).await?,
            ),
            skipped: stored.skipped,
            rows,
        })
    }
}

fn ranges(gaps: Vec<(u32, u32)>) -> Vec<RangeInclusive<u32>> {
    gaps.into_iter().map(|(first, last)| first..=last).collect()
}
