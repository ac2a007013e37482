//! Copies the vectors of one session.

use std::collections::BTreeMap;

use crate::{
    Result,
    backend::{
        MessageVectors, MessagesToEmbed, PendingQuery, SequenceRange, StorageBackend, StorageBackendExt,
    },
    model::{
        ContentType, ContentTypes, Digest, MessageRef, MessageState, SessionKey, Timestamp, VectorRecord,
        VectorState,
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

impl CopiedVectors<'_> {
    /// Whether the target has as many vectors as the source.
    pub(super) async fn are_as_many(&self) -> Result<bool> {
        let (from, to) = (self.from.session_rows(self.key).await?, self.to.session_rows(self.key).await?);
        Ok(from.vectors == to.vectors)
    }

    /// Writes the vectors that the target lacks or that differ there, and the reasons for missing ones. Returns the
    /// number of written vectors; `None` if the target has other vectors afterwards.
    pub(super) async fn copy(&self) -> Result<Option<u64>> {
        let states = self.from.message_states(self.key).await?;
        let mut failures: BTreeMap<u32, String> =
            self.from.vector_failures(self.generations.from, self.key).await?.into_iter().collect();
        let (mut written, mut copied) = (0, Vec::new());
        let mut range = SequenceRange { start: 0, limit: LISTED };
        loop {
            let listed = self.from.vector_types(self.generations.from, self.key, range).await?;
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
                        Some(self.of_message(*sequence, digest, records.clone(), failure))
                    })
                    .collect();
                if vectors.is_empty() {
                    continue;
                }
                copied.extend(vectors.iter().map(|vectors| vectors.sequence));
                written += self.write(vectors).await?;
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
        self.mark_outdated(&copied).await?;
        Ok(Some(written))
    }

    /// The number of messages whose vectors are read at a time.
    fn at_once(&self) -> usize {
        (BYTES / (self.generations.dimensions.max(1) * size_of::<f32>())).clamp(1, 200)
    }

    fn of_message(
        &self,
        sequence: u32,
        digest: Digest,
        records: Vec<VectorRecord>,
        failure: Option<String>,
    ) -> MessageVectors {
        MessageVectors { sequence, digest, created_at: self.now, records, failure }
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
            let held = self.to.vector_types(self.generations.to, self.key, with_vectors(sequence)).await?;
            if held.first().is_some_and(|(held, _)| *held == sequence) {
                continue;
            }
            if let Some(state) = states.get(sequence as usize) {
                vectors.push(self.of_message(sequence, state.digest, Vec::new(), Some(reason)));
            }
        }
        if !vectors.is_empty() {
            self.write(vectors).await?;
        }
        Ok(())
    }

    /// Vectors that must be made again in the source must be made again in the target too.
    async fn mark_outdated(&self, copied: &[u32]) -> Result<()> {
        if copied.is_empty() {
            return Ok(());
        }
        let mut query = PendingQuery {
            user: self.key.user_id.clone(),
            session: Some(self.key.session_id.clone()),
            generation: self.generations.from,
            after: None,
            limit: PENDING,
        };
        loop {
            let pending = self.from.messages_pending_vectors(&query).await?;
            let Some(last) = pending.last() else { return Ok(()) };
            query.after = Some(last.message_ref());
            let outdated = pending.iter().filter(|message| message.vectors == VectorState::Outdated);
            let sequences: Vec<u32> = outdated
                .map(|message| message.sequence)
                .filter(|sequence| copied.binary_search(sequence).is_ok())
                .collect();
            if !sequences.is_empty() {
                self.to.mark_pending(self.key, MessagesToEmbed::At(sequences)).await?;
            }
        }
    }
}

/// Whether these are the same vectors of the same chunks. Stores may round numbers to 16-bit floats.
fn are_equal(some: &[VectorRecord], others: &[VectorRecord]) -> bool {
    const ROUNDING: f32 = 1e-3;
    let chunk = |record: &VectorRecord| {
        let VectorRecord {
            content_type, chunk_index, total_chunks, span_start, span_end, token_count, ..
        } = *record;
        (content_type, [chunk_index, total_chunks, span_start, span_end, token_count])
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
    texts: &[(u32, ContentTypes)],
) -> Result<Records> {
    let texts: Vec<(MessageRef, ContentType)> = texts
        .iter()
        .flat_map(|(sequence, types)| {
            types.iter().map(|content_type| (MessageRef::new(key.clone(), *sequence), content_type))
        })
        .collect();
    let mut records = Records::new();
    for (message, record) in backend.vectors_of(generation, &texts).await? {
        records.entry(message.sequence).or_default().push(record);
    }
    for records in records.values_mut() {
        records.sort_by_key(|record| (record.content_type, record.chunk_index));
    }
    Ok(records)
}
