//! Embeddings and summaries of turns. They are in the container of events, in the partition of their session.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use amplifier_session_core::{
    Result,
    backend::{
        NearestTurns, NewTurn, RemovedMessages, SummaryQuery, TurnCandidate, TurnQuery, TurnVectorQuery,
        Turns,
    },
    model::{Digest, Role, SessionKey, Timestamp, TurnEmbedding, TurnSummary},
    search::SearchFilter,
};
use async_trait::async_trait;
use futures_util::TryStreamExt as _;

use crate::{
    batch::Operation,
    documents::{SummaryDocument, TURN_FIELDS, TurnDocument, kind},
    error, ids,
    query::{Select, VALUES},
    scope,
    store::{CosmosBackend, Store},
};

/// A page with texts and vectors contains at most this many embeddings.
const PAGE: usize = 100;

#[async_trait]
impl Turns for CosmosBackend {
    async fn write_turns(&self, turns: Vec<NewTurn>) -> Result<usize> {
        let turns = NewTurn::checked(turns)?;
        let mut count = 0;
        for (key, turns) in NewTurn::by_session(&turns) {
            let partition = ids::partition(key);
            let _lock = self.0.locks.lock(key).await;
            let lines = lines(&self.0, &partition, turns.iter().flat_map(NewTurn::sequences)).await?;
            let is_current = |turn: &&NewTurn| turn.is_current(|sequence| lines.get(&sequence).copied());
            let current = turns.iter().filter(is_current);
            let documents = current.map(|turn| Operation::upsert(&TurnDocument::new(key, &turn.embedding)));
            let operations: Vec<Operation> = documents.collect::<Result<_>>()?;
            count += operations.len();
            error::check(self.0.events.write_many(&partition, operations).await?)?;
        }
        Ok(count)
    }

    async fn read_turns(&self, query: &TurnQuery) -> Result<Vec<TurnEmbedding>> {
        let select = Select::rows(kind::TURN, &ids::partition(&query.session))
            .with("c.provider = @", &query.provider)
            .with("c.model = @", &query.model)
            .with("c.user_sequence >= @", query.range.start);
        // No index orders them, and without their vectors they are small.
        let mut page: Vec<TurnDocument> = self.0.events.all(select.fields(TURN_FIELDS)).await?;
        page.sort_by_key(|document| document.user_sequence);
        page.truncate(query.range.limit);
        if query.with_content {
            page.truncate(PAGE);
            let partition = ids::partition(&query.session);
            let mut whole = Vec::with_capacity(page.len());
            for document in page {
                let document: Option<TurnDocument> = self.0.events.read(&partition, &document.id).await?;
                whole.extend(document);
            }
            page = whole;
        }
        page.into_iter().map(TurnDocument::into_embedding).collect()
    }

    async fn nearest_turns(&self, query: &TurnVectorQuery) -> Result<Vec<TurnCandidate>> {
        let sessions = scope::sessions(&self.0, &query.scope, &query.filter.sessions).await?;
        let admitted = admitted_messages(&self.0, query).await?;
        let select = Select::of(kind::TURN)
            .of_user(&query.scope)
            .with("c.provider = @", &query.provider)
            .with("c.model = @", &query.space.model)
            .with("c.dim = @", query.space.dimensions);
        let mut documents = self.0.events.query::<TurnDocument>(select.documents()).await?;
        let mut nearest = NearestTurns::new(query);
        while let Some(document) = documents.try_next().await? {
            let place = (document.user_id_session_id.clone(), document.user_sequence);
            let is_admitted = admitted.as_ref().is_none_or(|admitted| admitted.contains(&place));
            if is_admitted && sessions.contains_key(&document.user_id_session_id) {
                let turn = document.message_ref();
                nearest.add(turn, &document.into_embedding()?.vector);
            }
        }
        Ok(nearest.finish())
    }
}

/// Stores summaries of turns of a session.
pub(crate) async fn write_summaries(
    store: &Store,
    key: &SessionKey,
    summaries: &[TurnSummary],
) -> Result<usize> {
    let partition = ids::partition(key);
    let _lock = store.locks.lock(key).await;
    let lines = lines(store, &partition, summaries.iter().map(|of| of.user_sequence)).await?;
    let current = summaries.iter().filter(|of| lines.get(&of.user_sequence) == Some(&of.digest));
    let current: BTreeMap<u32, &TurnSummary> = current.map(|of| (of.user_sequence, of)).collect();
    let operations = current.values().map(|of| Operation::upsert(&SummaryDocument::new(of)));
    error::check(store.events.write_many(&partition, operations.collect::<Result<_>>()?).await?)?;
    Ok(current.len())
}

