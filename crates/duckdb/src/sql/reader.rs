//! Opening a store and running queries.

use std::path::Path;

use amplifier_session_core::{Error, ErrorKind, Result, Scope, blocking};
use duckdb::Connection;
use tokio::sync::mpsc::{Sender, channel};

use super::{
    parquet,
    prepare::Prepared,
    query::{SqlAnswer, SqlQuery, SqlRow},
};
use crate::{Access, DuckDb, DuckDbBackend, error};

/// How many rows are passed on at once.
const BATCH: usize = 512;

/// A DuckDB store, opened read-only for SQL queries. Cheap to clone.
#[derive(Debug, Clone)]
pub struct SqlReader(DuckDbBackend);

impl SqlReader {
    /// Opens the store in the file `path`, which must exist.
    ///
    /// # Errors
    ///
    /// As [`DuckDb::open`]; `Unsupported` if this process has the store open for writing: such a database can read
    /// other files, too.
    pub async fn open(path: impl AsRef<Path>) -> Result<Self> {
        let store = DuckDb::open(path, Access::ReadOnly).await?;
        if store.is_confined() {
            return Ok(Self(store));
        }
        let message = "this process has the store open for writing; SQL queries need it opened read-only";
        Err(Error::new(ErrorKind::Unsupported, message)
            .with_operation("sql")
            .with("file", store.path().display()))
    }

    /// The store.
    #[must_use]
    pub fn backend(&self) -> &DuckDbBackend {
        &self.0
    }

    /// Runs a query. The views of [`READY_VIEWS`](super::READY_VIEWS) are available to it.
    ///
    /// # Errors
    ///
    /// `Validation` (`scope`) if the store has sessions of other users and `scope` is not [`Scope::Everyone`], because
    /// SQL sees the whole store; `Validation` (`query`) if the query is not one statement that only reads, or if DuckDB
    /// rejects it.
    pub async fn query(&self, scope: &Scope, query: &SqlQuery) -> Result<SqlAnswer> {
        let (store, scope, query) = (self.0.clone(), scope.clone(), query.clone());
        let (send_columns, mut columns) = channel(1);
        let (send_rows, rows) = channel(4);
        // Keeps running while the rows are consumed. Sending fails when nobody waits for them any more.
        tokio::task::spawn_blocking(move || {
            let run = store.read_apart(|connection| {
                let prepared = Prepared::new(connection, &scope, &query)?;
                let (sql, width) = (prepared.as_text(query.form), prepared.columns.len());
                let _ = send_columns.blocking_send(Ok(prepared.columns));
                if let Err(error) = read_rows(connection, &sql, width, &send_rows) {
                    let _ = send_rows.blocking_send(Err(error));
                }
                Ok(())
            });
            if let Err(error) = run {
                let _ = send_columns.blocking_send(Err(error));
            }
            // The store is closed before the result ends, so that a caller that has read all rows can open it again.
            drop(store);
            drop(send_rows);
        });
        let lost = || Error::new(ErrorKind::StorageIo, "the query was abandoned").with_operation("sql");
        let columns = columns.recv().await.ok_or_else(lost)??;
        Ok(SqlAnswer { columns, rows })
    }

    /// Writes the result of a query to `file` as Parquet, readable only by its owner. Keeps the types of the columns.
    /// Returns the number of rows.
    ///
    /// # Errors
    ///
    /// As [`Self::query`]; `StorageIo` if the file cannot be written.
    pub async fn query_to_parquet(&self, scope: &Scope, query: &SqlQuery, file: &Path) -> Result<u64> {
        let (store, scope, query, file) = (self.0.clone(), scope.clone(), query.clone(), file.to_owned());
        let write = move || {
            // Another process may have removed the folder when it closed the store.
            let allowed = store.make_spill_folder()?;
            store.read_apart(|connection| {
                let prepared = Prepared::new(connection, &scope, &query)?;
                parquet::write(connection, &prepared, &allowed, &file)
            })
        };
        blocking(write).await?
    }
}

/// Runs a statement and sends its rows, each with `width` columns, as long as they are read.
fn read_rows(
    connection: &Connection,
    sql: &str,
    width: usize,
    rows: &Sender<Result<Vec<SqlRow>>>,
) -> Result<()> {
    let mut statement = connection.prepare(sql).map_err(error::query)?;
    let mut found = statement.query([]).map_err(error::query)?;
    let mut batch = Vec::new();
    while let Some(row) = found.next().map_err(error::query)? {
        let cells = (0..width).map(|at| row.get::<_, Option<String>>(at));
        batch.push(cells.collect::<duckdb::Result<SqlRow>>().map_err(error::query)?);
        if batch.len() == BATCH && rows.blocking_send(Ok(std::mem::take(&mut batch))).is_err() {
            return Ok(());
        }
    }
    if !batch.is_empty() {
        let _ = rows.blocking_send(Ok(batch));
    }
    Ok(())
}
