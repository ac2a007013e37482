//! A read as data, and what runs it.

use std::ops::ControlFlow;

use amplifier_session_core::Result;

use crate::{Columns, Conditions, Dialect, Value};

/// A statement that reads, with its values and what becomes of its rows.
#[derive(Debug, Clone)]
pub struct Query<T> {
    /// What is being done, for errors.
    pub operation: &'static str,
    /// The statement. `?1` stands for the first value.
    pub sql: String,
    /// The values that are bound.
    pub values: Vec<Value>,
    /// Makes a value of the model from a row.
    pub decode: fn(&dyn Columns) -> Result<T>,
}

impl<T> Query<T> {
    /// A query with these values.
    pub fn new(
        operation: &'static str,
        sql: impl Into<String>,
        values: impl IntoIterator<Item = Value>,
        decode: fn(&dyn Columns) -> Result<T>,
    ) -> Self {
        Self { operation, sql: sql.into(), values: values.into_iter().collect(), decode }
    }

    /// A query with the values of `conditions`.
    pub fn with_conditions(
        operation: &'static str,
        sql: String,
        conditions: Conditions,
        decode: fn(&dyn Columns) -> Result<T>,
    ) -> Self {
        Self { operation, sql, values: conditions.into_values(), decode }
    }
}

/// A connection of an embedded database. Every call blocks.
pub trait Reader {
    /// What the database says differently.
    const DIALECT: Dialect;

    /// Gives each row of the answer to `each`, until that breaks off.
    ///
    /// # Errors
    ///
    /// Those of the database, and of a row that cannot be decoded.
    fn each<T>(&self, query: &Query<T>, each: impl FnMut(T) -> ControlFlow<()>) -> Result<()>;

    /// All rows of the answer.
    ///
    /// # Errors
    ///
    /// As [`Reader::each`].
    fn rows<T>(&self, query: &Query<T>) -> Result<Vec<T>> {
        let mut rows = Vec::new();
        self.each(query, |row| {
            rows.push(row);
            ControlFlow::Continue(())
        })?;
        Ok(rows)
    }

    /// The first row of the answer, if there is one.
    ///
    /// # Errors
    ///
    /// As [`Reader::each`].
    fn first<T>(&self, query: &Query<T>) -> Result<Option<T>> {
        let mut first = None;
        self.each(query, |row| {
            first = Some(row);
            ControlFlow::Break(())
        })?;
        Ok(first)
    }
}
