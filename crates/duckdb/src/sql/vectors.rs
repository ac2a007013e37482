//! No answer carries a vector: questions do not see the columns that hold them.
//!
//! Views of the same names stand before the tables and views with vectors. Whoever names the database too gets past them,
//! and is found out by the plan: it tells which columns of which tables are read.

use amplifier_session_core::{Error, Result};
use duckdb::Connection;
use serde_json::{Map, Value};

use super::quoted;
use crate::{
    error::{question, storage},
    tables::vectors_with_context,
    vectors::TABLES,
};

/// Makes the views that leave vectors out.
pub(super) fn hide(connection: &Connection) -> Result<()> {
    let name = |row: &duckdb::Row<'_>| row.get::<_, String>(0);
    let database = connection.query_row("SELECT current_database()", [], name).map_err(storage("sql"))?;
    let database = quoted(&database, '"');
    let mut views = String::new();
    for table in TABLES {
        views += &format!(
            "CREATE OR REPLACE TEMP VIEW {table} AS SELECT * EXCLUDE (vector) FROM {database}.main.{table};"
        );
    }
    let [current, others] = TABLES;
    views += &format!(
        "CREATE OR REPLACE TEMP VIEW vectors_of_generations AS FROM {current} UNION ALL FROM {others};
         CREATE OR REPLACE TEMP VIEW {};",
        vectors_with_context(false)
    );
    connection.execute_batch(&views).map_err(storage("sql"))
}

/// Refuses a question that would read a vector all the same.
pub(super) fn check(connection: &Connection, sql: &str) -> Result<()> {
    let explain = format!("EXPLAIN (FORMAT json) {sql}");
    let mut statement = connection.prepare(&explain).map_err(question)?;
    let plans = statement.query_map([], |row| row.get::<_, String>(1)).map_err(question)?;
    for plan in plans {
        let plan = plan.map_err(question)?;
        let plan = serde_json::from_str(&plan).unwrap_or_default();
        if reads_vectors(&plan) {
            return Err(Error::validation("query", "no answer carries a vector, and the query reads some"));
        }
    }
    Ok(())
}

/// Whether a part of a plan reads the column from a table that has it.
fn reads_vectors(plan: &Value) -> bool {
    match plan {
        Value::Array(parts) => parts.iter().any(reads_vectors),
        Value::Object(part) => is_vector_scan(part) || part.values().any(reads_vectors),
        _ => false,
    }
}

fn is_vector_scan(part: &Map<String, Value>) -> bool {
    let table = part.get("Table").and_then(Value::as_str).unwrap_or_default();
    let is_one = TABLES.iter().any(|name| table.rsplit('.').next() == Some(name));
    let reads = |told: &str| part.get(told).is_some_and(|told| told.to_string().contains("vector"));
    is_one && (reads("Projections") || reads("Filters"))
}
