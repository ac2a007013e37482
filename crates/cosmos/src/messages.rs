//! Messages: reading and counting.

use std::collections::{BTreeMap, BTreeSet};

use amplifier_session_core::{
    Error, ErrorKind, Result, Scope,
    backend::{MessageCount, Messages, SequenceRange},
    model::{
        Digest, Message, MessageRef, MessageState, Role, SessionKey, TimeSource, Timestamp, VectorState,
    },
    search::SearchFilter,
};
use async_trait::async_trait;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use serde::Deserialize;

use crate::{
    batch::Operation,
    client::READS,
    documents::{GenerationState, MessageDocument, PieceDocument, kind, time_source},
    error, ids,
    query::{Query, Select},
    scope,
    store::{CosmosBackend, Store},
};

/// The most messages in a page.
pub(crate) const PAGE: usize = 200;

/// Up to this many messages are read by their ids, for a request unit each, which is cheaper than a query.
const POINT_READS: usize = 2;

/// The most sequences in a query.
const SEQUENCES: usize = 500;

#[async_trait]
impl Messages for CosmosBackend {
    async fn message_states(&self, key: &SessionKey) -> Result<Vec<MessageState>> {
        let select = Select::rows(kind::MESSAGE, &ids::partition(key)).from(0);
        let query = select.fields("c.digest, c.turn, c.ts, c.ts_estimated, c.ts_source");
        let states: Vec<State> = self.0.rows(&self.0.messages, key, query).await?;
        let state = |State { digest, turn, ts, ts_source }| MessageState { digest, turn, ts, ts_source };
        Ok(states.into_iter().map(state).collect())
    }

    async fn read_messages(&self, key: &SessionKey, range: SequenceRange) -> Result<Vec<Message>> {
        let select = Select::rows(kind::MESSAGE, &ids::partition(key)).from(range.start);
        let query = select.top(range.limit.min(PAGE), "*");
        complete(&self.0, self.0.rows(&self.0.messages, key, query).await?).await
    }

    async fn messages_at(&self, message_refs: &[MessageRef]) -> Result<Vec<Message>> {
        let reads = by_partition(message_refs)
            .into_iter()
            .map(|(partition, sequences)| async move { documents_at(&self.0, &partition, &sequences).await });
        let documents: Vec<_> = stream::iter(reads).buffered(READS).try_collect().await?;
        complete(&self.0, documents.into_iter().flatten().collect()).await
    }

    async fn count_messages(&self, scope: &Scope, filter: &SearchFilter) -> Result<Vec<MessageCount>> {
        let sessions = scope::sessions(&self.0, scope, &filter.sessions).await?;
        let mut rows = self.0.messages.query(CountedMessage::query(scope, filter)).await?;
        let mut counts: BTreeMap<(String, &str), (Role, u64)> = BTreeMap::new();
        while let Some(row) = rows.try_next().await? {
            if sessions.contains_key(&row.user_id_session_id) && filter.admits_message(row.role, row.ts) {
                counts.entry((row.ts.day(), row.role.as_str())).or_insert((row.role, 0)).1 += 1;
            }
        }
        let counts = counts.into_iter();
        Ok(counts.map(|((day, _), (role, messages))| MessageCount { day, role, messages }).collect())
    }
}

#[derive(Debug, Deserialize)]
struct State {
    digest: Digest,
    turn: Option<u32>,
    ts: Timestamp,
    #[serde(flatten, with = "time_source")]
    ts_source: TimeSource,
}

/// What is counted of a message.
#[derive(Debug, Deserialize)]
pub(crate) struct CountedMessage {
    pub(crate) user_id_session_id: String,
    pub(crate) sequence: u32,
    role: Role,
    pub(crate) ts: Timestamp,
    pub(crate) synced_at: Timestamp,
    pub(crate) vectors: VectorState,
    pub(crate) generations: Vec<GenerationState>,
    pub(crate) made: Vec<u32>,
}

impl CountedMessage {
    pub(crate) const FIELDS: &str =
        "c.user_id_session_id, c.sequence, c.role, c.ts, c.synced_at, c.vectors, c.generations, c.made";

    /// Messages that `filter` admits. The caller checks their sessions.
    pub(crate) fn query(scope: &Scope, filter: &SearchFilter) -> Query<Self> {
        Select::of(kind::MESSAGE).of_user(scope).matching(filter).fields(Self::FIELDS)
    }
}

/// Sequences by their partition, sorted and without duplicates.
pub(crate) fn by_partition<'a>(
    message_refs: impl IntoIterator<Item = &'a MessageRef>,
) -> BTreeMap<String, Vec<u32>> {
    let mut partitions: BTreeMap<String, BTreeSet<u32>> = BTreeMap::new();
    for message_ref in message_refs {
        partitions.entry(ids::partition(&message_ref.session)).or_default().insert(message_ref.sequence);
    }
    let partitions = partitions.into_iter();
    partitions.map(|(partition, sequences)| (partition, sequences.into_iter().collect())).collect()
}

/// The documents of messages of one partition.
pub(crate) async fn documents_at(
    store: &Store,
    partition: &str,
    sequences: &[u32],
) -> Result<Vec<MessageDocument>> {
    let mut documents = Vec::new();
    if sequences.len() <= POINT_READS {
        let session = ids::session_of(partition)?.session_id;
        for sequence in sequences {
            documents.extend(store.messages.read(partition, &ids::message(&session, *sequence)).await?);
        }
        return Ok(documents);
    }
    for sequences in sequences.chunks(SEQUENCES) {
        let select = Select::rows(kind::MESSAGE, partition).at(sequences);
        documents.extend(store.messages.all(select.documents()).await?);
    }
    Ok(documents)
}

/// Saves those of `documents` that `change` changes. Returns how many.
///
/// # Errors
///
/// `Conflict` if another process changed one of them at the same time.
pub(crate) async fn update(
    store: &Store,
    documents: Vec<MessageDocument>,
    change: impl Fn(&mut MessageDocument) -> bool,
) -> Result<usize> {
    let mut operations: BTreeMap<String, Vec<Operation>> = BTreeMap::new();
    for mut document in documents {
        if change(&mut document) {
            let save = Operation::save(&document)?;
            operations.entry(document.fields.user_id_session_id).or_default().push(save);
        }
    }
    let changed = operations.values().map(Vec::len).sum();
    for (partition, operations) in operations {
        if !store.messages.write_many(&partition, operations).await? {
            return Err(error::conflict());
        }
    }
    Ok(changed)
}

/// The messages of documents, with the lines that are in pieces.
pub(crate) async fn complete(store: &Store, documents: Vec<MessageDocument>) -> Result<Vec<Message>> {
    let completed = documents.into_iter().map(|document| async move {
        let pieces = if document.pieces > 0 { pieces(store, &document).await? } else { Vec::new() };
        document.into_message(pieces)
    });
    stream::iter(completed).buffered(READS).try_collect().await
}

async fn pieces(store: &Store, document: &MessageDocument) -> Result<Vec<PieceDocument>> {
    let select = Select::rows(kind::PIECE, &document.user_id_session_id).at(&[document.message.sequence]);
    let mut pieces: Vec<PieceDocument> = store.messages.all(select.documents()).await?;
    // There may also be pieces of an earlier line, or of one that is being written.
    pieces.retain(|piece| piece.digest == document.message.digest);
    pieces.sort_by_key(|piece| piece.number);
    if pieces.len() == document.pieces {
        return Ok(pieces);
    }
    let message = format!("found {} of {} pieces of a line", pieces.len(), document.pieces);
    Err(Error::new(ErrorKind::StorageIo, message).with("document", &document.id).retryable())
}
