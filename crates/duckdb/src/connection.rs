//! Connections as `amplifier-session-sql` uses them, and DuckDB's dialect.

use std::ops::ControlFlow;

use amplifier_session_core::{
    Result,
    model::{EmbeddingSpace, Timestamp},
};
use amplifier_session_sql::{
    Batch, Cell, Columns, Dialect, Reader, Statement, Table, Value, WordSearch,
    backend::{NewVector, VectorTarget, Writer},
    read::changes::BY_REVISION,
    rows::{EVENT_OF_SESSION, EVENT_TEXT, SESSION_TEXT},
};
use duckdb::{
    Appender, Connection, ParamsFromIter, ToSql, appender_params_from_iter, params_from_iter,
    types::{self, Null, TimeUnit, ToSqlOutput, ValueRef},
};

use crate::{columns::Cursor, error::storage, numbers::Numbers, vectors};

/// A read connection.
#[derive(Debug)]
pub struct DuckDbReader<'a> {
    pub(crate) connection: &'a Connection,
}

impl Reader for DuckDbReader<'_> {
    const DIALECT: Dialect = DUCKDB;

    fn each_row(
        &self,
        statement: &Statement,
        each: &mut dyn FnMut(&dyn Columns) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        let failed = storage(statement.operation);
        prepared(self.connection, statement, |prepared| {
            let mut found = prepared.query(params(&statement.values)).map_err(&failed)?;
            while let Some(row) = found.next().map_err(&failed)? {
                if each(&Cursor(row))?.is_break() {
                    break;
                }
            }
            Ok(())
        })
    }
}

/// A write transaction.
///
/// Rows are inserted by appenders, which buffer them until there are many or the transaction ends. Inserting a row
/// takes DuckDB a millisecond with a statement, but only some microseconds with an appender.
#[derive(Debug)]
pub struct DuckDbWriter<'a> {
    connection: &'a Connection,
    numbers: &'a mut Numbers,
    appenders: Vec<(&'static str, Appender<'a>)>,
}

impl<'a> DuckDbWriter<'a> {
    /// Uses a connection with an open transaction. [`Self::flush`] must be called before it ends.
    pub(crate) fn new(connection: &'a Connection, numbers: &'a mut Numbers) -> Self {
        Self { connection, numbers, appenders: Vec::new() }
    }

    /// Writes the buffered rows.
    pub(crate) fn flush(&mut self, operation: &'static str) -> Result<()> {
        let mut appenders = self.appenders.iter_mut();
        appenders.try_for_each(|(_, appender)| appender.flush()).map_err(storage(operation))
    }

    fn appender(&mut self, table: &'static str) -> duckdb::Result<&mut Appender<'a>> {
        let at = match self.appenders.iter().position(|(name, _)| *name == table) {
            Some(at) => at,
            None => {
                self.appenders.push((table, self.connection.appender(table)?));
                self.appenders.len() - 1
            }
        };
        Ok(&mut self.appenders[at].1)
    }

    /// Inserts with a statement: a list cannot be appended, and is bound element by element.
    fn insert_with_lists(&self, table: &Table, row: &[Cell<'_>]) -> duckdb::Result<()> {
        let placeholders: Vec<String> = row.iter().map(placeholder).collect();
        let insert = table.insert(&placeholders.join(", "));
        let values = row.iter().flat_map(|cell| match cell {
            Cell::Texts(texts) => texts.iter().map(|text| Bound(Cell::text(text))).collect(),
            other => vec![Bound(other.clone())],
        });
        self.connection.prepare_cached(&insert)?.execute(params_from_iter(values)).map(drop)
    }
}

fn placeholder(cell: &Cell<'_>) -> String {
    match cell {
        Cell::Texts(texts) => format!("CAST([{}] AS VARCHAR[])", vec!["?"; texts.len()].join(", ")),
        _ => "?".to_owned(),
    }
}

impl Reader for DuckDbWriter<'_> {
    const DIALECT: Dialect = DUCKDB;

    fn each_row(
        &self,
        statement: &Statement,
        each: &mut dyn FnMut(&dyn Columns) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        DuckDbReader { connection: self.connection }.each_row(statement, each)
    }
}

impl Writer for DuckDbWriter<'_> {
    fn execute(&self, statement: &Statement) -> Result<usize> {
        prepared(self.connection, statement, |prepared| {
            prepared.execute(params(&statement.values)).map_err(storage(statement.operation))
        })
    }

    fn next_revision(&mut self) -> Result<i64> {
        let revision = self.numbers.next_revision();
        let sql = "INSERT INTO revisions VALUES (?1, CAST(random() * 9007199254740992 AS BIGINT))";
        self.execute(&Statement::new("write", sql, [revision.into()]))?;
        Ok(revision)
    }

    fn new_session_key(&mut self) -> Option<i64> {
        Some(self.numbers.next_key())
    }

    fn message_key(session: Option<i64>, sequence: u32) -> Option<i64> {
        session.map(|session| message_key(session, sequence))
    }

