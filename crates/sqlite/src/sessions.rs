//! Rows of `sessions`, `metadata_files` and `schema_meta`.

use std::collections::BTreeMap;

use amplifier_session_core::{
    Result, Scope,
    backend::{SessionName, SessionQuery, SkippedLine, StoredSession},
    model::{MetadataFile, RawJson, Session, SessionId, SessionKey, UserId},
    search::SessionFilter,
};
use amplifier_session_sql::{
    Columns, Conditions, deletions,
    rows::{self, SESSION, SESSION_STATE},
};
use rusqlite::{Connection, OptionalExtension, params};

use crate::{
    columns::Cursor,
    conditions::{SQLITE, json, values},
    error::storage,
};

/// SQLite's integers are signed.
const MAX_LIMIT: usize = i64::MAX as usize;

pub(crate) fn get(connection: &Connection, key: &SessionKey) -> Result<Option<StoredSession>> {
    let sql =
        format!("SELECT {SESSION}, {SESSION_STATE} FROM sessions WHERE user_id = ?1 AND session_id = ?2");
    let mut statement = connection.prepare_cached(&sql).map_err(storage("get_session"))?;
    let mut found =
        statement.query([key.user_id.as_str(), key.session_id.as_str()]).map_err(storage("get_session"))?;
    let Some(row) = found.next().map_err(storage("get_session"))? else { return Ok(None) };
    rows::stored_session(&Cursor(row), metadata_files(connection, key)?).map(Some)
}

fn metadata_files(connection: &Connection, key: &SessionKey) -> Result<Vec<MetadataFile>> {
    let sql = "SELECT name, raw FROM metadata_files WHERE user_id = ?1 AND session_id = ?2 ORDER BY position";
    let mut statement = connection.prepare_cached(sql).map_err(storage("get_session"))?;
    let mut found =
        statement.query([key.user_id.as_str(), key.session_id.as_str()]).map_err(storage("get_session"))?;
    let mut files = Vec::new();
    while let Some(row) = found.next().map_err(storage("get_session"))? {
        let row = Cursor(row);
        files.push(MetadataFile { name: row.text(0)?, raw: RawJson::new(row.bytes(1)?) });
    }
    Ok(files)
}

/// The sessions that `query` asks for, newest first.
pub(crate) fn list(connection: &Connection, query: &SessionQuery) -> Result<Vec<Session>> {
    let mut conditions = Conditions::of_list(SQLITE, query)?;
    let limit = conditions.bind(query.limit.min(MAX_LIMIT) as i64);
    let sql = format!(
        "SELECT {SESSION} FROM sessions s INDEXED BY {} WHERE {}
         ORDER BY s.updated DESC, s.user_id, s.session_id LIMIT {limit}",
        list_index(query),
        conditions.sql()
    );
    let mut statement = connection.prepare_cached(&sql).map_err(storage("list_sessions"))?;
    let mut found = statement.query(values(&conditions)).map_err(storage("list_sessions"))?;
    let mut sessions = Vec::new();
    while let Some(row) = found.next().map_err(storage("list_sessions"))? {
        sessions.push(rows::session(&Cursor(row))?);
    }
    Ok(sessions)
}

/// The index that gives a list: few sessions where one tells them, else all of them in order. SQLite has no
/// statistics to choose by, and would rather sort.
fn list_index(query: &SessionQuery) -> &'static str {
    let own = matches!(query.scope, Scope::User(_));
    let by_id = query.filter.session.is_some() || query.id_prefix.is_some();
    match query {
        _ if by_id && own => "sqlite_autoindex_sessions_1",
        _ if by_id => "sessions_by_id",
        SessionQuery { parent: Some(_), .. } => "sessions_by_parent",
        _ if !own => "sessions_of_all_by_activity",
        SessionQuery { filter: SessionFilter { project: Some(_), .. }, .. } => "sessions_by_project_activity",
        SessionQuery { filter: SessionFilter { bundle: Some(_), .. }, .. } => "sessions_by_bundle",
        _ => "sessions_by_activity",
    }
}

