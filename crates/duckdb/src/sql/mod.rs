//! Questions in SQL.
//!
//! They are asked of a database that was opened for reading only. Such a one reaches no file but its own, loads nothing, and
//! has its settings locked: see `connect.rs`. What is asked must be one `SELECT`, or what DuckDB takes for one (`FROM`,
//! `WITH`, `VALUES`, `DESCRIBE`, `SHOW`, `SUMMARIZE`): its own parser decides.

mod shown;
mod statement;
mod views;

use std::{fs, path::Path};

use amplifier_session_core::{Error, ErrorKind, Result, Scope};
use duckdb::Connection;
use tokio::sync::mpsc::{Receiver, Sender, channel};

use crate::{
    connect,
    error::{question, storage},
    payloads, quote,
};

use statement::Statement;

pub use shown::SqlForm;
pub use views::{READY_VIEWS, ReadyView};

/// How many rows are handed over together.
const BATCH: usize = 512;

/// A question.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SqlQuery {
    /// The statement.
    pub sql: String,
    /// How values are written.
    pub form: SqlForm,
    /// The most rows. Default: all.
    pub limit: Option<usize>,
}

impl SqlQuery {
    /// A question in SQL.
    #[must_use]
    pub fn new(sql: impl Into<String>) -> Self {
        Self { sql: sql.into(), ..Self::default() }
    }

    /// Sets how values are written.
    #[must_use]
    pub fn with_form(mut self, form: SqlForm) -> Self {
        self.form = form;
        self
    }

    /// Sets the most rows.
    #[must_use]
    pub fn with_limit(mut self, limit: Option<usize>) -> Self {
        self.limit = limit;
        self
    }
}

/// A column of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SqlColumn {
    /// Its name.
    pub name: String,
    /// Its type, as DuckDB names it.
    pub sql_type: String,
    /// Whether its values are numbers.
    pub is_number: bool,
}

/// A row of an answer: what stands in each column, `None` for `NULL`.
pub type SqlRow = Vec<Option<String>>;

/// The answer to a question. Its rows are read while it is read from.
#[derive(Debug)]
pub struct SqlAnswer {
    columns: Vec<SqlColumn>,
    rows: Receiver<Result<Vec<SqlRow>>>,
}

impl SqlAnswer {
    /// The columns, in order.
    #[must_use]
    pub fn columns(&self) -> &[SqlColumn] {
        &self.columns
    }

    /// The next rows; `None` behind the last.
    ///
    /// # Errors
    ///
    /// `Validation` (`query`) when a value can't be computed.
    pub async fn next_rows(&mut self) -> Result<Option<Vec<SqlRow>>> {
        self.rows.recv().await.transpose()
    }
}

/// What is told to whom waits for an answer, before its rows.
pub(crate) struct Asking {
    columns: Sender<Result<Vec<SqlColumn>>>,
    rows: Sender<Result<Vec<SqlRow>>>,
}

impl Asking {
    /// Tells that the question can't be asked.
    pub(crate) fn fail(&self, error: Error) {
        // Who does not wait any more need not know.
        let _ = self.columns.blocking_send(Err(error));
    }
}

/// What becomes the answer.
pub(crate) struct Awaiting {
    columns: Receiver<Result<Vec<SqlColumn>>>,
    rows: Receiver<Result<Vec<SqlRow>>>,
}

impl Awaiting {
    /// Waits until the question is known to be one.
    pub(crate) async fn answer(mut self) -> Result<SqlAnswer> {
        let lost = || Error::new(ErrorKind::StorageIo, "the question was given up").with_operation("sql");
        let columns = self.columns.recv().await.ok_or_else(lost)??;
        Ok(SqlAnswer { columns, rows: self.rows })
    }
}

/// The two ends of an answer.
pub(crate) fn asking() -> (Asking, Awaiting) {
    let (tell_columns, columns) = channel(1);
    let (tell_rows, rows) = channel(4);
    (Asking { columns: tell_columns, rows: tell_rows }, Awaiting { columns, rows })
}

/// Answers a question on a connection that may only read.
pub(crate) fn answer(connection: &Connection, scope: &Scope, query: &SqlQuery, asking: &Asking) {
    let Prepared { statement, columns } = match prepare(connection, scope, &query.sql) {
        Ok(prepared) => prepared,
        Err(error) => return asking.fail(error),
    };
    let expression = |column: &str, of: &SqlColumn| shown::expression(column, &of.sql_type, query.form);
    let sql = selected(&statement, &columns, query.limit, expression);
    let width = columns.len();
    let _ = asking.columns.blocking_send(Ok(columns));
    if let Err(error) = read(connection, &sql, width, &asking.rows) {
        let _ = asking.rows.blocking_send(Err(error));
    }
}

