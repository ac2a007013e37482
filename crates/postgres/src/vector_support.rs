//! Whether the database can compare vectors: the extension pgvector.

use amplifier_session_core::Result;
use amplifier_session_sql::Columns as _;
use tokio_postgres::types::Type;

use crate::{columns::PgRow, connection::PgReader, error::OPEN as OPERATION};

/// The abilities of the database's extension pgvector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VectorSupport {
    /// There is a column with copies as 16-bit floats, which the database compares.
    Copies,
    /// The database cannot compare vectors, for this reason.
    Unavailable(String),
}

/// The oldest version with the required features, and the oldest one without a known bug that damages an index.
const NEEDED: [u32; 3] = [0, 8, 0];
const ADVISED: [u32; 3] = [0, 8, 4];

/// `MAIN` keeps the copies in their rows as long as these fit into a page: comparing copies that are stored elsewhere
/// takes three to four times as long, with 1,536 and 3,072 dimensions.
fn add_column(table: &str) -> String {
    format!(
        "ALTER TABLE {table}
         ADD COLUMN IF NOT EXISTS half halfvec GENERATED ALWAYS AS (vector::halfvec) STORED,
         ALTER COLUMN half SET STORAGE MAIN"
    )
}

/// The tables of vectors: of texts, and of turns.
const TABLES: [&str; 2] = ["transcript_vectors", "message_embeddings"];

impl VectorSupport {
    pub(crate) fn has_copies(&self) -> bool {
        *self == Self::Copies
    }

    /// Why searches by meaning are slow, if they are.
    pub(crate) fn notice(&self) -> Option<String> {
        match self {
            Self::Copies => None,
            Self::Unavailable(reason) => Some(format!("vectors are compared one by one: {reason}")),
        }
    }

    /// Creates the extension and the column, if possible. A transaction must be open, and no other one may do the same.
    pub(crate) fn prepare(reader: &PgReader<'_>) -> Result<Self> {
        if version(reader, "SELECT extversion FROM pg_extension WHERE extname = 'vector'")?.is_none() {
            let available = "SELECT default_version FROM pg_available_extensions WHERE name = 'vector'";
            if version(reader, available)?.is_none() {
                let reason = "the server has no pgvector; install it, then run CREATE EXTENSION vector";
                return Ok(Self::Unavailable(reason.to_owned()));
            }
            reader.batch(OPERATION, "SAVEPOINT extension")?;
            if reader.batch(OPERATION, "CREATE EXTENSION vector SCHEMA public").is_err() {
                reader.batch(OPERATION, "ROLLBACK TO SAVEPOINT extension")?;
                let reason =
                    "this role may not create the extension; as a superuser, run CREATE EXTENSION vector";
                return Ok(Self::Unavailable(reason.to_owned()));
            }
        }
        if let Some(reason) = too_old(reader)? {
            return Ok(Self::Unavailable(reason));
        }
        if !Self::has_column(reader)? {
            TABLES.into_iter().try_for_each(|table| reader.batch(OPERATION, &add_column(table)))?;
        }
        Ok(Self::Copies)
    }

    /// The support that exists, if nothing needs to be prepared.
    pub(crate) fn ready(reader: &PgReader<'_>) -> Result<Option<Self>> {
        if !Self::has_column(reader)? {
            return Ok(None);
        }
        Ok(Some(too_old(reader)?.map_or(Self::Copies, Self::Unavailable)))
    }

    /// The support that exists, for a store that cannot be written.
    pub(crate) fn found(reader: &PgReader<'_>) -> Result<Self> {
        Ok(if Self::has_column(reader)? {
            Self::Copies
        } else {
            Self::Unavailable("the store was never opened for writing on a server with pgvector".to_owned())
        })
    }

    fn has_column(reader: &PgReader<'_>) -> Result<bool> {
        let [texts, turns] = TABLES;
        let sql = format!(
            "SELECT 1 FROM pg_attribute
             WHERE attrelid IN ('{texts}'::regclass, '{turns}'::regclass) AND attname = $1"
        );
        Ok(reader.query(OPERATION, &sql, &[(&"half", Type::TEXT)])?.len() == TABLES.len())
    }
}

/// Why the version of the extension cannot be used, if so.
fn too_old(reader: &PgReader<'_>) -> Result<Option<String>> {
    let found = version(reader, "SELECT extversion FROM pg_extension WHERE extname = 'vector'")?;
    let Some(found) = found else { return Ok(Some("the extension vector is missing".to_owned())) };
    if parse(&found) < NEEDED {
        return Ok(Some(format!(
            "pgvector {found} is too old; run ALTER EXTENSION vector UPDATE for 0.8 or newer"
        )));
    }
    if parse(&found) < ADVISED {
        tracing::warn!(version = found, "pgvector is older than 0.8.4: run ALTER EXTENSION vector UPDATE");
    }
    Ok(None)
}

fn version(reader: &PgReader<'_>, sql: &str) -> Result<Option<String>> {
    reader.query(OPERATION, sql, &[])?.first().map(|row| PgRow(row).text(0)).transpose()
}

fn parse(version: &str) -> [u32; 3] {
    let mut numbers = version.split('.').map(|part| part.parse().unwrap_or_default());
    [0; 3].map(|_: u32| numbers.next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_their_numbers() {
        assert!(parse("0.7.4") < NEEDED && parse("0.8.0") >= NEEDED && parse("0.10") > ADVISED);
    }
}
