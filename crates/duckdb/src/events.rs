//! Rows of `events` and `event_chunks`.

use std::collections::HashMap;

use amplifier_session_core::{
    Result,
    model::{Payload, Place, SessionId, SessionKey, StoredEvent, UserId},
};
use amplifier_session_sql::{
    Columns, Reader, number,
    read::{self, limit},
    rows::encoding,
};
use duckdb::{Connection, params};

use crate::{
    appends::maybe_bytes,
    columns::Cursor,
    error::storage,
    reader::{Read, is_one_of, time},
};

/// How many ids one statement looks for.
const IDS: usize = 500;

/// Adds events with their chunks.
pub(crate) fn append(connection: &Connection, events: &[&StoredEvent]) -> duckdb::Result<()> {
    if events.is_empty() {
        return Ok(());
    }
    let mut appender = connection.appender("events")?;
    for StoredEvent { event, payload } in events {
        let (encoding, raw) = match payload {
            Payload::None => (encoding::NONE, None),
            Payload::Plain(bytes) => (encoding::PLAIN, Some(bytes.as_slice())),
            Payload::Zstd(bytes) => (encoding::ZSTD, Some(bytes.as_slice())),
            Payload::Chunks(_) => (encoding::CHUNKS, None),
        };
        appender.append_row(params![
            event.user_id.as_str(),
            event.session_id.as_str(),
            event.sequence,
            event.event_id,
            event.event_type,
            time(event.ts),
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
            event.data_size_bytes,
            event.digest.0.as_slice(),
            encoding,
            maybe_bytes(raw),
            event.synced_at.map(time),
        ])?;
    }
    appender.flush()?;
    let mut appender = connection.appender("event_chunks")?;
    for StoredEvent { event, payload } in events {
        let Payload::Chunks(chunks) = payload else { continue };
        for (index, chunk) in chunks.iter().enumerate() {
            let (user, session) = (event.user_id.as_str(), event.session_id.as_str());
            let (index, total) = (limit(index), limit(chunks.len()));
            appender.append_row(params![user, session, event.sequence, index, total, chunk.as_slice()])?;
        }
    }
    appender.flush()
}

/// Removes events of a session, with their chunks. `which` is a condition on `sequence`.
pub(crate) fn remove(connection: &Connection, key: &SessionKey, which: &str) -> duckdb::Result<()> {
    for table in ["events", "event_chunks"] {
        let sql = format!("DELETE FROM {table} WHERE user_id = ?1 AND session_id = ?2 AND {which}");
        connection.execute(&sql, [key.user_id.as_str(), key.session_id.as_str()])?;
    }
    Ok(())
}

/// The payloads of the events of these sequences.
pub(crate) fn payloads(
    reader: &Read<'_>,
    key: &SessionKey,
    sequences: &[u32],
) -> Result<Vec<(u32, Payload)>> {
    let which = is_one_of("sequence", sequences.iter().copied().map(i64::from));
    let stored = reader.rows(&read::events::payloads(key, &which))?;
    stored.into_iter().map(|stored| read::events::payload(reader, key, stored)).collect()
}

/// Where events are. All ids are looked for in one scan: an index that told them would cost every write.
pub(crate) fn find(
    connection: &Connection,
    user: &UserId,
    event_ids: &[String],
) -> Result<Vec<(String, Place)>> {
    let mut found: HashMap<String, Place> = HashMap::new();
    for ids in event_ids.chunks(IDS) {
        let places = (2..2 + ids.len()).map(|n| format!("?{n}")).collect::<Vec<_>>().join(", ");
        let sql = format!(
            "SELECT event_id, session_id, sequence FROM events WHERE user_id = ?1 AND event_id IN ({places})"
        );
        let values = std::iter::once(user.as_str()).chain(ids.iter().map(String::as_str));
        let mut statement = connection.prepare(&sql).map_err(storage("find_events"))?;
        let mut told = statement.query(duckdb::params_from_iter(values)).map_err(storage("find_events"))?;
        while let Some(row) = told.next().map_err(storage("find_events"))? {
            let row = Cursor(row);
            let key = SessionKey::new(user.clone(), SessionId::new(row.text(1)?)?);
            found.insert(row.text(0)?, Place::new(key, number(&row, 2)?));
        }
    }
    // In the order of the question, as it was asked.
    Ok(event_ids.iter().filter_map(|id| Some((id.clone(), found.get(id)?.clone()))).collect())
}
