//! Transcript lines in and out.

use super::{Extent, IngestReport, IngestTarget, LineOutcome, Readable, SessionStorage};
use crate::{
    Error, Result, Scope,
    backend::SequenceRange,
    model::{Message, RawJson, SessionId, Timestamp},
};

/// Lines to store, of a transcript or of an event log.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SyncLines {
    /// The lines as they came in.
    pub lines: Vec<RawJson>,
    /// The sequence of the first one. Default: 0.
    pub start_sequence: u32,
    /// Whether the lines are all there is from `start_sequence` on. Default: [`Extent::Part`].
    pub extent: Extent,
    /// The time for lines that name none. Default: now.
    pub seen: Option<Timestamp>,
}

impl SyncLines {
    /// The whole of a transcript or event log: what is stored beyond it is removed.
    #[must_use]
    pub fn whole(lines: Vec<RawJson>) -> Self {
        Self { lines, start_sequence: 0, extent: Extent::Whole, seen: None }
    }

    /// Lines from `start_sequence` on: what is stored beyond them stays.
    #[must_use]
    pub fn starting_at(start_sequence: u32, lines: Vec<RawJson>) -> Self {
        Self { lines, start_sequence, extent: Extent::Part, seen: None }
    }

    /// Sets the time for lines that name none.
    #[must_use]
    pub fn with_seen(mut self, seen: Timestamp) -> Self {
        self.seen = Some(seen);
        self
    }
}

impl SessionStorage {
    /// Stores transcript lines and makes the vectors of those that are new or changed.
    ///
    /// All lines are stored or none; a failing embedding provider does not fail the call: the vectors are owed then,
    /// and made by the next sync.
    ///
    /// # Errors
    ///
    /// `Validation` naming the line when one is bad, or when `start_sequence` lies beyond the end; those of the
    /// backend.
    pub async fn sync_transcript_lines(
        &self,
        target: &IngestTarget,
        lines: SyncLines,
    ) -> Result<IngestReport> {
        let report = self
            .retry_conflicts(|| async {
                let mut ingest = self.ingest(target.clone()).await?.all_at_once();
                ingest.begin_transcript(lines.start_sequence).await?;
                let seen = lines.seen.unwrap_or_else(|| self.now());
                for (index, line) in lines.lines.iter().enumerate() {
                    all_good(index, ingest.transcript_line(line.clone(), seen).await?)?;
                }
                ingest.end_transcript(lines.extent);
                ingest.commit().await
            })
            .await
            .map_err(|error| error.with_operation("sync_transcript_lines"))?;
        self.embed_owed(&target.key.user_id, Some(&target.key.session_id)).await?;
        Ok(report)
    }

    /// Up to `limit` messages of a session behind `after_sequence`, in order; from the first one with `None`.
    ///
    /// # Errors
    ///
    /// `SessionNotFound` when the session is not in `scope`; `Damaged` when one can't be read; those of the backend.
    pub async fn get_transcript_lines(
        &self,
        scope: &Scope,
        session_id: &SessionId,
        after_sequence: Option<u32>,
        limit: usize,
    ) -> Result<Vec<Message>> {
        self.readable_transcript_lines(scope, session_id, after_sequence, limit).await?.whole()
    }

    /// [`SessionStorage::get_transcript_lines`] without the messages that can't be read.
    ///
    /// # Errors
    ///
    /// `SessionNotFound` when the session is not in `scope`; those of the backend.
    pub async fn readable_transcript_lines(
        &self,
        scope: &Scope,
        session_id: &SessionId,
        after_sequence: Option<u32>,
        limit: usize,
    ) -> Result<Readable<Message>> {
        let key = self.existing_session(scope, session_id).await?.key();
        let mut found: Readable<Message> = Readable::default();
        let mut start = after_sequence.map_or(0, |sequence| sequence.saturating_add(1));
        while found.rows.len() < limit {
            let range = SequenceRange { start, limit: limit - found.rows.len() };
            let page: Vec<Message> = self.readable_page(&key, range, &mut found.damaged).await?;
            let Some(last) = page.last() else { break };
            start = last.sequence.saturating_add(1);
            found.rows.extend(page);
        }
        Ok(found)
    }
}

/// A caller that hands over lines wants to know of a bad one; only files are synced around it.
pub(super) fn all_good(index: usize, outcome: LineOutcome) -> Result<()> {
    match outcome {
        LineOutcome::Taken | LineOutcome::Doubtful { .. } => Ok(()),
        LineOutcome::Skipped { kind, reason } => {
            Err(Error::new(kind, reason).with("field", "lines").with("line", index + 1))
        }
    }
}
