//! Rows of `transcripts`.

use amplifier_session_core::{
    Result,
    backend::OweAgain,
    model::{Message, Place, Retimed, SessionKey, VectorState},
};
use amplifier_session_sql::{
    Query, Reader,
    rows::{self, MESSAGES},
};
use rusqlite::{Connection, OptionalExtension, params, types::ToSqlOutput};

use crate::{reader::Read, vectors::Target};

/// The messages at `places`.
pub(crate) fn at(reader: &Read<'_>, places: &[Place]) -> Result<Vec<Message>> {
    let sql = format!("{MESSAGES} WHERE t.user_id = ?1 AND t.session_id = ?2 AND t.sequence = ?3");
    let mut messages = Vec::with_capacity(places.len());
    for Place { session: SessionKey { user_id, session_id }, sequence } in places {
        let values = [user_id.to_string().into(), session_id.to_string().into(), (*sequence).into()];
        messages.extend(reader.first(&Query::new("messages_at", &sql, values, rows::message))?);
    }
    Ok(messages)
}

/// Makes the vectors of a session's messages owed again, or of some of them; returns of how many.
pub(crate) fn owe_vectors(
    connection: &Connection,
    key: &SessionKey,
    which: &OweAgain,
    generation: u32,
) -> rusqlite::Result<usize> {
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

/// Inserts or replaces a message; a replaced one keeps its key.
pub(crate) fn put(connection: &Connection, message: &Message, revision: i64) -> rusqlite::Result<()> {
    let sql = "INSERT INTO transcripts
        (user_id, session_id, sequence, role, turn, ts, ts_estimated, synced_at, vectors, digest, revision, raw,
            ts_source)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)
        ON CONFLICT (user_id, session_id, sequence) DO UPDATE SET
            role = excluded.role, turn = excluded.turn, ts = excluded.ts, ts_estimated = excluded.ts_estimated,
            synced_at = excluded.synced_at, vectors = excluded.vectors, digest = excluded.digest,
            revision = excluded.revision, raw = excluded.raw, generation = 0, ts_source = excluded.ts_source";
    connection.prepare_cached(sql)?.execute(params![
        message.user_id.as_str(),
        message.session_id.as_str(),
        message.sequence,
        message.role.as_str(),
        message.turn,
        message.ts.to_string(),
        message.ts_estimated(),
        message.synced_at.to_string(),
        message.vectors.code(),
        message.digest.0,
        revision,
        text_or_blob(message.raw.as_bytes()),
        message.ts_source.as_str(),
    ])?;
    Ok(())
}

/// Gives a message another time, and a new revision to it and its vectors so that the index takes the time in.
pub(crate) fn retime(
    connection: &Connection,
    key: &SessionKey,
    retimed: &Retimed,
    revision: i64,
) -> rusqlite::Result<()> {
    let (user, session, sequence) = (key.user_id.as_str(), key.session_id.as_str(), retimed.sequence);
    connection
        .prepare_cached(
            "UPDATE transcripts SET ts = ?4, ts_estimated = ?5, ts_source = ?6, revision = ?7
             WHERE user_id = ?1 AND session_id = ?2 AND sequence = ?3",
        )?
        .execute(params![
            user,
            session,
            sequence,
            retimed.ts.to_string(),
            retimed.ts_source.is_estimated(),
            retimed.ts_source.as_str(),
            revision
        ])?;
    connection
        .prepare_cached(
            "UPDATE transcript_vectors SET revision = ?4 WHERE user_id = ?1 AND session_id = ?2 AND sequence = ?3",
        )?
        .execute(params![user, session, sequence, revision])?;
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

/// Text where the bytes are UTF-8, so that people can read and query them with any SQLite tool.
fn text_or_blob(bytes: &[u8]) -> ToSqlOutput<'_> {
    match std::str::from_utf8(bytes) {
        Ok(text) => ToSqlOutput::from(text),
        Err(_) => ToSqlOutput::from(bytes),
    }
}
