//! The encoding of the database.

use amplifier_session_core::{Error, ErrorKind, Result};
use amplifier_session_sql::Columns as _;

use crate::{columns::PgRow, connection::PgReader, error::OPEN as OPERATION};

/// The only encoding that has every character.
const UTF8: &str = "UTF8";

/// Fails if the database can't hold every text, so that no store is created in it.
pub(crate) fn check(reader: &PgReader<'_>) -> Result<()> {
    let Some((encoding, database)) = other(reader)? else { return Ok(()) };
    let message = format!(
        "the database {database} has the encoding {encoding}, which does not have every character; a store needs {UTF8}"
    );
    Err(Error::new(ErrorKind::StorageConnection, message)
        .with_operation(OPERATION)
        .with_hint("create another database: CREATE DATABASE sessions ENCODING 'UTF8' TEMPLATE template0"))
}

/// Warns about a store in a database that can't hold every text: an earlier version may have created it.
pub(crate) fn warn(reader: &PgReader<'_>) -> Result<()> {
    if let Some((encoding, database)) = other(reader)? {
        tracing::warn!(
            encoding,
            database,
            "sessions with characters that the encoding of the database does not have can't be stored"
        );
    }
    Ok(())
}

/// The encoding, unless it is UTF-8, and the name of the database.
fn other(reader: &PgReader<'_>) -> Result<Option<(String, String)>> {
    let sql = "SELECT current_setting('server_encoding'), current_database()::text";
    let row = reader.query(OPERATION, sql, &[])?;
    let found = row.first().map(|row| Ok((PgRow(row).text(0)?, PgRow(row).text(1)?))).transpose()?;
    Ok(found.filter(|(encoding, _): &(String, String)| encoding != UTF8))
}
