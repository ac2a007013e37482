//! Connections as `amplifier-session-sql` uses them, and SQLite's dialect.

use std::ops::ControlFlow;

use amplifier_session_core::{
    Result, Scope,
    backend::SessionQuery,
    compression::compress,
    events::MAX_LINE_BYTES,
    known_json,
    model::Level,
    search::{EventFilter, SessionFilter},
};
use amplifier_session_sql::{
    Cell, Columns, Dialect, Reader, Statement, Table, Value, WordSearch,
    backend::{NewVector, VectorTarget, Writer},
    read::changes::{BY_REVISION, ChangeNumbers},
    rows::EVENT_OF_SESSION,
};
use rusqlite::{
    Connection, ParamsFromIter, ToSql, Transaction, params_from_iter,
    types::{Null, ToSqlOutput},
};

use crate::{
    columns::{SqliteRow, vector_bytes},
    error::storage,
};

/// A read connection.
#[derive(Debug)]
pub struct SqliteReader<'a>(pub(crate) &'a Connection);

impl Reader for SqliteReader<'_> {
    const DIALECT: Dialect = SQLITE;

    fn each_row(
        &self,
        statement: &Statement,
        each: &mut dyn FnMut(&dyn Columns) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        let failed = storage(statement.operation);
        prepared(self.0, statement, |prepared| {
            let mut found = prepared.query(params(&statement.values)).map_err(&failed)?;
            while let Some(row) = found.next().map_err(&failed)? {
                if each(&SqliteRow(row))?.is_break() {
                    break;
                }
            }
            Ok(())
        })
    }
}

/// A write transaction.
#[derive(Debug)]
pub struct SqliteWriter<'a>(pub(crate) Transaction<'a>);

impl Reader for SqliteWriter<'_> {
    const DIALECT: Dialect = SQLITE;

    fn each_row(
        &self,
        statement: &Statement,
        each: &mut dyn FnMut(&dyn Columns) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        SqliteReader(&self.0).each_row(statement, each)
    }
}

impl Writer for SqliteWriter<'_> {
    fn execute(&self, statement: &Statement) -> Result<usize> {
        prepared(&self.0, statement, |prepared| {
            prepared.execute(params(&statement.values)).map_err(storage(statement.operation))
        })
    }

    fn next_revision(&mut self) -> Result<i64> {
        let take = Statement::new("write", "INSERT INTO revisions (nonce) VALUES (random())", []);
        self.execute(&take)?;
        Ok(self.0.last_insert_rowid())
    }

    fn new_session_key(&mut self) -> Option<i64> {
        None
    }

    fn message_key(_: Option<i64>, _: u32) -> Option<i64> {
        None
    }

    fn insert(&mut self, table: &Table, row: &[Cell<'_>]) -> Result<()> {
        let values: Vec<String> = (1..=row.len()).map(|number| format!("?{number}")).collect();
        let inserted = self
            .0
            .prepare_cached(&table.insert(&values.join(", ")))
            .and_then(|mut insert| insert.execute(params_from_iter(row.iter().map(BoundCell))));
        inserted.map(drop).map_err(storage("write"))
    }

    fn insert_vectors(&mut self, target: &VectorTarget<'_>, vectors: &[NewVector<'_>]) -> Result<()> {
        let (user, session) = (target.key.user_id.as_str(), target.key.session_id.as_str());
        for NewVector { sequence, created_at, record } in vectors {
            let row = [
                Cell::text(user),
                Cell::text(session),
                (*sequence).into(),
                Cell::text(record.text.as_str()),
                record.chunk_index.into(),
                record.total_chunks.into(),
                record.span_start.into(),
                record.span_end.into(),
                record.token_count.into(),
                Cell::text(&target.space.model),
                Cell::Time(*created_at),
                Cell::Integer(target.revision),
                target.generation.into(),
                Cell::Vector(&record.vector),
            ];
            self.insert(&TRANSCRIPT_VECTORS, &row)?;
        }
        Ok(())
    }
}

