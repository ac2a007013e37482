//! Vectors: reading them, finding pending ones, and switching generations. Writing them is in `vector_batches`.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    future::ready,
};

use amplifier_session_core::{
    Error, ErrorField, Result, Scope,
    backend::{
        MessageVectors, MessagesToEmbed, Meta as _, PendingQuery, SequenceRange, VectorCounts, Vectors,
        meta::{EMBEDDING_SPACE, Generations, NEXT_EMBEDDING_SPACE},
    },
    model::{Message, MessageRef, SessionKey, VectorRecord, VectorState, VectorText},
    search::{MissingVectors, SearchFilter, SessionFilter},
};
use async_trait::async_trait;
use futures_util::{StreamExt as _, TryStreamExt as _};
use serde_json::json;

use crate::{
    batch::Operation,
    client::parallel,
    containers::order,
    documents::{MessageDocument, VectorDocument, kind},
    ids,
    messages::{self, CountedMessage},
    meta,
    query::{CosmosQuery, Select, VALUES},
    scope,
    store::{CosmosBackend, Store},
    turns, vector_batches,
};

/// The codes of `VectorState::Pending` and `VectorState::Outdated`.
const PENDING: &str = "c.vectors IN (0, 3)";
/// Also that of `VectorState::TurnPending`.
const PENDING_WITH_TURNS: &str = "c.vectors IN (0, 3, 4)";

#[async_trait]
impl Vectors for CosmosBackend {
    async fn messages_pending_vectors(&self, query: &PendingQuery) -> Result<Vec<Message>> {
        let held = meta::generations(&self.0).await?;
        let Some(select) = pending(query.generation, query.turns, &held) else { return Ok(Vec::new()) };
        let mut select = select.with("c.user_id = @", &query.user);
        if let Some(session) = &query.session {
            let key = SessionKey::new(query.user.clone(), session.clone());
            select = select.within(&ids::partition(&key)).with("c.session_id = @", session);
        }
        if let Some(MessageRef { session, sequence }) = &query.after {
            select = select.with_all(
                "(c.user_id > @0 OR (c.user_id = @0 AND (c.session_id > @1 OR (c.session_id = @1 AND c.sequence > @2))))",
                [json!(session.user_id), json!(session.session_id), json!(sequence)],
            );
        }
        // Leaves out sessions whose first write has not completed.
        let filter = SessionFilter::default().with_session(query.session.clone());
        let shown = scope::sessions(&self.0, &Scope::User(query.user.clone()), &filter).await?;
        let limit = query.limit.min(messages::PAGE);
        let documents = select.ordered(order::MESSAGES).documents().for_about(limit);
        let found = self.0.messages.query::<MessageDocument>(documents).await?;
        let found = found.try_filter(|of| ready(shown.contains_key(&of.user_id_session_id)));
        messages::complete(&self.0, found.take(limit).try_collect().await?).await
    }

    async fn write_vectors(
        &self,
        key: &SessionKey,
        generation: u32,
        vectors: Vec<MessageVectors>,
    ) -> Result<usize> {
        vector_batches::write(&self.0, key, generation, vectors).await
    }

    async fn mark_pending(&self, key: &SessionKey, which: MessagesToEmbed) -> Result<u64> {
        let generation = meta::generations(&self.0).await?.current_number();
        let (before, after) = which.transition();
        let messages = Select::rows(kind::MESSAGE, &ids::partition(key)).documents();
        let documents: Vec<MessageDocument> = self.0.messages.all(messages).await?;
        let changed = messages::update(&self.0, documents, |document| {
            let is_before = before.contains(&document.message.vectors);
            let is_meant = which.includes(document.message.sequence, document.has_failed(generation));
            (is_before && is_meant).then(|| document.with_vectors(after))
        });
        Ok(changed.await? as u64)
    }

    async fn complete_generation(&self, generation: u32) -> Result<bool> {
        let entries = self.meta().await?;
        let held = Generations::of(&entries);
        if held.current_number() == generation {
            return Ok(true);
        }
        let spaces = entries.get(EMBEDDING_SPACE).zip(entries.get(NEXT_EMBEDDING_SPACE));
        let Some((current, next)) = spaces.filter(|_| held.is_next(generation)) else {
            let message = format!("generation {generation} is not the next one");
            return Err(Error::validation(ErrorField::Generation, message));
        };
        if is_pending(&self.0, generation, &held).await? {
            return Ok(false);
        }
        // The states come first: if this is interrupted, the next generation is still the next one, and the call is
        // repeated.
        let begin = turns::all_begun(&self.0).await?;
        let with_texts = Select::of(kind::MESSAGE).and("c.vectors != 2").documents();
        change_messages(&self.0, with_texts, usize::MAX, |document| {
            // A message that was stored in the meantime also has pending vectors of this generation.
            let made = document.generations.iter().find(|of| of.number == generation)?;
            let place = (document.user_id_session_id.clone(), document.message.sequence);
            let is_whole = made.turns > 0 || !begin.contains(&place);
            let state = if is_whole { VectorState::Stored } else { VectorState::TurnPending };
            (document.message.vectors != state).then(|| document.with_vectors(state))
        })
        .await?;
        let stored = self.swap_meta(EMBEDDING_SPACE, Some(current), next).await?;
        Ok(stored.as_deref() == Some(next))
    }

