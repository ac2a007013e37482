//! No answer carries a vector: questions do not see the columns that hold them.
//!
//! Views of the same names stand before the tables and views with vectors. Whoever names the database too gets past them,
//! and is found out by `plan.rs`.

use amplifier_session_core::Result;
use amplifier_session_sql::views::VECTORS_WITH_CONTEXT;
use duckdb::Connection;

use crate::{error::storage, quote, tables::VIEW_DIALECT, vectors::TABLES};

/// Makes the views that leave vectors out.
pub(super) fn hide(connection: &Connection) -> Result<()> {
    let name = |row: &duckdb::Row<'_>| row.get::<_, String>(0);
    let database = connection.query_row("SELECT current_database()", [], name).map_err(storage("sql"))?;
    let database = quote::name(&database);
    let mut views = String::new();
    for table in TABLES {
        views += &format!(
            "CREATE OR REPLACE TEMP VIEW {table} AS SELECT * EXCLUDE (vector) FROM {database}.main.{table};"
        );
    }
    let [current, others] = TABLES;
    views += &format!(
        "CREATE OR REPLACE TEMP VIEW vectors_of_generations AS FROM {current} UNION ALL FROM {others};
         CREATE OR REPLACE TEMP VIEW {} AS {};",
        VECTORS_WITH_CONTEXT.name,
        VECTORS_WITH_CONTEXT.query(VIEW_DIALECT, &["vector"])
    );
    connection.execute_batch(&views).map_err(storage("sql"))
}
