//! Maps errors of PostgreSQL and of its pool to ours.

use std::error::Error as StdError;

use amplifier_session_core::{Error, ErrorKind};
use amplifier_session_sql::{DISK_FULL, damaged, quote};
use deadpool_postgres::{PoolError, TimeoutType};
use tokio_postgres::error::{Severity, SqlState};

use crate::PostgresConfig;

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
        PoolError::Timeout(TimeoutType::Wait) => {
            Error::new(ErrorKind::StorageConnection, "all connections to PostgreSQL are in use")
                .with_hint(
                    "other calls of this process use them; allow more with AMPLIFIER_POSTGRES_CONNECTIONS",
                )
                .retryable()
        }
        PoolError::Timeout(_) => {
            Error::new(ErrorKind::StorageConnection, "can't connect to PostgreSQL: it does not answer")
                .retryable()
        }
        other => Error::new(ErrorKind::StorageConnection, "can't connect to PostgreSQL").with_source(other),
    }
}

/// Maps any error of opening a connection.
fn unconnected(source: tokio_postgres::Error) -> Error {
    let message = format!("can't connect to PostgreSQL: {}", reason(&source));
    let retry =
        source.code().is_none_or(|code| *code == SqlState::TOO_MANY_CONNECTIONS || is_ending(&source));
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
    driver(error).is_some_and(is_cut)
}

/// Whether the server can't be reached at the moment, or accepts no further connections.
pub(crate) fn is_unavailable(error: &Error) -> bool {
    is_lost(error) || code(error) == Some(&SqlState::TOO_MANY_CONNECTIONS)
}

/// Whether the server ended a statement because it waited too long for a lock.
pub(crate) fn is_lock_timeout(error: &Error) -> bool {
    code(error) == Some(&SqlState::LOCK_NOT_AVAILABLE)
}

/// Whether what a statement was to create exists.
pub(crate) fn is_duplicate(error: &Error) -> bool {
    code(error) == Some(&SqlState::DUPLICATE_TABLE)
}

fn code(error: &Error) -> Option<&SqlState> {
    driver(error)?.code()
}

/// Also while connecting: the server rejects connections, or does not answer.
fn is_cut(error: &tokio_postgres::Error) -> bool {
    error.is_closed() || is_input_or_output(error) || is_ending(error)
}

/// Whether the server, or a pooler, ends the connection, or accepts none, for a reason that may pass: a restart, a
/// timeout of an idle transaction, or a pooler without a server. Other errors that end a connection are about the
/// role and its rights.
fn is_ending(error: &tokio_postgres::Error) -> bool {
    let Some(error) = error.as_db_error() else { return false };
    let is_fatal = matches!(error.parsed_severity(), Some(Severity::Fatal | Severity::Panic));
    // Connection exceptions, invalid transaction states, and interventions by the operator.
    let may_pass = ["08", "25", "57"].iter().any(|class| error.code().code().starts_with(class));
    is_fatal && may_pass && !is_without_transactions(error.message())
}

/// Whether PgBouncer refuses transactions. It has no code of its own for this.
fn is_without_transactions(message: &str) -> bool {
    message.contains("statement pooling mode")
}

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
    if is_cut(error) {
        let message = format!("the connection to PostgreSQL was lost: {}", reason(error));
        return (ErrorKind::StorageConnection, message, true);
    }
    let message = reason(error);
    let Some(code) = error.code() else {
        return (ErrorKind::StorageIo, format!("PostgreSQL: {message}"), false);
    };
    match *code {
        SqlState::FEATURE_NOT_SUPPORTED => (ErrorKind::Unsupported, format!("PostgreSQL: {message}"), false),
        SqlState::DISK_FULL => (ErrorKind::StorageIo, DISK_FULL.to_owned(), false),
        // Another session took the id of an event between the check and the write; a retry finds it.
        SqlState::UNIQUE_VIOLATION => (ErrorKind::Conflict, format!("PostgreSQL: {message}"), true),
        SqlState::T_R_SERIALIZATION_FAILURE | SqlState::T_R_DEADLOCK_DETECTED => {
            (ErrorKind::Conflict, "other writers changed the same rows".to_owned(), true)
        }
        SqlState::LOCK_NOT_AVAILABLE => {
            (ErrorKind::StorageIo, "another session of the database holds a lock".to_owned(), true)
        }
        SqlState::DATA_CORRUPTED | SqlState::INDEX_CORRUPTED => {
            (ErrorKind::Damaged, format!("a part of the database is damaged: {message}"), false)
        }
        // It is about a value, so that other sessions can still be stored.
        ref code if code.code().starts_with("22") || code.code().starts_with("54") => {
            (ErrorKind::Validation, format!("the database does not accept a value: {message}"), false)
        }
        _ if is_without_transactions(&message) => {
            let message = format!("the connection pooler does not allow transactions: {message}");
            (ErrorKind::StorageConnection, message, false)
        }
        _ => (ErrorKind::StorageIo, format!("PostgreSQL: {message}"), false),
    }
}

