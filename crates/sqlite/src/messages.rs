//! Rows of `transcripts`.

use amplifier_session_core::{
    Result,
    backend::SequenceRange,
    model::{
        Digest, HostId, Message, MessageState, Place, ProjectSlug, RawJson, Role, SessionId, SessionKey,
        UserId, VectorState,
    },
};
use rusqlite::{Connection, OptionalExtension, Row, params, types::ToSqlOutput};

use crate::{
    error::{damaged, storage},
    sessions::{column, timestamp},
};

/// A message with what its session says of it.
const MESSAGES: &str = "SELECT t.user_id, t.session_id, t.sequence, t.role, t.turn, t.ts, t.ts_estimated, t.synced_at, \
    t.vectors, t.digest, t.raw, s.host_id, s.project_slug \
    FROM transcripts t JOIN sessions s ON s.user_id = t.user_id AND s.session_id = t.session_id";

/// The most messages in one answer; a caller asks again for the rest.
const PAGE: usize = 10_000;

/// An answer ends with the message that brings it to so many bytes of lines.
const PAGE_BYTES: usize = 8 * 1024 * 1024;

pub(crate) fn states(connection: &Connection, key: &SessionKey) -> Result<Vec<MessageState>> {
    let sql = "SELECT digest, turn, ts, ts_estimated FROM transcripts WHERE user_id = ?1 AND session_id = ?2 ORDER BY sequence";
    let mut statement = connection.prepare_cached(sql).map_err(storage("message_states"))?;
    let mut rows = statement
        .query([key.user_id.as_str(), key.session_id.as_str()])
        .map_err(storage("message_states"))?;
    let mut states = Vec::new();
    while let Some(row) = rows.next().map_err(storage("message_states"))? {
        let first_seen = if column(row, 3)? { Some(timestamp(row, 2)?) } else { None };
        states.push(MessageState { digest: digest(row, 0)?, turn: column(row, 1)?, first_seen });
    }
    Ok(states)
}

pub(crate) fn read(connection: &Connection, key: &SessionKey, range: SequenceRange) -> Result<Vec<Message>> {
    let sql = format!(
        "{MESSAGES} WHERE t.user_id = ?1 AND t.session_id = ?2 AND t.sequence >= ?3 ORDER BY t.sequence LIMIT ?4"
    );
    let limit = range.limit.min(PAGE) as i64;
    let place = (key.user_id.as_str(), key.session_id.as_str());
    select(connection, &sql, params![place.0, place.1, range.start, limit])
}

pub(crate) fn at(connection: &Connection, places: &[Place]) -> Result<Vec<Message>> {
    let sql = format!("{MESSAGES} WHERE t.user_id = ?1 AND t.session_id = ?2 AND t.sequence = ?3");
    let mut messages = Vec::with_capacity(places.len());
    for place in places {
        let key = &place.session;
        let found =
            select(connection, &sql, params![key.user_id.as_str(), key.session_id.as_str(), place.sequence])?;
        messages.extend(found);
    }
    Ok(messages)
}

pub(crate) fn owing_vectors(
    connection: &Connection,
    user: &UserId,
    session: Option<&SessionId>,
    after: Option<&Place>,
    limit: usize,
) -> Result<Vec<Message>> {
    let (after_session, after_sequence) =
        after.map_or(("", -1), |place| (place.session.session_id.as_str(), i64::from(place.sequence)));
    let limit = limit.min(PAGE) as i64;
    match session {
        Some(session) => {
            let after_sequence = if after_session == session.as_str() { after_sequence } else { -1 };
            let sql = format!(
                "{MESSAGES} WHERE t.vectors = 0 AND t.user_id = ?1 AND t.session_id = ?2 AND t.sequence > ?3 \
                 ORDER BY t.sequence LIMIT ?4"
            );
            select(connection, &sql, params![user.as_str(), session.as_str(), after_sequence, limit])
        }
        None => {
            let sql = format!(
                "{MESSAGES} WHERE t.vectors = 0 AND t.user_id = ?1 AND (t.session_id, t.sequence) > (?2, ?3) \
                 ORDER BY t.session_id, t.sequence LIMIT ?4"
            );
            select(connection, &sql, params![user.as_str(), after_session, after_sequence, limit])
        }
    }
}

fn select(connection: &Connection, sql: &str, params: impl rusqlite::Params) -> Result<Vec<Message>> {
    let mut statement = connection.prepare_cached(sql).map_err(storage("read_messages"))?;
    let mut rows = statement.query(params).map_err(storage("read_messages"))?;
    let (mut messages, mut bytes) = (Vec::new(), 0);
    while bytes < PAGE_BYTES
        && let Some(row) = rows.next().map_err(storage("read_messages"))?
    {
        let message = message(row)?;
        bytes += message.raw.as_bytes().len();
        messages.push(message);
    }
    Ok(messages)
}

