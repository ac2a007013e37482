//! Rows of `transcript_vectors`.

use amplifier_session_core::{
    Result,
    backend::MessageVectors,
    model::{ContentType, Place, SessionKey, VectorRecord},
};
use amplifier_session_sql::{
    rows::{self, VECTOR},
    unless_damaged,
};
use rusqlite::{Connection, params};

use crate::{
    columns::{Cursor, vector_bytes},
    error::storage,
    messages,
};

/// The generation that vectors are written to.
pub(crate) struct Target<'a> {
    pub(crate) generation: u32,
    pub(crate) model: &'a str,
    pub(crate) is_current: bool,
}

/// Stores the vectors of one message unless its line is another by now; returns how many.
pub(crate) fn put(
    connection: &Connection,
    key: &SessionKey,
    vectors: &MessageVectors,
    target: &Target<'_>,
    revision: i64,
) -> rusqlite::Result<usize> {
    let Some(message) = messages::stored_line(connection, key, vectors.sequence)? else { return Ok(0) };
    if message.digest != vectors.digest.0 {
        return Ok(0);
    }
    if message.may_have_vectors || !target.is_current {
        let generation = target.generation;
        remove_where(
            connection,
            key,
            vectors.sequence,
            "sequence = ?3 AND generation = ?4",
            generation,
            revision,
        )?;
    }
    let sql = "INSERT INTO transcript_vectors (user_id, session_id, sequence, content_type, chunk_index, total_chunks,
            span_start, span_end, token_count, embedding_model, created_at, revision, generation, vector)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)";
    let mut insert = connection.prepare_cached(sql)?;
    let created_at = vectors.created_at.to_string();
    for record in &vectors.records {
        insert.execute(params![
            key.user_id.as_str(),
            key.session_id.as_str(),
            vectors.sequence,
            record.content_type.as_str(),
            record.chunk_index,
            record.total_chunks,
            record.span_start,
            record.span_end,
            record.token_count,
            target.model,
            created_at,
            revision,
            target.generation,
            vector_bytes(&record.vector),
        ])?;
    }
    if let Some(reason) = &vectors.failure {
        let sql = "INSERT INTO vector_failures (user_id, session_id, sequence, generation, reason)
            VALUES (?1, ?2, ?3, ?4, ?5)";
        let (user, session) = (key.user_id.as_str(), key.session_id.as_str());
        connection.prepare_cached(sql)?.execute(params![
            user,
            session,
            vectors.sequence,
            target.generation,
            reason
        ])?;
    }
    messages::mark_made(connection, message.key, target)?;
    Ok(vectors.records.len())
}

/// Removes the vectors of one message and leaves word of it for the index.
pub(crate) fn remove_of_message(
    connection: &Connection,
    key: &SessionKey,
    sequence: u32,
    revision: i64,
) -> rusqlite::Result<()> {
    remove_where(connection, key, sequence, "sequence = ?3 AND ?4 = 0", 0, revision)
}

/// Removes the vectors of the messages from `start` on and leaves word of it for the index.
pub(crate) fn truncate(
    connection: &Connection,
    key: &SessionKey,
    start: u32,
    revision: i64,
) -> rusqlite::Result<()> {
    remove_where(connection, key, start, "sequence >= ?3 AND ?4 = 0", 0, revision)
}

/// Removes what is known of the vectors of a session; `which` compares `sequence` with ?3, and `generation` with ?4.
fn remove_where(
    connection: &Connection,
    key: &SessionKey,
    sequence: u32,
    which: &str,
    generation: u32,
    revision: i64,
) -> rusqlite::Result<()> {
    let (user, session) = (key.user_id.as_str(), key.session_id.as_str());
    connection
        .prepare_cached(&format!(
            "INSERT OR IGNORE INTO removed (kind, revision, key) SELECT 1, ?5, key FROM transcript_vectors
             WHERE user_id = ?1 AND session_id = ?2 AND {which}"
        ))?
        .execute(params![user, session, sequence, generation, revision])?;
    for table in ["transcript_vectors", "vector_failures"] {
        let sql = format!("DELETE FROM {table} WHERE user_id = ?1 AND session_id = ?2 AND {which}");
        connection.prepare_cached(&sql)?.execute(params![user, session, sequence, generation])?;
    }
    Ok(())
}

/// Removes at most `limit` vectors, and all failures, of generations other than these; returns how many.
pub(crate) fn prune(
    connection: &Connection,
    kept: [u32; 2],
    limit: usize,
    revision: i64,
) -> rusqlite::Result<usize> {
    let [current, next] = kept;
    let which = "SELECT key FROM transcript_vectors WHERE generation NOT IN (?1, ?2) ORDER BY key LIMIT ?3";
    let limit = limit as i64;
    connection
        .prepare_cached(&format!(
            "INSERT OR IGNORE INTO removed (kind, revision, key) SELECT 1, ?4, key FROM ({which})"
        ))?
        .execute(params![current, next, limit, revision])?;
    let vectors = connection
        .prepare_cached(&format!("DELETE FROM transcript_vectors WHERE key IN ({which})"))?
        .execute(params![current, next, limit])?;
    let failures = connection
        .prepare_cached("DELETE FROM vector_failures WHERE generation NOT IN (?1, ?2)")?
        .execute([current, next])?;
    Ok(vectors + failures)
}

pub(crate) fn of(
    connection: &Connection,
    generation: u32,
    texts: &[(Place, ContentType)],
) -> Result<Vec<(Place, VectorRecord)>> {
    let sql = format!(
        "SELECT {VECTOR} FROM transcript_vectors
         WHERE user_id = ?1 AND session_id = ?2 AND sequence = ?3 AND generation = ?4 AND content_type = ?5
         ORDER BY chunk_index"
    );
    let mut statement = connection.prepare_cached(&sql).map_err(storage("vectors_of"))?;
    let mut found = Vec::new();
    for (place, content_type) in texts {
        let key = &place.session;
        let text = params![
            key.user_id.as_str(),
            key.session_id.as_str(),
            place.sequence,
            generation,
            content_type.as_str()
        ];
        let mut stored = statement.query(text).map_err(storage("vectors_of"))?;
        while let Some(row) = stored.next().map_err(storage("vectors_of"))? {
            let record = unless_damaged(rows::record(&Cursor(row)))?;
            found.extend(record.map(|record| (place.clone(), record)));
        }
    }
    Ok(found)
}
