//! Writes vectors: those of a message together with its state, and as many messages in a batch as fit.

use std::collections::HashMap;

use amplifier_session_core::{
    ErrorKind, Result,
    backend::{MessageVectors, meta::Generations},
    model::{SessionKey, VectorState, VectorText},
};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};

use crate::{
    batch::{Operation, Size, pack},
    client::Container,
    documents::{GenerationState, MessageDocument, vectors_of},
    error, ids,
    messages::{self, documents_at},
    meta,
    query::Select,
    store::Store,
    turns,
};

/// The maximum number of concurrent batches in one call, within the store's own limit.
const BATCHES: usize = 4;

/// How often to write vectors of a message again because other writers change it. Of several concurrent writers of a
/// message, one succeeds each time, so this is the maximum number of concurrent writers.
const ATTEMPTS: usize = 64;

pub(crate) async fn write(
    store: &Store,
    key: &SessionKey,
    generation: u32,
    vectors: Vec<MessageVectors>,
) -> Result<usize> {
    let held = meta::generations(store).await?;
    let space = held.space(generation)?;
    vectors.iter().flat_map(MessageVectors::records).try_for_each(|record| record.validate(space))?;
    let partition = ids::partition(key);
    let sequences: Vec<u32> = vectors.iter().map(|of| of.sequence).collect();
    let (mut left, mut stored) = (vectors, 0);
    for attempt in 0..ATTEMPTS {
        let made = pending_writes(store, &partition, (generation, &held), left).await?;
        // A rejected batch does not say which message has changed. Afterwards, each message is written separately.
        let room = if attempt == 0 { Size::BATCH } else { Size::default() };
        let groups = pack(made, room, PendingWrite::size).into_iter();
        let writes = groups.map(|group| write_group(&store.messages, &partition, group));
        let written: Vec<_> = stream::iter(writes).buffer_unordered(BATCHES).try_collect().await?;
        left = Vec::new();
        for (records, refused) in written {
            stored += records;
            left.extend(refused);
        }
        if left.is_empty() {
            mark_pending(store, &partition, &held, &sequences).await?;
            return Ok(stored);
        }
        left.sort_by_key(|of| of.sequence);
    }
    Err(error::conflict())
}

/// Marks vectors as pending again that were stored for the current generation after another generation had become the
/// current one.
async fn mark_pending(store: &Store, partition: &str, held: &Generations, sequences: &[u32]) -> Result<()> {
    let current = meta::generations(store).await?.current_number();
    if current == held.current_number() {
        return Ok(());
    }
    for _ in 0..ATTEMPTS {
        let documents = documents_at(store, partition, sequences).await?;
        let updated = messages::update(store, documents, |document| {
            let is_stored = document.message.vectors.has_stored();
            let is_wrong = is_stored && !document.made.contains(&current);
            is_wrong.then(|| document.with_vectors(VectorState::Pending))
        });
        match updated.await {
            Err(error) if error.kind() == ErrorKind::Conflict => {}
            other => return other.map(drop),
        }
    }
    Err(error::conflict())
}

/// A message whose vectors will be stored.
struct PendingWrite {
    vectors: MessageVectors,
    /// The message without vectors of the generation, in case they are stored in several batches.
    incomplete: MessageDocument,
    /// The message with its vectors.
    document: MessageDocument,
    /// The size of the message in a batch.
    message: Size,
    operations: Vec<Operation>,
}

/// The messages and vectors to store, for messages whose lines have not changed.
async fn pending_writes(
    store: &Store,
    partition: &str,
    (generation, held): (u32, &Generations),
    vectors: Vec<MessageVectors>,
) -> Result<Vec<PendingWrite>> {
    let sequences: Vec<u32> = vectors.iter().map(|of| of.sequence).collect();
    let select = Select::vectors(partition).with("c.generation = @", generation).at(&sequences);
    let (documents, rows) = tokio::try_join!(
        documents_at(store, partition, &sequences),
        store.messages.all::<(u32, String)>(select.fields("VALUE [c.sequence, c.id]"))
    )?;
    let mut old: HashMap<u32, Vec<String>> = HashMap::new();
    for (sequence, id) in rows {
        old.entry(sequence).or_default().push(id);
    }
    let lines = turns::lines_of(store, partition, &documents).await?;
    let mut documents: HashMap<u32, MessageDocument> =
        documents.into_iter().map(|document| (document.message.sequence, document)).collect();
    let is_current = generation == held.current_number();
    let made = vectors.into_iter().filter_map(|mut of| {
        let document = documents.remove(&of.sequence).filter(|found| found.message.digest == of.digest)?;
        let old = old.remove(&of.sequence).unwrap_or_default();
        let leaves_turn = of.leaves_turn(lines.begun_by(of.sequence));
        // Of the next generation, the vector of a turn that has changed meanwhile is left out.
        if let Some(records) = of.records.as_mut().filter(|_| !is_current && leaves_turn) {
            records.retain(|record| record.text != VectorText::Turn);
        }
        Some(PendingWrite::new(document, of, old, leaves_turn, (generation, held)))
    });
    made.collect()
}

impl PendingWrite {
    fn new(
        mut document: MessageDocument,
        vectors: MessageVectors,
        old: Vec<String>,
        leaves_turn: bool,
        (generation, held): (u32, &Generations),
    ) -> Result<Self> {
        let new = vectors_of(&document, generation, &held.space(generation)?.model, &vectors);
        let mut incomplete = document.clone();
        incomplete.forget_generations(|number| number == generation);
        let mut operations = Vec::new();
        if vectors.records.is_some() {
            operations = Operation::replace(old, &new)?;
            let turns = new.iter().filter(|of| of.record.text == VectorText::Turn).count();
            let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
            document.set_generation(GenerationState {
                number: generation,
                vectors: count(new.len() - turns),
                turns: count(turns),
                failure: vectors.failure.clone(),
            });
        }
        if generation == held.current_number() {
            document.message.vectors =
                if leaves_turn { VectorState::TurnPending } else { VectorState::Stored };
            if incomplete.message.vectors.has_stored() {
                incomplete.message.vectors = VectorState::Outdated;
            }
        }
        let message = Operation::save(&document)?.size();
        Ok(Self { vectors, incomplete, document, message, operations })
    }

    fn size(&self) -> Size {
        self.message + Size::of(&self.operations)
    }
}

/// Writes messages whose vectors fit in one batch, or one message whose vectors need several. Returns the number of
/// stored vectors, and the messages that were rejected because they had changed.
async fn write_group(
    container: &Container,
    partition: &str,
    group: Vec<PendingWrite>,
) -> Result<(usize, Vec<MessageVectors>)> {
    let records = group.iter().map(|of| of.vectors.records().len()).sum();
    let (mut vectors, mut last_batch) = (Vec::new(), Vec::new());
    for mut made in group {
        let room = Size::BATCH.without(made.message);
        let mut parts = pack(made.operations, room, Operation::size);
        let last_part = parts.pop().unwrap_or_default();
        vectors.push(made.vectors);
        // Until the last of several batches, the vectors of the message are pending.
        for part in parts {
            made.incomplete.etag = made.document.etag;
            let save = Operation::save(&made.incomplete)?;
            match container.write(partition, std::iter::once(save).chain(part).collect()).await? {
                Some(etag) => made.document.etag = etag,
                None => return Ok((0, vectors)),
            }
        }
        last_batch.push(Operation::save(&made.document)?);
        last_batch.extend(last_part);
    }
    let is_stored = container.write(partition, last_batch).await?.is_some();
    Ok(if is_stored { (records, Vec::new()) } else { (0, vectors) })
}