/// The keys of the sessions of `scope` that `filter` admits.
pub(crate) fn keys(connection: &Connection, scope: &Scope, filter: &SessionFilter) -> Result<Vec<u64>> {
    let conditions = Conditions::of_sessions(SQLITE, scope, filter)?;
    let sql = format!("SELECT s.key FROM sessions s WHERE {}", conditions.sql());
    let mut statement = connection.prepare_cached(&sql).map_err(storage("session_keys"))?;
    statement
        .query_map(values(&conditions), |row| row.get::<_, i64>(0).map(i64::cast_unsigned))
        .and_then(Iterator::collect)
        .map_err(storage("session_keys"))
}

/// The ids of the sessions of `scope`, with those of their parents.
pub(crate) fn names(connection: &Connection, scope: &Scope) -> Result<Vec<SessionName>> {
    let conditions = Conditions::of_sessions(SQLITE, scope, &SessionFilter::default())?;
    let sql = format!("SELECT s.session_id, s.parent_id FROM sessions s WHERE {}", conditions.sql());
    let mut statement = connection.prepare_cached(&sql).map_err(storage("session_names"))?;
    let names = statement
        .query_map(values(&conditions), |row| {
            Ok((row.get::<_, String>(0)?, row.get::<_, Option<String>>(1)?))
        })
        .and_then(Iterator::collect::<rusqlite::Result<Vec<_>>>)
        .map_err(storage("session_names"))?;
    let name = |(id, parent): (String, Option<String>)| {
        Ok(SessionName::new(SessionId::new(id)?, parent.map(SessionId::new).transpose()?))
    };
    names.into_iter().map(name).collect()
}

pub(crate) fn sync_states(
    connection: &Connection,
    user: &UserId,
    after: Option<&SessionId>,
    limit: usize,
) -> Result<Vec<(SessionId, String)>> {
    let sql = "SELECT session_id, sync_state FROM sessions \
        WHERE user_id = ?1 AND session_id > ?2 AND sync_state IS NOT NULL ORDER BY session_id LIMIT ?3";
    let mut statement = connection.prepare_cached(sql).map_err(storage("sync_states"))?;
    let after = after.map_or("", SessionId::as_str);
    let states = statement
        .query_map(params![user.as_str(), after, limit as i64], |row| {
            Ok((row.get::<_, String>(0)?, row.get(1)?))
        })
        .and_then(Iterator::collect::<rusqlite::Result<Vec<_>>>)
        .map_err(storage("sync_states"))?;
    states.into_iter().map(|(id, state)| Ok((SessionId::new(id)?, state))).collect()
}

/// The sessions of a user that were deleted.
pub(crate) fn deleted(connection: &Connection, user: &UserId) -> Result<Vec<SessionId>> {
    let mut statement = connection.prepare_cached(deletions::LIST).map_err(storage("deleted_sessions"))?;
    let ids = statement
        .query_map([user.as_str()], |row| row.get::<_, String>(0))
        .and_then(Iterator::collect::<rusqlite::Result<Vec<_>>>)
        .map_err(storage("deleted_sessions"))?;
    ids.into_iter().map(SessionId::new).collect()
}

/// Remembers that a session is deleted.
pub(crate) fn remember_deletion(connection: &Connection, key: &SessionKey) -> rusqlite::Result<()> {
    for sql in [deletions::FORGET, deletions::REMEMBER] {
        connection.prepare_cached(sql)?.execute([key.user_id.as_str(), key.session_id.as_str()])?;
    }
    Ok(())
}

