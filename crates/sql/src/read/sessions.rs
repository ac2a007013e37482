//! Reads of sessions: one, lists, and the rows of a session.

use std::ops::ControlFlow;

use amplifier_session_core::{
    Error, Result, Scope,
    backend::{RowCounts, SessionName, SessionQuery, StoredSession, StoredSyncState},
    model::{MetadataFile, RawJson, Session, SessionId, SessionKey, UserId},
    search::SessionFilter,
};

use super::{limit, meta, of_session, one_by_one};
use crate::{
    Conditions, Query, Reader, deletions,
    rows::{self, SESSION, SESSION_STATE, SYNC_STATE, count, is_pending, span},
};

/// A session with its metadata files, in order.
pub fn get(reader: &impl Reader, key: &SessionKey) -> Result<Option<StoredSession>> {
    let sql = format!(
        "SELECT {SESSION}, {SESSION_STATE}, {SYNC_STATE} FROM sessions WHERE user_id = ?1 AND session_id = ?2"
    );
    let stored = Query::new("get_session", sql, of_session(key), rows::stored_session);
    let Some(mut session) = reader.first(&stored)? else { return Ok(None) };
    let sql = "SELECT name, raw FROM metadata_files WHERE user_id = ?1 AND session_id = ?2 ORDER BY position";
    let files = Query::new("get_session", sql, of_session(key), |row| {
        Ok(MetadataFile { name: row.text(0)?, raw: RawJson::new(row.bytes(1)?) })
    });
    session.metadata_files = reader.rows(&files)?;
    Ok(Some(session))
}

/// The sessions that match `query`, newest first.
pub fn list<R: Reader>(reader: &R, query: &SessionQuery) -> Result<Vec<Session>> {
    match list_at_once(reader, query) {
        Err(error) if one_by_one::is_unnamed_damage(&error) => list_one_by_one(reader, query, error),
        sessions => sessions,
    }
}

/// [`list`] for a database that is partly unreadable.
fn list_one_by_one<R: Reader>(reader: &R, query: &SessionQuery, error: Error) -> Result<Vec<Session>> {
    let mut found = Vec::new();
    for one in one_by_one::sessions(reader, error)? {
        let mut conditions = Conditions::of_list(R::DIALECT, query)?;
        let key = conditions.bind(one.key);
        if query.without.contains(&one.name) {
            continue;
        }
        let sql = format!("SELECT {SESSION} FROM sessions s WHERE s.key = {key} AND {}", conditions.sql());
        let rows = reader.rows(&Query::with_conditions("list_sessions", sql, conditions, rows::session));
        found.extend(one_by_one::named(&one, rows)?.into_iter().filter(|session| query.admits(session)));
    }
    found.sort_by(|a, b| {
        let by_time = b.updated.cmp(&a.updated);
        by_time.then_with(|| a.user_id.cmp(&b.user_id)).then_with(|| a.session_id.cmp(&b.session_id))
    });
    found.truncate(query.limit);
    Ok(found)
}

