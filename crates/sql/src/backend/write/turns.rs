//! Writing and removing summaries of turns, and what a change of lines does to the vectors of turns.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use amplifier_session_core::{
    Result,
    backend::{RemovedMessages, SessionChange},
    model::{Digest, SessionKey, TurnSummary, VectorState},
};

use super::{removal::RowsOf, update};
use crate::{
    Query,
    backend::{Database, Writer},
    is_one_of, number,
    read::of_session,
    rows::removed,
    turns::{self, EMBEDDINGS, SUMMARIES},
};

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

/// Removes the summaries that must be removed with these messages.
pub(super) fn remove_summaries<W: Writer>(rows: &RowsOf<'_, W>, removed: &RemovedMessages) -> Result<()> {
    if removed.is_empty() {
        return Ok(());
    }
    let summarised = rows.writer.rows(&turns::summarised_messages(rows.key))?;
    let is_gone = |(user, digest): &(u32, Digest)| removed.has_line(*user, *digest);
    remove(rows, SUMMARIES.name, summarised.into_iter().filter(is_gone).map(|(user, _)| user))
}

/// Removes the vectors of turns that were made from the answers that `which`, a condition on `sequence`, selects.
pub(super) fn remove_vectors<W: Writer>(rows: &RowsOf<'_, W>, which: &str, revision: i64) -> Result<()> {
    let which = which.replace("sequence", "assistant_sequence");
    rows.remove_recorded(removed::TURN, EMBEDDINGS.name, &which, revision).map(drop)
}

/// Makes the vectors pending of the turns to which messages are added or from which `which`, a condition on `sequence`,
/// selects some. Must be called before these are removed.
pub(super) fn mark_changed<W: Writer>(
    rows: &RowsOf<'_, W>,
    change: &SessionChange,
    which: Option<&str>,
) -> Result<()> {
    let mut turns: BTreeSet<u32> = change.messages.put.iter().filter_map(|message| message.turn).collect();
    if let Some(which) = which {
        let sql = format!(
            "SELECT DISTINCT turn FROM transcripts
             WHERE user_id = ?1 AND session_id = ?2 AND turn IS NOT NULL AND {which}"
        );
        let removed = Query::new(rows.operation, sql, of_session(rows.key), |row| number::<u32>(row, 0));
        turns.extend(rows.writer.rows(&removed.once())?);
    }
    if turns.is_empty() {
        return Ok(());
    }
    let stays = which.map_or_else(|| "TRUE".to_owned(), |which| format!("NOT ({which})"));
    let of_turns = is_one_of("turn", turns.into_iter().map(i64::from));
    let (stored, pending) = (VectorState::Stored.code(), VectorState::TurnPending.code());
    // Vectors that a rebuild has made are pending too.
    rows.execute_once(format!(
        "{} transcripts SET generation = 0,
             vectors = CASE vectors WHEN {stored} THEN {pending} ELSE vectors END
         WHERE user_id = ?1 AND session_id = ?2 AND (vectors = {stored} OR generation <> 0) AND {stays} AND {}",
        update(rows.writer),
        turns::begins_turn(&of_turns)
    ))
    .map(drop)
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