fn message(row: &Row<'_>) -> Result<Message> {
    Ok(Message {
        user_id: UserId::new(column::<String>(row, 0)?)?,
        session_id: SessionId::new(column::<String>(row, 1)?)?,
        sequence: column(row, 2)?,
        role: column::<String>(row, 3)?.parse::<Role>()?,
        turn: column(row, 4)?,
        ts: timestamp(row, 5)?,
        ts_estimated: column(row, 6)?,
        synced_at: timestamp(row, 7)?,
        vectors: vector_state(column(row, 8)?)?,
        digest: digest(row, 9)?,
        raw: RawJson::new(bytes(row, 10)?),
        host_id: HostId::new(column::<String>(row, 11)?)?,
        project_slug: ProjectSlug::new(column::<String>(row, 12)?)?,
    })
}

/// Inserts or replaces a message; a replaced one keeps its key.
pub(crate) fn put(connection: &Connection, message: &Message, revision: i64) -> rusqlite::Result<()> {
    let sql = "INSERT INTO transcripts
        (user_id, session_id, sequence, role, turn, ts, ts_estimated, synced_at, vectors, digest, revision, raw)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
        ON CONFLICT (user_id, session_id, sequence) DO UPDATE SET
            role = excluded.role, turn = excluded.turn, ts = excluded.ts, ts_estimated = excluded.ts_estimated,
            synced_at = excluded.synced_at, vectors = excluded.vectors, digest = excluded.digest,
            revision = excluded.revision, raw = excluded.raw";
    connection.prepare_cached(sql)?.execute(params![
        message.user_id.as_str(),
        message.session_id.as_str(),
        message.sequence,
        message.role.as_str(),
        message.turn,
        message.ts.to_string(),
        message.ts_estimated,
        message.synced_at.to_string(),
        message.vectors.code(),
        message.digest.0,
        revision,
        text_or_blob(message.raw.as_bytes()),
    ])?;
    Ok(())
}

/// Removes the messages from `start` on and leaves word of it for the index.
pub(crate) fn truncate(
    connection: &Connection,
    key: &SessionKey,
    start: u32,
    revision: i64,
) -> rusqlite::Result<()> {
    let place = params![key.user_id.as_str(), key.session_id.as_str(), start];
    connection
        .prepare_cached(
            "INSERT OR IGNORE INTO removed (kind, revision, key) SELECT 0, ?4, key FROM transcripts
             WHERE user_id = ?1 AND session_id = ?2 AND sequence >= ?3",
        )?
        .execute(params![key.user_id.as_str(), key.session_id.as_str(), start, revision])?;
    connection
        .prepare_cached("DELETE FROM transcripts WHERE user_id = ?1 AND session_id = ?2 AND sequence >= ?3")?
        .execute(place)?;
    Ok(())
}

/// Gives all rows of a session a new revision, so that the index takes them in again.
pub(crate) fn touch(connection: &Connection, key: &SessionKey, revision: i64) -> rusqlite::Result<()> {
    for table in ["transcripts", "transcript_vectors"] {
        connection
            .prepare_cached(&format!(
                "UPDATE {table} SET revision = ?3 WHERE user_id = ?1 AND session_id = ?2"
            ))?
            .execute(params![key.user_id.as_str(), key.session_id.as_str(), revision])?;
    }
    Ok(())
}

/// What a message's vectors are stored by.
pub(crate) struct StoredLine {
    pub(crate) key: i64,
    pub(crate) digest: [u8; 16],
    pub(crate) has_vectors: bool,
}

/// The stored message of this sequence.
pub(crate) fn stored_line(
    connection: &Connection,
    key: &SessionKey,
    sequence: u32,
) -> rusqlite::Result<Option<StoredLine>> {
    connection
        .prepare_cached(
            "SELECT key, digest, vectors FROM transcripts WHERE user_id = ?1 AND session_id = ?2 AND sequence = ?3",
        )?
        .query_row(params![key.user_id.as_str(), key.session_id.as_str(), sequence], |row| {
            let has_vectors = row.get::<_, u8>(2)? == VectorState::Stored.code();
            Ok(StoredLine { key: row.get(0)?, digest: row.get(1)?, has_vectors })
        })
        .optional()
}

/// Marks the vectors of the message of this key as stored.
pub(crate) fn mark_vectors_stored(connection: &Connection, key: i64) -> rusqlite::Result<()> {
    connection
        .prepare_cached("UPDATE transcripts SET vectors = ?2 WHERE key = ?1")?
        .execute(params![key, VectorState::Stored.code()])?;
    Ok(())
}

fn vector_state(code: u8) -> Result<VectorState> {
    VectorState::from_code(code).ok_or_else(|| damaged("vector state"))
}

/// Text where the bytes are UTF-8, so that people can read and query them with any SQLite tool.
fn text_or_blob(bytes: &[u8]) -> ToSqlOutput<'_> {
    match std::str::from_utf8(bytes) {
        Ok(text) => ToSqlOutput::from(text),
        Err(_) => ToSqlOutput::from(bytes),
    }
}

/// The bytes of a column that is text or a blob.
pub(crate) fn bytes(row: &Row<'_>, index: usize) -> Result<Vec<u8>> {
    let value = row.get_ref(index).map_err(storage("read"))?;
    value.as_bytes().map(<[u8]>::to_vec).map_err(|_| damaged("line"))
}

pub(crate) fn digest(row: &Row<'_>, index: usize) -> Result<Digest> {
    column::<[u8; 16]>(row, index).map(Digest)
}
