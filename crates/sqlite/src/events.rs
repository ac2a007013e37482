//! Rows of `events` and `event_chunks`.

use amplifier_session_core::{
    Result,
    model::{Event, Payload, Place, SessionId, SessionKey, StoredEvent, UserId},
};
use amplifier_session_sql::{Reader, read, rows::encoding};
use rusqlite::{Connection, OptionalExtension, params};

use crate::{error::storage, reader::Read};

/// Inserts an event with its chunks.
pub(crate) fn put(connection: &Connection, stored: &StoredEvent) -> rusqlite::Result<()> {
    let StoredEvent { event, payload } = stored;
    let (user, session) = (event.user_id.as_str(), event.session_id.as_str());
    let (encoding, raw) = match payload {
        Payload::None => (encoding::NONE, None),
        Payload::Plain(bytes) => (encoding::PLAIN, Some(bytes.as_slice())),
        Payload::Zstd(bytes) => (encoding::ZSTD, Some(bytes.as_slice())),
        Payload::Chunks(_) => (encoding::CHUNKS, None),
    };
    let sql = "INSERT INTO events (user_id, session_id, sequence, event_id, event_type, ts, ts_estimated, turn, level,
            tool_name, error_type, model, provider, summary, is_chunked, chunk_count, data_size_bytes, digest, encoding,
            raw, synced_at)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21)";
    connection.prepare_cached(sql)?.execute(params![
        user,
        session,
        event.sequence,
        event.event_id,
        event.event_type,
        event.ts.to_string(),
        event.ts_estimated,
        event.turn,
        event.level.as_str(),
        event.tool_name,
        event.error_type,
        event.model,
        event.provider,
        serde_json::to_string(&event.summary).unwrap_or_default(),
        event.is_chunked,
        event.chunk_count,
        event.data_size_bytes as i64,
        event.digest.0,
        encoding,
        raw,
        event.synced_at.map(|time| time.to_string()),
    ])?;
    if let Payload::Chunks(chunks) = payload {
        put_chunks(connection, event, chunks)?;
    }
    Ok(())
}

fn put_chunks(connection: &Connection, event: &Event, chunks: &[Vec<u8>]) -> rusqlite::Result<()> {
    let sql =
        "INSERT INTO event_chunks (user_id, session_id, sequence, chunk_index, total_chunks, chunk_data)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    let mut insert = connection.prepare_cached(sql)?;
    for (index, chunk) in chunks.iter().enumerate() {
        insert.execute(params![
            event.user_id.as_str(),
            event.session_id.as_str(),
            event.sequence,
            index as i64,
            chunks.len() as i64,
            chunk,
        ])?;
    }
    Ok(())
}

/// Removes the events that `put` replaces, with their chunks: all of them before the first is inserted, so that an id
/// may move from one sequence to another.
pub(crate) fn remove_replaced(
    connection: &Connection,
    key: &SessionKey,
    put: &[StoredEvent],
) -> rusqlite::Result<()> {
    for table in ["events", "event_chunks"] {
        let mut delete = connection.prepare_cached(&format!(
            "DELETE FROM {table} WHERE user_id = ?1 AND session_id = ?2 AND sequence = ?3"
        ))?;
        for stored in put {
            delete.execute(params![key.user_id.as_str(), key.session_id.as_str(), stored.event.sequence])?;
        }
    }
    Ok(())
}

/// Removes the events from `start` on, with their chunks.
pub(crate) fn truncate(connection: &Connection, key: &SessionKey, start: u32) -> rusqlite::Result<()> {
    for table in ["events", "event_chunks"] {
        connection
            .prepare_cached(&format!(
                "DELETE FROM {table} WHERE user_id = ?1 AND session_id = ?2 AND sequence >= ?3"
            ))?
            .execute(params![key.user_id.as_str(), key.session_id.as_str(), start])?;
    }
    Ok(())
}

/// The payloads of the events of these sequences.
pub(crate) fn payloads(
    reader: &Read<'_>,
    key: &SessionKey,
    sequences: &[u32],
) -> Result<Vec<(u32, Payload)>> {
    let mut payloads = Vec::with_capacity(sequences.len());
    for sequence in sequences {
        let mut query = read::events::payloads(key, "sequence = ?3");
        query.values.push((*sequence).into());
        if let Some(stored) = reader.first(&query)? {
            payloads.push(read::events::payload(reader, key, stored)?);
        }
    }
    Ok(payloads)
}

pub(crate) fn find(
    connection: &Connection,
    user: &UserId,
    event_ids: &[String],
) -> Result<Vec<(String, Place)>> {
    let sql = "SELECT session_id, sequence FROM events WHERE user_id = ?1 AND event_id = ?2";
    let mut statement = connection.prepare_cached(sql).map_err(storage("find_events"))?;
    let mut found = Vec::new();
    for id in event_ids {
        let place = statement
            .query_row([user.as_str(), id.as_str()], |row| Ok((row.get::<_, String>(0)?, row.get(1)?)))
            .optional()
            .map_err(storage("find_events"))?;
        if let Some((session, sequence)) = place {
            let key = SessionKey::new(user.clone(), SessionId::new(session)?);
            found.push((id.clone(), Place::new(key, sequence)));
        }
    }
    Ok(found)
}
