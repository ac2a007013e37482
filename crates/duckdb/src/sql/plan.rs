//! What a question reads, as its plan tells: tables without their vectors, and functions that look at nothing else.
//!
//! The names of tables and functions in the text would not do: views and macros that stand in the file bring in others.

use amplifier_session_core::{Error, Result};
use serde_json::{Map, Value};

use super::statement::Statement;
use crate::{error::question, vectors::TABLES};

/// The table functions that may be asked. Others read files, the database's own among them, run statements of their own, or
/// change settings.
const FUNCTIONS: [&str; 22] = [
    "duckdb_columns",
    "duckdb_constraints",
    "duckdb_databases",
    "duckdb_functions",
    "duckdb_indexes",
    "duckdb_keywords",
    "duckdb_schemas",
    "duckdb_settings",
    "duckdb_tables",
    "duckdb_types",
    "duckdb_views",
    "generate_series",
    "json_each",
    "json_tree",
    "pragma_database_size",
    "pragma_show",
    "pragma_table_info",
    "pragma_version",
    "range",
    "repeat",
    "summary",
    "unnest",
];

/// Refuses a question that reads what it may not.
pub(super) fn check(connection: &duckdb::Connection, statement: &Statement) -> Result<()> {
    let explain = format!("EXPLAIN (FORMAT json) {}", statement.text());
    let mut explain = connection.prepare(&explain).map_err(question)?;
    let plan: String = explain.query_row([], |row| row.get(1)).map_err(question)?;
    let plan = serde_json::from_str(&plan).map_err(|error| {
        let message = "the statement is nested too deeply for its plan to be checked";
        Error::validation("query", message).with_source(error)
    })?;
    check_part(&plan)
}

fn check_part(plan: &Value) -> Result<()> {
    match plan {
        Value::Array(parts) => parts.iter().try_for_each(check_part),
        Value::Object(part) => {
            check_function(part)?;
            check_scan(part)?;
            part.values().try_for_each(check_part)
        }
        _ => Ok(()),
    }
}

/// A function stands under `Function`; one that takes the rows of another part, under `Name`.
fn check_function(part: &Map<String, Value>) -> Result<()> {
    let names = ["Function", "Name"].into_iter().filter_map(|key| part.get(key)?.as_str());
    for name in names.map(str::to_lowercase) {
        if !FUNCTIONS.contains(&name.as_str()) {
            let message = format!("questions look at the store's tables: the function {name} is not taken");
            return Err(Error::validation("query", message));
        }
    }
    Ok(())
}

fn check_scan(part: &Map<String, Value>) -> Result<()> {
    let table = part.get("Table").and_then(Value::as_str).unwrap_or_default();
    let has_vectors = TABLES.iter().any(|name| table.rsplit('.').next() == Some(name));
    let reads = |told: &str| part.get(told).is_some_and(|told| told.to_string().contains("vector"));
    if has_vectors && (reads("Projections") || reads("Filters")) {
        return Err(Error::validation("query", "no answer carries a vector, and the query reads some"));
    }
    Ok(())
}
