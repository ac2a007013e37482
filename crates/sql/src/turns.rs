//! Vectors and summaries of turns: the tables, and statements that every database understands.

use std::collections::{BTreeMap, BTreeSet};

use amplifier_session_core::{
    Result,
    backend::{SummaryQuery, TurnLine, TurnLines},
    model::{Digest, EmbeddedTurn, MessageRef, SessionId, SessionKey, TurnSummary, UserId, VectorRecord},
};

use crate::{
    Cell, Columns, Conditions, Query, Reader, Table, Value,
    backend::{NewVector, VectorTarget},
    columns::{maybe_number, unless_damaged},
    is_one_of, number,
    read::{limit, of_session},
    rows::PAGE,
};

/// The tables. `key` is the type of a key that the database may assign.
///
/// They have no constraints, because DuckDB checks keys before the deletions of the same transaction. Instead, writers
/// remove the rows that they replace.
///
/// `message_embeddings` has the vectors of turns, of all generations; `sequence` is that of the user's message.
#[must_use]
pub fn tables(key: &str) -> String {
    format!(
        "CREATE TABLE IF NOT EXISTS message_embeddings (
    id TEXT NOT NULL,
    user_id TEXT NOT NULL,
    session_id TEXT NOT NULL,
    sequence BIGINT NOT NULL,
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
    created_at TIMESTAMP NOT NULL,
    revision BIGINT NOT NULL,
    generation BIGINT NOT NULL,
    key {key}
);
CREATE TABLE IF NOT EXISTS turn_summaries (
    user_id TEXT NOT NULL,
    session_id TEXT NOT NULL,
    user_sequence BIGINT NOT NULL,
    digest TEXT NOT NULL,
    turn_summary TEXT NOT NULL,
    is_stated BOOLEAN NOT NULL,
    set_at TIMESTAMP NOT NULL
);"
    )
}

/// The vectors of turns.
pub const EMBEDDINGS: Table = Table {
    name: "message_embeddings",
    columns: &[
        "id, user_id, session_id, sequence, assistant_sequence, user_message_id, assistant_message_id, provider, \
        model, dim, content_used, content_hash, used_turn_summary, vector, created_at, revision, \
        generation, key",
    ],
};

/// The summaries.
pub const SUMMARIES: Table = Table {
    name: "turn_summaries",
    columns: &["user_id, session_id, user_sequence, digest, turn_summary, is_stated, set_at"],
};

/// The row of the vector of a turn in [`EMBEDDINGS`], unless it is that of another text. The database may assign the
/// key.
#[must_use]
pub fn embedding<'a>(
    target: &'a VectorTarget<'_>,
    new: &NewVector<'a>,
    key: Option<i64>,
) -> Option<[Cell<'a>; 18]> {
    let (of, sequence) = (new.record.turn.as_deref()?, new.sequence);
    let message_id = |sequence: u32| Cell::made(format!("{}_msg_{sequence}", target.key.session_id));
    Some([
        Cell::text(&of.id),
        Cell::text(target.key.user_id.as_str()),
        Cell::text(target.key.session_id.as_str()),
        sequence.into(),
        of.assistant_sequence.into(),
        message_id(sequence),
        of.assistant_sequence.map_or(Cell::Null, message_id),
        Cell::text(&of.provider),
        Cell::text(&target.space.model),
        Cell::Integer(i64::try_from(target.space.dimensions).unwrap_or(i64::MAX)),
        Cell::text(&of.content_used),
        Cell::text(&of.content_hash),
        Cell::Flag(of.used_turn_summary),
        Cell::Vector(&new.record.vector),
        Cell::Time(of.created_at),
        Cell::Integer(target.revision),
        target.generation.into(),
        key.into(),
    ])
}

/// The columns of [`EMBEDDINGS`] that [`record`] reads.
pub const RECORD: &str = "sequence, id, assistant_sequence, provider, content_used, content_hash, used_turn_summary, \
    created_at, vector";

/// The sequence and the vector of a row of [`RECORD`].
pub fn record(row: &dyn Columns) -> Result<(u32, VectorRecord)> {
    let turn = EmbeddedTurn {
        id: row.text(1)?,
        assistant_sequence: maybe_number(row, 2)?,
        provider: row.text(3)?,
        content_used: row.text(4)?,
        content_hash: row.text(5)?,
        used_turn_summary: row.flag(6)?,
        created_at: row.time(7)?,
    };
    Ok((number(row, 0)?, VectorRecord::of_turn(turn, row.vector(8)?)))
}

/// The vectors of the turns that these messages begin. Leaves out those that can't be read.
pub fn vectors_of<R: Reader>(
    reader: &R,
    generation: u32,
    messages: &[MessageRef],
) -> Result<Vec<(MessageRef, VectorRecord)>> {
    let mut sessions: BTreeMap<&SessionKey, BTreeSet<u32>> = BTreeMap::new();
    for message in messages {
        sessions.entry(&message.session).or_default().insert(message.sequence);
    }
    let mut found = Vec::new();
    for (key, sequences) in sessions {
        let which = is_one_of("sequence", sequences.into_iter().map(i64::from));
        let sql = format!(
            "SELECT {RECORD} FROM message_embeddings
             WHERE user_id = ?1 AND session_id = ?2 AND generation = {generation} AND {which} ORDER BY sequence"
        );
        let decode = |row: &dyn Columns| unless_damaged(record(row));
        let records = reader.rows(&Query::new("vectors_of", sql, of_session(key), decode).once())?;
        let of_messages = records.into_iter().flatten();
        found.extend(of_messages.map(|(of, record)| (MessageRef::new(key.clone(), of), record)));
    }
    Ok(found)
}

