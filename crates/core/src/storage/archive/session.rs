//! A session that is being imported.

use super::{
    super::line_masker::LineMasker, ArchivedTurn, EventRecord, ImportOptions, MessageRecord, SessionRecord,
    SupersededRecord, digest, invalid, superseded::Packing, turns::ReadTurns, vectors,
};
use crate::{
    Result,
    backend::{MessageVectors, SessionChange, StoredSession},
    content::{TitleFinder, extract},
    events,
    model::{
        ContentType, Digest, EmbeddingSpace, Event, Message, MetadataFile, Payload, Session, StoredEvent,
        VectorState,
    },
};

/// The sync state of a session while it is written in parts. No sync recognises it, so a sync would read the files
/// again.
pub(super) const IMPORTING: &str = "importing";

/// A session that is being read.
#[derive(Debug)]
pub(super) struct Reading {
    /// Its rows that are not written yet.
    pub(super) change: SessionChange,
    /// The session, with all counts.
    pub(super) session: Session,
    pub(super) sync_state: Option<String>,
    /// Why it will be rejected, if that is known already. Its rows are not collected then.
    pub(super) refused: Option<String>,
    /// Whether it replaces a stored session.
    pub(super) replaces: bool,
    /// Whether it was deleted from the store.
    pub(super) was_deleted: bool,
    /// The number of messages and events so far.
    pub(super) rows: (u32, u32),
    /// The number of superseded lines so far.
    pub(super) superseded_lines: u64,
    /// The space of its vectors.
    pub(super) space: Option<EmbeddingSpace>,
    /// Vectors of its messages that are not written yet.
    pub(super) vectors: Vec<MessageVectors>,
    /// The number of vectors that were written.
    pub(super) vectors_written: u64,
    /// The number of vectors of another space than that of the store.
    pub(super) vectors_left_out: u64,
    /// The summaries and embeddings of its turns that were read.
    pub(super) turns: ReadTurns,
    /// The number of embeddings of turns that were written.
    pub(super) turns_written: u64,
    /// The number of summaries of turns that were written.
    pub(super) summaries_written: u64,
    pub(super) packing: Packing,
    /// Ids of events that must still be looked up.
    pub(super) ids: Vec<String>,
    /// The size of the lines in `change`.
    pub(super) bytes: usize,
    /// Whether the position after its first record is marked.
    pub(super) can_return: bool,
    pub(super) stage: Stage,
    /// Masks secrets in its lines.
    masker: LineMasker,
    title: TitleFinder,
}

/// How a session is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// Its rows are collected, and written at its end.
    Collecting,
    /// Its rows are only checked.
    Checking,
    /// It is complete, and its rows are written in parts.
    Writing,
}

impl Reading {
    pub(super) fn new(
        record: SessionRecord,
        stored: Option<StoredSession>,
        options: &ImportOptions,
        can_return: bool,
        masker: LineMasker,
    ) -> Result<Self> {
        let SessionRecord { mut session, metadata_files, skipped, sync_state, embedding_space } = record;
        if masker.is_on() {
            session.name = masker.mask_text(session.name)?;
            session.description = masker.mask_text(session.description)?;
            // It comes from the masked lines.
            session.first_prompt = None;
        }
        let state = stored.as_ref().and_then(|stored| stored.sync_state.as_deref());
        // An import was interrupted, and left a part of the session.
        let is_part = state == Some(IMPORTING);
        let refused = match (&stored, &options.owner) {
            (_, Some(owner)) if *owner != session.user_id => Some("it belongs to another user".to_owned()),
            (Some(_), _) if !options.replace && !is_part => {
                Some("a session with this id already exists".to_owned())
            }
            _ => None,
        };
        let had_state = state.is_some();
        let replaces = stored.is_some() && !is_part;
        let files = metadata_files.into_iter();
        let files = files.map(|file| Ok(MetadataFile { name: file.name, raw: file.raw.whole()? }));
        let mut change = SessionChange::new(session.clone(), stored.map(|stored| stored.version));
        change.metadata_files = Some(masker.mask_files(files.collect::<Result<_>>()?)?);
        change.skipped = Some(skipped);
        (change.messages.truncate, change.events.truncate) = (Some(0), Some(0));
        Ok(Self {
            change,
            session,
            // An empty state is better than that of the replaced session.
            sync_state: sync_state.or_else(|| had_state.then(String::new)),
            refused,
            replaces,
            was_deleted: false,
            rows: (0, 0),
            superseded_lines: 0,
            space: embedding_space,
            vectors: Vec::new(),
            vectors_written: 0,
            vectors_left_out: 0,
            turns: ReadTurns::default(),
            turns_written: 0,
            summaries_written: 0,
            packing: Packing::default(),
            ids: Vec::new(),
            bytes: 0,
            can_return,
            stage: Stage::Collecting,
            masker,
            title: TitleFinder::default(),
        })
    }

