//! Errors of queries.

use amplifier_session_core::Error;

/// Maps the error of a query that is wrong or cannot be computed. DuckDB's message is kept complete, because it shows
/// the position.
pub(super) fn query(source: duckdb::Error) -> Error {
    let text = source.to_string();
    // The query is not at fault, and DuckDB's advice concerns settings that are locked.
    if ["Out of Memory Error", "IO Error"].iter().any(|kind| text.starts_with(kind)) {
        return storage(source);
    }
    let lines = text.lines().map(str::trim_end).filter(|line| !line.is_empty());
    Error::validation("query", lines.collect::<Vec<_>>().join("\n")).with_source(source)
}

/// Maps any other error of the database.
pub(super) fn storage(source: duckdb::Error) -> Error {
    crate::error::storage("sql")(source)
}