    async fn prune_vectors(&self, limit: usize) -> Result<usize> {
        let kept: Vec<u32> = meta::generations(&self.0).await?.numbers().collect();
        let select = Select::all_vectors().with("NOT ARRAY_CONTAINS(@, c.generation)", &kept);
        let query = select.top(limit, "VALUE [c.user_id_session_id, c.id]");
        let mut deletions: BTreeMap<String, Vec<Operation>> = BTreeMap::new();
        for (partition, id) in self.0.messages.all::<(String, String)>(query).await? {
            deletions.entry(partition).or_default().push(Operation::delete(id));
        }
        let pruned = deletions.values().map(Vec::len).sum();
        for (partition, deletions) in deletions {
            // Rejected if another process deleted one at the same time. The next call finds the others.
            self.0.messages.write_many(&partition, deletions).await?;
        }
        if pruned > 0 {
            return Ok(pruned);
        }
        let with_vectors = Select::of(kind::MESSAGE).and("ARRAY_LENGTH(c.made) > 0").documents();
        change_messages(&self.0, with_vectors, limit, |mut document| {
            let before = document.made.len();
            document.forget_generations(|number| !kept.contains(&number));
            (document.made.len() < before).then_some(document)
        })
        .await
    }

    async fn count_vectors(&self, scope: &Scope) -> Result<VectorCounts> {
        let filter = SearchFilter::default();
        let held = meta::generations(&self.0).await?;
        let mut counts = VectorCounts::default();
        let mut messages = CountedMessage::select(&self.0, scope, &filter).await?;
        while let Some(message) = messages.try_next().await? {
            counts.add_message(message.vectors, &held, |number| message.made.contains(&number));
            for of in &message.generations {
                counts.add_vectors(of.number, of.vectors.into(), of.failure.as_deref());
            }
        }
        Ok(counts)
    }

    async fn missing_vectors(&self, scope: &Scope) -> Result<MissingVectors> {
        let filter = SearchFilter::default();
        let (mut pending, mut of) = (0, 0);
        let mut messages = CountedMessage::select(&self.0, scope, &filter).await?;
        while let Some(message) = messages.try_next().await? {
            of += 1;
            pending += u64::from(message.vectors.is_pending());
        }
        Ok(if pending == 0 { MissingVectors::default() } else { MissingVectors { messages: pending, of } })
    }

    async fn vectors_of(
        &self,
        generation: u32,
        texts: &[(MessageRef, VectorText)],
    ) -> Result<Vec<(MessageRef, VectorRecord)>> {
        let wanted: HashSet<(&MessageRef, VectorText)> =
            texts.iter().map(|(message_ref, of)| (message_ref, *of)).collect();
        let partitions = messages::by_partition(texts.iter().map(|(message_ref, _)| message_ref));
        let reads = partitions.into_iter().map(|(partition, sequences)| async move {
            let select = Select::vectors(&partition).with("c.generation = @", generation);
            self.0.messages.all::<VectorDocument>(select.at(&sequences).documents()).await
        });
        let found = parallel(reads)
            .await?
            .into_iter()
            .flatten()
            .map(|of| (of.fields.of.message_ref(), of.fields.record));
        let mut vectors: Vec<(MessageRef, VectorRecord)> =
            found.filter(|(message_ref, record)| wanted.contains(&(message_ref, record.text))).collect();
        vectors.sort_by(|(a, one), (b, other)| {
            (a, one.text, one.chunk_index).cmp(&(b, other.text, other.chunk_index))
        });
        Ok(vectors)
    }

    async fn vector_texts(
        &self,
        generation: u32,
        key: &SessionKey,
        range: SequenceRange,
    ) -> Result<Vec<(u32, Vec<VectorText>)>> {
        let limit = range.limit.min(VALUES);
        let select = Select::vectors(&ids::partition(key)).with("c.generation = @", generation);
        let query = select.from(range.start).fields("VALUE [c.sequence, c.content_type]");
        let mut rows = self.0.messages.query::<(u32, VectorText)>(query).await?;
        let mut types: BTreeMap<u32, BTreeSet<VectorText>> = BTreeMap::new();
        // The types of the last message are complete only after a further message was read.
        while types.len() <= limit
            && let Some((sequence, content_type)) = rows.try_next().await?
        {
            types.entry(sequence).or_default().insert(content_type);
        }
        let types = types.into_iter().take(limit);
        Ok(types.map(|(sequence, of)| (sequence, of.into_iter().collect())).collect())
    }
}

/// Messages with pending vectors of a generation. `None` if it is neither the current nor the next one.
pub(crate) fn pending(generation: u32, turns: bool, held: &Generations) -> Option<Select> {
    let messages = Select::of(kind::MESSAGE);
    if generation == held.current_number() {
        Some(messages.and(if turns { PENDING_WITH_TURNS } else { PENDING }))
    } else if held.is_next(generation) {
        Some(messages.and("c.vectors != 2").with("NOT ARRAY_CONTAINS(c.made, @)", generation))
    } else {
        None
    }
}

/// Whether vectors of a generation are pending. Ignores sessions whose first write has not completed.
async fn is_pending(store: &Store, generation: u32, held: &Generations) -> Result<bool> {
    let Some(select) = pending(generation, true, held) else { return Ok(false) };
    let partitions: Vec<String> = store.messages.all(select.fields("VALUE c.user_id_session_id")).await?;
    if partitions.is_empty() {
        return Ok(false);
    }
    let shown = scope::sessions(store, &Scope::Everyone, &SessionFilter::default()).await?;
    Ok(partitions.iter().any(|partition| shown.contains_key(partition)))
}

/// Changes the messages of a query until about `limit` of them have changed. Returns their number.
async fn change_messages(
    store: &Store,
    query: CosmosQuery<MessageDocument>,
    limit: usize,
    change: impl Fn(MessageDocument) -> Option<MessageDocument>,
) -> Result<usize> {
    let mut documents = store.messages.query(query).await?.try_chunks(VALUES).map_err(|error| error.1);
    let mut changed = 0;
    while changed < limit
        && let Some(documents) = documents.try_next().await?
    {
        changed += messages::update(store, documents, &change).await?;
    }
    Ok(changed)
}
