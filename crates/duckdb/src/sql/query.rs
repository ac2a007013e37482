//! A query, and its result as a stream of rows.

use amplifier_session_core::Result;
use tokio::sync::mpsc::Receiver;

use super::format::SqlForm;

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
    pub(crate) columns: Vec<SqlColumn>,
    /// Sent by the thread that runs the query.
    pub(crate) rows: Receiver<Result<Vec<SqlRow>>>,
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
