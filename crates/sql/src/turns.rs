//! Embeddings and summaries of turns: the tables, and statements that every database understands.

use std::{collections::BTreeSet, ops::ControlFlow};

use amplifier_session_core::{
    Result,
    backend::{NearestTurns, SummaryQuery, TurnCandidate, TurnQuery, TurnVectorQuery},
    model::{Digest, MessageRef, SessionId, SessionKey, TurnEmbedding, TurnSummary, UserId},
    search::SearchFilter,
};

use crate::{
    Cell, Columns, Conditions, Query, Reader, Statement, Table, Value,
    columns::maybe_number,
    is_one_of, number,
    read::{limit, of_session},
    rows::PAGE,
};

/// The tables. They have no keys, because DuckDB checks keys before the deletions of the same transaction. Instead,
/// writers remove the rows that they replace.
///
/// `vector` is little-endian 32-bit floats.
pub const TABLES: &str = "CREATE TABLE IF NOT EXISTS message_embeddings (
    id TEXT NOT NULL,
    user_id TEXT NOT NULL,
    session_id TEXT NOT NULL,
    user_sequence BIGINT NOT NULL,
    assistant_sequence BIGINT,
    user_message_id TEXT NOT NULL,
    assistant_message_id TEXT,
    provider TEXT NOT NULL,
    model TEXT NOT NULL,
    dim BIGINT NOT NULL,
    content_used TEXT NOT NULL,
    content_hash TEXT NOT NULL,
    used_turn_summary BOOLEAN NOT NULL,
    vector BLOB NOT NULL,
    created_at TIMESTAMP NOT NULL
);
CREATE TABLE IF NOT EXISTS turn_summaries (
    user_id TEXT NOT NULL,
    session_id TEXT NOT NULL,
    user_sequence BIGINT NOT NULL,
    digest TEXT NOT NULL,
    turn_summary TEXT NOT NULL,
    is_stated BOOLEAN NOT NULL,
    set_at TIMESTAMP NOT NULL
);";

/// The names of the tables.
pub const NAMES: [&str; 2] = [EMBEDDINGS.name, SUMMARIES.name];

/// The embeddings.
pub const EMBEDDINGS: Table = Table {
    name: "message_embeddings",
    columns: &[
        "id, user_id, session_id, user_sequence, assistant_sequence, user_message_id, assistant_message_id, \
        provider, model, dim, content_used, content_hash, used_turn_summary, vector, created_at",
    ],
};

/// The summaries.
pub const SUMMARIES: Table = Table {
    name: "turn_summaries",
    columns: &["user_id, session_id, user_sequence, digest, turn_summary, is_stated, set_at"],
};

/// The number of turns in one result, if the database holds results in memory.
const BATCH: usize = 4_096;

/// The row of an embedding in [`EMBEDDINGS`], with the ids of its messages and its vector as bytes.
#[must_use]
pub fn embedding<'a>(key: &'a SessionKey, of: &'a TurnEmbedding, vector: &'a [u8]) -> [Cell<'a>; 15] {
    [
        Cell::text(&of.id),
        Cell::text(key.user_id.as_str()),
        Cell::text(key.session_id.as_str()),
        of.user_sequence.into(),
        of.assistant_sequence.into(),
        Cell::made(of.user_message_id(key)),
        of.assistant_message_id(key).map_or(Cell::Null, Cell::made),
        Cell::text(&of.provider),
        Cell::text(&of.model),
        Cell::Integer(i64::try_from(of.dimensions).unwrap_or(i64::MAX)),
        Cell::text(&of.content_used),
        Cell::text(&of.content_hash),
        Cell::Flag(of.used_turn_summary),
        Cell::Bytes(vector),
        Cell::Time(of.created_at),
    ]
}

/// The row of a summary in [`SUMMARIES`].
#[must_use]
pub fn summary(of: &TurnSummary) -> [Cell<'_>; 7] {
    [
        Cell::text(of.session.user_id.as_str()),
        Cell::text(of.session.session_id.as_str()),
        of.user_sequence.into(),
        Cell::made(String::from(of.digest)),
        Cell::text(&of.text),
        Cell::Flag(of.is_stated),
        Cell::Time(of.set_at),
    ]
}

