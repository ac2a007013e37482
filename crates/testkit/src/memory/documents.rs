//! What the in-memory store holds, and the operations that change it.

use std::collections::BTreeMap;

use amplifier_session_core::{
    backend::{MessageVectors, StoredSession, Version},
    model::{
        ContentType, Event, Message, Payload, ProjectSlug, Retimed, Role, SessionId, SessionKey, StoredEvent,
        Timestamp, UserId, VectorRecord, VectorState,
    },
};

use super::container::Container;

/// Where a vector stands: sequence of its message, generation, content type, chunk.
pub(super) type VectorId = (u32, u32, ContentType, u32);

/// Why vectors of a message are missing stands under its sequence and the generation.
pub(super) type FailureId = (u32, u32);

/// The generation that vectors are written to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Target {
    pub(super) generation: u32,
    pub(super) is_current: bool,
}

/// All containers. Sessions lie in the partition of their user, everything else in that of its session.
#[derive(Debug)]
pub(super) struct Documents {
    pub(super) meta: BTreeMap<String, String>,
    pub(super) sessions: Container<UserId, SessionId, StoredSession>,
    /// Sessions that were deleted, also those that have come again.
    pub(super) deleted: Container<UserId, SessionId, ()>,
    pub(super) messages: Container<SessionKey, u32, Message>,
    pub(super) vectors: Container<SessionKey, VectorId, VectorDocument>,
    pub(super) failures: Container<SessionKey, FailureId, String>,
    /// The generation that a rebuild last made a message's vectors of.
    pub(super) rebuilt: Container<SessionKey, u32, u32>,
    pub(super) events: Container<SessionKey, u32, EventDocument>,
    /// Pieces of large payloads, by sequence of the event and position.
    pub(super) chunks: Container<SessionKey, (u32, u32), Vec<u8>>,
    etags: u64,
}

/// A vector with what it is filtered by: a document store has no joins.
#[derive(Debug, Clone)]
pub(super) struct VectorDocument {
    pub(super) role: Role,
    pub(super) ts: Timestamp,
    pub(super) record: VectorRecord,
}

/// An event with its payload; the pieces of a large one are documents of their own.
#[derive(Debug, Clone)]
pub(super) struct EventDocument {
    pub(super) event: Event,
    pub(super) payload: InlinePayload,
}

#[derive(Debug, Clone)]
pub(super) enum InlinePayload {
    Here(Payload),
    InChunks(u32),
}

/// One step of a write. Each can be repeated.
#[derive(Debug, Clone)]
pub(super) enum Step {
    PutMessage(Box<Message>),
    RemoveMessage(u32),
    RetimeMessage(Retimed),
    MoveMessage(u32, ProjectSlug),
    PutEvent(Box<StoredEvent>),
    RemoveEvent(u32),
    MoveEvent(u32, ProjectSlug),
}

impl Documents {
    pub(super) fn new() -> Self {
        Self {
            meta: BTreeMap::new(),
            sessions: Container::new(),
            deleted: Container::new(),
            messages: Container::new(),
            vectors: Container::new(),
            failures: Container::new(),
            rebuilt: Container::new(),
            events: Container::new(),
            chunks: Container::new(),
            etags: 0,
        }
    }

    /// The deleted sessions of a user that are not there.
    pub(super) fn deleted_sessions(&self, user: &UserId) -> Vec<SessionId> {
        let ids = self.deleted.ids(user, ..).into_iter();
        ids.filter(|id| self.sessions.get(user, id).is_none()).collect()
    }

    pub(super) fn session(&self, key: &SessionKey) -> Option<StoredSession> {
        self.sessions.get(&key.user_id, &key.session_id)
    }

    pub(super) fn next_etag(&mut self) -> Version {
        self.etags += 1;
        Version(format!("\"{:08x}\"", self.etags))
    }

    pub(super) fn apply(&mut self, key: &SessionKey, steps: impl IntoIterator<Item = Step>) {
        steps.into_iter().for_each(|step| self.apply_step(key, step));
    }