/// A page of summaries. Reads all summaries of the scope, because they are few.
pub(crate) async fn summaries(store: &Store, query: &SummaryQuery) -> Result<Vec<TurnSummary>> {
    let select = Select::of(kind::SUMMARY)
        .of_user(&query.scope)
        .with_some("c.session_id = @", query.filter.session.as_ref());
    let documents: Vec<SummaryDocument> = store.events.all(select.documents()).await?;
    if documents.is_empty() {
        return Ok(Vec::new());
    }
    let sessions = scope::sessions(store, &query.scope, &query.filter).await?;
    let shown = documents.into_iter().filter(|of| sessions.contains_key(&of.user_id_session_id));
    let mut summaries: Vec<TurnSummary> = shown.map(SummaryDocument::into_summary).collect();
    summaries.retain(|of| query.after.as_ref().is_none_or(|after| of.message_ref() > *after));
    summaries.sort_by_key(TurnSummary::message_ref);
    summaries.truncate(query.limit);
    Ok(summaries)
}

/// The messages that a filter of times or roles admits; `None` if it admits all.
async fn admitted_messages(
    store: &Store,
    query: &TurnVectorQuery,
) -> Result<Option<BTreeSet<(String, u32)>>> {
    let SearchFilter { role, since, until, .. } = &query.filter;
    if role.is_none() && since.is_none() && until.is_none() {
        return Ok(None);
    }
    let select = Select::of(kind::MESSAGE).of_user(&query.scope).matching(&query.filter);
    let fields = "VALUE [c.user_id_session_id, c.sequence, c.role, c.ts]";
    let rows = store.messages.all::<(String, u32, Role, Timestamp)>(select.fields(fields)).await?;
    let admitted = rows.into_iter().filter(|(_, _, role, ts)| query.filter.admits_message(*role, *ts));
    Ok(Some(admitted.map(|(partition, sequence, ..)| (partition, sequence)).collect()))
}

/// The digests of messages.
async fn lines(
    store: &Store,
    partition: &str,
    sequences: impl Iterator<Item = u32>,
) -> Result<HashMap<u32, Digest>> {
    let sequences: Vec<u32> = sequences.collect::<BTreeSet<u32>>().into_iter().collect();
    let mut lines = HashMap::new();
    for sequences in sequences.chunks(VALUES) {
        let select = Select::rows(kind::MESSAGE, partition).at(sequences);
        lines.extend(
            store.messages.all::<(u32, Digest)>(select.fields("VALUE [c.sequence, c.digest]")).await?,
        );
    }
    Ok(lines)
}

/// Removes the embeddings and summaries that must be removed with these messages.
pub(crate) async fn remove_with(store: &Store, partition: &str, removed: &RemovedMessages) -> Result<()> {
    if removed.is_empty() {
        return Ok(());
    }
    let select = Select::rows(kind::TURN, partition);
    let fields = select.fields("VALUE [c.id, c.user_sequence, c.assistant_sequence]");
    let turns = store.events.all::<(String, u32, Option<u32>)>(fields).await?.into_iter();
    let is_gone = |user: u32, assistant: Option<u32>| {
        removed.has(user) || assistant.is_some_and(|sequence| removed.has(sequence))
    };
    let mut ids: Vec<String> =
        turns.filter(|(_, user, assistant)| is_gone(*user, *assistant)).map(|(id, ..)| id).collect();
    let fields = Select::rows(kind::SUMMARY, partition).fields("VALUE [c.id, c.user_sequence, c.digest]");
    let summaries = store.events.all::<(String, u32, Digest)>(fields).await?.into_iter();
    ids.extend(summaries.filter(|(_, user, line)| removed.has_line(*user, *line)).map(|(id, ..)| id));
    delete(store, partition, &ids).await
}

/// Removes all embeddings and summaries of a partition.
pub(crate) async fn delete_all(store: &Store, partition: &str) -> Result<()> {
    for kind in [kind::TURN, kind::SUMMARY] {
        let ids: Vec<String> = store.events.all(Select::rows(kind, partition).fields("VALUE c.id")).await?;
        delete(store, partition, &ids).await?;
    }
    Ok(())
}

async fn delete(store: &Store, partition: &str, ids: &[String]) -> Result<()> {
    for ids in ids.chunks(VALUES) {
        let operations = ids.iter().cloned().map(Operation::delete).collect();
        // Rejected if another process deletes them at the same time.
        error::check(store.events.write_many(partition, operations).await?)?;
    }
    Ok(())
}
