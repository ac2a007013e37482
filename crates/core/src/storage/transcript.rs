//! Stores and reads transcript lines.

use super::{
    damage::Readable,
    embeddings::{GivenEmbeddings, MessageEmbeddings},
    ingest::{Extent, IngestReport, IngestTarget, LineOutcome},
    store::{Ingestion, RowReading, StoredVectors},
};
use crate::{
    Error, ErrorField, Result, Scope,
    model::{EmbeddingSpace, Message, RawJson, SessionId, Timestamp},
};

/// Lines of a transcript or an event log to store.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct SyncLines {
    /// The original lines.
    pub lines: Vec<RawJson>,
    /// The sequence of the first one. Default: 0.
    pub start_sequence: u32,
    /// Whether the lines are complete from `start_sequence` on. Default: [`Extent::Part`].
    pub extent: Extent,
    /// The time of lines that state no time. Default: now.
    pub seen: Option<Timestamp>,
    /// Vectors of these lines that the caller made instead of the provider. Default: none.
    pub embeddings: Option<GivenEmbeddings>,
}

impl SyncLines {
    /// A complete transcript or event log: stored rows after it are removed.
    #[must_use]
    pub fn whole(lines: Vec<RawJson>) -> Self {
        Self { lines, start_sequence: 0, extent: Extent::Whole, seen: None, embeddings: None }
    }

    /// Lines from `start_sequence` on: stored rows after them stay.
    #[must_use]
    pub fn starting_at(start_sequence: u32, lines: Vec<RawJson>) -> Self {
        Self { lines, start_sequence, extent: Extent::Part, seen: None, embeddings: None }
    }

    optional_setters! {
        /// Sets the time of lines that state no time.
        with_seen(seen: Timestamp);
    }

    /// Sets vectors of these lines that the caller made with the model of `space`. A message in `vectors` gets only
    /// these; the embedding provider makes the vectors of the other messages.
    #[must_use]
    pub fn with_embeddings(mut self, space: EmbeddingSpace, of_messages: Vec<MessageEmbeddings>) -> Self {
        self.embeddings = Some(GivenEmbeddings { space, of_messages });
        self
    }
}

impl Ingestion<'_> {
    /// Stores transcript lines and makes the vectors of new and changed lines.
    ///
    /// Either all lines are stored or nothing. If the embedding provider fails, the call still succeeds: the vectors
    /// are pending, and the next sync makes them.
    ///
    /// # Errors
    ///
    /// `Validation` with the line number if a line is invalid, or if `start_sequence` is beyond the end; with given
    /// vectors, the errors of [`Self::store_embeddings`], before anything is stored; errors of the backend.
    pub async fn sync_transcript_lines(
        self,
        target: &IngestTarget,
        lines: SyncLines,
    ) -> Result<IngestReport> {
        if let Some(given) = &lines.embeddings {
            let source = target.key.session_id.source();
            let checked = self.check_given(source, given, &lines.lines, lines.start_sequence).await;
            checked.map_err(|error| error.with_operation("sync_transcript_lines"))?;
        }
        let report = self
            .store
            .retry_conflicts(|| async {
                let mut ingest = self.ingest(target.clone()).await?.all_at_once();
                ingest.begin_transcript(lines.start_sequence).await?;
                let seen = lines.seen.unwrap_or_else(|| self.store.now());
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
        StoredVectors::new(self.store)
            .embed_pending(&target.key.user_id, Some(&target.key.session_id))
            .await?;
        Ok(report)
    }
}

impl RowReading<'_> {
    /// Up to `limit` messages of a session after `after_sequence`, in order. With `None`, starts at the first message.
    ///
    /// # Errors
    ///
    /// `SessionNotFound` if the session is not in `scope`; `Damaged` if one can't be read; errors of the backend.
    pub async fn get_transcript_lines(
        self,
        scope: &Scope,
        session_id: &SessionId,
        after_sequence: Option<u32>,
        limit: usize,
    ) -> Result<Vec<Message>> {
        self.readable_transcript_lines(scope, session_id, after_sequence, limit).await?.whole()
    }

    /// [`Self::get_transcript_lines`] without the messages that can't be read. There may be fewer than `limit` if the
    /// storage [counts them](crate::SessionStorage::with_read_meter).
    ///
    /// # Errors
    ///
    /// `SessionNotFound` if the session is not in `scope`; errors of the backend.
    pub async fn readable_transcript_lines(
        self,
        scope: &Scope,
        session_id: &SessionId,
        after_sequence: Option<u32>,
        limit: usize,
    ) -> Result<Readable<Message>> {
        let key = self.store.existing_session(scope, session_id).await?.key();
        let start = after_sequence.map_or(0, |sequence| sequence.saturating_add(1));
        let found = self.store.answered_rows(&key, start, limit, self.store.page_bytes()).await?;
        self.store.masked_messages(found).await
    }
}

/// For a caller that passes lines, an invalid line is an error; only a sync of files skips it.
pub(super) fn all_good(index: usize, outcome: LineOutcome) -> Result<()> {
    match outcome {
        LineOutcome::Taken | LineOutcome::Doubtful { .. } => Ok(()),
        LineOutcome::Skipped { kind, reason, .. } => {
            Err(Error::new(kind, reason).about(ErrorField::Lines).with("line", index + 1))
        }
    }
}
