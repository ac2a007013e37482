//! Vectors of messages.

use std::collections::{BTreeMap, HashMap, HashSet};

use amplifier_session_core::{
    Result,
    backend::{MessageVectors, OweAgain, SequenceRange, meta::Generations},
    model::{ContentType, ContentTypes, Place, SessionKey, VectorRecord, VectorState},
};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use serde::Deserialize;

use crate::{
    client::{Container, Operation, Outcome, READS, Within, batches},
    documents::{GenerationState, MessageDocument, VectorDocument, hex, kind, vector_state},
    error, ids, limits,
    messages::{by_partition, documents_at},
    queries, schema,
    store::Store,
};

/// How many batches of one call are under way at once, as far as the store's own bound allows.
const BATCHES: usize = 4;

/// How often vectors of a message are written anew while others change it. Of those that meet at a message one comes
/// through each time, so this is how many may meet.
const ATTEMPTS: usize = 64;

/// The most texts with vectors in a page.
const PAGE: usize = 500;

/// Stores vectors: those of a message together with its state, and as many messages in a batch as fit.
pub(crate) async fn write(
    store: &Store,
    key: &SessionKey,
    generation: u32,
    vectors: Vec<MessageVectors>,
) -> Result<usize> {
    let held = schema::generations(store).await?;
    let space = held.space(generation)?;
    vectors.iter().flat_map(|of| &of.records).try_for_each(|record| record.validate(space))?;
    let partition = ids::partition(key);
    let sequences: Vec<u32> = vectors.iter().map(|of| of.sequence).collect();
    let mut left = vectors;
    let mut stored = 0;
    for attempt in 0..ATTEMPTS {
        let made = made(store, &partition, (generation, &held), left).await?;
        // A batch that was refused says little of its messages: each of them goes by itself then.
        let groups = groups(made, if attempt == 0 { limits::BATCH_OPERATIONS } else { 1 });
        let writes = groups.into_iter().map(|group| group.write(&store.messages, &partition));
        let mut writes = stream::iter(writes).buffer_unordered(BATCHES);
        left = Vec::new();
        while let Some(written) = writes.next().await {
            match written? {
                Written::Stored(records) => stored += records,
                Written::Refused(vectors) => left.extend(vectors),
            }
        }
        if left.is_empty() {
            owe_what_is_of_before(store, &partition, &held, &sequences).await?;
            return Ok(stored);
        }
        left.sort_by_key(|of| of.sequence);
    }
    Err(error::conflict())
}

/// Makes messages owe vectors again that were stored as of the current generation when it was not that any more.
async fn owe_what_is_of_before(
    store: &Store,
    partition: &str,
    held: &Generations,
    sequences: &[u32],
) -> Result<()> {
    let current = schema::generations(store).await?.current_number();
    if current == held.current_number() {
        return Ok(());
    }
    for _ in 0..ATTEMPTS {
        let documents = documents_at(store, partition, sequences).await?;
        let mut operations = Vec::new();
        for mut document in documents {
            let is_stored = vector_state(document.vectors)? == VectorState::Stored;
            if is_stored && !document.made.contains(&current) {
                document.vectors = VectorState::Owed.code();
                operations.push(Operation::replace(document.id.clone(), &document, &document.etag)?);
            }
        }
        if store.messages.write_many(partition, operations).await? {
            return Ok(());
        }
    }
    Err(error::conflict())
}

/// A message whose vectors are to be stored.
struct Made {
    vectors: MessageVectors,
    /// The message without vectors of the generation, as it is while they are stored in several batches.
    owing: MessageDocument,
    /// The message with its vectors.
    document: MessageDocument,
    operations: Vec<Operation>,
    /// How many bytes the message takes in a batch.
    message_bytes: usize,
    /// How many bytes all of it takes.
    bytes: usize,
}