    pub(super) fn message(&mut self, record: MessageRecord) -> Result<()> {
        if self.refused.is_some() {
            return Ok(());
        }
        next(&mut self.rows.0, record.sequence)?;
        let raw = record.raw.whole()?;
        let mut object = raw.parse_object()?;
        if self.stage == Stage::Checking {
            return Ok(());
        }
        let (raw, secrets) = self.masker.mask_now(raw)?;
        if secrets > 0 {
            object = raw.parse_object()?;
        }
        if self.masker.is_on() {
            self.title.observe(&object);
            self.session.first_prompt = self.title.found().map(str::to_owned);
        }
        let texts = extract(&object, record.role);
        let embeddable = texts.iter().any(|text| ContentType::EMBEDDED.contains(&text.content_type));
        let Session { user_id, host_id, project_slug, session_id, .. } = self.session.clone();
        self.bytes += raw.as_bytes().len();
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
            vectors: if embeddable { VectorState::Pending } else { VectorState::Nothing },
            digest: Digest::of(raw.as_bytes()),
            raw,
        };
        // Vectors of a line with secrets do not fit the masked line.
        if let Some(space) = self.space.clone().filter(|_| secrets == 0) {
            let made = vectors::of_message(&message, &texts, &space, record.vectors, record.vector_failure)?;
            self.bytes += made.as_ref().map_or(0, MessageVectors::vector_bytes);
            self.vectors.extend(made);
            self.turn_embeddings(&message, &space, record.turn_embeddings)?;
        }
        if let Some(summary) = record.turn_summary {
            self.turns.summaries.push(summary.into_summary(&message, &self.masker)?);
        }
        self.change.messages.put.push(message);
        Ok(())
    }

    /// Reads the embeddings of the turn that a message begins, except for embeddings of texts whose secrets are masked.
    fn turn_embeddings(
        &mut self,
        message: &Message,
        space: &EmbeddingSpace,
        archived: Vec<ArchivedTurn>,
    ) -> Result<()> {
        for embedding in archived {
            let embedding = embedding.into_embedding(message, space)?;
            let text = Some(embedding.content_used.clone());
            if !self.masker.is_on() || self.masker.mask_text(text.clone())? == text {
                self.turns.embeddings.push(embedding);
            }
        }
        Ok(())
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
        if self.stage != Stage::Writing {
            self.ids.push(record.event_id.clone());
        }
        if self.stage == Stage::Checking {
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
                self.bytes += raw.as_bytes().len();
                events::store(&raw, data_size_bytes)?
            }
            None => Payload::None,
        };
        let chunk_count = match &payload {
            Payload::Chunks(chunks) => Some(chunks.len() as u32),
            _ => None,
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
            is_chunked: chunk_count.is_some(),
            chunk_count,
            data_size_bytes,
            synced_at: record.synced_at,
            digest,
        };
        self.change.events.put.push(StoredEvent { event, payload });
        Ok(())
    }

    pub(super) fn superseded(&mut self, record: SupersededRecord) -> Result<()> {
        if self.refused.is_some() {
            return Ok(());
        }
        self.superseded_lines += 1;
        if self.stage != Stage::Checking {
            let pieces = self.packing.add(&self.session.key(), record, &self.masker)?;
            self.bytes += pieces.iter().map(|piece| piece.data.len()).sum::<usize>();
            self.change.superseded.extend(pieces);
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

    /// Discards what was read of the session, to read it again.
    pub(super) fn restart(&mut self, stage: Stage) {
        self.change.messages.put.clear();
        self.change.events.put.clear();
        self.change.superseded.clear();
        self.vectors.clear();
        self.turns = ReadTurns::default();
        self.packing = Packing::default();
        self.superseded_lines = 0;
        self.ids.clear();
        (self.rows, self.bytes, self.stage) = ((0, 0), 0, stage);
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
