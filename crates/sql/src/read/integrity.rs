//! Reads for a verification: rows that belong to nothing.

use amplifier_session_core::{
    Result,
    backend::{OtherRow, StrayRows},
    model::{SessionId, SessionKey, UserId},
};

use super::of_session;
use crate::{Columns, Query, Reader, number, rows, turns::EMBEDDINGS};

/// The condition that the message of a row `t` does not exist.
pub(crate) const WITHOUT_MESSAGE: &str = "NOT EXISTS (SELECT 1 FROM transcripts m WHERE m.user_id = t.user_id
    AND m.session_id = t.session_id AND m.sequence = t.sequence)";

/// The condition that a row `t` of `event_chunks` belongs to the payload of no event.
pub(crate) const WITHOUT_PAYLOAD: &str = "NOT EXISTS (SELECT 1 FROM events e WHERE e.user_id = t.user_id
    AND e.session_id = t.session_id AND e.sequence = t.sequence AND e.chunk_count > t.chunk_index)";

/// The rows of a session that belong to no message or event.
pub fn stray<R: Reader>(reader: &R, key: &SessionKey) -> Result<Vec<StrayRows>> {
    let of = |table: &str, condition| {
        let sql = format!(
            "SELECT t.sequence, count(*) FROM {table} t
             WHERE t.user_id = ?1 AND t.session_id = ?2 AND {condition} GROUP BY 1 ORDER BY 1"
        );
        let decode = |row: &dyn Columns| Ok((number(row, 0)?, rows::count(row, 1)?));
        reader.rows(&Query::new("stray_rows", sql, of_session(key), decode))
    };
    let mut stray = Vec::new();
    for table in [R::DIALECT.all_vectors, EMBEDDINGS.name, "vector_failures"] {
        let vectors = of(table, WITHOUT_MESSAGE)?.into_iter();
        stray.extend(vectors.map(|(sequence, rows)| StrayRows::Vectors { sequence, rows }));
    }
    let chunks = of("event_chunks", WITHOUT_PAYLOAD)?.into_iter();
    stray.extend(chunks.map(|(sequence, rows)| StrayRows::Chunks { sequence, rows }));
    Ok(stray)
}

/// The sessions of a user that have rows but no record.
pub fn sessions_without_record<R: Reader>(reader: &R, user: &UserId) -> Result<Vec<StrayRows>> {
    let of = |table: &str| {
        format!(
            "SELECT session_id FROM {table} t WHERE t.user_id = ?1 AND NOT EXISTS (SELECT 1 FROM sessions s
             WHERE s.user_id = t.user_id AND s.session_id = t.session_id)"
        )
    };
    let tables =
        ["transcripts", "events", "event_chunks", R::DIALECT.all_vectors, EMBEDDINGS.name, "vector_failures"];
    let sql = format!("{} ORDER BY 1", tables.map(of).join(" UNION "));
    let decode = |row: &dyn Columns| SessionId::new(row.text(0)?);
    let query = Query::new("sessions_without_record", sql, [user.as_str().into()], decode);
    let ids = reader.rows(&query)?.into_iter();
    Ok(ids.map(|id| StrayRows::Session(SessionKey::new(user.clone(), id))).collect())
}

/// The reasons why texts of a session's messages have no vectors of a generation.
#[must_use]
pub fn failures(generation: u32, key: &SessionKey) -> Query<OtherRow> {
    let sql = "SELECT sequence, reason FROM vector_failures
        WHERE user_id = ?1 AND session_id = ?2 AND generation = ?3 ORDER BY sequence";
    let values = of_session(key).into_iter().chain([generation.into()]);
    Query::new("vector_failures", sql, values, |row| {
        Ok(OtherRow::Failure { sequence: number(row, 0)?, reason: row.text(1)? })
    })
}