const TRANSCRIPT_VECTORS: Table = Table {
    name: "transcript_vectors",
    columns: &[
        "user_id, session_id, sequence, content_type, chunk_index, total_chunks, span_start, span_end, \
        token_count, embedding_model, created_at, revision, generation, vector",
    ],
};

fn prepared<T>(
    connection: &Connection,
    statement: &Statement,
    run: impl FnOnce(&mut rusqlite::Statement<'_>) -> Result<T>,
) -> Result<T> {
    let failed = storage(statement.operation);
    if statement.keep_prepared {
        run(&mut *connection.prepare_cached(&statement.sql).map_err(failed)?)
    } else {
        run(&mut connection.prepare(&statement.sql).map_err(failed)?)
    }
}

/// Lists are stored as JSON, and a function of this library searches for words. Tables are joined with `CROSS JOIN` and
/// indexes are named, because SQLite has no statistics to base a choice on.
pub(crate) const SQLITE: Dialect = Dialect {
    list_holds: |list, value| {
        format!("EXISTS (SELECT 1 FROM json_each({list}) item WHERE item.value = {value})")
    },
    session_words: WordSearch::Exact(|text| {
        format!("holds_words({text}, s.name, s.first_prompt, s.session_id, s.description)")
    }),
    event_words: WordSearch::Exact(|text| format!("event_mentions({text}, e.error_type, e.summary)")),
    quarter_hour: |time| {
        format!(
            "substr({time}, 1, instr({time}, 'T') + 3)
             || substr('00153045', 1 + 2 * (substr({time}, instr({time}, 'T') + 4, 2) / 15), 2) || ':00Z'"
        )
    },
    list_from,
    changes: ChangeNumbers {
        sessions: "sessions s INDEXED BY sessions_by_revision",
        messages: Some("transcripts INDEXED BY transcripts_by_revision"),
        ..BY_REVISION
    },
    messages_of_sessions: "sessions s CROSS JOIN transcripts t INDEXED BY transcripts_by_role
        ON t.user_id = s.user_id AND t.session_id = s.session_id",
    events_in_order,
    beside_sessions: |table| format!("sessions s CROSS JOIN {table} t USING (user_id, session_id)"),
    all_vectors: "transcript_vectors",
    vector_tables: &["transcript_vectors"],
    // A statement that fails must undo all it did. By default, SQLite keeps the pages from before the statement for
    // this, in memory, because files for temporary data would contain lines. If the whole transaction ends, it keeps
    // nothing.
    update: "UPDATE OR ROLLBACK",
    time: |ts| format!("'{ts}'"),
    batch: None,
    records_removed_vectors: true,
    removed_of_users: false,
    own_tables: &[],
    session_keys: &[
        "SELECT key, user_id, session_id FROM sessions INDEXED BY sqlite_autoindex_sessions_1",
        "SELECT key, user_id, session_id FROM sessions NOT INDEXED",
    ],
};

/// The index for listing sessions: the one that selects few sessions, or else the one that contains all of them in
/// order.
fn list_from(query: &SessionQuery) -> &'static str {
    let own = matches!(query.scope, Scope::User(_));
    let by_id = query.filter.session.is_some() || query.keys.is_some() || query.id_prefix.is_some();
    match query {
        _ if by_id && own => "sessions s INDEXED BY sqlite_autoindex_sessions_1",
        _ if by_id => "sessions s INDEXED BY sessions_by_id",
        SessionQuery { parent: Some(_), .. } => "sessions s INDEXED BY sessions_by_parent",
        _ if !own => "sessions s INDEXED BY sessions_of_all_by_activity",
        SessionQuery {
            filter: SessionFilter { project: Some(_), .. } | SessionFilter { projects: Some(_), .. },
            ..
        } => "sessions s INDEXED BY sessions_by_project_activity",
        SessionQuery { filter: SessionFilter { repositories: Some(_), .. }, .. } => {
            "sessions s INDEXED BY sessions_by_repository"
        }
        SessionQuery { filter: SessionFilter { bundle: Some(_), .. }, .. } => {
            "sessions s INDEXED BY sessions_by_bundle"
        }
        _ => "sessions s INDEXED BY sessions_by_activity",
    }
}