    fn insert(&mut self, table: &Table, row: &[Cell<'_>]) -> Result<()> {
        let inserted = if row.iter().any(|cell| matches!(cell, Cell::Texts(_))) {
            self.insert_with_lists(table, row)
        } else {
            self.appender(table.name).and_then(|appender| {
                appender.append_row(appender_params_from_iter(row.iter().cloned().map(Bound)))
            })
        };
        inserted.map_err(storage("write"))
    }

    fn turn_key(&mut self) -> Option<i64> {
        Some(self.numbers.next_key())
    }

    fn insert_vectors(&mut self, target: &VectorTarget<'_>, new: &[NewVector<'_>]) -> Result<()> {
        vectors::append(self.connection, self.numbers, target, new).map_err(storage("write_vectors"))
    }

    fn prepare_for(&self, space: &EmbeddingSpace) -> Result<()> {
        vectors::prepare_for(self.connection, space).map_err(storage("write_vectors"))
    }

    fn make_current(&self, generation: u32, space: &EmbeddingSpace) -> Result<()> {
        let made = vectors::make_current(self.connection, generation, space);
        made.map_err(storage("complete_generation"))
    }
}

/// The key of a message, which contains its position in the session, because DuckDB finds rows fast only by a single
/// column.
pub(crate) fn message_key(session: i64, sequence: u32) -> i64 {
    (session << u32::BITS) | i64::from(sequence)
}

fn prepared<T>(
    connection: &Connection,
    statement: &Statement,
    run: impl FnOnce(&mut duckdb::Statement<'_>) -> Result<T>,
) -> Result<T> {
    let failed = storage(statement.operation);
    if statement.keep_prepared {
        run(&mut *connection.prepare_cached(&statement.sql).map_err(failed)?)
    } else {
        run(&mut connection.prepare(&statement.sql).map_err(failed)?)
    }
}

/// Whether `text` contains `part`, which is in lower case, or has non-ASCII letters. Dashes, quotation marks and
/// `…` do not count: long titles end with `…`.
fn may_contain(text: &str, part: &str) -> String {
    let other = r"[^\x00-\x7F\x{2010}-\x{2027}]";
    format!("(contains(lower({text}), {part}) OR regexp_matches({text}, '{other}'))")
}

/// Lists are stored as lists. Rows that may have words are checked by this program, because a SQL function would
/// require unsafe code.
pub(crate) const DUCKDB: Dialect = Dialect {
    list_holds: |list, value| format!("list_contains({list}, {value})"),
    session_words: WordSearch::Parts(|part| may_contain(SESSION_TEXT, part)),
    event_words: WordSearch::Parts(|part| may_contain(EVENT_TEXT, part)),
    quarter_hour: |time| format!("time_bucket(INTERVAL 15 MINUTE, {time})"),
    list_from: |_| "sessions s",
    changes: BY_REVISION,
    messages_of_sessions: "sessions s JOIN transcripts t ON t.user_id = s.user_id AND t.session_id = s.session_id",
    events_in_order: |_, _| format!("events e JOIN sessions s {EVENT_OF_SESSION}"),
    beside_sessions: |table| {
        format!("sessions s JOIN {table} t ON t.user_id = s.user_id AND t.session_id = s.session_id")
    },
    all_vectors: "vectors_of_generations",
    vector_tables: &vectors::TABLES,
    update: "UPDATE",
    time: |ts| format!("make_timestamp({}::BIGINT)", ts.as_micros()),
    // DuckDB holds a whole result in memory. Each query scans whole tables, so few queries are better.
    batch: Some(Batch { rows: 4096, bytes: 16 << 20 }),
    records_removed_vectors: true,
    removed_of_users: false,
    own_tables: &[],
    session_keys: &[],
};

fn params(values: &[Value]) -> ParamsFromIter<impl Iterator<Item = ToSqlOutput<'_>>> {
    params_from_iter(values.iter().map(|value| match value {
        Value::Text(text) => ToSqlOutput::from(text.as_str()),
        Value::Integer(number) => ToSqlOutput::from(*number),
        Value::Time(ts) => time(*ts),
    }))
}

/// A time as it is stored.
fn time(ts: Timestamp) -> ToSqlOutput<'static> {
    ToSqlOutput::Owned(types::Value::Timestamp(TimeUnit::Microsecond, ts.as_micros()))
}

/// A written value as DuckDB stores it.
struct Bound<'a>(Cell<'a>);

impl ToSql for Bound<'_> {
    fn to_sql(&self) -> duckdb::Result<ToSqlOutput<'_>> {
        Ok(match &self.0 {
            Cell::Null => ToSqlOutput::from(Null),
            Cell::Text(text) => ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())),
            Cell::Integer(number) => ToSqlOutput::from(*number),
            Cell::Flag(flag) => ToSqlOutput::from(*flag),
            Cell::Time(ts) => time(*ts),
            Cell::Bytes(bytes) | Cell::Line(bytes) => ToSqlOutput::Borrowed(ValueRef::Blob(bytes)),
            Cell::Vector(vector) => {
                ToSqlOutput::from(vector.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>())
            }
            // Bound element by element.
            Cell::Texts(_) => ToSqlOutput::from(Null),
        })
    }
}
