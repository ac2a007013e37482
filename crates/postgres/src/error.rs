//! Maps errors of PostgreSQL and of its pool to ours.

use std::error::Error as StdError;

use amplifier_session_core::{Error, ErrorKind};
use amplifier_session_sql::{DISK_FULL, damaged};
use deadpool_postgres::PoolError;
use tokio_postgres::error::SqlState;

/// The operation that opens a store.
pub(crate) const OPEN: &str = "open";

/// Maps an error of the database; `operation` names the operation.
pub(crate) fn storage(operation: &'static str) -> impl Fn(tokio_postgres::Error) -> Error {
    move |source| {
        let (mut kind, message, retry) = describe(&source);
        if operation == OPEN && kind == ErrorKind::StorageIo {
            kind = ErrorKind::StorageConnection;
        }
        let error = Error::new(kind, message).with_operation(operation).with_source(source);
        if retry { error.retryable() } else { error }
    }
}

/// Maps the error of reading a column: a value of another type than was written.
pub(crate) fn column(source: tokio_postgres::Error) -> Error {
    damaged("value").with_source(source)
}

/// Maps an error of taking a connection from the pool.
pub(crate) fn connection(source: PoolError) -> Error {
    match source {
        PoolError::Backend(source) => unconnected(source),
        PoolError::Timeout(_) => {
            let message = "all connections to PostgreSQL are in use";
            Error::new(ErrorKind::StorageConnection, message).retryable()
        }
        other => Error::new(ErrorKind::StorageConnection, "can't connect to PostgreSQL").with_source(other),
    }
}

/// Maps any error of opening a connection.
fn unconnected(source: tokio_postgres::Error) -> Error {
    let reason = match source.as_db_error() {
        Some(error) => error.message().to_owned(),
        None => source.source().map_or_else(|| source.to_string(), |cause| format!("{source}: {cause}")),
    };
    let message = format!("can't connect to PostgreSQL: {reason}");
    let retry =
        source.code().is_none_or(|code| *code == SqlState::TOO_MANY_CONNECTIONS || ENDING.contains(code));
    let error = Error::new(ErrorKind::StorageConnection, message).with_source(source);
    if retry { error.retryable() } else { error }
}

/// Whether a transaction was rolled back because of a conflict with others, or because the connection was lost. It can
/// be run again.
pub(crate) fn may_run_again(error: &Error) -> bool {
    let in_the_way = [SqlState::T_R_SERIALIZATION_FAILURE, SqlState::T_R_DEADLOCK_DETECTED];
    is_lost(error) || code(error).is_some_and(|code| in_the_way.contains(code))
}

/// Whether the connection was lost, or the server is ending it.
pub(crate) fn is_lost(error: &Error) -> bool {
    driver(error).is_some_and(|source| source.is_closed() || is_input_or_output(source))
        || code(error).is_some_and(|code| ENDING.contains(code))
}

/// Whether the server can't be reached at the moment, or accepts no further connections.
pub(crate) fn is_unavailable(error: &Error) -> bool {
    is_lost(error) || code(error) == Some(&SqlState::TOO_MANY_CONNECTIONS)
}

/// The server is shutting down or starting up.
const ENDING: [SqlState; 3] =
    [SqlState::ADMIN_SHUTDOWN, SqlState::CRASH_SHUTDOWN, SqlState::CANNOT_CONNECT_NOW];

fn code(error: &Error) -> Option<&SqlState> {
    driver(error)?.code()
}

/// Also while connecting: the server rejects connections, or does not answer.
fn is_input_or_output(error: &tokio_postgres::Error) -> bool {
    let mut cause = error.source();
    while let Some(source) = cause {
        if source.is::<std::io::Error>() {
            return true;
        }
        cause = source.source();
    }
    false
}

/// The driver's error from which an error was made.
fn driver(error: &Error) -> Option<&tokio_postgres::Error> {
    let mut cause = error.source();
    while let Some(source) = cause {
        if let Some(found) = source.downcast_ref() {
            return Some(found);
        }
        cause = source.source();
    }
    None
}

fn describe(error: &tokio_postgres::Error) -> (ErrorKind, String, bool) {
    let Some(code) = error.code() else {
        let retry = error.is_closed() || is_input_or_output(error);
        return (ErrorKind::StorageIo, format!("PostgreSQL: {}", with_cause(error)), retry);
    };
    let message = error.as_db_error().map_or_else(|| error.to_string(), |error| error.message().to_owned());
    match *code {
        SqlState::FEATURE_NOT_SUPPORTED => (ErrorKind::Unsupported, format!("PostgreSQL: {message}"), false),
        SqlState::DISK_FULL => (ErrorKind::StorageIo, DISK_FULL.to_owned(), false),
        // Another session took the id of an event between the check and the write; a retry finds it.
        SqlState::UNIQUE_VIOLATION => (ErrorKind::Conflict, format!("PostgreSQL: {message}"), true),
        SqlState::T_R_SERIALIZATION_FAILURE | SqlState::T_R_DEADLOCK_DETECTED => {
            (ErrorKind::Conflict, "other writers changed the same rows".to_owned(), true)
        }
        SqlState::LOCK_NOT_AVAILABLE => {
            (ErrorKind::StorageIo, "the database is busy with another writer".to_owned(), true)
        }
        ref code if ENDING.contains(code) => (ErrorKind::StorageIo, format!("PostgreSQL: {message}"), true),
        SqlState::DATA_CORRUPTED | SqlState::INDEX_CORRUPTED => {
            (ErrorKind::Damaged, format!("a part of the database is damaged: {message}"), false)
        }
        _ => (ErrorKind::StorageIo, format!("PostgreSQL: {message}"), false),
    }
}

/// The error with its causes, which the driver's own text leaves out.
fn with_cause(error: &tokio_postgres::Error) -> String {
    error.source().map_or_else(|| error.to_string(), |cause| format!("{error}: {cause}"))
}
