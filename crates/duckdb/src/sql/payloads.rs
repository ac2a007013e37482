//! The content of lines: payloads of events of any size, and texts of messages.
//!
//! A store compresses long events and splits very long ones. Decoding them and extracting texts requires functions that
//! only this program has, so a query gets views of its own, which have more than those in the file.

use amplifier_session_core::Result;
use amplifier_session_sql::views::{VIEWS, ViewDialect};
use duckdb::Connection;

use crate::{error, tables::VIEW_DIALECT};

/// The payload of an event. The pieces of a split line form one compressed text.
const DATA: (&str, &str) = (
    "data",
    "json_extract(TRY_CAST(CASE e.encoding
        WHEN 1 THEN TRY(decode(e.raw))
        WHEN 2 THEN unpacked(e.raw)
        WHEN 3 THEN unpacked((
            SELECT list_reduce(list(c.chunk_data ORDER BY c.chunk_index), lambda a, b: a || b) FROM event_chunks c
            WHERE c.user_id = e.user_id AND c.session_id = e.session_id AND c.sequence = e.sequence
            HAVING count(*) = any_value(c.total_chunks)))
        END AS JSON), '$.data')",
);

/// Fields of a message, of lines too that DuckDB can't read.
const CONTENT: (&str, &str) = ("content", "CAST(line_field(t.session_id, t.role, t.raw, 'content') AS JSON)");
const METADATA: (&str, &str) =
    ("metadata", "CAST(line_field(t.session_id, t.role, t.raw, 'metadata') AS JSON)");

/// Creates the views of events, messages and vectors for a connection. In a file of an earlier version, the view of messages has
/// fewer columns.
pub(super) fn create_views(connection: &Connection) -> Result<()> {
    let dialect: Vec<_> = [DATA, CONTENT, METADATA].into_iter().chain(VIEW_DIALECT.iter().copied()).collect();
    let dialect: &ViewDialect = &dialect;
    let views =
        VIEWS.map(|view| format!("CREATE OR REPLACE TEMP VIEW {} AS {};", view.name, view.query(dialect)));
    connection.execute_batch(&views.concat()).map_err(error::storage("sql"))
}
