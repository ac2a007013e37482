//! Rows of `transcripts`.

use std::collections::{BTreeSet, HashMap};

use amplifier_session_core::{
    Result,
    backend::OweAgain,
    model::{Message, Place, Retimed, SessionKey, VectorState},
};
use amplifier_session_sql::{
    Columns, Query, Reader, number,
    rows::{self, MESSAGES},
};
use duckdb::{Connection, params};

use crate::{
    columns::{Cursor, bytes},
    error::storage,
    reader::{Read, is_one_of},
    sessions,
    vectors::Target,
};

/// How many messages get another time in one statement.
const RETIMED: usize = 1000;

/// The key of a message: DuckDB finds rows by one column, and so by their place in a session.
pub(crate) fn message_key(session: i64, sequence: u32) -> i64 {
    (session << u32::BITS) | i64::from(sequence)
}

/// The messages at `places`.
pub(crate) fn at(reader: &Read<'_>, places: &[Place]) -> Result<Vec<Message>> {
    let sessions: BTreeSet<_> = places.iter().map(|place| &place.session).collect();
    let sessions = sessions::keys_of(reader.0, &sessions).map_err(storage("messages_at"))?;
    let key = |place: &Place| Some(message_key(*sessions.get(&place.session)?, place.sequence));
    let sql = format!("{MESSAGES} WHERE {}", is_one_of("t.key", places.iter().filter_map(key)));
    reader.rows(&Query::new("messages_at", sql, [], rows::message))
}

/// Makes the vectors of a session's messages owed again, or of some of them; returns of how many.
pub(crate) fn owe_vectors(
    connection: &Connection,
    key: &SessionKey,
    which: &OweAgain,
    generation: u32,
) -> duckdb::Result<usize> {
    let failed = "sequence IN (SELECT sequence FROM vector_failures
        WHERE user_id = ?1 AND session_id = ?2 AND generation = ?3)";
    let which = match which {
        OweAgain::All => "?3 = ?3".to_owned(),
        OweAgain::Failed => failed.to_owned(),
        OweAgain::At(sequences) => {
            let sequences: Vec<String> = sequences.iter().map(u32::to_string).collect();
            format!("?3 = ?3 AND sequence IN ({})", sequences.join(", "))
        }
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

/// Removes messages of a session, with their vectors, and leaves word of them for the index. `which` is a condition on
/// `sequence`.
pub(crate) fn remove(
    connection: &Connection,
    key: &SessionKey,
    which: &str,
    revision: i64,
) -> duckdb::Result<()> {
    let (user, session) = (key.user_id.as_str(), key.session_id.as_str());
    let of_session = format!("WHERE user_id = ?1 AND session_id = ?2 AND {which}");
    let count = format!("SELECT count(*) FROM transcripts {of_session}");
    if connection.prepare(&count)?.query_row([user, session], |row| row.get::<_, i64>(0))? == 0 {
        // Most writes append: then there is nothing to look for in six tables.
        return Ok(());
    }
    crate::vectors::remove(connection, key, which, revision)?;
    let sql =
        format!("INSERT INTO removed (kind, revision, key) SELECT 0, ?3, key FROM transcripts {of_session}");
    connection.execute(&sql, params![user, session, revision])?;
    connection.execute(&format!("DELETE FROM transcripts {of_session}"), [user, session])?;
    Ok(())
}

/// Gives all rows of a session a new revision, so that the index takes them in again.
pub(crate) fn touch(connection: &Connection, key: &SessionKey, revision: i64) -> duckdb::Result<()> {
    for table in ["transcripts", "transcript_vectors", "other_vectors"] {
        let sql = format!("UPDATE {table} SET revision = ?3 WHERE user_id = ?1 AND session_id = ?2");
        connection.execute(&sql, params![key.user_id.as_str(), key.session_id.as_str(), revision])?;
    }
    Ok(())
}

/// Gives messages of the session whose row has the key `session` other times, and a new revision to them and their vectors
/// so that the index takes the times in.
pub(crate) fn retime(
    connection: &Connection,
    (key, session): (&SessionKey, i64),
    retimed: &[Retimed],
    revision: i64,
) -> duckdb::Result<()> {
    // A statement takes DuckDB a millisecond, a row of one some microseconds.
    for some in retimed.chunks(RETIMED) {
        let row = |of: &Retimed| {
            let key = message_key(session, of.sequence);
            let (micros, source) = (of.ts.as_micros(), of.ts_source);
            format!("({key}, {micros}::BIGINT, {}, '{source}')", source.is_estimated())
        };
        let rows: Vec<String> = some.iter().map(row).collect();
        let sql = format!(
            "UPDATE transcripts SET ts = make_timestamp(times.micros), ts_estimated = times.estimated,
                 ts_source = times.source, revision = ?1
             FROM (VALUES {}) times(key, micros, estimated, source) WHERE transcripts.key = times.key",
            rows.join(", ")
        );
        connection.execute(&sql, [revision])?;
        let which = is_one_of("sequence", some.iter().map(|of| i64::from(of.sequence)));
        for table in ["transcript_vectors", "other_vectors"] {
            let sql = format!(
                "UPDATE {table} SET revision = ?3 WHERE user_id = ?1 AND session_id = ?2 AND {which}"
            );
            connection.execute(&sql, params![key.user_id.as_str(), key.session_id.as_str(), revision])?;
        }
    }
    Ok(())
}

/// What a message's vectors are stored by.
#[derive(Debug)]
pub(crate) struct StoredLine {
    pub(crate) key: i64,
    pub(crate) digest: Vec<u8>,
    /// Of the current generation.
    pub(crate) may_have_vectors: bool,
}

/// The stored messages of these sequences.
pub(crate) fn stored_lines(
    connection: &Connection,
    key: &SessionKey,
    sequences: impl Iterator<Item = u32>,
) -> Result<HashMap<u32, StoredLine>> {
    let Some(session) = sessions::present(connection, key).map_err(storage("write_vectors"))? else {
        return Ok(HashMap::new());
    };
    let keys = sequences.map(|sequence| message_key(session.key, sequence));
    let sql =
        format!("SELECT sequence, key, digest, vectors FROM transcripts WHERE {}", is_one_of("key", keys));
    let mut statement = connection.prepare(&sql).map_err(storage("write_vectors"))?;
    let mut found = statement.query([]).map_err(storage("write_vectors"))?;
    let mut lines = HashMap::new();
    while let Some(row) = found.next().map_err(storage("write_vectors"))? {
        let row = Cursor(row);
        let line = StoredLine {
            key: row.integer(1)?,
            digest: bytes(row.0, 2)?.to_vec(),
            may_have_vectors: rows::vector_state(&row, 3)? != VectorState::Owed,
        };
        lines.insert(number(&row, 0)?, line);
    }
    Ok(lines)
}

/// Remembers that the vectors of the messages of these keys were made.
pub(crate) fn mark_made(
    connection: &Connection,
    keys: impl Iterator<Item = i64>,
    target: &Target<'_>,
) -> duckdb::Result<()> {
    let which = is_one_of("key", keys);
    let (column, value) = match target.is_current {
        true => ("vectors", VectorState::Stored.code().into()),
        false => ("generation", target.generation),
    };
    connection.execute(&format!("UPDATE transcripts SET {column} = {value} WHERE {which}"), [])?;
    Ok(())
}
