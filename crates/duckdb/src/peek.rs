//! Opens a file to check whether it is a store, without changing it or anything beside it.

use std::path::Path;

use amplifier_session_core::{Error, Result};
use amplifier_session_sql::FileCopy;
use duckdb::Connection;

use crate::{
    connect::{self, Access},
    error::storage,
};

/// The logs that DuckDB keeps beside a file. The last two exist while it processes the first.
const LOGS: [&str; 3] = [".wal", ".wal.checkpoint", ".wal.recovery"];

/// DuckDB's message about a log that it can't replay without writing, such as one in which an HNSW index was created.
const CANNOT_REPLAY: &str = "Failure while replaying WAL";

/// A file that was opened to inspect it, whatever it contains.
#[derive(Debug)]
pub(crate) struct Peek {
    pub(crate) connection: Connection,
    /// The copy that is read instead.
    _copy: Option<FileCopy>,
}

impl Peek {
    pub(crate) fn open(file: &Path) -> Result<Self> {
        match connect::open(file, Access::ReadOnly) {
            Ok(connection) => Ok(Self { connection, _copy: None }),
            Err(error) if cause(&error).contains(CANNOT_REPLAY) => Self::copy(file),
            Err(error) => Err(error),
        }
    }

    fn copy(file: &Path) -> Result<Self> {
        let copy = FileCopy::of(file, &LOGS)?;
        let connection = connect::open(&copy.path(), Access::ReadWrite)?;
        // Writing to it would require the extension.
        let no_writes = "PRAGMA disable_checkpoint_on_shutdown; PRAGMA wal_autocheckpoint = '1TB'";
        connection.execute_batch(no_writes).map_err(storage("open"))?;
        Ok(Self { connection, _copy: Some(copy) })
    }
}

fn cause(error: &Error) -> String {
    std::error::Error::source(error).map_or_else(String::new, ToString::to_string)
}