/// Deletes embeddings of a model, by the ids of their users' messages.
///
/// These are the columns of a unique index. Given a session and sequences, SQLite would choose the index by model, and read
/// all embeddings in the store.
#[must_use]
pub fn delete(user: &UserId, provider: &str, model: &str, user_message_ids: Vec<String>) -> Statement {
    let ids: Vec<Value> = user_message_ids.into_iter().map(Value::from).collect();
    let placeholders: Vec<String> = (4..ids.len() + 4).map(|number| format!("?{number}")).collect();
    let sql = format!(
        "DELETE FROM message_embeddings
         WHERE user_id = ?1 AND provider = ?2 AND model = ?3 AND user_message_id IN ({})",
        placeholders.join(", ")
    );
    let of_model: [Value; 3] = [user.as_str().into(), provider.into(), model.into()];
    Statement::once("write_turns", sql, of_model.into_iter().chain(ids))
}

/// The messages to which the embeddings of a session belong: the user's and the assistant's.
#[must_use]
pub fn embedded_messages(key: &SessionKey) -> Query<(u32, Option<u32>)> {
    let sql = "SELECT user_sequence, assistant_sequence FROM message_embeddings
        WHERE user_id = ?1 AND session_id = ?2";
    Query::new("turns", sql, of_session(key), |row| Ok((number(row, 0)?, maybe_number(row, 1)?)))
}

/// The messages to which the summaries of a session belong, with the digests of their lines.
#[must_use]
pub fn summarised_messages(key: &SessionKey) -> Query<(u32, Digest)> {
    let sql = "SELECT user_sequence, digest FROM turn_summaries WHERE user_id = ?1 AND session_id = ?2";
    Query::new("turns", sql, of_session(key), |row| Ok((number(row, 0)?, row.text(1)?.try_into()?)))
}

/// The digests of the lines of some messages.
#[must_use]
pub fn lines(key: &SessionKey, sequences: &BTreeSet<u32>) -> Query<(u32, Digest)> {
    let which = is_one_of("sequence", sequences.iter().copied().map(i64::from));
    let sql = format!(
        "SELECT sequence, digest FROM transcripts WHERE user_id = ?1 AND session_id = ?2 AND {which}"
    );
    Query::new("turns", sql, of_session(key), |row| Ok((number(row, 0)?, crate::digest(row, 1)?))).once()
}

/// As [`Turns::read_turns`](amplifier_session_core::backend::Turns::read_turns).
pub fn read<R: Reader>(reader: &R, query: &TurnQuery) -> Result<Vec<TurnEmbedding>> {
    let (content, most) =
        if query.with_content { ("content_used, vector", 256) } else { ("NULL, NULL", PAGE) };
    let sql = format!(
        "SELECT id, user_sequence, assistant_sequence, provider, model, dim, content_hash, used_turn_summary,
             created_at, {content}
         FROM message_embeddings
         WHERE user_id = ?1 AND session_id = ?2 AND provider = ?3 AND model = ?4 AND user_sequence >= ?5
         ORDER BY user_sequence LIMIT ?6"
    );
    let of: [Value; 4] = [
        query.provider.as_str().into(),
        query.model.as_str().into(),
        query.range.start.into(),
        limit(query.range.limit.min(most)).into(),
    ];
    let values = of_session(&query.session).into_iter().chain(of);
    let decode = if query.with_content { whole_embedding } else { without_content };
    reader.rows(&Query::new("read_turns", sql, values, decode))
}

/// The columns that [`whole_embedding`] reads.
pub const WHOLE_EMBEDDING: &str = "id, user_sequence, assistant_sequence, provider, model, dim, content_hash, \
    used_turn_summary, created_at, content_used, vector";

fn without_content(row: &dyn Columns) -> Result<TurnEmbedding> {
    Ok(TurnEmbedding {
        id: row.text(0)?,
        user_sequence: number(row, 1)?,
        assistant_sequence: maybe_number(row, 2)?,
        provider: row.text(3)?,
        model: row.text(4)?,
        dimensions: number(row, 5)?,
        content_used: String::new(),
        content_hash: row.text(6)?,
        used_turn_summary: row.flag(7)?,
        vector: Vec::new(),
        created_at: row.time(8)?,
    })
}

/// The embedding of a row of [`WHOLE_EMBEDDING`].
pub fn whole_embedding(row: &dyn Columns) -> Result<TurnEmbedding> {
    let (content_used, vector) = (row.text(9)?, TurnEmbedding::read_vector(row.bytes_ref(10)?)?);
    Ok(TurnEmbedding { content_used, vector, ..without_content(row)? })
}

/// As [`Turns::nearest_turns`](amplifier_session_core::backend::Turns::nearest_turns): reads all vectors of the scope,
/// and keeps the nearest.
pub fn nearest<R: Reader>(reader: &R, query: &TurnVectorQuery) -> Result<Vec<TurnCandidate>> {
    let mut nearest = NearestTurns::new(query);
    let mut after = None;
    loop {
        let (last, count) = scan(reader, query, after.as_ref(), &mut nearest)?;
        if R::DIALECT.batch.is_none() || count < BATCH {
            return Ok(nearest.finish());
        }
        after = last;
    }
}

