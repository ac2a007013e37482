//! A query, and its result as a stream of rows.

use amplifier_session_core::{Error, ErrorKind, Result};
use tokio::sync::mpsc::{Receiver, Sender, channel};

use crate::format::SqlForm;

/// A query.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SqlQuery {
    /// The statement.
    pub sql: String,
    /// How values are written.
    pub form: SqlForm,
    /// The maximum number of rows. Default: no limit.
    pub limit: Option<usize>,
}

impl SqlQuery {
    /// A query with the default options.
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

    /// Sets the maximum number of rows.
    #[must_use]
    pub fn with_limit(mut self, limit: Option<usize>) -> Self {
        self.limit = limit;
        self
    }
}

/// A column of a result.
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

/// A row of a result: the value of each column as text, `None` for `NULL`.
pub type SqlRow = Vec<Option<String>>;

/// The result of a query. Rows are read from the store as they are consumed.
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

    /// The next rows; `None` after the last.
    ///
    /// # Errors
    ///
    /// `Validation` (`query`) when a value cannot be computed.
    pub async fn next_rows(&mut self) -> Result<Option<Vec<SqlRow>>> {
        self.rows.recv().await.transpose()
    }
}

/// Receives the result of a query as it is computed, on the thread that runs it.
pub(crate) struct ResultSender {
    columns: Sender<Result<Vec<SqlColumn>>>,
    rows: Sender<Result<Vec<SqlRow>>>,
}

impl ResultSender {
    /// Reports that the query cannot be run.
    pub(crate) fn fail(&self, error: Error) {
        // Nobody is waiting any more if this fails.
        let _ = self.columns.blocking_send(Err(error));
    }

    /// Announces the columns. They come before any row.
    pub(crate) fn columns(&self, columns: Vec<SqlColumn>) {
        let _ = self.columns.blocking_send(Ok(columns));
    }

    /// Passes rows on, or the error that ends them. Returns whether anybody still reads them.
    pub(crate) fn rows(&self, rows: Result<Vec<SqlRow>>) -> bool {
        self.rows.blocking_send(rows).is_ok()
    }
}

/// Waits for the result of a query.
pub(crate) struct PendingAnswer {
    columns: Receiver<Result<Vec<SqlColumn>>>,
    rows: Receiver<Result<Vec<SqlRow>>>,
}

impl PendingAnswer {
    /// Waits until the columns are known.
    pub(crate) async fn answer(mut self) -> Result<SqlAnswer> {
        let lost = || Error::new(ErrorKind::StorageIo, "the query was abandoned").with_operation("sql");
        let columns = self.columns.recv().await.ok_or_else(lost)??;
        Ok(SqlAnswer { columns, rows: self.rows })
    }
}

/// The two ends of a result.
pub(crate) fn result_channel() -> (ResultSender, PendingAnswer) {
    let (columns, received_columns) = channel(1);
    let (rows, received_rows) = channel(4);
    (ResultSender { columns, rows }, PendingAnswer { columns: received_columns, rows: received_rows })
}