/// Writes the answer to a question to `file`, as Parquet; returns how many rows there are. The types of columns are kept.
///
/// Of the store in the file `store` DuckDB may write in one folder alone: the answer is made there, and moved.
pub(crate) fn write_parquet(
    connection: &Connection,
    scope: &Scope,
    query: &SqlQuery,
    store: &Path,
    file: &Path,
) -> Result<u64> {
    let failed = |source: std::io::Error| {
        Error::new(ErrorKind::StorageIo, format!("can't write the file: {source}"))
            .with_operation("sql")
            .with("file", file.display())
            .with_source(source)
    };
    let Prepared { statement, columns } = prepare(connection, scope, &query.sql)?;
    let named = |column: &str, of: &SqlColumn| format!("{column} AS {}", quote::name(&of.name));
    let sql = selected(&statement, &columns, query.limit, named);
    // Another process that reads may have removed the folder when it was done.
    let workshop = connect::make_spill_folder(store).map_err(failed)?;
    // As DuckDB was told the folder.
    let workshop = std::path::absolute(workshop).map_err(failed)?;
    let made = tempfile::tempdir_in(workshop).map_err(failed)?;
    let fresh = made.path().join("answer.parquet");
    let to = quote::text(&fresh.to_string_lossy());
    let copy = format!("COPY ({sql}) TO {to} (FORMAT parquet, COMPRESSION zstd)");
    let rows = connection.execute(&copy, []).map_err(question)?;
    connect::own(&fresh).map_err(failed)?;
    // What a link leads to is replaced, not the link.
    let file = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    // To another file system it can't be moved, and must be whole before it takes the place of another.
    if fs::rename(&fresh, &file).is_err() {
        let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
        let beside = tempfile::NamedTempFile::new_in(folder.unwrap_or(Path::new("."))).map_err(failed)?;
        fs::copy(&fresh, beside.path()).map_err(failed)?;
        beside.persist(&file).map_err(|error| failed(error.error))?;
    }
    Ok(rows as u64)
}

/// A question that may be asked.
struct Prepared {
    statement: Statement,
    columns: Vec<SqlColumn>,
}

/// Checks that the question may be asked, makes the views, and tells what columns the answer has.
fn prepare(connection: &Connection, scope: &Scope, sql: &str) -> Result<Prepared> {
    check_scope(connection, scope)?;
    let statement = Statement::parse(connection, sql)?;
    payloads::show(connection)?;
    for view in READY_VIEWS {
        connection.execute_batch(&view.create()).map_err(storage("sql"))?;
    }
    // As it was typed, so that an error points to the right place.
    connection.prepare(sql).map_err(question)?;
    let describe = format!("DESCRIBE FROM {}", statement.nested());
    let mut describe = connection.prepare(&describe).map_err(question)?;
    let column = |row: &duckdb::Row<'_>| {
        let (name, sql_type): (String, String) = (row.get(0)?, row.get(1)?);
        Ok(SqlColumn { is_number: shown::is_number(&sql_type), name, sql_type })
    };
    let columns = describe.query_map([], column).and_then(Iterator::collect).map_err(question)?;
    Ok(Prepared { statement, columns })
}

/// SQL sees the whole file, so that it must be the asking person's alone, or everybody's must have been asked for.
fn check_scope(connection: &Connection, scope: &Scope) -> Result<()> {
    let user = match scope {
        Scope::User(user) => user,
        Scope::Visible(viewer) => &viewer.user_id,
        _ => return Ok(()),
    };
    let others = "SELECT count(DISTINCT user_id) FROM sessions WHERE user_id <> ?1";
    let others: i64 =
        connection.query_row(others, [user.as_str()], |row| row.get(0)).map_err(storage("sql"))?;
    if others == 0 {
        return Ok(());
    }
    let whom = if others == 1 { "another user".to_owned() } else { format!("{others} other users") };
    let message = format!("SQL sees the whole store, which holds sessions of {whom}");
    Err(Error::validation("scope", message))
}

/// `SELECT` with an expression for each column of the question.
fn selected(
    statement: &Statement,
    columns: &[SqlColumn],
    limit: Option<usize>,
    expression: impl Fn(&str, &SqlColumn) -> String,
) -> String {
    // By number: several columns may go by one name.
    let names: Vec<String> = (0..columns.len()).map(|at| format!("c{at}")).collect();
    let expressions: Vec<String> =
        names.iter().zip(columns).map(|(name, column)| expression(name, column)).collect();
    let limit = limit.map_or_else(String::new, |limit| format!(" LIMIT {limit}"));
    let (expressions, names) = (expressions.join(", "), names.join(", "));
    format!("SELECT {expressions} FROM {} AS question({names}){limit}", statement.nested())
}

fn read(connection: &Connection, sql: &str, width: usize, rows: &Sender<Result<Vec<SqlRow>>>) -> Result<()> {
    let mut statement = connection.prepare(sql).map_err(question)?;
    let mut found = statement.query([]).map_err(question)?;
    let mut batch = Vec::new();
    while let Some(row) = found.next().map_err(question)? {
        let cells = (0..width).map(|at| row.get::<_, Option<String>>(at));
        batch.push(cells.collect::<duckdb::Result<SqlRow>>().map_err(question)?);
        if batch.len() == BATCH && rows.blocking_send(Ok(std::mem::take(&mut batch))).is_err() {
            // Nobody waits for the rest.
            return Ok(());
        }
    }
    if !batch.is_empty() {
        let _ = rows.blocking_send(Ok(batch));
    }
    Ok(())
}
