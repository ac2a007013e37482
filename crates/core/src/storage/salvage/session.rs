//! A session while it is salvaged: its rows get new sequences, and fields that were lost are derived from them.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use crate::{
    backend::{MessageVectors, RemainingMessage, StorageBackend, StoredSession, meta::Generation},
    model::{
        ContentType, Digest, EmbeddedTurn, Event, SessionKey, StoredEvent, Timestamp, VectorRecord,
        VectorText,
    },
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
        let key = message.message_ref().session;
        let old_sequence = message.sequence;
        let sequence = self.writer.session().message_count;
        self.lines.insert(message.sequence, (sequence, message.digest));
        message.sequence = sequence;
        self.extend_span(message.ts);
        let (digest, created_at) = (message.digest, vectors_created.unwrap_or(message.synced_at));
        let line = message.line();
        let texts = line.texts();
        self.writer.line(message, line.fields(), &texts);
        let texts = texts.into_iter().map(|text| text.content_type);
        let embedded: BTreeSet<VectorText> =
            texts.filter(|of| ContentType::EMBEDDED.contains(of)).map(VectorText::from).collect();
        let Some(Generation { space, .. }) = generation.filter(|_| !embedded.is_empty()) else { return };
        let is_valid =
            |record: &VectorRecord| record.validate(space).is_ok() && has_unit_length(&record.vector);
        let (of_turn, mut records): (Vec<_>, Vec<_>) =
            vectors.into_iter().partition(|record| record.text == VectorText::Turn);
        if records.iter().all(is_valid) && are_complete(&records, &embedded) {
            let moved = of_turn.into_iter().filter(is_valid);
            records
                .extend(moved.map(|record| moved_turn(record, &key, old_sequence, sequence, &space.model)));
            self.writer.vectors(MessageVectors::new(sequence, digest, created_at, records));
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

/// The vector of a turn whose user message has a new sequence. It stays pending: whether a line of the turn is lost
/// turns out later, and the next embedding compares it with the turn and keeps it if it is right.
fn moved_turn(mut record: VectorRecord, key: &SessionKey, from: u32, to: u32, model: &str) -> VectorRecord {
    if let Some(turn) = &mut record.turn {
        turn.assistant_sequence =
            turn.assistant_sequence.map(|of| of.saturating_sub(from).saturating_add(to));
        turn.id = EmbeddedTurn::new_id(key, to, &turn.provider, model, turn.created_at);
    }
    record
}

/// Vectors have no digest, but every written vector has this length.
fn has_unit_length(vector: &[f32]) -> bool {
    let square: f32 = vector.iter().map(|x| x * x).sum();
    (square - 1.0).abs() < 0.01
}

/// Whether every text of a message has all of its vectors.
fn are_complete(vectors: &[VectorRecord], texts: &BTreeSet<VectorText>) -> bool {
    let found: BTreeSet<VectorText> = vectors.iter().map(|record| record.text).collect();
    let has_all = |text: &VectorText| {
        let mut of_text = vectors.iter().filter(|record| record.text == *text);
        let total = of_text.clone().next().map_or(0, |record| record.total_chunks);
        of_text.all(|record| record.total_chunks == total)
            && vectors.iter().filter(|record| record.text == *text).count() == total as usize
    };
    found == *texts && texts.iter().all(has_all)
}
