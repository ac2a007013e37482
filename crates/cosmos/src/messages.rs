//! Reading messages.

use std::collections::{BTreeMap, HashMap};

use amplifier_session_core::{
    Error, ErrorKind, Result,
    backend::{OwingQuery, SequenceRange},
    model::{Message, MessageState, Place, SessionKey, TimeSource, Timestamp},
};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use serde::Deserialize;

use crate::{
    client::{READS, Within, page_of},
    documents::{MessageDocument, PieceDocument, digest_of_hex, kind},
    ids, lease, queries, schema,
    store::Store,
};

/// The most messages in a page.
const PAGE: usize = 200;

/// So many messages are read by their ids, a request unit each: cheaper than a query.
const POINT_READS: usize = 2;

/// The most sequences in a query.
const SEQUENCES: usize = 500;

#[derive(Debug, Deserialize)]
struct State {
    digest: String,
    turn: Option<u32>,
    ts: Timestamp,
    ts_estimated: bool,
    ts_source: Option<TimeSource>,
}

pub(crate) async fn states(store: &Store, key: &SessionKey) -> Result<Vec<MessageState>> {
    if !lease::is_there(store, key).await? {
        return Ok(Vec::new());
    }
    let partition = ids::partition(key);
    let query = queries::rows(kind::MESSAGE, "c.digest, c.turn, c.ts, c.ts_estimated, c.ts_source", 0, None);
    let states: Vec<State> = store.messages.all(Within::Partition(&partition), query).await?;
    let states = states.into_iter().map(|state| {
        Ok(MessageState {
            digest: digest_of_hex(&state.digest)?,
            turn: state.turn,
            ts: state.ts,
            ts_source: state.ts_source.unwrap_or(TimeSource::of_estimated(state.ts_estimated)),
        })
    });
    states.collect()
}

pub(crate) async fn read(store: &Store, key: &SessionKey, range: SequenceRange) -> Result<Vec<Message>> {
    if !lease::is_there(store, key).await? {
        return Ok(Vec::new());
    }
    let partition = ids::partition(key);
    let query = queries::rows(kind::MESSAGE, "*", range.start, Some(range.limit.min(PAGE)));
    let documents = store.messages.all(Within::Partition(&partition), query).await?;
    complete(store, documents).await
}

pub(crate) async fn at(store: &Store, places: &[Place]) -> Result<Vec<Message>> {
    let partitions = by_partition(places.iter().map(|place| (&place.session, place.sequence)));
    let reads = partitions
        .into_iter()
        .map(|(partition, sequences)| async move { documents_at(store, &partition, &sequences).await });
    let documents: Vec<_> = stream::iter(reads).buffered(READS).try_collect().await?;
    complete(store, documents.into_iter().flatten().collect()).await
}

/// Sequences by their partition, each once.
pub(crate) fn by_partition<'a>(
    places: impl Iterator<Item = (&'a SessionKey, u32)>,
) -> BTreeMap<String, Vec<u32>> {
    let mut partitions: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    for (session, sequence) in places {
        partitions.entry(ids::partition(session)).or_default().push(sequence);
    }
    for sequences in partitions.values_mut() {
        sequences.sort_unstable();
        sequences.dedup();
    }
    partitions
}

pub(crate) async fn documents_at(
    store: &Store,
    partition: &str,
    sequences: &[u32],
) -> Result<Vec<MessageDocument>> {
    let mut documents = Vec::new();
    if sequences.len() <= POINT_READS {
        let session = ids::session_of(partition)?.session_id;
        let ids: Vec<String> = sequences.iter().map(|sequence| ids::message(&session, *sequence)).collect();
        let reads = ids.into_iter().map(|id| async move { store.messages.read(partition, &id).await });
        let found: Vec<Option<MessageDocument>> = stream::iter(reads).buffered(READS).try_collect().await?;
        return Ok(found.into_iter().flatten().collect());
    }
    for sequences in sequences.chunks(SEQUENCES) {
        let query = queries::rows_at(kind::MESSAGE, "*", sequences);
        documents.extend(store.messages.all(Within::Partition(partition), query).await?);
    }
    Ok(documents)
}

pub(crate) async fn owing(store: &Store, query: &OwingQuery) -> Result<Vec<Message>> {
    let held = schema::generations(store).await?;
    let Some(sql) = queries::owing(query, &held) else { return Ok(Vec::new()) };
    let partition =
        query.session.clone().map(|session| ids::partition(&SessionKey::new(query.user.clone(), session)));
    let within = partition.as_deref().map_or(Within::All, Within::Partition);
    let limit = query.limit.min(PAGE);
    let sql = sql.in_pages_of(page_of(limit));
    let mut pages = store.messages.query::<MessageDocument>(within, sql).await?;
    let mut documents = Vec::new();
    let mut sessions: HashMap<String, bool> = HashMap::new();
    while documents.len() < limit
        && let Some(page) = pages.next().await?
    {
        for document in page {
            let partition = &document.user_id_session_id;
            let is_there = match sessions.get(partition) {
                Some(is_there) => *is_there,
                None => {
                    let is_there = lease::is_there(store, &ids::session_of(partition)?).await?;
                    sessions.insert(partition.clone(), is_there);
                    is_there
                }
            };
            if is_there {
                documents.push(document);
            }
        }
    }
    documents.truncate(limit);
    complete(store, documents).await
}

/// The messages of documents, with lines that lie in pieces.
async fn complete(store: &Store, documents: Vec<MessageDocument>) -> Result<Vec<Message>> {
    let completed = documents.into_iter().map(|document| async move {
        let pieces = if document.raw.is_some() { Vec::new() } else { pieces(store, &document).await? };
        document.into_message(pieces)
    });
    stream::iter(completed).buffered(READS).try_collect().await
}

async fn pieces(store: &Store, document: &MessageDocument) -> Result<Vec<PieceDocument>> {
    let query = queries::rows_at(kind::PIECE, "*", &[document.sequence]);
    let within = Within::Partition(&document.user_id_session_id);
    let mut pieces: Vec<PieceDocument> = store.messages.all(within, query).await?;
    // Beside them may lie those of a line that is being written, or was before.
    pieces.retain(|piece| piece.digest == document.digest);
    pieces.sort_by_key(|piece| piece.number);
    if pieces.len() == document.pieces {
        return Ok(pieces);
    }
    let message = format!("of {} pieces of a line {} are there", document.pieces, pieces.len());
    Err(Error::new(ErrorKind::StorageIo, message).with("document", &document.id).retryable())
}
