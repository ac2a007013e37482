//! Transcript lines in and out.

use super::{
    Extent, GivenEmbeddings, IngestReport, IngestTarget, LineOutcome, MessageEmbeddings, Readable,
    SessionStorage,
};
use crate::{
    Error, Result, Scope,
    backend::SequenceRange,
    model::{EmbeddingSpace, Message, RawJson, SessionId, Timestamp},
};

/// Lines to store, of a transcript or of an event log.
#[derive(Debug, Clone, PartialEq)]
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
    /// Vectors of these lines that the caller has: the provider is not asked for them. Default: none.
    pub embeddings: Option<GivenEmbeddings>,
}

impl SyncLines {
    /// The whole of a transcript or event log: what is stored beyond it is removed.
    #[must_use]
    pub fn whole(lines: Vec<RawJson>) -> Self {
        Self { lines, start_sequence: 0, extent: Extent::Whole, seen: None, embeddings: None }
    }

    /// Lines from `start_sequence` on: what is stored beyond them stays.
    #[must_use]
    pub fn starting_at(start_sequence: u32, lines: Vec<RawJson>) -> Self {
        Self { lines, start_sequence, extent: Extent::Part, seen: None, embeddings: None }
    }

    /// Sets the time for lines that name none.
    #[must_use]
    pub fn with_seen(mut self, seen: Timestamp) -> Self {
        self.seen = Some(seen);
        self
    }

    /// Sets vectors of these lines that the caller has made, with the model of `space`. A message that is named gets
    /// these and no others; the embedding provider makes those of the other messages.
    #[must_use]
    pub fn with_embeddings(mut self, space: EmbeddingSpace, of_messages: Vec<MessageEmbeddings>) -> Self {
        self.embeddings = Some(GivenEmbeddings { space, of_messages });
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
    /// `Validation` naming the line when one is bad, or when `start_sequence` lies beyond the end; with given vectors those
    /// of [`SessionStorage::store_embeddings`], before anything is stored; those of the backend.
    pub async fn sync_transcript_lines(
        &self,
        target: &IngestTarget,
        lines: SyncLines,
    ) -> Result<IngestReport> {
        if let Some(given) = &lines.embeddings {
            let checked = self.check_given(given, &lines.lines, lines.start_sequence).await;
            checked.map_err(|error| error.with_operation("sync_transcript_lines"))?;
        }
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
        if let Some(GivenEmbeddings { space, of_messages }) = lines.embeddings {
            self.store_embeddings(&target.key, &space, of_messages).await?;
        }
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