/// Revision and project of the stored session, if there is one.
pub(crate) fn stored_place(
    connection: &Connection,
    key: &SessionKey,
) -> rusqlite::Result<Option<(i64, String)>> {
    connection
        .prepare_cached("SELECT revision, project_slug FROM sessions WHERE user_id = ?1 AND session_id = ?2")?
        .query_row([key.user_id.as_str(), key.session_id.as_str()], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()
}

/// Inserts or updates the row of `session`; `None` leaves what is stored of the other two.
pub(crate) fn put(
    connection: &Connection,
    session: &Session,
    skipped: Option<&[SkippedLine]>,
    sync_state: Option<&str>,
    revision: i64,
) -> rusqlite::Result<()> {
    let skipped = skipped.map(|lines| serde_json::to_string(lines).unwrap_or_default());
    let sql = format!(
        "INSERT INTO sessions ({SESSION}, skipped_lines, sync_state, revision)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22,
             ?23, coalesce(?24, '[]'), ?25, ?26)
         ON CONFLICT (user_id, session_id) DO UPDATE SET
             host_id = excluded.host_id, project_slug = excluded.project_slug, created = excluded.created,
             updated = excluded.updated, name = excluded.name, description = excluded.description,
             bundle = excluded.bundle, model = excluded.model, turn_count = excluded.turn_count,
             message_count = excluded.message_count, event_count = excluded.event_count,
             parent_id = excluded.parent_id, forked_from_turn = excluded.forked_from_turn, tags = excluded.tags,
             visibility = excluded.visibility, org_id = excluded.org_id, team_ids = excluded.team_ids,
             shared_at = excluded.shared_at, working_dir = excluded.working_dir,
             first_prompt = excluded.first_prompt, edited = excluded.edited,
             skipped_lines = coalesce(?24, skipped_lines), sync_state = coalesce(?25, sync_state), revision = excluded.revision"
    );
    connection.prepare_cached(&sql)?.execute(params![
        session.user_id.as_str(),
        session.session_id.as_str(),
        session.host_id.as_str(),
        session.project_slug.as_str(),
        session.created.to_string(),
        session.updated.to_string(),
        session.name,
        session.description,
        session.bundle,
        session.model,
        session.turn_count,
        session.message_count,
        session.event_count,
        session.parent_id.as_ref().map(SessionId::as_str),
        session.forked_from_turn,
        json(&session.tags),
        session.visibility.as_str(),
        session.org_id,
        json(&session.team_ids),
        session.shared_at.map(|ts| ts.to_string()),
        session.working_dir,
        session.first_prompt,
        serde_json::to_string(&session.edited).unwrap_or_default(),
        skipped,
        sync_state,
        revision,
    ])?;
    Ok(())
}

pub(crate) fn put_metadata_files(
    connection: &Connection,
    key: &SessionKey,
    files: &[MetadataFile],
) -> rusqlite::Result<()> {
    delete_metadata_files(connection, key)?;
    let sql =
        "INSERT INTO metadata_files (user_id, session_id, position, name, raw) VALUES (?1, ?2, ?3, ?4, ?5)";
    let mut insert = connection.prepare_cached(sql)?;
    for (position, file) in files.iter().enumerate() {
        let place = (key.user_id.as_str(), key.session_id.as_str(), position as i64);
        insert.execute(params![place.0, place.1, place.2, file.name, file.raw.as_bytes()])?;
    }
    Ok(())
}

pub(crate) fn delete(connection: &Connection, key: &SessionKey) -> rusqlite::Result<()> {
    delete_metadata_files(connection, key)?;
    connection
        .prepare_cached("DELETE FROM sessions WHERE user_id = ?1 AND session_id = ?2")?
        .execute([key.user_id.as_str(), key.session_id.as_str()])?;
    Ok(())
}

fn delete_metadata_files(connection: &Connection, key: &SessionKey) -> rusqlite::Result<()> {
    connection
        .prepare_cached("DELETE FROM metadata_files WHERE user_id = ?1 AND session_id = ?2")?
        .execute([key.user_id.as_str(), key.session_id.as_str()])?;
    Ok(())
}

pub(crate) fn meta(connection: &Connection) -> Result<BTreeMap<String, String>> {
    let mut statement =
        connection.prepare_cached("SELECT key, value FROM schema_meta").map_err(storage("meta"))?;
    statement
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
        .and_then(Iterator::collect)
        .map_err(storage("meta"))
}

pub(crate) fn put_meta_if_absent(connection: &Connection, key: &str, value: &str) -> Result<String> {
    let put = || {
        connection
            .prepare_cached(
                "INSERT INTO schema_meta (key, value) VALUES (?1, ?2) ON CONFLICT (key) DO NOTHING",
            )?
            .execute([key, value])?;
        connection
            .prepare_cached("SELECT value FROM schema_meta WHERE key = ?1")?
            .query_row([key], |row| row.get(0))
    };
    put().map_err(storage("put_meta"))
}

pub(crate) fn replace_meta(connection: &Connection, key: &str, expected: &str, value: &str) -> Result<bool> {
    let sql = "UPDATE schema_meta SET value = ?3 WHERE key = ?1 AND value = ?2";
    let replaced = connection.execute(sql, [key, expected, value]).map_err(storage("replace_meta"))?;
    Ok(replaced > 0)
}
