//! Copies the vectors of one session.

use std::collections::BTreeMap;

use super::CopyReport;
use crate::{
    Result,
    backend::{
        MessageVectors, MessagesToEmbed, PendingQuery, SequenceRange, StorageBackend, StorageBackendExt,
        TurnLine, TurnLines,
    },
    model::{
        Digest, MessageRef, MessageState, Role, SessionKey, Timestamp, VectorRecord, VectorState, VectorText,
    },
};

/// The number of messages whose vectors are listed at a time.
const LISTED: usize = 1_000;
/// The number of pending messages read at a time.
const PENDING: usize = 100;
/// The size of the vectors to copy at a time, if each message has one.
const BYTES: usize = 1 << 20;

/// The source generation and the target generation of vectors. Both have the same space.
#[derive(Debug, Clone, Copy)]
pub(super) struct CopiedGenerations {
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) dimensions: usize,
}

/// The vectors of one session, which has the same lines in both stores.
pub(super) struct CopiedVectors<'a> {
    pub(super) from: &'a dyn StorageBackend,
    pub(super) to: &'a dyn StorageBackend,
    pub(super) key: &'a SessionKey,
    pub(super) generations: CopiedGenerations,
    pub(super) now: Timestamp,
}

/// The vectors of some messages, by sequence.
type Records = BTreeMap<u32, Vec<VectorRecord>>;

/// The number of vectors that were written.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct WrittenVectors {
    pub(super) texts: u64,
    pub(super) turns: u64,
}

impl CopyReport {
    pub(super) fn add_vectors(&mut self, WrittenVectors { texts, turns }: WrittenVectors) {
        self.vectors += texts;
        self.turns += turns;
    }
}

impl CopiedVectors<'_> {
    /// Whether the target has as many vectors as the source.
    pub(super) async fn are_as_many(&self) -> Result<bool> {
        let (from, to) = (self.from.session_rows(self.key).await?, self.to.session_rows(self.key).await?);
        Ok((from.vectors, from.turn_vectors) == (to.vectors, to.turn_vectors))
    }

    /// Writes the vectors that the target lacks or that differ there, and the reasons for missing ones. Returns the
    /// number of written vectors; `None` if the target has other vectors afterwards.
    pub(super) async fn copy(&self) -> Result<Option<WrittenVectors>> {
        let states = self.from.message_states(self.key).await?;
        let mut failures: BTreeMap<u32, String> =
            self.from.vector_failures(self.generations.from, self.key).await?.into_iter().collect();
        let pending = self.pending().await?;
        let (mut written, mut copied) = (WrittenVectors::default(), Vec::new());
        let mut range = SequenceRange { start: 0, limit: LISTED };
        loop {
            let listed = self.from.vector_texts(self.generations.from, self.key, range).await?;
            let Some((last, _)) = listed.last() else { break };
            range.start = last.saturating_add(1);
            for some in listed.chunks(self.at_once()) {
                let wanted = read(self.from, self.generations.from, self.key, some).await?;
                let held = read(self.to, self.generations.to, self.key, some).await?;
                let is_held = |sequence: &u32, records: &Vec<VectorRecord>| {
                    held.get(sequence).is_some_and(|held| are_equal(held, records))
                };
                let missing = wanted.iter().filter(|(sequence, records)| !is_held(sequence, records));
                let vectors: Vec<MessageVectors> = missing
                    .filter_map(|(sequence, records)| {
                        let digest = states.get(*sequence as usize)?.digest;
                        let failure = failures.remove(sequence);
                        let turn = lines_of_turn(*sequence, &states);
                        let turn = turn.filter(|_| !pending.contains_key(sequence));
                        let made = MessageVectors::new(*sequence, digest, self.now, records.clone());
                        Some(MessageVectors { turn, failure, ..made })
                    })
                    .collect();
                if vectors.is_empty() {
                    continue;
                }
                copied.extend(vectors.iter().map(|vectors| vectors.sequence));
                let records = || vectors.iter().flat_map(MessageVectors::records);
                let turns = records().filter(|record| record.text == VectorText::Turn).count() as u64;
                let stored = self.write(vectors).await?;
                // The backend counts vectors of both kinds together.
                written.turns += turns.min(stored);
                written.texts += stored - turns.min(stored);
                // Another writer may have changed the messages since `held` was read.
                let now = read(self.to, self.generations.to, self.key, some).await?;
                let mut pairs = now.iter().zip(&wanted);
                let is_same = now.len() == wanted.len()
                    && pairs.all(|((a, held), (b, wanted))| a == b && are_equal(held, wanted));
                if !is_same {
                    return Ok(None);
                }
            }
        }
        self.copy_failures(failures, &states).await?;
        // Writing their vectors made these messages complete, but their texts have changed since.
        let outdated = pending.into_iter().filter(|(_, state)| *state == VectorState::Outdated);
        let outdated: Vec<u32> =
            outdated.map(|(sequence, _)| sequence).filter(|of| copied.binary_search(of).is_ok()).collect();
        if !outdated.is_empty() {
            self.to.mark_pending(self.key, MessagesToEmbed::At(outdated)).await?;
        }
        Ok(Some(written))
    }

    /// The number of messages whose vectors are read at a time.
    fn at_once(&self) -> usize {
        (BYTES / (self.generations.dimensions.max(1) * size_of::<f32>())).clamp(1, 200)
    }

    async fn write(&self, vectors: Vec<MessageVectors>) -> Result<u64> {
        self.to.yield_to_searches().await;
        Ok(self.to.write_vectors(self.key, self.generations.to, vectors).await? as u64)
    }

    /// Writes why messages have no vectors, so that they do not become pending in the target.
    async fn copy_failures(&self, failures: BTreeMap<u32, String>, states: &[MessageState]) -> Result<()> {
        if failures.is_empty() {
            return Ok(());
        }
        let known = self.to.vector_failures(self.generations.to, self.key).await?;
        let with_vectors = |sequence| SequenceRange { start: sequence, limit: 1 };
        let mut vectors = Vec::new();
        for (sequence, reason) in failures {
            if known.iter().any(|(known, _)| *known == sequence) {
                continue;
            }
            // The target already has vectors of this message, the same as the source or its own.
            let held = self.to.vector_texts(self.generations.to, self.key, with_vectors(sequence)).await?;
            if held.first().is_some_and(|(held, _)| *held == sequence) {
                continue;
            }
            if let Some(state) = states.get(sequence as usize) {
                let made = MessageVectors::new(sequence, state.digest, self.now, Vec::new());
                vectors.push(MessageVectors { failure: Some(reason), ..made });
            }
        }
        if !vectors.is_empty() {
            self.write(vectors).await?;
        }
        Ok(())
    }

    /// The messages with pending vectors in the source.
    async fn pending(&self) -> Result<BTreeMap<u32, VectorState>> {
        let mut query = PendingQuery {
            user: self.key.user_id.clone(),
            session: Some(self.key.session_id.clone()),
            generation: self.generations.from,
            turns: true,
            after: None,
            limit: PENDING,
        };
        let mut found = BTreeMap::new();
        loop {
            let pending = self.from.messages_pending_vectors(&query).await?;
            let Some(last) = pending.last() else { return Ok(found) };
            query.after = Some(last.message_ref());
            found.extend(pending.iter().map(|message| (message.sequence, message.vectors)));
        }
    }
}

