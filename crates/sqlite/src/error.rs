//! Maps errors of SQLite to ours.

use amplifier_session_core::{Error, ErrorKind};
use amplifier_session_sql::{DISK_FULL, FILE_LIMIT, damaged, file};
use rusqlite::ErrorCode;

/// Maps an error of the database; `operation` names the operation.
pub(crate) fn storage(operation: &'static str) -> impl Fn(rusqlite::Error) -> Error {
    move |source| {
        let (kind, message, retry) = describe(&source);
        let error = Error::new(kind, message).with_operation(operation).with_source(source);
        if retry { error.retryable() } else { error }
    }
}

/// Maps the error of reading a column: a value of another type than was written.
pub(crate) fn column(source: rusqlite::Error) -> Error {
    use rusqlite::Error::{FromSqlConversionFailure, IntegralValueOutOfRange, InvalidColumnType, Utf8Error};

    match source {
        FromSqlConversionFailure(..)
        | IntegralValueOutOfRange(..)
        | InvalidColumnType(..)
        | Utf8Error(..) => damaged("value").with_source(source),
        other => storage("read")(other),
    }
}

/// Whether there is no room for the index of the write-ahead log, which every connection needs.
fn has_no_room(error: &rusqlite::Error) -> bool {
    error.sqlite_error().is_some_and(|error| error.extended_code == rusqlite::ffi::SQLITE_IOERR_SHMSIZE)
}

/// Whether a file could not grow, because it has reached the limit of the process. SQLite has no code of its own for
/// this.
fn has_reached_limit(error: &rusqlite::Error) -> bool {
    use rusqlite::ffi::{SQLITE_IOERR_TRUNCATE, SQLITE_IOERR_WRITE};

    let code = error.sqlite_error().map(|error| error.extended_code);
    code.is_some_and(|code| [SQLITE_IOERR_WRITE, SQLITE_IOERR_TRUNCATE].contains(&code))
        && file::is_size_limited()
}

/// Whether a part of the file can't be read from disk.
fn is_unreadable(error: &rusqlite::Error) -> bool {
    use rusqlite::ffi::{SQLITE_IOERR_CORRUPTFS, SQLITE_IOERR_READ};

    let code = error.sqlite_error().map(|error| error.extended_code);
    code.is_some_and(|code| [SQLITE_IOERR_READ, SQLITE_IOERR_CORRUPTFS].contains(&code))
}

fn describe(error: &rusqlite::Error) -> (ErrorKind, String, bool) {
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => (ErrorKind::StorageIo, DISK_FULL.to_owned(), false),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            (ErrorKind::StorageIo, "the database is busy with another writer".to_owned(), true)
        }
        // Another session took the id of an event between the check and the write; a retry finds it.
        Some(ErrorCode::ConstraintViolation) => (ErrorKind::Conflict, format!("SQLite: {error}"), true),
        Some(ErrorCode::CannotOpen) => {
            (ErrorKind::StorageConnection, format!("can't open the database: {error}"), false)
        }
        Some(ErrorCode::NotADatabase) => {
            (ErrorKind::StorageConnection, "the file is not a SQLite database".to_owned(), false)
        }
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => {
            (ErrorKind::StorageIo, "the database can't be written".to_owned(), false)
        }
        Some(ErrorCode::DatabaseCorrupt) => {
            (ErrorKind::Damaged, format!("a part of the database is damaged: {error}"), false)
        }
        Some(ErrorCode::SystemIoFailure) if has_no_room(error) => {
            (ErrorKind::StorageIo, DISK_FULL.to_owned(), false)
        }
        Some(ErrorCode::SystemIoFailure) if has_reached_limit(error) => {
            (ErrorKind::StorageIo, FILE_LIMIT.to_owned(), false)
        }
        Some(ErrorCode::SystemIoFailure) if is_unreadable(error) => {
            (ErrorKind::Damaged, format!("a part of the database can't be read: {error}"), false)
        }
        _ => (ErrorKind::StorageIo, format!("SQLite: {error}"), false),
    }
}
