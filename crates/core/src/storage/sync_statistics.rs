//! The stored rows of a session, and missing ones.

use std::ops::RangeInclusive;

use serde::Serialize;

use super::{SessionStorage, damage::SequencedRow};
use crate::{
    Error, Result, Scope,
    backend::{RowSpan, SequenceRange, SessionRows, SkippedLine},
    model::{Event, Message, SessionId, SessionKey},
};

/// The stored rows of a session.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct SyncStatistics {
    /// Its rows.
    #[serde(flatten)]
    pub rows: SessionRows,
    /// Sequences without a message before the last one: empty unless the store was damaged.
    pub missing_messages: Vec<RangeInclusive<u32>>,
    /// Sequences without an event before the last one.
    pub missing_events: Vec<RangeInclusive<u32>>,
    /// Lines of the session's files that were skipped, and why.
    pub skipped: Vec<SkippedLine>,
}

impl SessionStorage {
    /// The stored rows of a session, and missing ones.
    ///
    /// # Errors
    ///
    /// `SessionNotFound` if the session is not in `scope`; errors of the backend.
    pub async fn get_sync_statistics(&self, scope: &Scope, session_id: &SessionId) -> Result<SyncStatistics> {
        let key = self.existing_session(scope, session_id).await?.key();
        let stored = self.backend.get_session(&key).await?;
        let stored = stored.ok_or_else(|| Error::session_not_found(session_id))?;
        let rows = self.backend.session_rows(&key).await?;
        Ok(SyncStatistics {
            missing_messages: self.gaps::<Message>(&key, rows.messages).await?,
            missing_events: self.gaps::<Event>(&key, rows.events).await?,
            skipped: stored.skipped,
            rows,
        })
    }

    async fn gaps<T: SequencedRow>(
        &self,
        key: &SessionKey,
        span: RowSpan,
    ) -> Result<Vec<RangeInclusive<u32>>> {
        const PAGE: usize = 1_000;
        let mut gaps = Vec::new();
        let end = span.last_sequence.map_or(0, |last| u64::from(last) + 1);
        if span.count == end {
            return Ok(gaps);
        }
        let mut next = 0;
        loop {
            let rows = T::read(&*self.backend, key, SequenceRange { start: next, limit: PAGE }).await?;
            if rows.is_empty() {
                return Ok(gaps);
            }
            for sequence in rows.iter().map(T::sequence) {
                if sequence > next {
                    gaps.push(next..=sequence - 1);
                }
                next = sequence.saturating_add(1);
            }
        }
    }
}