/// The digest of the lines of the turn that a message with the vector of a turn begins.
fn lines_of_turn(first: u32, states: &[MessageState]) -> Option<Digest> {
    let turn = states.get(first as usize)?.turn;
    let lines = (first..).zip(states.get(first as usize..)?).take_while(|(_, state)| state.turn == turn);
    // Only the first message must be one of the user.
    let lines =
        lines.map(|(sequence, state)| TurnLine { sequence, turn, role: Role::User, digest: state.digest });
    TurnLines::of(lines).begun_by(first)
}

/// Whether these are the same vectors of the same chunks. Stores may round numbers to 16-bit floats.
fn are_equal(some: &[VectorRecord], others: &[VectorRecord]) -> bool {
    const ROUNDING: f32 = 1e-3;
    let chunk = |record: &VectorRecord| {
        let VectorRecord { text, chunk_index, total_chunks, span_start, span_end, token_count, .. } = *record;
        let hash = record.turn.as_ref().map(|turn| turn.content_hash.clone());
        (text, [chunk_index, total_chunks, span_start, span_end, token_count], hash)
    };
    let is_equal = |(one, other): (&VectorRecord, &VectorRecord)| {
        let mut numbers = one.vector.iter().zip(&other.vector);
        chunk(one) == chunk(other)
            && one.vector.len() == other.vector.len()
            && numbers.all(|(x, y)| (x - y).abs() < ROUNDING)
    };
    some.len() == others.len() && some.iter().zip(others).all(is_equal)
}

/// The vectors of these texts, in order of content type and chunk.
async fn read(
    backend: &dyn StorageBackend,
    generation: u32,
    key: &SessionKey,
    texts: &[(u32, Vec<VectorText>)],
) -> Result<Records> {
    let texts: Vec<(MessageRef, VectorText)> = texts
        .iter()
        .flat_map(|(sequence, texts)| {
            texts.iter().map(|text| (MessageRef::new(key.clone(), *sequence), *text))
        })
        .collect();
    let mut records = Records::new();
    for (message, record) in backend.vectors_of(generation, &texts).await? {
        records.entry(message.sequence).or_default().push(record);
    }
    for records in records.values_mut() {
        records.sort_by_key(|record| (record.text, record.chunk_index));
    }
    Ok(records)
}
