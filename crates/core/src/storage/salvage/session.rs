//! A session while it is salvaged: its rows get new sequences, and fields that were lost are derived from them.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use crate::{
    backend::{MessageVectors, NewTurn, RemainingMessage, StorageBackend, StoredSession, meta::Generation},
    model::{ContentType, Digest, Event, SessionKey, StoredEvent, Timestamp, TurnEmbedding, VectorRecord},
    storage::{ingest::looks_derived, session_writer::SessionWriter},
};

/// The sync state of a session while it is written in parts. No sync recognises it, so a sync would read the files
/// again.
const SALVAGING: &str = "salvaging";

/// The new sequence of each message, and the digest of its line, by the sequence in the old store.
pub(super) type WrittenLines = BTreeMap<u32, (u32, Digest)>;

/// A session that is being written.
pub(super) struct SalvagedSession {
    pub(super) writer: SessionWriter,
    /// The times of the first and the last row.
    span: Option<(Timestamp, Timestamp)>,
    pub(super) lines: WrittenLines,
}

impl SalvagedSession {
    pub(super) fn new(
        backend: Arc<dyn StorageBackend>,
        stored: &StoredSession,
        generation: Option<u32>,
    ) -> Self {
        let StoredSession { session, metadata_files, skipped, .. } = stored;
        // One of two events with the same id is damaged.
        let writer = SessionWriter::new(backend, session.clone(), None, SALVAGING)
            .with_files(metadata_files.clone(), skipped.clone())
            .with_generation(generation)
            .with_frees_event_ids(true);
        Self { writer, span: None, lines: BTreeMap::new() }
    }

    pub(super) fn message(&mut self, remaining: RemainingMessage, generation: Option<&Generation>) {
        let RemainingMessage { mut message, vectors, vectors_created } = remaining;
        let sequence = self.writer.session().message_count;
        self.lines.insert(message.sequence, (sequence, message.digest));
        message.sequence = sequence;
        self.extend_span(message.ts);
        let (digest, created_at) = (message.digest, vectors_created.unwrap_or(message.synced_at));
        let line = message.line();
        let texts = line.texts();
        self.writer.line(message, line.fields(), &texts);
        let texts = texts.into_iter().map(|text| text.content_type);
        let embedded: BTreeSet<ContentType> =
            texts.filter(|content_type| ContentType::EMBEDDED.contains(content_type)).collect();
        let is_whole = |generation: &Generation| {
            let is_valid = vectors
                .iter()
                .all(|record| record.validate(&generation.space).is_ok() && has_unit_length(&record.vector));
            is_valid && are_complete(&vectors, &embedded)
        };
        if !embedded.is_empty() && generation.is_some_and(is_whole) {
            self.writer.vectors(MessageVectors {
                sequence,
                digest,
                created_at,
                records: vectors,
                failure: None,
            });
        }
    }

    pub(super) fn event(&mut self, mut stored: StoredEvent) {
        let event = &mut stored.event;
        event.sequence = self.writer.session().event_count;
        // Another derived id is that of another event, because rows before this one are missing or the id is damaged.
        if looks_derived(&event.event_id) {
            event.event_id = Event::derived_id(&event.session_id, event.sequence);
        }
        self.extend_span(event.ts);
        self.writer.event(stored);
    }

    fn extend_span(&mut self, ts: Timestamp) {
        let (first, last) = self.span.unwrap_or((ts, ts));
        self.span = Some((first.min(ts), last.max(ts)));
    }

    /// Sets the fields that come from the rows.
    pub(super) fn describe(&mut self, is_derived: bool) {
        let (turns, title) = (self.writer.turns(), self.writer.title().map(str::to_owned));
        let session = self.writer.session_mut();
        session.turn_count = turns;
        if !is_derived {
            return;
        }
        session.first_prompt = title;
        let Some((first, last)) = self.span else { return };
        if session.created == Timestamp::from_micros(0) {
            session.created = first;
        }
        session.updated = session.updated.max(last);
    }
}

/// An embedding of a turn for the new store, if its messages were written and it is usable.
pub(super) fn salvaged_turn(
    key: &SessionKey,
    lines: &WrittenLines,
    mut embedding: TurnEmbedding,
) -> Option<NewTurn> {
    let (user, user_digest) = *lines.get(&embedding.user_sequence)?;
    let assistant = match embedding.assistant_sequence {
        Some(sequence) => Some(*lines.get(&sequence)?),
        None => None,
    };
    (embedding.user_sequence, embedding.assistant_sequence) = (user, assistant.map(|(sequence, _)| sequence));
    let is_usable = embedding.validate().is_ok()
        && (has_unit_length(&embedding.vector) || embedding.vector.iter().all(|x| *x == 0.0))
        && TurnEmbedding::hash(&embedding.content_used) == embedding.content_hash;
    let made_at = embedding.created_at;
    let embedding = embedding.with_new_id(key, made_at);
    let assistant_digest = assistant.map(|(_, digest)| digest);
    is_usable.then(|| NewTurn { session: key.clone(), embedding, user_digest, assistant_digest })
}

/// Vectors have no digest, but every written vector has this length.
fn has_unit_length(vector: &[f32]) -> bool {
    let square: f32 = vector.iter().map(|x| x * x).sum();
    (square - 1.0).abs() < 0.01
}

/// Whether every text of a message has all of its vectors.
fn are_complete(vectors: &[VectorRecord], texts: &BTreeSet<ContentType>) -> bool {
    let found: BTreeSet<ContentType> = vectors.iter().map(|record| record.content_type).collect();
    let has_all = |content_type: &ContentType| {
        let mut of_text = vectors.iter().filter(|record| record.content_type == *content_type);
        let total = of_text.clone().next().map_or(0, |record| record.total_chunks);
        of_text.all(|record| record.total_chunks == total)
            && vectors.iter().filter(|record| record.content_type == *content_type).count() == total as usize
    };
    found == *texts && texts.iter().all(has_all)
}
