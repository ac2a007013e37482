//! Reads the database in an old file.

use std::fmt::Debug;

use amplifier_session_core::{Result, model::Timestamp};
use amplifier_session_sql::python::DatabaseTables;

/// A database that was opened for reading.
pub(crate) trait OldDatabase: Debug {
    /// Its tables.
    fn tables(&self) -> Result<DatabaseTables>;

    /// Calls `each` with each row that a statement returns.
    fn read(&self, sql: &str, each: &mut dyn FnMut(Vec<OldCell>) -> Result<()>) -> Result<()>;
}

/// A value in a row.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(not(feature = "duckdb"), allow(dead_code, reason = "SQLite has no values of some types"))]
pub(crate) enum OldCell {
    Null,
    /// A whole number, or a boolean as 1 or 0.
    Integer(i64),
    Real(f64),
    /// A text, also JSON.
    Text(String),
    /// A point in time; one without a time zone is in UTC.
    Time(Timestamp),
    Vector(Vec<f32>),
}