/// The message of the server, or that of the driver with the cause that it leaves out.
fn reason(error: &tokio_postgres::Error) -> String {
    match (error.as_db_error(), error.source()) {
        (Some(error), _) => error.message().to_owned(),
        (None, Some(cause)) => format!("{error}: {cause}"),
        (None, None) => error.to_string(),
    }
}

/// What gives a role the rights to use a store. The names are quoted.
pub(crate) fn grants(schema: &str, role: &str) -> String {
    format!(
        "the owner of the tables can give the rights: GRANT USAGE ON SCHEMA {schema} TO {role}; \
         GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {role}; \
         GRANT USAGE ON ALL SEQUENCES IN SCHEMA {schema} TO {role}"
    )
}

/// What errors say about the server.
#[derive(Debug)]
pub(crate) struct ErrorContext {
    server: String,
    schema: String,
    /// Unknown if it is the name of the system user.
    role: Option<String>,
}

impl ErrorContext {
    pub(crate) fn of(config: &PostgresConfig) -> Self {
        let role = config.connection.get_user().map(str::to_owned);
        Self { server: config.address(), schema: config.schema.clone(), role }
    }

    /// Names the server and the role.
    pub(crate) fn name(&self, error: Error) -> Error {
        if error.context("server").is_some() {
            return error;
        }
        let error = error.with("server", &self.server);
        match &self.role {
            Some(role) => error.with("role", role),
            None => error,
        }
    }

    /// Names the server and the role in an error that is about them, and says what to do.
    pub(crate) fn explain(&self, error: Error) -> Error {
        match self.advice(&error) {
            Some(advice) => self.name(error).with_hint(advice),
            None if error.is_lock_timeout() => self.name(error),
            None => error,
        }
    }

    fn advice(&self, error: &Error) -> Option<String> {
        let source = driver(error)?;
        let role = self.role.as_deref().map_or_else(|| "ROLE".to_owned(), quote::name);
        let schema = quote::name(&self.schema);
        if source.as_db_error().is_some_and(|error| is_without_transactions(error.message())) {
            return Some("set pool_mode to transaction or session in the settings of the pooler".to_owned());
        }
        match source.code() {
            Some(&SqlState::TOO_MANY_CONNECTIONS) => Some(
                "try again when other programs have ended, let each use fewer connections \
                 (AMPLIFIER_POSTGRES_CONNECTIONS), or raise max_connections of the server, or the limit of the role"
                    .to_owned(),
            ),
            Some(&SqlState::INSUFFICIENT_PRIVILEGE) if reason(source).contains("for database") => {
                Some(format!("an administrator can create the schema: CREATE SCHEMA {schema} AUTHORIZATION {role}"))
            }
            Some(&SqlState::INSUFFICIENT_PRIVILEGE) => Some(grants(&schema, &role)),
            Some(&SqlState::QUERY_CANCELED) if reason(source).contains("statement timeout") => {
                Some(format!("give the role more time: ALTER ROLE {role} SET statement_timeout = '10min'"))
            }
            _ if error.operation().is_some() && is_cut(source) => {
                Some("run the command again when the server can be reached".to_owned())
            }
            _ => None,
        }
    }
}
