//! The payloads of events, of any size.
//!
//! A store compresses long lines and splits very long ones. Decoding them requires a function that only this program
//! has, so the views in the file show only short payloads, and a query gets its own views.

use amplifier_session_core::Result;
use amplifier_session_sql::views::{EVENTS_WITH_DATA, TRANSCRIPTS_WITH_CONTENT, ViewDialect};
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

/// Creates the views of events and messages for a connection. In a file of an earlier version, the view of messages has
/// fewer columns.
pub(super) fn create_views(connection: &Connection) -> Result<()> {
    let dialect: Vec<_> = std::iter::once(DATA).chain(VIEW_DIALECT.iter().copied()).collect();
    let dialect: &ViewDialect = &dialect;
    let views = [TRANSCRIPTS_WITH_CONTENT, EVENTS_WITH_DATA]
        .map(|view| format!("CREATE OR REPLACE TEMP VIEW {} AS {};", view.name, view.query(dialect)));
    connection.execute_batch(&views.concat()).map_err(error::storage("sql"))
}