    fn apply_step(&mut self, key: &SessionKey, step: Step) {
        match step {
            Step::PutMessage(message) => {
                self.forget_vectors(key, message.sequence);
                self.messages.put(key, message.sequence, *message);
            }
            Step::RemoveMessage(sequence) => {
                self.forget_vectors(key, sequence);
                self.messages.remove(key, &sequence);
            }
            Step::RetimeMessage(retimed) => self.retime(key, retimed),
            Step::MoveMessage(sequence, project) => {
                self.messages.patch(key, &sequence, |message| message.project_slug = project);
            }
            Step::PutEvent(stored) => self.put_event(key, *stored),
            Step::RemoveEvent(sequence) => {
                self.remove_chunks(key, sequence);
                self.events.remove(key, &sequence);
            }
            Step::MoveEvent(sequence, project) => {
                self.events.patch(key, &sequence, |document| document.event.project_slug = project);
            }
        }
    }

    /// Vectors carry the time of their message: a document store has no joins.
    fn retime(&mut self, key: &SessionKey, Retimed { sequence, ts, ts_source }: Retimed) {
        self.messages.patch(key, &sequence, |message| (message.ts, message.ts_source) = (ts, ts_source));
        let first = (sequence, 0, ContentType::ALL[0], 0);
        let vectors = match sequence.checked_add(1) {
            Some(next) => self.vectors.ids(key, first..(next, 0, ContentType::ALL[0], 0)),
            None => self.vectors.ids(key, first..),
        };
        for id in vectors {
            self.vectors.patch(key, &id, |document| document.ts = ts);
        }
    }

    /// Stores the vectors of one message unless its line is another by now; returns how many.
    pub(super) fn put_vectors(&mut self, key: &SessionKey, target: Target, vectors: MessageVectors) -> usize {
        let (sequence, generation) = (vectors.sequence, target.generation);
        let Some(message) = self.messages.get(key, &sequence).filter(|m| m.digest == vectors.digest) else {
            return 0;
        };
        self.remove_vectors(key, sequence, |of| of == generation);
        if target.is_current {
            self.messages.patch(key, &sequence, |message| message.vectors = VectorState::Stored);
        } else {
            self.rebuilt.put(key, sequence, generation);
        }
        if let Some(reason) = vectors.failure {
            self.failures.put(key, (sequence, generation), reason);
        }
        let count = vectors.records.len();
        for record in vectors.records {
            let id = (sequence, generation, record.content_type, record.chunk_index);
            self.vectors.put(key, id, VectorDocument { role: message.role, ts: message.ts, record });
        }
        count
    }

    /// The payload of an event, put together; `None` when there is no such event.
    pub(super) fn payload(&self, key: &SessionKey, sequence: u32) -> Option<Payload> {
        match self.events.get(key, &sequence)?.payload {
            InlinePayload::Here(payload) => Some(payload),
            InlinePayload::InChunks(count) => (0..count)
                .map(|index| self.chunks.get(key, &(sequence, index)))
                .collect::<Option<_>>()
                .map(Payload::Chunks),
        }
    }

    /// The vectors of one text of a message, in order.
    pub(super) fn vectors_of_text(
        &self,
        key: &SessionKey,
        (sequence, generation, of): (u32, u32, ContentType),
    ) -> Vec<VectorRecord> {
        let range = (sequence, generation, of, 0)..=(sequence, generation, of, u32::MAX);
        let documents = self.vectors.page(key, range, usize::MAX);
        documents.into_iter().map(|(_, document)| document.record).collect()
    }

    fn put_event(&mut self, key: &SessionKey, StoredEvent { event, payload }: StoredEvent) {
        let sequence = event.sequence;
        self.remove_chunks(key, sequence);
        let payload = match payload {
            Payload::Chunks(chunks) => {
                let mut count = 0;
                for chunk in chunks {
                    self.chunks.put(key, (sequence, count), chunk);
                    count += 1;
                }
                InlinePayload::InChunks(count)
            }
            other => InlinePayload::Here(other),
        };
        self.events.put(key, sequence, EventDocument { event, payload });
    }

    fn remove_chunks(&mut self, key: &SessionKey, sequence: u32) {
        for id in self.chunks.ids(key, (sequence, 0)..=(sequence, u32::MAX)) {
            self.chunks.remove(key, &id);
        }
    }
}
