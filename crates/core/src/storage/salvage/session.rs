//! A session while it is salvaged: its rows get new sequences, and fields that were lost are derived from them.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use crate::{
    backend::{MessageVectors, NewTurn, RemainingMessage, SessionChange, StoredSession, meta::Generation},
    content::{TitleFinder, extract},
    model::{
        ContentType, Digest, Event, Payload, Session, SessionKey, StoredEvent, SupersededPiece, Timestamp,
        TurnEmbedding, VectorRecord, VectorState,
    },
    storage::ingest::looks_derived,
};

/// A session that is being written.
pub(super) struct SalvagedSession {
    pub(super) session: Session,
    /// The next change to write.
    pub(super) change: SessionChange,
    pub(super) vectors: Vec<MessageVectors>,
    pub(super) bytes: usize,
    title: TitleFinder,
    turns: BTreeSet<u32>,
    /// The times of the first and the last row.
    span: Option<(Timestamp, Timestamp)>,
    /// The number of superseded lines.
    pub(super) superseded: u64,
    /// The new sequence of each message, and the digest of its line, by the sequence in the old store.
    pub(super) lines: BTreeMap<u32, (u32, Digest)>,
    /// The ids of its events.
    event_ids: HashSet<String>,
}

impl SalvagedSession {
    pub(super) fn new(stored: &StoredSession) -> Self {
        let mut session = stored.session.clone();
        (session.message_count, session.event_count) = (0, 0);
        let mut change = SessionChange::new(session.clone(), None);
        change.metadata_files = Some(stored.metadata_files.clone());
        change.skipped = Some(stored.skipped.clone());
        Self {
            session,
            change,
            vectors: Vec::new(),
            bytes: 0,
            title: TitleFinder::default(),
            turns: BTreeSet::new(),
            span: None,
            superseded: 0,
            lines: BTreeMap::new(),
            event_ids: HashSet::new(),
        }
    }

    /// An embedding of a turn for the new store, if its messages were written and it is usable.
    pub(super) fn turn(&self, key: &SessionKey, mut embedding: TurnEmbedding) -> Option<NewTurn> {
        let (user, user_digest) = *self.lines.get(&embedding.user_sequence)?;
        let assistant = match embedding.assistant_sequence {
            Some(sequence) => Some(*self.lines.get(&sequence)?),
            None => None,
        };
        (embedding.user_sequence, embedding.assistant_sequence) =
            (user, assistant.map(|(sequence, _)| sequence));
        let is_usable = embedding.validate().is_ok()
            && (has_unit_length(&embedding.vector) || embedding.vector.iter().all(|x| *x == 0.0))
            && TurnEmbedding::hash(&embedding.content_used) == embedding.content_hash;
        let made_at = embedding.created_at;
        let embedding = embedding.with_new_id(key, made_at);
        let assistant_digest = assistant.map(|(_, digest)| digest);
        is_usable.then(|| NewTurn { session: key.clone(), embedding, user_digest, assistant_digest })
    }

    pub(super) fn message(&mut self, remaining: RemainingMessage, generation: Option<&Generation>) {
        let RemainingMessage { mut message, vectors, vectors_created } = remaining;
        self.lines.insert(message.sequence, (self.session.message_count, message.digest));
        message.sequence = self.session.message_count;
        let line = message.raw.parse_object().unwrap_or_default();
        let texts = extract(&line, message.role).into_iter().map(|text| text.content_type);
        let embedded: BTreeSet<ContentType> =
            texts.filter(|content_type| ContentType::EMBEDDED.contains(content_type)).collect();
        message.vectors = if embedded.is_empty() { VectorState::Nothing } else { VectorState::Pending };
        let is_whole = |generation: &Generation| {
            let is_valid = vectors
                .iter()
                .all(|record| record.validate(&generation.space).is_ok() && has_unit_length(&record.vector));
            is_valid && are_complete(&vectors, &embedded)
        };
        if !embedded.is_empty() && generation.is_some_and(is_whole) {
            let vectors = MessageVectors {
                sequence: message.sequence,
                digest: message.digest,
                created_at: vectors_created.unwrap_or(message.synced_at),
                records: vectors,
                failure: None,
            };
            self.bytes += vectors.vector_bytes();
            self.vectors.push(vectors);
        }
        self.title.observe(&line);
        self.turns.extend(message.turn);
        self.extend_span(message.ts);
        self.bytes += message.raw.as_bytes().len();
        self.session.message_count += 1;
        self.change.messages.put.push(message);
    }

    pub(super) fn event(&mut self, mut stored: StoredEvent) {
        let event = &mut stored.event;
        event.sequence = self.session.event_count;
        // Another derived id is that of another event, because rows before this one are missing or the id is damaged.
        if looks_derived(&event.event_id) || !self.event_ids.insert(event.event_id.clone()) {
            event.event_id = Event::derived_id(&event.session_id, event.sequence);
        }
        self.extend_span(stored.event.ts);
        self.bytes += match &stored.payload {
            Payload::None => 0,
            Payload::Plain(bytes) | Payload::Zstd(bytes) => bytes.len(),
            Payload::Chunks(chunks) => chunks.iter().map(Vec::len).sum(),
        };
        self.session.event_count += 1;
        self.change.events.put.push(stored);
    }

    pub(super) fn superseded(&mut self, lines: usize, pieces: Vec<SupersededPiece>) {
        self.superseded += lines as u64;
        self.bytes += pieces.iter().map(|piece| piece.data.len()).sum::<usize>();
        self.change.superseded.extend(pieces);
    }

    fn extend_span(&mut self, ts: Timestamp) {
        let (first, last) = self.span.unwrap_or((ts, ts));
        self.span = Some((first.min(ts), last.max(ts)));
    }

    /// Sets the fields that come from the rows.
    pub(super) fn describe(&mut self, is_derived: bool) {
        self.session.turn_count = self.turns.len() as u32;
        if !is_derived {
            return;
        }
        self.session.first_prompt = self.title.found().map(str::to_owned);
        let Some((first, last)) = self.span else { return };
        if self.session.created == Timestamp::from_micros(0) {
            self.session.created = first;
        }
        self.session.updated = self.session.updated.max(last);
    }
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