fn list_at_once<R: Reader>(reader: &R, query: &SessionQuery) -> Result<Vec<Session>> {
    let mut conditions = Conditions::of_list(R::DIALECT, query)?;
    // If not all conditions are in the SQL, the number of rows to read is unknown.
    let checks_rows = query.keys.is_some() || query.text.is_some() && !R::DIALECT.session_words.is_exact();
    let page =
        if checks_rows { String::new() } else { format!("LIMIT {}", conditions.bind(limit(query.limit))) };
    let sql = format!(
        "SELECT {SESSION} FROM {} WHERE {} ORDER BY s.updated DESC, s.user_id, s.session_id {page}",
        (R::DIALECT.list_from)(query),
        conditions.sql()
    );
    let mut sessions = Vec::new();
    if query.limit == 0 {
        return Ok(sessions);
    }
    reader.each(&Query::with_conditions("list_sessions", sql, conditions, rows::session), |session| {
        if !checks_rows || query.admits(&session) {
            sessions.push(session);
        }
        if sessions.len() == query.limit { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    Ok(sessions)
}

/// The ids of the sessions of `scope` and of their parents.
pub fn names<R: Reader>(reader: &R, scope: &Scope) -> Result<Vec<SessionName>> {
    of_scope(reader, scope, &SessionFilter::default(), "s.session_id, s.parent_id", |row| {
        let parent = row.maybe_text(1)?.map(SessionId::new).transpose()?;
        Ok(SessionName::new(SessionId::new(row.text(0)?)?, parent))
    })
}

/// The keys of the sessions of `scope` that match `filter`.
pub fn keys<R: Reader>(reader: &R, scope: &Scope, filter: &SessionFilter) -> Result<Vec<u64>> {
    of_scope(reader, scope, filter, "s.key", |row| row.integer(0).map(i64::cast_unsigned))
}

/// Columns of the sessions of `scope` that match `filter`. If a part of the database can't be read, only readable ones.
fn of_scope<R: Reader, T>(
    reader: &R,
    scope: &Scope,
    filter: &SessionFilter,
    columns: &str,
    decode: fn(&dyn crate::Columns) -> Result<T>,
) -> Result<Vec<T>> {
    let conditions = Conditions::of_sessions(R::DIALECT, scope, filter)?;
    let sql = format!("SELECT {columns} FROM sessions s WHERE {}", conditions.sql());
    match reader.rows(&Query::with_conditions("read_sessions", sql, conditions.clone(), decode)) {
        Err(error) if one_by_one::is_unnamed_damage(&error) => one_by_one::readable(reader, error, |one| {
            let mut conditions = conditions.clone();
            let key = conditions.bind(one.key);
            let sql =
                format!("SELECT {columns} FROM sessions s WHERE s.key = {key} AND {}", conditions.sql());
            reader.rows(&Query::with_conditions("read_sessions", sql, conditions, decode))
        }),
        rows => rows,
    }
}

/// The sync states of a user's sessions after `after`, in order.
///
/// If a part of the database can't be read, only readable ones. Other sessions look new then, and a sync that reads
/// them finds that they can't be read.
pub fn read_sync_states(
    reader: &impl Reader,
    user: &UserId,
    after: Option<&SessionId>,
    most: usize,
) -> Result<Vec<(SessionId, StoredSyncState)>> {
    match reader.rows(&sync_states(user, after, most)) {
        Err(error) if one_by_one::is_unnamed_damage(&error) => {
            let mut states = one_by_one::readable(reader, error, |one| {
                if one.name.user_id != *user || after.is_some_and(|after| one.name.session_id <= *after) {
                    return Ok(Vec::new());
                }
                let sql = format!(
                    "SELECT session_id, {SYNC_STATE} FROM sessions WHERE key = ?1 AND sync_state IS NOT NULL"
                );
                reader.rows(&Query::new("sync_states", sql, [one.key.into()], named_sync_state))
            })?;
            states.sort_by(|(a, _), (b, _)| a.cmp(b));
            states.truncate(most);
            Ok(states)
        }
        states => states,
    }
}

/// The statement of [`read_sync_states`].
#[must_use]
pub fn sync_states(
    user: &UserId,
    after: Option<&SessionId>,
    most: usize,
) -> Query<(SessionId, StoredSyncState)> {
    let sql = format!(
        "SELECT session_id, {SYNC_STATE} FROM sessions
         WHERE user_id = ?1 AND session_id > ?2 AND sync_state IS NOT NULL ORDER BY session_id LIMIT ?3"
    );
    let after = after.map_or("", SessionId::as_str).to_owned();
    let values = [user.to_string().into(), after.into(), limit(most).into()];
    Query::new("sync_states", sql, values, named_sync_state)
}

fn named_sync_state(row: &dyn crate::Columns) -> Result<(SessionId, StoredSyncState)> {
    Ok((SessionId::new(row.text(0)?)?, rows::sync_state(row, 1)?.unwrap_or_default()))
}

/// The sessions of a user that were deleted, in order.
#[must_use]
pub fn deleted(user: &UserId) -> Query<SessionId> {
    let values = [user.to_string().into()];
    Query::new("deleted_sessions", deletions::LIST, values, |row| SessionId::new(row.text(0)?))
}

/// The number of rows of a session and their range.
pub fn stored_rows(reader: &impl Reader, key: &SessionKey) -> Result<RowCounts> {
    const OF_SESSION: &str = "WHERE user_id = ?1 AND session_id = ?2";
    let generation = meta::generations(reader)?.current_number();
    let sql = format!(
        "SELECT count(*), max(sequence), min(ts), max(ts), count(*) FILTER (WHERE {}), max(synced_at)
         FROM transcripts {OF_SESSION}",
        is_pending("vectors")
    );
    let messages = Query::new("session_rows", sql, of_session(key), |row| {
        Ok((span(row)?, count(row, 4)?, row.maybe_time(5)?))
    });
    let sql = format!("SELECT count(*), max(sequence), min(ts), max(ts) FROM events {OF_SESSION}");
    let events = Query::new("session_rows", sql, of_session(key), span);
    let sql = format!("SELECT count(*) FROM transcript_vectors {OF_SESSION} AND generation = {generation}");
    let vectors = Query::new("session_rows", sql, of_session(key), |row| count(row, 0));
    let sql = format!("SELECT count(*) FROM message_embeddings {OF_SESSION} AND generation = {generation}");
    let turns = Query::new("session_rows", sql, of_session(key), |row| count(row, 0));
    let (messages, pending_vectors, synced_at) = reader.only(&messages)?;
    Ok(RowCounts {
        messages,
        events: reader.only(&events)?,
        vectors: reader.only(&vectors)?,
        turn_vectors: reader.only(&turns)?,
        pending_vectors,
        synced_at,
    })
}
