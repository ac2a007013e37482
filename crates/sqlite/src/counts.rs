//! Counting messages, and what is stored of one session.

use amplifier_session_core::{
    Result, Scope,
    backend::{MessageCount, SessionRows, VectorCounts, meta::Generations},
    model::{SessionKey, VectorState},
    search::{SearchFilter, SessionFilter},
};
use amplifier_session_sql::{
    Columns, Conditions,
    rows::{self, count, span},
    unless_damaged,
};
use rusqlite::Connection;

use crate::{
    columns::{Cursor, column},
    conditions::{SQLITE, values},
    error::storage,
    sessions,
};

/// The messages that `filter` admits, counted by day and role.
pub(crate) fn messages(
    connection: &Connection,
    scope: &Scope,
    filter: &SearchFilter,
) -> Result<Vec<MessageCount>> {
    let conditions = Conditions::of_messages(SQLITE, scope, filter)?;
    let sql = format!(
        "SELECT substr(t.ts, 1, instr(t.ts, 'T') - 1) AS day, t.role, count(*)
         FROM sessions s CROSS JOIN transcripts t INDEXED BY transcripts_by_role
             ON t.user_id = s.user_id AND t.session_id = s.session_id
         WHERE {} GROUP BY 1, 2",
        conditions.sql()
    );
    let mut counts = Vec::new();
    each_row(connection, &sql, &conditions, |row| {
        counts.extend(unless_damaged(rows::message_count(row))?);
        Ok(())
    })?;
    Ok(counts)
}

/// How far the vectors of the messages of `scope` are.
pub(crate) fn vectors(connection: &Connection, scope: &Scope) -> Result<VectorCounts> {
    let held = Generations::of(&sessions::meta(connection)?);
    let current = held.current_number();
    let next = held.next.map(|next| next.number);
    let conditions = Conditions::of_sessions(SQLITE, scope, &SessionFilter::default())?;
    let of_session = |table: &str| format!("sessions s CROSS JOIN {table} t USING (user_id, session_id)");
    let mut counts = VectorCounts::default();

    let sql = format!(
        "SELECT t.vectors, count(*), count(*) FILTER (WHERE t.generation <> {})
         FROM {} WHERE {} GROUP BY 1",
        next.unwrap_or(current),
        of_session("transcripts"),
        conditions.sql()
    );
    each_row(connection, &sql, &conditions, |row| {
        let (state, messages) = (rows::vector_state(row, 0)?, count(row, 1)?);
        if state == VectorState::Nothing {
            counts.nothing += messages;
            return Ok(());
        }
        counts.embeddable += messages;
        if state.is_owed() {
            counts.generations.entry(current).or_default().owing += messages;
        }
        if let Some(next) = next {
            counts.generations.entry(next).or_default().owing += count(row, 2)?;
        }
        Ok(())
    })?;

    let sql = format!(
        "SELECT generation, count(*), sum(vectors) FROM (
             SELECT t.generation, count(*) AS vectors FROM {} WHERE {}
             GROUP BY t.user_id, t.session_id, t.sequence, t.generation
         ) GROUP BY 1",
        of_session("transcript_vectors"),
        conditions.sql()
    );
    each_row(connection, &sql, &conditions, |row| {
        let of_generation = counts.generations.entry(column(row.0, 0)?).or_default();
        (of_generation.messages, of_generation.vectors) = (count(row, 1)?, count(row, 2)?);
        Ok(())
    })?;

    let sql = format!(
        "SELECT t.generation, t.reason, count(*) FROM {} WHERE {} GROUP BY 1, 2",
        of_session("vector_failures"),
        conditions.sql()
    );
    each_row(connection, &sql, &conditions, |row| {
        let of_generation = counts.generations.entry(column(row.0, 0)?).or_default();
        of_generation.failed.insert(column(row.0, 1)?, count(row, 2)?);
        Ok(())
    })?;
    Ok(counts)
}

fn each_row(
    connection: &Connection,
    sql: &str,
    conditions: &Conditions,
    mut each: impl FnMut(&Cursor<'_>) -> Result<()>,
) -> Result<()> {
    let mut statement = connection.prepare_cached(sql).map_err(storage("count"))?;
    let mut found = statement.query(values(conditions)).map_err(storage("count"))?;
    while let Some(row) = found.next().map_err(storage("count"))? {
        each(&Cursor(row))?;
    }
    Ok(())
}

/// What is stored of a session.
pub(crate) fn rows_of(connection: &Connection, key: &SessionKey) -> Result<SessionRows> {
    let of_session = "WHERE user_id = ?1 AND session_id = ?2";
    let messages = format!(
        "SELECT count(*), max(sequence), min(ts), max(ts), count(*) FILTER (WHERE vectors IN (0, 3)), max(synced_at)
         FROM transcripts {of_session}"
    );
    let events = format!("SELECT count(*), max(sequence), min(ts), max(ts) FROM events {of_session}");
    let generation = Generations::of(&sessions::meta(connection)?).current_number();
    let vectors =
        format!("SELECT count(*) FROM transcript_vectors {of_session} AND generation = {generation}");
    let (messages, owing_vectors, synced_at) =
        one_row(connection, &messages, key, |row| Ok((span(row)?, count(row, 4)?, row.maybe_time(5)?)))?;
    let events = one_row(connection, &events, key, |row| span(row))?;
    let vectors = one_row(connection, &vectors, key, |row| count(row, 0))?;
    Ok(SessionRows { messages, events, vectors, owing_vectors, synced_at })
}

fn one_row<T>(
    connection: &Connection,
    sql: &str,
    key: &SessionKey,
    read: impl FnOnce(&Cursor<'_>) -> Result<T>,
) -> Result<T> {
    let mut statement = connection.prepare_cached(sql).map_err(storage("session_rows"))?;
    let key = [key.user_id.as_str(), key.session_id.as_str()];
    statement.query_row(key, |row| Ok(read(&Cursor(row)))).map_err(storage("session_rows"))?
}
