//! Candidates: what the index finds, with the places that its keys stand for.

use amplifier_session_core::{
    Result,
    backend::{Candidates, TextCandidate, TextQuery, VectorCandidate, VectorQuery},
    model::{Place, SessionId, SessionKey, UserId},
};
use amplifier_session_index::SearchIndex;
use rusqlite::{Connection, OptionalExtension, Row, Transaction, TransactionBehavior};

use crate::{error::storage, rows::SqliteRows};

/// Runs `read` in one deferred transaction: its snapshot is taken by the first statement.
pub(crate) fn with_snapshot<T>(
    connection: &mut Connection,
    read: impl FnOnce(&Transaction<'_>) -> Result<T>,
) -> Result<T> {
    let transaction =
        connection.transaction_with_behavior(TransactionBehavior::Deferred).map_err(storage("read"))?;
    read(&transaction)
}

pub(crate) fn texts(
    snapshot: &Transaction<'_>,
    index: &SearchIndex,
    query: &TextQuery,
) -> Result<(Candidates<TextCandidate>, u64)> {
    let answer = index.text_candidates(&mut SqliteRows(snapshot), query)?;
    let sql = "SELECT user_id, session_id, sequence FROM transcripts WHERE key = ?1";
    let mut statement = snapshot.prepare_cached(sql).map_err(storage("search"))?;
    let mut items = Vec::with_capacity(answer.hits.len());
    for hit in answer.hits {
        let found =
            statement.query_row([hit.key as i64], place_parts).optional().map_err(storage("search"))?;
        if let Some(parts) = found {
            items.push(TextCandidate {
                place: place(parts)?,
                content_type: hit.content_type,
                score: hit.score,
            });
        }
    }
    Ok((Candidates { items, notice: answer.notice }, answer.tail_rows))
}

pub(crate) fn vectors(
    snapshot: &Transaction<'_>,
    index: &SearchIndex,
    query: &VectorQuery,
) -> Result<(Candidates<VectorCandidate>, u64)> {
    let answer = index.vector_candidates(&mut SqliteRows(snapshot), query)?;
    let sql = "SELECT user_id, session_id, sequence, content_type, span_start, span_end
        FROM transcript_vectors WHERE key = ?1";
    let mut statement = snapshot.prepare_cached(sql).map_err(storage("search"))?;
    let mut items = Vec::with_capacity(answer.hits.len());
    for hit in answer.hits {
        let found = statement
            .query_row([hit.key as i64], |row| {
                Ok((place_parts(row)?, row.get::<_, String>(3)?, row.get(4)?, row.get(5)?))
            })
            .optional()
            .map_err(storage("search"))?;
        let Some((parts, content_type, span_start, span_end)) = found else { continue };
        items.push(VectorCandidate {
            place: place(parts)?,
            content_type: content_type.parse()?,
            span_start,
            span_end,
            similarity: hit.similarity,
            vector: hit.vector,
        });
    }
    Ok((Candidates { items, notice: answer.notice }, answer.tail_rows))
}

type PlaceParts = (String, String, u32);

fn place_parts(row: &Row<'_>) -> rusqlite::Result<PlaceParts> {
    Ok((row.get(0)?, row.get(1)?, row.get(2)?))
}

fn place((user, session, sequence): PlaceParts) -> Result<Place> {
    Ok(Place::new(SessionKey::new(UserId::new(user)?, SessionId::new(session)?), sequence))
}
