//! Vectors of messages.

use std::collections::{BTreeMap, HashMap, HashSet};

use amplifier_session_core::{
    Result,
    backend::{MessageVectors, OweAgain, SequenceRange, meta::Generations},
    model::{ContentType, ContentTypes, Place, SessionKey, VectorRecord, VectorState},
};
use serde::Deserialize;

use crate::{
    client::{Operation, Outcome, Within},
    documents::{GenerationState, MessageDocument, VectorDocument, hex, kind, vector_state},
    error, ids, limits,
    messages::{by_partition, documents_at},
    queries, schema,
    store::Store,
};

/// How often vectors of a message are written anew while others change it. Of those that meet at a message one comes
/// through each time, so this is how many may meet.
const ATTEMPTS: usize = 64;

/// The most texts with vectors in a page.
const PAGE: usize = 500;

/// Stores vectors: each message with its own in one batch, so that its state tells the truth.
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
    let mut left = vectors;
    let mut stored = 0;
    for _ in 0..ATTEMPTS {
        let sequences: Vec<u32> = left.iter().map(|of| of.sequence).collect();
        let found = documents_at(store, &partition, &sequences).await?;
        let mut documents: HashMap<u32, MessageDocument> =
            found.into_iter().map(|document| (document.sequence, document)).collect();
        let old = vector_ids(store, &partition, generation, &sequences).await?;
        let mut again = Vec::new();
        for of in left {
            let Some(document) = documents.remove(&of.sequence) else { continue };
            if document.digest != hex(of.digest) {
                continue;
            }
            let old = old.get(&of.sequence).map(Vec::as_slice).unwrap_or_default();
            if put(store, document, (generation, &held), &of, old).await? {
                stored += of.records.len();
            } else {
                again.push(of);
            }
        }
        left = again;
        if left.is_empty() {
            return Ok(stored);
        }
    }
    Err(error::conflict())
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

/// Stores the vectors of one message; false when somebody changed it meanwhile. Where they need several batches, the
/// message's own document is in the last one.
async fn put(
    store: &Store,
    mut document: MessageDocument,
    (generation, held): (u32, &Generations),
    vectors: &MessageVectors,
    old: &[String],
) -> Result<bool> {
    let new = VectorDocument::all_of(&document, generation, vectors);
    let kept: HashSet<&str> = new.iter().map(|vector| vector.id.as_str()).collect();
    let gone = old.iter().filter(|id| !kept.contains(id.as_str()));
    let mut operations: Vec<Operation> =
        gone.map(|id| Operation::Delete { id: id.clone(), etag: None }).collect();
    for vector in &new {
        operations.push(Operation::upsert(vector)?);
    }
    document.set_generation(GenerationState {
        number: generation,
        vectors: u32::try_from(new.len()).unwrap_or(u32::MAX),
        failure: vectors.failure.clone(),
    });
    if generation == held.current_number() {
        document.vectors = VectorState::Stored.code();
    }
    operations.push(Operation::replace(document.id.clone(), &document, &document.etag)?);
    for batch in crate::client::batches(operations, limits::BATCH_OPERATIONS) {
        if store.messages.write(&document.user_id_session_id, batch).await? == Outcome::Refused {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Makes vectors owed again; returns of how many messages.
pub(crate) async fn owe(store: &Store, key: &SessionKey, which: OweAgain) -> Result<u64> {
    let generation = schema::generations(store).await?.current_number();
    let partition = ids::partition(key);
    let query = queries::rows(kind::MESSAGE, "*", 0, None);
    let documents: Vec<MessageDocument> = store.messages.all(Within::Partition(&partition), query).await?;
    let mut operations = Vec::new();
    for mut document in documents {
        let is_stored = vector_state(document.vectors)? == VectorState::Stored;
        if is_stored && (which == OweAgain::All || document.failure(generation).is_some()) {
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
    let mut found = Vec::new();
    for (partition, sequences) in by_partition(places) {
        let query = queries::vectors_of(generation, &sequences);
        let mut documents: Vec<VectorDocument> =
            store.messages.all(Within::Partition(&partition), query).await?;
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
