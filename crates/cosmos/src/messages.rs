//! Messages: reading and counting.

use std::{
    collections::{BTreeMap, BTreeSet},
    future::ready,
};

use amplifier_session_core::{
    Error, ErrorKind, Result, Scope,
    backend::{MessageCount, Messages, SequenceRange},
    model::{Message, MessageRef, MessageState, Role, SessionKey, Timestamp, VectorState},
    search::SearchFilter,
};
use async_trait::async_trait;
use futures_util::{Stream, TryStreamExt as _};
use serde::Deserialize;

use crate::{
    batch::Operation,
    client::parallel,
    documents::{GenerationState, MessageDocument, PieceDocument, kind},
    error, ids,
    query::{Select, VALUES},
    scope,
    store::{CosmosBackend, Store},
};

/// The maximum number of messages in a page.
pub(crate) const PAGE: usize = 200;

/// Up to this many messages are read by their ids, for a request unit each, which is cheaper than a query.
const POINT_READS: usize = 2;

#[async_trait]
impl Messages for CosmosBackend {
    async fn message_states(&self, key: &SessionKey) -> Result<Vec<MessageState>> {
        let select = Select::rows(kind::MESSAGE, &ids::partition(key)).from(0);
        let query = select.fields("c.digest, c.turn, c.ts, c.ts_estimated, c.ts_source");
        self.0.rows(&self.0.messages, key, query).await
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
        complete(&self.0, parallel(reads).await?.into_iter().flatten().collect()).await
    }

    async fn count_messages(&self, scope: &Scope, filter: &SearchFilter) -> Result<Vec<MessageCount>> {
        let messages = CountedMessage::select(&self.0, scope, filter).await?;
        let messages: Vec<_> = messages.map_ok(|message| (message.ts, message.role)).try_collect().await?;
        Ok(MessageCount::of(messages))
    }
}

/// The fields of a message for counting.
#[derive(Debug, Deserialize)]
pub(crate) struct CountedMessage {
    user_id_session_id: String,
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

    /// The messages in scope that `filter` admits.
    pub(crate) async fn select<'a>(
        store: &Store,
        scope: &Scope,
        filter: &'a SearchFilter,
    ) -> Result<impl Stream<Item = Result<Self>> + Unpin + 'a> {
        let sessions = scope::sessions(store, scope, &filter.sessions).await?;
        let select = Select::of(kind::MESSAGE).of_user(scope).matching(filter);
        let rows = store.messages.query::<Self>(select.fields(Self::FIELDS)).await?;
        Ok(rows.try_filter(move |row| {
            let is_in_scope = sessions.contains_key(&row.user_id_session_id);
            ready(is_in_scope && filter.admits_message(row.role, row.ts))
        }))
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
    if sequences.len() <= POINT_READS {
        let session = ids::session_of(partition)?.session_id;
        let ids = sequences.iter().map(|sequence| ids::message(&session, *sequence)).collect();
        return store.messages.read_all(partition, ids).await;
    }
    let mut documents = Vec::new();
    for sequences in sequences.chunks(VALUES) {
        let select = Select::rows(kind::MESSAGE, partition).at(sequences);
        documents.extend(store.messages.all(select.documents()).await?);
    }
    Ok(documents)
}

/// Saves the documents that `change` makes from `documents`. Returns their number. `Conflict` if another process
/// changed one of them at the same time.
pub(crate) async fn update(
    store: &Store,
    documents: Vec<MessageDocument>,
    change: impl Fn(MessageDocument) -> Option<MessageDocument>,
) -> Result<usize> {
    let mut operations: BTreeMap<String, Vec<Operation>> = BTreeMap::new();
    for document in documents.into_iter().filter_map(change) {
        let save = Operation::save(&document)?;
        operations.entry(document.fields.user_id_session_id).or_default().push(save);
    }
    let changed = operations.values().map(Vec::len).sum();
    for (partition, operations) in operations {
        error::check(store.messages.write_many(&partition, operations).await?)?;
    }
    Ok(changed)
}

/// The messages of documents, including lines that are in pieces.
pub(crate) async fn complete(store: &Store, documents: Vec<MessageDocument>) -> Result<Vec<Message>> {
    let completed = documents.into_iter().map(|document| async move {
        let pieces = if document.pieces > 0 { pieces(store, &document).await? } else { Vec::new() };
        document.into_message(pieces)
    });
    parallel(completed).await
}

async fn pieces(store: &Store, document: &MessageDocument) -> Result<Vec<PieceDocument>> {
    let Message { session_id, sequence, digest, .. } = &document.message;
    let ids = (0..document.pieces).map(|number| ids::piece(session_id, *sequence, *digest, number)).collect();
    let pieces: Vec<PieceDocument> = store.messages.read_all(&document.user_id_session_id, ids).await?;
    if pieces.len() == document.pieces {
        return Ok(pieces);
    }
    let message = format!("found {} of {} pieces of a line", pieces.len(), document.pieces);
    Err(Error::new(ErrorKind::StorageIo, message).with("document", &document.id).retryable())
}