/// Adds the turns after `after`: all of them, or a batch. Returns the last one and their number.
fn scan<R: Reader>(
    reader: &R,
    query: &TurnVectorQuery,
    after: Option<&MessageRef>,
    nearest: &mut NearestTurns<'_>,
) -> Result<(Option<MessageRef>, usize)> {
    let SearchFilter { role, since, until, .. } = &query.filter;
    let mut conditions = Conditions::of_sessions(R::DIALECT, &query.scope, &query.filter.sessions)?;
    conditions.compare("e.provider = ?", query.provider.as_str());
    conditions.compare("e.model = ?", query.space.model.as_str());
    conditions.compare("e.dim = ?", limit(query.space.dimensions));
    conditions.compare_if("t.role = ?", role.map(|role| role.as_str()));
    conditions.compare_if("t.ts >= ?", *since);
    conditions.compare_if("t.ts < ?", *until);
    if let Some(MessageRef { session, sequence }) = after {
        let user = conditions.bind(session.user_id.as_str());
        let session = conditions.bind(session.session_id.as_str());
        let sequence = conditions.bind(*sequence);
        conditions
            .require(format!("(e.user_id, e.session_id, e.user_sequence) > ({user}, {session}, {sequence})"));
    }
    let page = match R::DIALECT.batch {
        Some(_) => format!("ORDER BY e.user_id, e.session_id, e.user_sequence LIMIT {BATCH}"),
        None => String::new(),
    };
    let sql = format!(
        "SELECT e.user_id, e.session_id, e.user_sequence, e.vector
         FROM message_embeddings e
         JOIN sessions s ON s.user_id = e.user_id AND s.session_id = e.session_id
         JOIN transcripts t ON t.user_id = e.user_id AND t.session_id = e.session_id
             AND t.sequence = e.user_sequence
         WHERE {} {page}",
        conditions.sql()
    );
    let (mut last, mut count) = (None, 0);
    let decode = |row: &dyn Columns| {
        let session = SessionKey::new(UserId::new(row.text_ref(0)?)?, SessionId::new(row.text_ref(1)?)?);
        let vector = TurnEmbedding::read_vector(row.bytes_ref(3)?)?;
        Ok((MessageRef::new(session, number(row, 2)?), vector))
    };
    reader.each(&Query::with_conditions("nearest_turns", sql, conditions, decode), |(turn, vector)| {
        count += 1;
        if R::DIALECT.batch.is_some() {
            last = Some(turn.clone());
        }
        if vector.len() == query.vector.len() {
            nearest.add(turn, &vector);
        }
        ControlFlow::Continue(())
    })?;
    Ok((last, count))
}

/// A page of summaries, in order of user, session and `user_sequence`.
pub fn list_summaries<R: Reader>(reader: &R, query: &SummaryQuery) -> Result<Vec<TurnSummary>> {
    let mut conditions = Conditions::of_sessions(R::DIALECT, &query.scope, &query.filter)?;
    if let Some(MessageRef { session, sequence }) = &query.after {
        let user = conditions.bind(session.user_id.as_str());
        let session = conditions.bind(session.session_id.as_str());
        let sequence = conditions.bind(*sequence);
        conditions
            .require(format!("(u.user_id, u.session_id, u.user_sequence) > ({user}, {session}, {sequence})"));
    }
    let page = conditions.bind(limit(query.limit.min(PAGE)));
    let sql = format!(
        "SELECT u.user_id, u.session_id, u.user_sequence, u.digest, u.turn_summary, u.is_stated, u.set_at
         FROM turn_summaries u JOIN sessions s ON s.user_id = u.user_id AND s.session_id = u.session_id
         WHERE {} ORDER BY u.user_id, u.session_id, u.user_sequence LIMIT {page}",
        conditions.sql()
    );
    reader.rows(&Query::with_conditions("list_summaries", sql, conditions, summary_of_row))
}

/// The summary of a row with the columns of [`SUMMARIES`].
pub fn summary_of_row(row: &dyn Columns) -> Result<TurnSummary> {
    Ok(TurnSummary {
        session: SessionKey::new(UserId::new(row.text(0)?)?, SessionId::new(row.text(1)?)?),
        user_sequence: number(row, 2)?,
        digest: row.text(3)?.try_into()?,
        text: row.text(4)?,
        is_stated: row.flag(5)?,
        set_at: row.time(6)?,
    })
}