/// What is to be stored of those messages that are still the ones that the vectors are of.
async fn made(
    store: &Store,
    partition: &str,
    (generation, held): (u32, &Generations),
    vectors: Vec<MessageVectors>,
) -> Result<Vec<Made>> {
    let sequences: Vec<u32> = vectors.iter().map(|of| of.sequence).collect();
    let (found, old) = tokio::join!(
        documents_at(store, partition, &sequences),
        vector_ids(store, partition, generation, &sequences)
    );
    let old = old?;
    let documents: HashMap<u32, MessageDocument> =
        found?.into_iter().map(|document| (document.sequence, document)).collect();
    let mut made = Vec::new();
    for of in vectors {
        let document = documents.get(&of.sequence).filter(|document| document.digest == hex(of.digest));
        if let Some(document) = document {
            let old = old.get(&of.sequence).map(Vec::as_slice).unwrap_or_default();
            made.push(Made::new(document, of, old, (generation, held))?);
        }
    }
    Ok(made)
}

impl Made {
    fn new(
        document: &MessageDocument,
        vectors: MessageVectors,
        old: &[String],
        (generation, held): (u32, &Generations),
    ) -> Result<Self> {
        let new = VectorDocument::all_of(document, generation, &held.space(generation)?.model, &vectors);
        let kept: HashSet<&str> = new.iter().map(|vector| vector.id.as_str()).collect();
        let gone = old.iter().filter(|id| !kept.contains(id.as_str()));
        let mut operations: Vec<Operation> =
            gone.map(|id| Operation::Delete { id: id.clone(), etag: None }).collect();
        for vector in &new {
            operations.push(Operation::upsert(vector)?);
        }
        let (mut owing, mut document) = (document.clone(), document.clone());
        owing.forget_generations(|number| number == generation);
        document.set_generation(GenerationState {
            number: generation,
            vectors: u32::try_from(new.len()).unwrap_or(u32::MAX),
            failure: vectors.failure.clone(),
        });
        if generation == held.current_number() {
            document.vectors = VectorState::Stored.code();
            if vector_state(owing.vectors)? == VectorState::Stored {
                owing.vectors = VectorState::Outdated.code();
            }
        }
        let message_bytes = Operation::upsert(&document)?.bytes();
        let bytes = message_bytes + operations.iter().map(Operation::bytes).sum::<usize>();
        Ok(Self { vectors, owing, document, operations, message_bytes, bytes })
    }
}

/// Messages whose vectors are stored in one batch, or one message whose vectors need several.
struct Group(Vec<Made>);

enum Written {
    /// So many vectors.
    Stored(usize),
    /// Nothing, or not all of it: a message was changed meanwhile.
    Refused(Vec<MessageVectors>),
}

/// Messages in groups of at most `most` operations, each group at least one message.
fn groups(made: Vec<Made>, most: usize) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    let (mut operations, mut bytes) = (0, 0);
    for of in made {
        // One operation is for the message itself.
        let more = of.operations.len() + 1;
        let fits = operations + more <= most && bytes + of.bytes <= limits::BATCH_BYTES;
        match groups.last_mut().filter(|_| fits) {
            Some(group) => {
                (operations, bytes) = (operations + more, bytes + of.bytes);
                group.0.push(of);
            }
            None => {
                (operations, bytes) = (more, of.bytes);
                groups.push(Group(vec![of]));
            }
        }
    }
    groups
}

impl Group {
    async fn write(self, container: &Container, partition: &str) -> Result<Written> {
        let records = self.0.iter().map(|of| of.vectors.records.len()).sum();
        let (mut vectors, mut operations) = (Vec::new(), Vec::new());
        for mut of in self.0 {
            let bytes = limits::BATCH_BYTES.saturating_sub(of.message_bytes);
            let mut parts = batches(of.operations, limits::BATCH_OPERATIONS - 1, bytes);
            let last = parts.pop().unwrap_or_default();
            vectors.push(of.vectors);
            // More than one batch: the message says that it owes vectors until the last one.
            for part in parts {
                let owing = Operation::replace(of.owing.id.clone(), &of.owing, &of.document.etag)?;
                let part = std::iter::once(owing).chain(part).collect();
                match container.write(partition, part).await? {
                    Outcome::Done(etags) => of.document.etag = etags.into_iter().next().unwrap_or_default(),
                    Outcome::Refused => return Ok(Written::Refused(vectors)),
                }
            }
            operations.push(Operation::replace(of.document.id.clone(), &of.document, &of.document.etag)?);
            operations.extend(last);
        }
        Ok(match container.write(partition, operations).await? {
            Outcome::Done(_) => Written::Stored(records),
            Outcome::Refused => Written::Refused(vectors),
        })
    }
}

