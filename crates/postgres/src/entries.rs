//! The entries of `schema_meta`.

use amplifier_session_core::Result;
use amplifier_session_sql::Columns as _;
use tokio_postgres::types::Type;

use crate::{
    columns::PgRow,
    connection::{Parameter, PgReader},
    error::OPEN as OPERATION,
};

/// The key of the number of the last migration.
pub(crate) const MIGRATION: &str = "postgres_migration";

pub(crate) fn get(reader: &PgReader<'_>, key: &str) -> Result<Option<String>> {
    let sql = "SELECT value FROM schema_meta WHERE key = $1";
    reader.query(OPERATION, sql, &[(&key, Type::TEXT)])?.first().map(|row| PgRow(row).text(0)).transpose()
}

pub(crate) fn set(reader: &PgReader<'_>, key: &str, value: &str) -> Result<()> {
    let update = "UPDATE schema_meta SET value = $2 WHERE key = $1 RETURNING key";
    let insert = "INSERT INTO schema_meta (key, value) VALUES ($1, $2)";
    let values: [Parameter<'_>; 2] = [(&key, Type::TEXT), (&value, Type::TEXT)];
    if reader.query(OPERATION, update, &values)?.is_empty() {
        reader.query(OPERATION, insert, &values)?;
    }
    Ok(())
}
