//! Rows of `sessions`, `metadata_files` and `schema_meta`.

use std::collections::{BTreeMap, BTreeSet};

use amplifier_session_core::{
    backend::SkippedLine,
    model::{MetadataFile, Session, SessionKey},
};
use amplifier_session_sql::{
    deletions,
    read::limit,
    rows::{SESSION, SESSION_STATE},
};
use duckdb::{
    Connection, OptionalExt, params, params_from_iter,
    types::{ToSql, Value},
};

use crate::reader::time;

/// Remembers that a session is deleted.
pub(crate) fn remember_deletion(connection: &Connection, key: &SessionKey) -> duckdb::Result<()> {
    for sql in [deletions::FORGET, deletions::REMEMBER] {
        connection.execute(sql, [key.user_id.as_str(), key.session_id.as_str()])?;
    }
    Ok(())
}

/// The keys of the rows of sessions, of those that are there.
pub(crate) fn keys_of(
    connection: &Connection,
    sessions: &BTreeSet<&SessionKey>,
) -> duckdb::Result<BTreeMap<SessionKey, i64>> {
    if sessions.is_empty() {
        return Ok(BTreeMap::new());
    }
    // DuckDB takes longer for a list of pairs than for the same ids of other users.
    let ids = vec!["?"; sessions.len()].join(", ");
    let sql = format!("SELECT user_id, session_id, key FROM sessions WHERE session_id IN ({ids})");
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query(params_from_iter(sessions.iter().map(|key| key.session_id.as_str())))?;
    let mut keys = BTreeMap::new();
    while let Some(row) = rows.next()? {
        let [user, session] = [row.get::<_, String>(0)?, row.get(1)?];
        let wanted =
            sessions.iter().find(|key| key.user_id.as_str() == user && key.session_id.as_str() == session);
        if let Some(wanted) = wanted {
            keys.insert((*wanted).clone(), row.get(2)?);
        }
    }
    Ok(keys)
}

/// What a write has to know of the session that is there.
#[derive(Debug)]
pub(crate) struct Present {
    pub(crate) key: i64,
    pub(crate) revision: i64,
    pub(crate) project: String,
    skipped: String,
    sync_state: Option<String>,
}

/// The stored session, if there is one.
pub(crate) fn present(connection: &Connection, key: &SessionKey) -> duckdb::Result<Option<Present>> {
    let sql = "SELECT key, revision, project_slug, skipped_lines, sync_state FROM sessions
        WHERE user_id = ?1 AND session_id = ?2";
    connection
        .prepare_cached(sql)?
        .query_row([key.user_id.as_str(), key.session_id.as_str()], |row| {
            Ok(Present {
                key: row.get(0)?,
                revision: row.get(1)?,
                project: row.get(2)?,
                skipped: row.get(3)?,
                sync_state: row.get(4)?,
            })
        })
        .optional()
}

/// A row that is written.
#[derive(Debug)]
pub(crate) struct SessionRow<'a> {
    session: &'a Session,
    key: i64,
    revision: i64,
    skipped: String,
    sync_state: Option<String>,
    metadata_files: Option<&'a [MetadataFile]>,
}

impl<'a> SessionRow<'a> {
    pub(crate) fn new(session: &'a Session, key: i64, revision: i64) -> Self {
        let skipped = "[]".to_owned();
        Self { session, key, revision, skipped, sync_state: None, metadata_files: None }
    }

    /// Says what is kept beside the fields; `None` leaves what is stored of it.
    pub(crate) fn with_state(
        mut self,
        before: Option<Present>,
        skipped: Option<&[SkippedLine]>,
        sync_state: Option<&str>,
        metadata_files: Option<&'a [MetadataFile]>,
    ) -> Self {
        if let Some(before) = before {
            (self.skipped, self.sync_state) = (before.skipped, before.sync_state);
        }
        if let Some(skipped) = skipped {
            self.skipped = serde_json::to_string(skipped).unwrap_or_default();
        }
        if let Some(state) = sync_state {
            self.sync_state = Some(state.to_owned());
        }
        self.metadata_files = metadata_files;
        self
    }

    /// Inserts the row. What is there of the session is gone by now.
    ///
    /// By a statement: a list can't be appended, and is bound by its members.
    pub(crate) fn insert(&self, connection: &Connection) -> duckdb::Result<()> {
        let Session { tags, team_ids, .. } = self.session;
        let sql = format!(
            "INSERT INTO sessions ({SESSION}, {SESSION_STATE}, key)
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, {}, ?, ?, {}, ?, ?, ?, ?, ?, ?, ?, ?)",
            placeholders(tags.len()),
            placeholders(team_ids.len())
        );
        let values = self.values();
        let values: Vec<&dyn ToSql> = values.iter().map(|value| value as &dyn ToSql).collect();
        connection.prepare_cached(&sql)?.execute(values.as_slice())?;
        let Some(files) = self.metadata_files else { return Ok(()) };
        let sql = "INSERT INTO metadata_files (user_id, session_id, position, name, raw) VALUES (?1, ?2, ?3, ?4, ?5)";
        let mut insert = connection.prepare_cached(sql)?;
        let (user, session) = (self.session.user_id.as_str(), self.session.session_id.as_str());
        for (position, file) in files.iter().enumerate() {
            insert.execute(params![user, session, limit(position), file.name, file.raw.as_bytes()])?;
        }
        Ok(())
    }

    fn values(&self) -> Vec<Value> {
        let session = self.session;
        let text = |text: &str| Value::Text(text.to_owned());
        let maybe = |text: &Option<String>| text.clone().map_or(Value::Null, Value::Text);
        let mut values = vec![
            text(session.user_id.as_str()),
            text(session.session_id.as_str()),
            text(session.host_id.as_str()),
            text(session.project_slug.as_str()),
            time(session.created),
            time(session.updated),
            maybe(&session.name),
            maybe(&session.description),
            maybe(&session.bundle),
            maybe(&session.model),
            session.turn_count.into(),
            session.message_count.into(),
            session.event_count.into(),
            maybe(&session.parent_id.as_ref().map(ToString::to_string)),
            session.forked_from_turn.map_or(Value::Null, Value::from),
        ];
        values.extend(session.tags.iter().map(|tag| text(tag)));
        values.extend([text(session.visibility.as_str()), maybe(&session.org_id)]);
        values.extend(session.team_ids.iter().map(|team| text(team)));
        values.extend([
            session.shared_at.map_or(Value::Null, time),
            maybe(&session.working_dir),
            maybe(&session.first_prompt),
            Value::Text(serde_json::to_string(&session.edited).unwrap_or_default()),
            self.revision.into(),
            text(&self.skipped),
            maybe(&self.sync_state),
            self.key.into(),
        ]);
        values
    }
}

/// A list of so many values.
fn placeholders(length: usize) -> String {
    format!("CAST([{}] AS VARCHAR[])", vec!["?"; length].join(", "))
}

/// Removes the row of a session, and its metadata files where they are replaced.
pub(crate) fn delete(connection: &Connection, key: &SessionKey, with_files: bool) -> duckdb::Result<()> {
    let tables: &[&str] = if with_files { &["metadata_files", "sessions"] } else { &["sessions"] };
    for table in tables {
        connection
            .prepare_cached(&format!("DELETE FROM {table} WHERE user_id = ?1 AND session_id = ?2"))?
            .execute([key.user_id.as_str(), key.session_id.as_str()])?;
    }
    Ok(())
}
