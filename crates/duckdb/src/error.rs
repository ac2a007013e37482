//! Maps errors of DuckDB to ours.
//!
//! DuckDB only describes errors in words: the message begins with the kind of error, and the code is always unknown.

use std::path::Path;

use amplifier_session_core::{Error, ErrorField, ErrorKind};
use amplifier_session_sql::{DISK_FULL, FILE_LIMIT};

/// Maps an error of the database; `operation` names the operation.
pub(crate) fn storage(operation: &'static str) -> impl Fn(duckdb::Error) -> Error {
    move |source| {
        let (kind, message, retry) = describe(&source.to_string());
        let error = Error::new(kind, message).with_operation(operation).with_source(source);
        if retry { error.retryable() } else { error }
    }
}

/// [`storage`] for a file that cannot be opened.
pub(crate) fn opening(path: &Path, source: duckdb::Error) -> Error {
    let message_text = source.to_string();
    let failed = |message| {
        let error = Error::new(ErrorKind::StorageConnection, message);
        error.with_operation("open").with("file", path.display())
    };
    match holder(&message_text) {
        // DuckDB reports nothing else about it.
        Some(holder) => failed(format!(
            "the database is in use by another process{holder}: one process at a time may write to it, or several may \
             read it, each with --read-only"
        )),
        None => failed(format!("can't open the database: {}", first_line(&message_text))).with_source(source),
    }
}

/// Maps the error of a query that is wrong or cannot be computed. DuckDB's message is kept complete, because it shows
/// the position.
pub(crate) fn query(source: duckdb::Error) -> Error {
    let text = source.to_string();
    // The query is not at fault, and DuckDB's advice concerns settings that are locked.
    if ["Out of Memory Error", "IO Error"].iter().any(|kind| text.starts_with(kind)) {
        return storage("sql")(source);
    }
    let lines = text.lines().map(str::trim_end).filter(|line| !line.is_empty());
    Error::validation(ErrorField::Query, lines.collect::<Vec<_>>().join("\n")).with_source(source)
}

/// The process that holds the lock, as the continuation of a sentence: its program and process id, if they are known.
fn holder(message_text: &str) -> Option<String> {
    let (_, rest) = message_text.split_once("Could not set lock on file")?;
    let Some((_, rest)) = rest.split_once("Conflicting lock is held in ") else {
        return Some(String::new());
    };
    Some(format!(", {}", rest.find(')').map_or(rest, |end| &rest[..=end])))
}

fn describe(message_text: &str) -> (ErrorKind, String, bool) {
    let message = || format!("DuckDB: {}", first_line(message_text));
    if is_duplicate(message_text) {
        // Another session took the id of an event between the check and the write; a retry finds it.
        return (ErrorKind::Conflict, message(), true);
    }
    if message_text.contains("read-only mode") {
        return (ErrorKind::StorageIo, "the store was opened read-only".to_owned(), false);
    }
    if message_text.contains("No space left on device") {
        return (ErrorKind::StorageIo, DISK_FULL.to_owned(), false);
    }
    if message_text.contains("File too large") {
        return (ErrorKind::StorageIo, FILE_LIMIT.to_owned(), false);
    }
    if message_text.contains("Corrupt database file") {
        return (ErrorKind::Damaged, format!("a part of the database is damaged: {}", message()), false);
    }
    (ErrorKind::StorageIo, message(), false)
}

fn is_duplicate(message_text: &str) -> bool {
    // Reported by a statement, an appender or a commit.
    message_text.contains("Duplicate key \"") || message_text.contains("duplicate key")
}

/// The first line of a message.
pub(crate) fn first_line(message_text: &str) -> &str {
    message_text.lines().next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_holder_of_a_file_is_named() {
        let message_text = "IO Error: Could not set lock on file \"/a/b.duckdb\": Conflicting lock is held in /usr/bin/x (PID 12). \
                    See also https://duckdb.org/docs/stable/connect/concurrency";
        assert_eq!(holder(message_text).as_deref(), Some(", /usr/bin/x (PID 12)"));
        assert_eq!(holder("IO Error: Could not set lock on file \"/a\": nobody knows").as_deref(), Some(""));
        assert_eq!(holder("IO Error: Is a directory"), None);
    }
}
