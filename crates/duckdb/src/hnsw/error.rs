//! Errors of the index. They only explain why a search did not use it.

use std::io;

use amplifier_session_core::{Error, ErrorKind};

/// Maps an error of the database.
pub(super) fn database(source: duckdb::Error) -> Error {
    Error::new(ErrorKind::StorageIo, format!("DuckDB: {}", first_line(&source.to_string())))
        .with_operation("hnsw")
        .with_source(source)
}

/// The error of an index that cannot be written.
pub(super) fn not_written(source: io::Error) -> Error {
    Error::new(ErrorKind::StorageIo, format!("the HNSW index cannot be written: {source}"))
        .with_source(source)
}

/// The first line of a message of DuckDB.
pub(super) fn first_line(message: &str) -> &str {
    message.lines().next().unwrap_or_default()
}
