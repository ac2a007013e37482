//! Statements as data, and the trait of connections that run them.

use std::{borrow::Cow, ops::ControlFlow};

use amplifier_session_core::{Error, ErrorKind, Result};

use crate::{Columns, Conditions, Dialect, Value};

/// A statement with its values.
#[derive(Debug, Clone)]
pub struct Statement {
    /// The operation, for errors.
    pub operation: &'static str,
    /// The SQL. `?1` stands for the first value.
    pub sql: Cow<'static, str>,
    /// The values that are bound.
    pub values: Vec<Value>,
    /// Whether the text is used again, so that it is worthwhile to keep the statement prepared.
    pub keep_prepared: bool,
}

impl Statement {
    /// A statement whose text is used again.
    pub fn new(
        operation: &'static str,
        sql: impl Into<Cow<'static, str>>,
        values: impl IntoIterator<Item = Value>,
    ) -> Self {
        Self { operation, sql: sql.into(), values: values.into_iter().collect(), keep_prepared: true }
    }

    /// A statement whose text is unlikely to be used again, because it contains keys or sequences.
    pub fn once(
        operation: &'static str,
        sql: impl Into<Cow<'static, str>>,
        values: impl IntoIterator<Item = Value>,
    ) -> Self {
        Self { keep_prepared: false, ..Self::new(operation, sql, values) }
    }
}

/// A statement that reads, and how its rows are decoded.
#[derive(Debug, Clone)]
pub struct Query<T> {
    /// The statement.
    pub statement: Statement,
    /// Decodes a row.
    pub decode: fn(&dyn Columns) -> Result<T>,
}

impl<T> Query<T> {
    /// A query with these values.
    pub fn new(
        operation: &'static str,
        sql: impl Into<Cow<'static, str>>,
        values: impl IntoIterator<Item = Value>,
        decode: fn(&dyn Columns) -> Result<T>,
    ) -> Self {
        Self { statement: Statement::new(operation, sql, values), decode }
    }

    /// A query with the values of `conditions`.
    pub fn with_conditions(
        operation: &'static str,
        sql: String,
        conditions: Conditions,
        decode: fn(&dyn Columns) -> Result<T>,
    ) -> Self {
        Self::new(operation, sql, conditions.into_values(), decode)
    }

    /// The same query, not kept prepared: see [`Statement::once`].
    #[must_use]
    pub fn once(mut self) -> Self {
        self.statement.keep_prepared = false;
        self
    }
}

/// A connection to a SQL database. Every call blocks, and fails with the errors of the database and of a row that cannot
/// be decoded.
pub trait Reader {
    /// The dialect of the database.
    const DIALECT: Dialect;

    /// Calls `each` with each row of the result, until it breaks or fails.
    fn each_row(
        &self,
        statement: &Statement,
        each: &mut dyn FnMut(&dyn Columns) -> Result<ControlFlow<()>>,
    ) -> Result<()>;

    /// Calls `each` with each decoded row of the result, until it breaks.
    fn each<T>(&self, query: &Query<T>, mut each: impl FnMut(T) -> ControlFlow<()>) -> Result<()> {
        self.each_row(&query.statement, &mut |row| Ok(each((query.decode)(row)?)))
    }

    /// All rows of the result.
    fn rows<T>(&self, query: &Query<T>) -> Result<Vec<T>> {
        let mut rows = Vec::new();
        self.each(query, |row| {
            rows.push(row);
            ControlFlow::Continue(())
        })?;
        Ok(rows)
    }

    /// The first row of the result, if there is one.
    fn first<T>(&self, query: &Query<T>) -> Result<Option<T>> {
        let mut first = None;
        self.each(query, |row| {
            first = Some(row);
            ControlFlow::Break(())
        })?;
        Ok(first)
    }

    /// The row of a query that always has one, such as a count.
    fn only<T>(&self, query: &Query<T>) -> Result<T> {
        let missing = || {
            Error::new(ErrorKind::StorageIo, "the database answered without a row")
                .with_operation(query.statement.operation)
        };
        self.first(query)?.ok_or_else(missing)
    }
}
