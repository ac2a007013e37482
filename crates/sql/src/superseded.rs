//! Superseded lines: the table, and statements that every database understands.

use amplifier_session_core::{
    Result,
    backend::SupersededQuery,
    model::{LineKind, SessionId, SessionKey, SupersededPiece, SupersededReason, SupersededRef, UserId},
};

use crate::{
    Cell, Columns, Conditions, Query, Reader, Table, number,
    read::{limit, of_session},
    rows,
};

/// The table. It has no key, because DuckDB checks keys before the deletions of the same transaction. Instead, writers
/// check which pieces are already stored.
pub const TABLE: &str = "CREATE TABLE IF NOT EXISTS superseded_lines (
    user_id TEXT NOT NULL,
    session_id TEXT NOT NULL,
    id TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('message', 'event')),
    first_sequence BIGINT NOT NULL,
    last_sequence BIGINT NOT NULL,
    line_count BIGINT NOT NULL,
    byte_count BIGINT NOT NULL,
    superseded_at TIMESTAMP NOT NULL,
    reason TEXT NOT NULL,
    data BLOB NOT NULL
);";

/// The name of the table.
pub const NAME: &str = "superseded_lines";

/// The columns of a row in [`TABLE`].
pub const LINES: Table = Table {
    name: NAME,
    columns: &[
        "user_id, session_id, id, kind, first_sequence, last_sequence, line_count, byte_count, superseded_at, \
        reason, data",
    ],
};

/// A page with lines contains at most this many pieces, each of which has up to about a megabyte.
const PAGE: usize = 16;

/// The row of a piece in [`LINES`].
#[must_use]
pub fn row(piece: &SupersededPiece) -> [Cell<'_>; 11] {
    [
        Cell::text(piece.session.user_id.as_str()),
        Cell::text(piece.session.session_id.as_str()),
        Cell::text(&piece.id),
        Cell::text(piece.kind.as_str()),
        piece.first_sequence.into(),
        piece.last_sequence.into(),
        piece.lines.into(),
        Cell::Integer(i64::try_from(piece.bytes).unwrap_or(i64::MAX)),
        Cell::Time(piece.superseded_at),
        Cell::text(piece.reason.as_str()),
        Cell::Bytes(&piece.data),
    ]
}

/// The ids of the pieces of a session.
#[must_use]
pub fn ids(key: &SessionKey) -> Query<String> {
    let sql = "SELECT id FROM superseded_lines WHERE user_id = ?1 AND session_id = ?2";
    Query::new("superseded", sql, of_session(key), |row| row.text(0))
}

/// The id of the piece with the index `rank` in a session, in order, from 0; `None` if there are fewer pieces.
pub fn id_at(reader: &impl Reader, key: &SessionKey, rank: usize) -> Result<Option<String>> {
    let sql = format!(
        "SELECT id FROM superseded_lines WHERE user_id = ?1 AND session_id = ?2 ORDER BY id LIMIT 1 OFFSET {rank}"
    );
    reader.first(&Query::new("superseded", sql, of_session(key), |row| row.text(0)))
}

/// A page of pieces, in order of user, session and id.
pub fn list<R: Reader>(reader: &R, query: &SupersededQuery) -> Result<Vec<SupersededPiece>> {
    let mut conditions = Conditions::of_sessions(R::DIALECT, &query.scope, &query.filter)?;
    conditions.compare_if("l.kind = ?", query.kind.map(|kind| kind.as_str().to_owned()));
    conditions.compare_if("l.superseded_at < ?", query.until);
    if let Some(SupersededRef { session, id }) = &query.after {
        let user = conditions.bind(session.user_id.to_string());
        let session = conditions.bind(session.session_id.to_string());
        let id = conditions.bind(id.clone());
        conditions.require(format!("(l.user_id, l.session_id, l.id) > ({user}, {session}, {id})"));
    }
    let (data, page) =
        if query.with_data { ("l.data", query.limit.min(PAGE)) } else { ("NULL", query.limit) };
    let page = conditions.bind(limit(page.min(rows::PAGE)));
    let sql = format!(
        "SELECT l.user_id, l.session_id, l.id, l.kind, l.first_sequence, l.last_sequence, l.line_count,
             l.byte_count, l.superseded_at, l.reason, {data}
         FROM superseded_lines l JOIN sessions s ON s.user_id = l.user_id AND s.session_id = l.session_id
         WHERE {} ORDER BY l.user_id, l.session_id, l.id LIMIT {page}",
        conditions.sql()
    );
    let decode = if query.with_data { piece } else { piece_without_data };
    reader.rows(&Query::with_conditions("list_superseded", sql, conditions, decode))
}

/// Decodes the columns of [`LINES`].
pub fn piece(row: &dyn Columns) -> Result<SupersededPiece> {
    Ok(SupersededPiece { data: row.bytes(10)?, ..piece_without_data(row)? })
}

fn piece_without_data(row: &dyn Columns) -> Result<SupersededPiece> {
    Ok(SupersededPiece {
        session: SessionKey::new(UserId::new(row.text(0)?)?, SessionId::new(row.text(1)?)?),
        id: row.text(2)?,
        kind: row.text(3)?.parse::<LineKind>()?,
        first_sequence: number(row, 4)?,
        last_sequence: number(row, 5)?,
        lines: number(row, 6)?,
        bytes: rows::count(row, 7)?,
        superseded_at: row.time(8)?,
        reason: row.text(9)?.parse::<SupersededReason>()?,
        data: Vec::new(),
    })
}
