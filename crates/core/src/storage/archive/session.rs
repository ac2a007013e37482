//! A session that is being imported.

use std::sync::Arc;

use super::{
    super::{line_masker::LineMasker, session_writer::SessionWriter},
    ArchivedTurn, EventRecord, ImportOptions, MessageRecord, SessionRecord, SupersededRecord, digest,
    invalid,
    superseded::Packing,
    vectors,
};
use crate::{
    Result,
    backend::{StorageBackend, StoredSession, StoredSyncState},
    content::MessageLine,
    events,
    model::{
        Digest, EmbeddingSpace, Event, Message, MetadataFile, Payload, Session, StoredEvent, TurnSummary,
        VectorRecord, VectorState,
    },
};

/// The sync state of a session while it is written in parts. No sync recognises it, so a sync would read the files
/// again.
pub(super) const IMPORTING: &str = "importing";

/// A session that is being read.
#[derive(Debug)]
pub(super) struct SessionReading {
    /// Writes its rows.
    pub(super) writer: SessionWriter,
    /// A writer without rows, to read the session again.
    empty: SessionWriter,
    pub(super) session: Session,
    pub(super) sync_state: Option<StoredSyncState>,
    /// Why it will be rejected, if that is known already. Its rows are not collected then.
    pub(super) refused: Option<String>,
    /// Whether it replaces a stored session.
    pub(super) replaces: bool,
    /// Whether it was deleted from the store.
    pub(super) was_deleted: bool,
    /// The number of messages and events so far.
    pub(super) rows: (u32, u32),
    /// The space of its vectors.
    pub(super) space: Option<EmbeddingSpace>,
    /// See [`ImportOptions`].
    pub(super) only_known_space: bool,
    /// The summaries of its turns that were read.
    pub(super) summaries: Vec<TurnSummary>,
    pub(super) packing: Packing,
    /// Ids of events that must still be looked up.
    pub(super) ids: Vec<String>,
    /// Whether the position after its first record is marked.
    pub(super) can_return: bool,
    pub(super) stage: WriteStage,
    /// Masks secrets in its lines.
    masker: LineMasker,
}

/// How a session is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WriteStage {
    /// Its rows are collected, and written at its end.
    Collecting,
    /// Its rows are only checked.
    Checking,
    /// It is complete, and its rows are written in parts.
    Writing,
}

impl SessionReading {
    pub(super) fn new(
        backend: Arc<dyn StorageBackend>,
        record: SessionRecord,
        stored: Option<StoredSession>,
        options: &ImportOptions,
        can_return: bool,
        masker: LineMasker,
    ) -> Result<Self> {
        let SessionRecord { mut session, metadata_files, skipped, sync_state, embedding_space, .. } = record;
        if masker.is_on() {
            session.name = masker.mask_text(session.name)?;
            session.description = masker.mask_text(session.description)?;
            // It comes from the masked lines.
            session.first_prompt = None;
        }
        let state = stored.as_ref().and_then(|stored| stored.sync_state.as_ref());
        // An import was interrupted, and left a part of the session.
        let is_part = state.is_some_and(|state| state.files == IMPORTING);
        let refused = match (&stored, &options.owner) {
            (_, Some(owner)) if *owner != session.user_id => Some("it belongs to another user".to_owned()),
            (Some(_), _) if !options.replace && !is_part => {
                Some("a session with this id already exists".to_owned())
            }
            _ => None,
        };
        let replaces = stored.is_some() && !is_part;
        let files = metadata_files.into_iter();
        let files = files.map(|file| Ok(MetadataFile { name: file.name, raw: file.raw.whole()? }));
        let files = masker.mask_files(files.collect::<Result<_>>()?)?;
        let writer = SessionWriter::new(backend, session.clone(), stored.as_ref(), IMPORTING)
            .with_files(files, skipped);
        Ok(Self {
            empty: writer.clone(),
            writer,
            session,
            sync_state,
            refused,
            replaces,
            was_deleted: false,
            rows: (0, 0),
            space: embedding_space,
            only_known_space: options.only_known_space,
            summaries: Vec::new(),
            packing: Packing::default(),
            ids: Vec::new(),
            can_return,
            stage: WriteStage::Collecting,
            masker,
        })
    }

