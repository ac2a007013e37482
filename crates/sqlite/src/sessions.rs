//! Rows of `sessions`, `metadata_files` and `schema_meta`.

use amplifier_session_core::{
    backend::SkippedLine,
    model::{MetadataFile, Session, SessionId, SessionKey},
};
use amplifier_session_sql::{deletions, rows::SESSION};
use rusqlite::{Connection, OptionalExtension, params};

use crate::reader::json;

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
