//! Reads of sessions: one, lists, and the rows of a session.

use std::ops::ControlFlow;

use amplifier_session_core::{
    Result, Scope,
    backend::{SessionName, SessionQuery, SessionRows, StoredSession},
    model::{MetadataFile, RawJson, Session, SessionId, SessionKey, UserId},
    search::SessionFilter,
};

use super::{limit, meta, of_session};
use crate::{
    Conditions, Query, Reader, deletions,
    rows::{self, SESSION, SESSION_STATE, count, is_pending, span},
};

/// A session with its metadata files, in order.
pub fn get(reader: &impl Reader, key: &SessionKey) -> Result<Option<StoredSession>> {
    let sql =
        format!("SELECT {SESSION}, {SESSION_STATE} FROM sessions WHERE user_id = ?1 AND session_id = ?2");
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
    let mut conditions = Conditions::of_list(R::DIALECT, query)?;
    // If not all conditions are in the SQL, it is not known how many rows to read.
    let checks_rows = query.keys.is_some() || query.text.is_some() && R::DIALECT.session_says.is_none();
    let page = match checks_rows {
        true => String::new(),
        false => format!("LIMIT {}", conditions.bind(limit(query.limit))),
    };
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

/// The ids of the sessions of `scope`, with those of their parents.
pub fn names<R: Reader>(reader: &R, scope: &Scope) -> Result<Vec<SessionName>> {
    let conditions = Conditions::of_sessions(R::DIALECT, scope, &SessionFilter::default())?;
    let sql = format!("SELECT s.session_id, s.parent_id FROM sessions s WHERE {}", conditions.sql());
    reader.rows(&Query::with_conditions("session_names", sql, conditions, |row| {
        let parent = row.maybe_text(1)?.map(SessionId::new).transpose()?;
        Ok(SessionName::new(SessionId::new(row.text(0)?)?, parent))
    }))
}

/// The keys of the sessions of `scope` that match `filter`.
pub fn keys<R: Reader>(reader: &R, scope: &Scope, filter: &SessionFilter) -> Result<Vec<u64>> {
    let conditions = Conditions::of_sessions(R::DIALECT, scope, filter)?;
    let sql = format!("SELECT s.key FROM sessions s WHERE {}", conditions.sql());
    let decode = |row: &dyn crate::Columns| row.integer(0).map(i64::cast_unsigned);
    reader.rows(&Query::with_conditions("session_keys", sql, conditions, decode))
}

/// The sync states of a user's sessions after `after`, in order.
#[must_use]
pub fn sync_states(user: &UserId, after: Option<&SessionId>, most: usize) -> Query<(SessionId, String)> {
    let sql = "SELECT session_id, sync_state FROM sessions
        WHERE user_id = ?1 AND session_id > ?2 AND sync_state IS NOT NULL ORDER BY session_id LIMIT ?3";
    let after = after.map_or("", SessionId::as_str).to_owned();
    let values = [user.to_string().into(), after.into(), limit(most).into()];
    Query::new("sync_states", sql, values, |row| Ok((SessionId::new(row.text(0)?)?, row.text(1)?)))
}

/// The sessions of a user that were deleted, in order.
#[must_use]
pub fn deleted(user: &UserId) -> Query<SessionId> {
    let values = [user.to_string().into()];
    Query::new("deleted_sessions", deletions::LIST, values, |row| SessionId::new(row.text(0)?))
}

/// The number of rows of a session and their range.
pub fn stored_rows(reader: &impl Reader, key: &SessionKey) -> Result<SessionRows> {
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
    let (messages, pending_vectors, synced_at) = reader.first(&messages)?.unwrap_or_default();
    Ok(SessionRows {
        messages,
        events: reader.first(&events)?.unwrap_or_default(),
        vectors: reader.first(&vectors)?.unwrap_or_default(),
        pending_vectors,
        synced_at,
    })
}
