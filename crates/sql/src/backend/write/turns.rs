//! Writing and removing embeddings and summaries of turns.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use amplifier_session_core::{
    Result,
    backend::{NewTurn, RemovedMessages},
    model::{Digest, SessionKey, TurnSummary, UserId},
};

use super::removal::RowsOf;
use crate::{
    backend::{Database, Writer},
    is_one_of,
    turns::{self, EMBEDDINGS, NAMES, SUMMARIES},
};

/// Stores embeddings, sorted by session, one for each user message and model; returns their number.
pub(in crate::backend) fn turns<D: Database>(database: &D, turns: &[NewTurn]) -> Result<usize> {
    const OPERATION: &str = "write_turns";
    if turns.is_empty() {
        return Ok(0);
    }
    database.transaction(OPERATION, |writer| {
        let mut current = Vec::new();
        for (key, turns) in NewTurn::by_session(turns) {
            let lines = lines(writer, key, turns.iter().flat_map(NewTurn::sequences))?;
            let is_current = |turn: &&NewTurn| turn.is_current(|sequence| lines.get(&sequence).copied());
            current.extend(turns.iter().filter(is_current));
        }
        let mut replaced: BTreeMap<(&UserId, &str, &str), Vec<String>> = BTreeMap::new();
        for NewTurn { session, embedding, .. } in &current {
            let place = (&session.user_id, &*embedding.provider, &*embedding.model);
            replaced.entry(place).or_default().push(embedding.user_message_id(session));
        }
        for ((user, provider, model), messages) in replaced {
            writer.execute(&turns::delete(user, provider, model, messages))?;
        }
        for NewTurn { session, embedding, .. } in &current {
            let vector = embedding.vector_bytes();
            writer.insert(&EMBEDDINGS, &turns::embedding(session, embedding, &vector))?;
        }
        Ok(current.len())
    })
}

/// Stores summaries of turns of one session; returns their number.
pub(in crate::backend) fn summaries<D: Database>(
    database: &D,
    key: &SessionKey,
    summaries: &[TurnSummary],
) -> Result<usize> {
    const OPERATION: &str = "write_summaries";
    if summaries.is_empty() {
        return Ok(0);
    }
    database.transaction(OPERATION, |writer| {
        let lines = lines(writer, key, summaries.iter().map(|of| of.user_sequence))?;
        let current = summaries.iter().filter(|of| lines.get(&of.user_sequence) == Some(&of.digest));
        let current: BTreeMap<u32, &TurnSummary> = current.map(|of| (of.user_sequence, of)).collect();
        let rows = RowsOf { operation: OPERATION, writer: &*writer, key };
        remove(&rows, SUMMARIES.name, current.keys().copied())?;
        for summary in current.values() {
            writer.insert(&SUMMARIES, &turns::summary(summary))?;
        }
        Ok(current.len())
    })
}

/// The digests of messages.
fn lines(
    writer: &impl Writer,
    key: &SessionKey,
    sequences: impl Iterator<Item = u32>,
) -> Result<HashMap<u32, Digest>> {
    Ok(writer.rows(&turns::lines(key, &sequences.collect()))?.into_iter().collect())
}

/// Removes the embeddings and summaries that must be removed with these messages.
pub(super) fn remove_with<W: Writer>(rows: &RowsOf<'_, W>, removed: &RemovedMessages) -> Result<()> {
    if removed.is_empty() {
        return Ok(());
    }
    let embedded = rows.writer.rows(&turns::embedded_messages(rows.key))?;
    let is_gone = |(user, assistant): &(u32, Option<u32>)| {
        removed.has(*user) || assistant.is_some_and(|sequence| removed.has(sequence))
    };
    remove(rows, EMBEDDINGS.name, embedded.into_iter().filter(is_gone).map(|(user, _)| user))?;
    let summarised = rows.writer.rows(&turns::summarised_messages(rows.key))?;
    let is_gone = |(user, digest): &(u32, Digest)| removed.has_line(*user, *digest);
    remove(rows, SUMMARIES.name, summarised.into_iter().filter(is_gone).map(|(user, _)| user))
}

/// Removes all embeddings and summaries of a session.
pub(super) fn remove_all<W: Writer>(rows: &RowsOf<'_, W>) -> Result<()> {
    NAMES.iter().try_for_each(|table| rows.delete(table))
}

fn remove<W: Writer>(
    rows: &RowsOf<'_, W>,
    table: &str,
    user_sequences: impl Iterator<Item = u32>,
) -> Result<()> {
    let sequences: BTreeSet<i64> = user_sequences.map(i64::from).collect();
    if sequences.is_empty() {
        return Ok(());
    }
    let which = is_one_of("user_sequence", sequences);
    let sql = format!("DELETE FROM {table} WHERE user_id = ?1 AND session_id = ?2 AND {which}");
    rows.execute_once(sql).map(drop)
}