    pub(super) fn message(&mut self, record: MessageRecord) -> Result<()> {
        if self.refused.is_some() {
            return Ok(());
        }
        next(&mut self.rows.0, record.sequence)?;
        let raw = record.raw.whole()?;
        let source = self.session.session_id.source();
        let mut line = MessageLine::with_role(&raw, record.role, source)?;
        if self.stage == WriteStage::Checking {
            return Ok(());
        }
        let (raw, secrets) = self.masker.mask_now(raw)?;
        if secrets > 0 {
            line = MessageLine::with_role(&raw, record.role, source)?;
        }
        let texts = line.texts();
        let Session { user_id, host_id, project_slug, session_id, .. } = self.session.clone();
        let message = Message {
            user_id,
            host_id,
            project_slug,
            session_id,
            sequence: record.sequence,
            role: record.role,
            turn: record.turn,
            ts: record.ts,
            ts_source: record.ts_source,
            synced_at: record.synced_at,
            vectors: VectorState::before_embedding(texts.iter().map(|text| text.content_type)),
            digest: Digest::of(raw.as_bytes()),
            raw,
        };
        // Vectors of a line with secrets do not fit the masked line.
        if let Some(space) = self.space.clone().filter(|_| secrets == 0) {
            let made = vectors::of_message(&message, &texts, &space, record.vectors, record.vector_failure)?;
            if let Some(mut made) = made {
                let is_pending = record.turn_embeddings.iter().any(|turn| turn.is_pending);
                let turn = self.turn_embedding(&message, &space, record.turn_embeddings)?;
                made.turn = turn.as_ref().filter(|_| !is_pending).map(|_| message.digest);
                made.records.get_or_insert_default().extend(turn);
                self.writer.vectors(made);
            }
        }
        if let Some(summary) = record.turn_summary {
            self.summaries.push(summary.into_summary(&message, &self.masker)?);
        }
        self.writer.line(message, line.fields(), &texts);
        if self.masker.is_on() {
            self.writer.session_mut().first_prompt = self.writer.title().map(str::to_owned);
        }
        Ok(())
    }

    /// The vector of the turn that a message begins, unless its text has secrets, which are masked. Of several, which
    /// providers of one model made, the last.
    fn turn_embedding(
        &self,
        message: &Message,
        space: &EmbeddingSpace,
        archived: Vec<ArchivedTurn>,
    ) -> Result<Option<VectorRecord>> {
        let mut last = None;
        for embedding in archived {
            let record = embedding.into_record(message, space)?;
            let text = record.turn.as_ref().map(|turn| turn.content_used.clone());
            if !self.masker.is_on() || self.masker.mask_text(text.clone())? == text {
                last = Some(record);
            }
        }
        Ok(last)
    }

    pub(super) fn event(&mut self, record: EventRecord) -> Result<()> {
        if self.refused.is_some() {
            return Ok(());
        }
        next(&mut self.rows.1, record.sequence)?;
        let stated = digest(&record.digest)?;
        let raw = record.raw.kept()?;
        if raw.as_ref().is_some_and(|raw| Digest::of(raw.as_bytes()) != stated) {
            return Err(invalid(
                "the line of the event is not the one that was exported: its digest does not match",
            ));
        }
        // Rows that are written were checked before, and their ids looked up.
        if self.stage != WriteStage::Writing {
            self.ids.push(record.event_id.clone());
        }
        if self.stage == WriteStage::Checking {
            return Ok(());
        }
        let (mut digest, mut data_size_bytes) = (stated, record.data_size_bytes);
        let payload = match raw {
            Some(raw) => {
                let (raw, secrets) = self.masker.mask_now(raw)?;
                if secrets > 0 {
                    digest = Digest::of(raw.as_bytes());
                    data_size_bytes = events::parse_event_line(&raw)?.data_size_bytes;
                }
                events::store(&raw, data_size_bytes)?
            }
            None => Payload::None,
        };
        let Session { user_id, host_id, project_slug, session_id, .. } = self.session.clone();
        let event = Event {
            event_id: record.event_id,
            user_id,
            host_id,
            project_slug,
            session_id,
            sequence: record.sequence,
            event_type: record.event_type,
            ts: record.ts,
            ts_estimated: record.ts_estimated,
            turn: record.turn,
            level: record.level,
            tool_name: record.tool_name,
            error_type: record.error_type,
            model: record.model,
            provider: record.provider,
            summary: record.summary,
            is_chunked: false,
            chunk_count: None,
            data_size_bytes,
            synced_at: record.synced_at,
            digest,
        };
        self.writer.event(StoredEvent::new(event, payload));
        Ok(())
    }

    pub(super) fn superseded(&mut self, record: SupersededRecord) -> Result<()> {
        if self.refused.is_some() {
            return Ok(());
        }
        if self.stage != WriteStage::Checking {
            self.writer.superseded(self.packing.add(&self.session.key(), record, &self.masker)?);
        }
        Ok(())
    }

    /// Checks that no row is missing. Both the first and the last record of the session state the number of its rows.
    pub(super) fn check_end(&self, stated: (u32, u32)) -> Result<()> {
        let counted = (self.session.message_count, self.session.event_count);
        if self.refused.is_some() || (self.rows == stated && self.rows == counted) {
            return Ok(());
        }
        Err(invalid("rows of the session are missing"))
    }

    /// The writer, which is replaced by one without rows.
    pub(super) fn take_writer(&mut self) -> SessionWriter {
        std::mem::replace(&mut self.writer, self.empty.clone())
    }

    /// Discards what was read of the session, to read it again.
    pub(super) fn restart(&mut self, stage: WriteStage) {
        self.take_writer();
        self.summaries.clear();
        self.packing = Packing::default();
        self.ids.clear();
        (self.rows, self.stage) = ((0, 0), stage);
    }
}

/// Rows must come in order, without gaps.
fn next(rows: &mut u32, sequence: u32) -> Result<()> {
    if *rows != sequence {
        return Err(invalid(format!("row {sequence} is out of order: expected row {rows}")));
    }
    *rows += 1;
    Ok(())
}