/// The index for listing events in order of time. Otherwise, SQLite would sort all events of a user instead of reading
/// only the newest.
fn events_in_order(scope: &Scope, filter: &EventFilter) -> String {
    if filter.sessions.session.is_some() {
        return format!(
            "sessions s CROSS JOIN events e INDEXED BY events_by_session_time {EVENT_OF_SESSION}"
        );
    }
    let index = own_events_index(scope, filter).unwrap_or("events_by_time");
    format!("events e INDEXED BY {index} CROSS JOIN sessions s {EVENT_OF_SESSION}")
}

/// The index on one user's events that fits the filter.
pub(crate) fn own_events_index(scope: &Scope, filter: &EventFilter) -> Option<&'static str> {
    match (scope, filter) {
        (Scope::User(_), EventFilter { tool: Some(_), .. }) => Some("events_by_tool"),
        (Scope::User(_), EventFilter { event_type: Some(_), .. }) => Some("events_by_type"),
        (Scope::User(_), EventFilter { level: Some(level), .. }) if *level != Level::Info => {
            Some("events_by_level")
        }
        _ => None,
    }
}

fn params(values: &[Value]) -> ParamsFromIter<impl Iterator<Item = ToSqlOutput<'_>>> {
    params_from_iter(values.iter().map(|value| match value {
        Value::Text(text) => ToSqlOutput::from(text.as_str()),
        Value::Integer(number) => ToSqlOutput::from(*number),
        Value::Time(ts) => ToSqlOutput::from(ts.to_string()),
    }))
}

/// Longer lines of transcripts are compressed. In sessions of coding agents these are two fifths of the lines and nine
/// tenths of the bytes.
const COMPRESSED_ABOVE: usize = 512;

/// A written value as SQLite stores it.
struct BoundCell<'a>(&'a Cell<'a>);

impl ToSql for BoundCell<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self.0 {
            Cell::Null => ToSqlOutput::from(Null),
            Cell::Text(text) => ToSqlOutput::from(&**text),
            Cell::Integer(number) => ToSqlOutput::from(*number),
            Cell::Flag(flag) => ToSqlOutput::from(*flag),
            Cell::Time(ts) => ToSqlOutput::from(ts.to_string()),
            Cell::Bytes(bytes) => ToSqlOutput::from(*bytes),
            Cell::Line(bytes) => line(bytes),
            Cell::Vector(vector) => ToSqlOutput::from(vector_bytes(vector)),
            Cell::Texts(texts) => ToSqlOutput::from(known_json(texts)),
        })
    }
}

/// A short line is text if it is UTF-8, so that people can read and query it with any SQLite tool. A long one is
/// compressed, unless it is longer than what can be decompressed.
fn line(bytes: &[u8]) -> ToSqlOutput<'_> {
    if (COMPRESSED_ABOVE + 1..=MAX_LINE_BYTES).contains(&bytes.len())
        && let Ok(compressed) = compress(bytes)
        && compressed.len() < bytes.len()
    {
        return ToSqlOutput::from(compressed);
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => ToSqlOutput::from(text),
        Err(_) => ToSqlOutput::from(bytes),
    }
}

#[cfg(test)]
mod tests {
    use amplifier_session_core::ErrorKind;
    use amplifier_session_sql::Query;

    use super::*;

    #[test]
    fn a_row_that_must_exist_is_read_or_missed() {
        let connection = Connection::open_in_memory().unwrap();
        let query = |sql: &'static str| Query::new("count", sql, [], |row| row.integer(0));
        let reader = SqliteReader(&connection);
        assert_eq!(reader.only(&query("SELECT count(*) FROM sqlite_schema")).unwrap(), 0);
        let error = reader.only(&query("SELECT 1 FROM sqlite_schema")).unwrap_err();
        assert_eq!((error.kind(), error.operation()), (ErrorKind::StorageIo, Some("count")));
    }
}
