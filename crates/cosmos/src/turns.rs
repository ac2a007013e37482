//! Summaries of turns, which are in the container of events in the partition of their session; and what a change of
//! lines does to the vectors of turns.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use amplifier_session_core::{
    Result,
    backend::{RemovedMessages, SessionChange, SummaryQuery, TurnLine, TurnLines},
    model::{Digest, Role, SessionKey, TurnSummary, VectorState},
};

use crate::{
    batch::Operation,
    client::Container,
    documents::{MessageDocument, SummaryDocument, kind},
    error, ids,
    messages::{self, documents_at},
    meta,
    query::{Select, VALUES},
    scope,
    store::Store,
};

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

/// The lines of the turns that some messages of a partition may begin.
pub(crate) async fn lines_of(
    store: &Store,
    partition: &str,
    documents: &[MessageDocument],
) -> Result<TurnLines> {
    let messages = documents.iter().map(|document| &document.message);
    let turns = messages.filter(|message| message.role == Role::User).filter_map(|message| message.turn);
    lines_of_turns(store, partition, &turns.collect()).await
}

async fn lines_of_turns(store: &Store, partition: &str, turns: &BTreeSet<u32>) -> Result<TurnLines> {
    if turns.is_empty() {
        return Ok(TurnLines::default());
    }
    let select = Select::rows(kind::MESSAGE, partition).with("ARRAY_CONTAINS(@, c.turn)", turns);
    let fields = select.fields("VALUE [c.sequence, c.turn, c.role, c.digest]");
    let mut lines = store.messages.all::<(u32, Option<u32>, Role, Digest)>(fields).await?;
    lines.sort_by_key(|(sequence, ..)| *sequence);
    let line = |(sequence, turn, role, digest)| TurnLine { sequence, turn, role, digest };
    Ok(TurnLines::of(lines.into_iter().map(line)))
}

/// The messages that begin turns, by partition and sequence: the first of the user in each.
pub(crate) async fn all_begun(store: &Store) -> Result<BTreeSet<(String, u32)>> {
    let select = Select::of(kind::MESSAGE).with("c.role = @", Role::User);
    let fields = select.fields("VALUE [c.user_id_session_id, c.turn, c.sequence]");
    let mut firsts: BTreeMap<(String, u32), u32> = BTreeMap::new();
    for (partition, turn, sequence) in store.messages.all::<(String, Option<u32>, u32)>(fields).await? {
        let Some(turn) = turn else { continue };
        let first = firsts.entry((partition, turn)).or_insert(sequence);
        *first = sequence.min(*first);
    }
    Ok(firsts.into_iter().map(|((partition, _), first)| (partition, first)).collect())
}

/// Makes the vectors pending of the turns to which messages are added or from which messages are `removed`. Removes the
/// vectors that were made from `removed` answers.
pub(crate) async fn mark_changed(
    store: &Store,
    partition: &str,
    change: &SessionChange,
    removed: &RemovedMessages,
) -> Result<()> {
    let mut turns: BTreeSet<u32> = change.messages.put.iter().filter_map(|message| message.turn).collect();
    if !removed.is_empty() {
        let messages = Select::rows(kind::MESSAGE, partition).fields("VALUE [c.sequence, c.turn]");
        let messages = store.messages.all::<(u32, Option<u32>)>(messages).await?.into_iter();
        turns.extend(messages.filter(|(sequence, _)| removed.has(*sequence)).filter_map(|(_, turn)| turn));
        let vectors = Select::rows(kind::TURN, partition).fields("VALUE [c.id, c.turn.assistant_sequence]");
        let vectors = store.messages.all::<(String, Option<u32>)>(vectors).await?.into_iter();
        let is_gone = |answer: Option<u32>| answer.is_some_and(|answer| removed.has(answer));
        let ids: Vec<String> = vectors.filter(|(_, answer)| is_gone(*answer)).map(|(id, _)| id).collect();
        delete(&store.messages, partition, &ids).await?;
    }
    let begun: Vec<u32> = lines_of_turns(store, partition, &turns).await?.firsts().collect();
    if begun.is_empty() {
        return Ok(());
    }
    let current = meta::generations(store).await?.current_number();
    let documents = documents_at(store, partition, &begun).await?;
    messages::update(store, documents, |mut document| {
        let is_stored = document.message.vectors == VectorState::Stored;
        let has_others = document.made.iter().any(|number| *number != current);
        // Other generations make all vectors of the message again.
        document.forget_generations(|number| number != current);
        let state = if is_stored { VectorState::TurnPending } else { document.message.vectors };
        (is_stored || has_others).then(|| document.with_vectors(state))
    })
    .await
    .map(drop)
}

/// Removes the summaries that must be removed with these messages.
pub(crate) async fn remove_with(store: &Store, partition: &str, removed: &RemovedMessages) -> Result<()> {
    if removed.is_empty() {
        return Ok(());
    }
    let fields = Select::rows(kind::SUMMARY, partition).fields("VALUE [c.id, c.user_sequence, c.digest]");
    let summaries = store.events.all::<(String, u32, Digest)>(fields).await?.into_iter();
    let gone = summaries.filter(|(_, user, line)| removed.has_line(*user, *line)).map(|(id, ..)| id);
    delete(&store.events, partition, &gone.collect::<Vec<_>>()).await
}

/// Removes all summaries of a partition, and the vectors of turns that earlier versions stored beside them.
pub(crate) async fn delete_all(store: &Store, partition: &str) -> Result<()> {
    for kind in [kind::TURN, kind::SUMMARY] {
        let ids: Vec<String> = store.events.all(Select::rows(kind, partition).fields("VALUE c.id")).await?;
        delete(&store.events, partition, &ids).await?;
    }
    Ok(())
}

async fn delete(container: &Container, partition: &str, ids: &[String]) -> Result<()> {
    for ids in ids.chunks(VALUES) {
        let operations = ids.iter().cloned().map(Operation::delete).collect();
        // Rejected if another process deletes them at the same time.
        error::check(container.write_many(partition, operations).await?)?;
    }
    Ok(())
}
