//! Rows of `transcripts`.

use amplifier_session_core::{
    Result,
    backend::{OweAgain, OwingQuery, SequenceRange},
    model::{
        Digest, HostId, Message, MessageState, Place, ProjectSlug, RawJson, Role, SessionId, SessionKey,
        UserId, VectorState,
    },
};
use rusqlite::{Connection, OptionalExtension, Row, params, types::ToSqlOutput};

use crate::{
    conditions::Conditions,
    error::{damaged, storage},
    sessions::{column, timestamp},
    vectors::Target,
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

/// Messages that owe vectors of the current generation, or of the next one.
pub(crate) fn owing_vectors(
    connection: &Connection,
    query: &OwingQuery,
    is_current: bool,
) -> Result<Vec<Message>> {
    let mut conditions = Conditions::default();
    if is_current {
        conditions.require("t.vectors IN (0, 3)");
    } else {
        conditions.require("t.vectors <> 2");
        conditions.compare("t.generation <> ?", query.generation);
    }
    conditions.compare("t.user_id = ?", query.user.to_string());
    if let Some(session) = &query.session {
        conditions.compare("t.session_id = ?", session.to_string());
    }
    if let Some(after) = &query.after {
        let session = conditions.bind(after.session.session_id.to_string());
        let sequence = conditions.bind(after.sequence);
        conditions.require(format!("(t.session_id, t.sequence) > ({session}, {sequence})"));
    }
    let limit = conditions.bind(query.limit.min(PAGE) as i64);
    let sql =
        format!("{MESSAGES} WHERE {} ORDER BY t.session_id, t.sequence LIMIT {limit}", conditions.sql());
    select(connection, &sql, conditions.values())
}

/// Makes the vectors of a session's messages owed again, or of those that failed; returns of how many.
pub(crate) fn owe_vectors(
    connection: &Connection,
    key: &SessionKey,
    which: OweAgain,
    generation: u32,
) -> rusqlite::Result<usize> {
    let failed = "sequence IN (SELECT sequence FROM vector_failures
        WHERE user_id = ?1 AND session_id = ?2 AND generation = ?3)";
    let which = match which {
        OweAgain::All => "?3 = ?3",
        OweAgain::Failed => failed,
    };
    let sql = format!(
        "UPDATE transcripts SET vectors = 3 WHERE user_id = ?1 AND session_id = ?2 AND vectors = 1 AND {which}"
    );
    connection.prepare_cached(&sql)?.execute(params![
        key.user_id.as_str(),
        key.session_id.as_str(),
        generation
    ])
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
            revision = excluded.revision, raw = excluded.raw, generation = 0";
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
    /// Of the current generation.
    pub(crate) may_have_vectors: bool,
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
            let may_have_vectors = row.get::<_, u8>(2)? != VectorState::Owed.code();
            Ok(StoredLine { key: row.get(0)?, digest: row.get(1)?, may_have_vectors })
        })
        .optional()
}

/// Remembers that the vectors of the message of this key were made.
pub(crate) fn mark_made(connection: &Connection, key: i64, target: &Target<'_>) -> rusqlite::Result<()> {
    let (sql, value) = match target.is_current {
        true => ("UPDATE transcripts SET vectors = ?2 WHERE key = ?1", VectorState::Stored.code().into()),
        false => ("UPDATE transcripts SET generation = ?2 WHERE key = ?1", target.generation),
    };
    connection.prepare_cached(sql)?.execute(params![key, value])?;
    Ok(())
}

pub(crate) fn vector_state(code: u8) -> Result<VectorState> {
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
