//! Reads of vectors: texts that have vectors, and counts.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::ControlFlow,
};

use amplifier_session_core::{
    Result, Scope,
    backend::{SequenceRange, VectorCounts},
    model::{SessionKey, VectorState, VectorText},
    search::{MissingVectors, SessionFilter},
};

use super::{meta, of_session};
use crate::{
    Columns, Conditions, Query, Reader, number,
    rows::{self, count},
    turns,
};

/// The texts with vectors, of messages from `range.start` on.
pub fn texts<R: Reader>(
    reader: &R,
    generation: u32,
    key: &SessionKey,
    range: SequenceRange,
) -> Result<Vec<(u32, Vec<VectorText>)>> {
    let sql = format!(
        "SELECT sequence, content_type FROM {}
         WHERE user_id = ?1 AND session_id = ?2 AND sequence >= ?3 AND generation = ?4 ORDER BY sequence",
        R::DIALECT.all_vectors
    );
    let values = of_session(key).into_iter().chain([range.start.into(), generation.into()]);
    let query =
        Query::new("vector_texts", sql, values, |row| Ok((number::<u32>(row, 0)?, row.text(1)?.parse()?)));
    let mut of_messages: BTreeMap<u32, BTreeSet<VectorText>> = BTreeMap::new();
    let mut last = None;
    reader.each(&query, |(sequence, text)| {
        if of_messages.len() == range.limit && !of_messages.contains_key(&sequence) {
            last = of_messages.keys().next_back().copied();
            return ControlFlow::Break(());
        }
        of_messages.entry(sequence).or_default().insert(text);
        ControlFlow::Continue(())
    })?;
    for sequence in reader.rows(&turns::embedded(generation, key, range.start, last))? {
        of_messages.entry(sequence).or_default().insert(VectorText::Turn);
    }
    let of_messages = of_messages.into_iter().take(range.limit);
    Ok(of_messages.map(|(sequence, texts)| (sequence, texts.into_iter().collect())).collect())
}

/// The messages of `scope` without vectors of the current generation. Reads sessions only if there are any in the store.
pub fn missing<R: Reader>(reader: &R, scope: &Scope) -> Result<MissingVectors> {
    let any = format!("SELECT 1 FROM transcripts WHERE {} LIMIT 1", rows::is_pending("vectors"));
    if reader.rows(&Query::new("missing_vectors", any, [], |_| Ok(())))?.is_empty() {
        return Ok(MissingVectors::default());
    }
    missing_of(reader, scope)
}

/// As [`missing`], for a store in which some messages have no vectors.
pub fn missing_of<R: Reader>(reader: &R, scope: &Scope) -> Result<MissingVectors> {
    let conditions = Conditions::of_sessions(R::DIALECT, scope, &SessionFilter::default())?;
    let mut pending = conditions.clone();
    pending.require(rows::is_pending("t.vectors"));
    let of_sessions = (R::DIALECT.beside_sessions)("transcripts");
    let sql = format!("SELECT count(*) FROM {of_sessions} WHERE {}", pending.sql());
    let messages = counted(reader, sql, pending)?;
    let all = "SELECT CAST(coalesce(sum(s.message_count), 0) AS BIGINT) FROM sessions s";
    let of = counted(reader, format!("{all} WHERE {}", conditions.sql()), conditions)?;
    Ok(if messages == 0 { MissingVectors::default() } else { MissingVectors { messages, of } })
}

fn counted<R: Reader>(reader: &R, sql: String, conditions: Conditions) -> Result<u64> {
    let query = Query::with_conditions("missing_vectors", sql, conditions, |row| count(row, 0));
    Ok(reader.rows(&query)?.into_iter().sum())
}

/// The progress of the vectors of the messages of `scope`. `reader` must read one snapshot.
pub fn counts<R: Reader>(reader: &R, scope: &Scope) -> Result<VectorCounts> {
    let held = meta::generations(reader)?;
    let current = held.current_number();
    let next = held.next.map(|next| next.number);
    let conditions = Conditions::of_sessions(R::DIALECT, scope, &SessionFilter::default())?;
    let (of_sessions, admitted) = (R::DIALECT.beside_sessions, conditions.sql());
    let mut counts = VectorCounts::default();

    let sql = format!(
        "SELECT t.vectors, count(*), count(*) FILTER (WHERE t.generation <> {}) FROM {} WHERE {} GROUP BY 1",
        // Without a next generation, this count is not used.
        next.unwrap_or(current),
        of_sessions("transcripts"),
        admitted
    );
    let decode = |row: &dyn Columns| Ok((rows::vector_state(row, 0)?, count(row, 1)?, count(row, 2)?));
    for (state, messages, not_of_next) in
        reader.rows(&Query::with_conditions("count_vectors", sql, conditions.clone(), decode))?
    {
        if state == VectorState::Nothing {
            counts.nothing += messages;
            continue;
        }
        counts.embeddable += messages;
        if state.is_pending() {
            counts.generations.entry(current).or_default().pending += messages;
        }
        if let Some(next) = next {
            counts.generations.entry(next).or_default().pending += not_of_next;
        }
    }

    let sql = format!(
        "SELECT generation, count(*), CAST(sum(vectors) AS BIGINT) FROM (
             SELECT t.generation, count(*) AS vectors FROM {} WHERE {}
             GROUP BY t.user_id, t.session_id, t.sequence, t.generation
         ) AS of_messages GROUP BY 1",
        of_sessions(R::DIALECT.all_vectors),
        admitted
    );
    let decode = |row: &dyn Columns| Ok((number::<u32>(row, 0)?, count(row, 1)?, count(row, 2)?));
    for (generation, messages, vectors) in
        reader.rows(&Query::with_conditions("count_vectors", sql, conditions.clone(), decode))?
    {
        let of_generation = counts.generations.entry(generation).or_default();
        (of_generation.messages, of_generation.vectors) = (messages, vectors);
    }

    let sql = format!(
        "SELECT t.generation, t.reason, count(*) FROM {} WHERE {} GROUP BY 1, 2",
        of_sessions("vector_failures"),
        admitted
    );
    let decode = |row: &dyn Columns| Ok((number::<u32>(row, 0)?, row.text(1)?, count(row, 2)?));
    for (generation, reason, messages) in
        reader.rows(&Query::with_conditions("count_vectors", sql, conditions.clone(), decode))?
    {
        counts.generations.entry(generation).or_default().failed.insert(reason, messages);
    }
    Ok(counts)
}