/// The messages of a session from `start` on, up to `last`, that have vectors of turns.
#[must_use]
pub fn embedded(generation: u32, key: &SessionKey, start: u32, last: Option<u32>) -> Query<u32> {
    let sql = "SELECT sequence FROM message_embeddings
        WHERE user_id = ?1 AND session_id = ?2 AND sequence >= ?3 AND sequence <= ?4 AND generation = ?5
        ORDER BY sequence";
    let range: [Value; 3] = [start.into(), last.unwrap_or(u32::MAX).into(), generation.into()];
    Query::new("vector_texts", sql, of_session(key).into_iter().chain(range), |row| number(row, 0))
}

/// The lines of these turns of a session.
pub fn lines_of<R: Reader>(reader: &R, key: &SessionKey, turns: &BTreeSet<u32>) -> Result<TurnLines> {
    let which = is_one_of("turn", turns.iter().copied().map(i64::from));
    let sql = format!(
        "SELECT sequence, turn, role, digest FROM transcripts WHERE user_id = ?1 AND session_id = ?2 AND {which}"
    );
    let decode = |row: &dyn Columns| {
        Ok(TurnLine {
            sequence: number(row, 0)?,
            turn: maybe_number(row, 1)?,
            role: row.text_ref(2)?.parse()?,
            digest: crate::digest(row, 3)?,
        })
    };
    // An order would make SQLite read the whole session instead of the index by turn.
    let mut lines = reader.rows(&Query::new("write_vectors", sql, of_session(key), decode).once())?;
    lines.sort_unstable_by_key(|line| line.sequence);
    Ok(TurnLines::of(lines))
}

/// The condition on `sequence` of the messages of a session that begin turns: the first of the user in each. `which` is
/// a condition on `turn`.
#[must_use]
pub fn begins_turn(which: &str) -> String {
    format!(
        "sequence IN (SELECT min(sequence) FROM transcripts WHERE user_id = ?1 AND session_id = ?2
             AND role = 'user' AND {which} GROUP BY turn)"
    )
}

/// The statement that makes the vectors pending of all turns without one of a generation. `update` is its beginning.
#[must_use]
pub fn mark_without_vectors(update: &str, generation: u32) -> String {
    format!(
        "{update} {MARK_ALL}
             AND NOT EXISTS (SELECT 1 FROM message_embeddings e WHERE e.user_id = transcripts.user_id
                 AND e.session_id = transcripts.session_id AND e.sequence = transcripts.sequence
                 AND e.generation = {generation})"
    )
}

/// The end of a statement that makes the vectors of all turns pending: those of [`begins_turn`] in all sessions. The
/// states are those of `VectorState`. Without the plus, SQLite would read all earlier messages of the session.
pub const MARK_ALL: &str =
    "transcripts SET vectors = 4 WHERE vectors = 1 AND role = 'user' AND turn IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM transcripts b WHERE b.user_id = transcripts.user_id
        AND b.session_id = transcripts.session_id AND b.turn = transcripts.turn AND b.role = 'user'
        AND +b.sequence < transcripts.sequence)";

/// Moves the embeddings of turns of earlier layouts of embedded databases to the table [`EMBEDDINGS`], if they are of
/// the current generation; the last one of each turn. `{before}` is the table with the earlier columns, `{revision}`
/// the last revision, `{space}` the value of the current space as JSON, and `{key}` the key of a row.
pub const CARRY_OVER: &str = "
INSERT INTO message_embeddings (id, user_id, session_id, sequence, assistant_sequence, user_message_id,
    assistant_message_id, provider, model, dim, content_used, content_hash, used_turn_summary, vector, created_at,
    revision, generation, key)
SELECT e.id, e.user_id, e.session_id, e.user_sequence, e.assistant_sequence, e.user_message_id,
    e.assistant_message_id, e.provider, e.model, e.dim, e.content_used, e.content_hash, e.used_turn_summary, e.vector,
    e.created_at, {revision}, coalesce(CAST(({space} ->> 'number') AS BIGINT), 0), {key}
FROM {before} e, schema_meta m
WHERE m.key = 'embedding_space' AND e.model = ({space} ->> 'model')
    AND e.dim = CAST(({space} ->> 'dimensions') AS BIGINT)
    AND NOT EXISTS (SELECT 1 FROM {before} o WHERE o.user_id = e.user_id AND o.session_id = e.session_id
        AND o.user_sequence = e.user_sequence AND o.model = e.model AND o.dim = e.dim
        AND (o.created_at > e.created_at OR o.created_at = e.created_at AND o.id > e.id));
";

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