#[derive(Debug, Deserialize)]
struct VectorId {
    id: String,
    sequence: u32,
    generation: u32,
}

/// Ids of the vectors of a generation that messages have.
async fn vector_ids(
    store: &Store,
    partition: &str,
    generation: u32,
    sequences: &[u32],
) -> Result<HashMap<u32, Vec<String>>> {
    let query = queries::rows_at(kind::VECTOR, "c.id, c.sequence, c.generation", sequences);
    let found: Vec<VectorId> = store.messages.all(Within::Partition(partition), query).await?;
    let mut ids: HashMap<u32, Vec<String>> = HashMap::new();
    for vector in found.into_iter().filter(|vector| vector.generation == generation) {
        ids.entry(vector.sequence).or_default().push(vector.id);
    }
    Ok(ids)
}

/// Makes vectors owed again; returns of how many messages.
pub(crate) async fn owe(store: &Store, key: &SessionKey, which: &OweAgain) -> Result<u64> {
    let generation = schema::generations(store).await?.current_number();
    let partition = ids::partition(key);
    let query = queries::rows(kind::MESSAGE, "*", 0, None);
    let documents: Vec<MessageDocument> = store.messages.all(Within::Partition(&partition), query).await?;
    let mut operations = Vec::new();
    for mut document in documents {
        let is_stored = vector_state(document.vectors)? == VectorState::Stored;
        if is_stored && which.means(document.sequence, document.failure(generation).is_some()) {
            document.vectors = VectorState::Outdated.code();
            operations.push(Operation::replace(document.id.clone(), &document, &document.etag)?);
        }
    }
    let owed = operations.len() as u64;
    if store.messages.write_many(&partition, operations).await? { Ok(owed) } else { Err(error::conflict()) }
}

/// Vectors of texts.
pub(crate) async fn of_texts(
    store: &Store,
    generation: u32,
    texts: &[(Place, ContentType)],
) -> Result<Vec<(Place, VectorRecord)>> {
    let wanted: HashSet<(&Place, ContentType)> =
        texts.iter().map(|(place, content_type)| (place, *content_type)).collect();
    let places = texts.iter().map(|(place, _)| (&place.session, place.sequence));
    let reads = by_partition(places).into_iter().map(|(partition, sequences)| async move {
        let query = queries::vectors_of(generation, &sequences);
        store.messages.all::<VectorDocument>(Within::Partition(&partition), query).await
    });
    let mut found = Vec::new();
    let mut partitions = stream::iter(reads).buffered(READS);
    while let Some(mut documents) = partitions.try_next().await? {
        documents.sort_by_key(|vector| (vector.sequence, vector.content_type, vector.chunk_index));
        let documents = documents.into_iter().map(|vector| (vector.place(), vector.into_record()));
        found.extend(documents.filter(|(place, record)| wanted.contains(&(place, record.content_type))));
    }
    Ok(found)
}

#[derive(Debug, Deserialize)]
struct TypeRow {
    sequence: u32,
    content_type: ContentType,
}

pub(crate) async fn types(
    store: &Store,
    generation: u32,
    key: &SessionKey,
    range: SequenceRange,
) -> Result<Vec<(u32, ContentTypes)>> {
    let partition = ids::partition(key);
    let limit = range.limit.min(PAGE);
    let query = queries::vector_types(generation, range.start);
    let mut pages = store.messages.query::<TypeRow>(Within::Partition(&partition), query).await?;
    let mut types: BTreeMap<u32, Vec<ContentType>> = BTreeMap::new();
    // Those of the last message are complete once there is another one behind it.
    while types.len() <= limit {
        let Some(page) = pages.next().await? else { break };
        for row in page {
            types.entry(row.sequence).or_default().push(row.content_type);
        }
    }
    Ok(types.into_iter().take(limit).map(|(sequence, of)| (sequence, of.into_iter().collect())).collect())
}
