//! Counting events.

use amplifier_session_core::{
    Result, Scope,
    backend::{EventCount, Usage},
    search::EventFilter,
};
use amplifier_session_sql::{
    Columns, Conditions, Query, Reader, read, repeats_usage,
    rows::{self, EVENT_OF_SESSION},
};

use crate::connection::{DUCKDB, Read};

/// The condition that an event reports a failure: `Event::failed`. Only a JSON `true` is a failure; a summary that is not JSON
/// reports nothing.
pub const FAILED: &str = "(level = 'ERROR' OR error_type IS NOT NULL
    OR coalesce(CASE WHEN json_valid(summary) THEN CAST(json_extract(summary, '$.has_error') AS VARCHAR) END = 'true', FALSE))";

/// The sessions that have a response with usage.
const ANSWERED: &str = "SELECT DISTINCT user_id, session_id FROM events
        WHERE event_type = 'llm:response' AND contains(summary, '\"usage\"')
            AND CASE WHEN json_valid(summary) THEN json_type(summary, '$.usage') END = 'OBJECT'";

/// Joins the events `e` with the sessions that have a response with usage, as `a`.
#[must_use]
pub fn join_answered() -> String {
    format!("LEFT JOIN ({ANSWERED}) a ON a.user_id = e.user_id AND a.session_id = e.session_id")
}

/// The condition that the usage of an event repeats that of a response of its session. Needs [`join_answered`].
#[must_use]
pub fn counted_elsewhere() -> String {
    format!("(a.session_id IS NOT NULL AND {})", repeats_usage("e"))
}

/// The events that match `filter`, counted by group.
///
/// DuckDB counts the events. Usage is summed here, so that the rules of `core` for numbers apply.
pub(crate) fn count(reader: &Read<'_>, scope: &Scope, filter: &EventFilter) -> Result<Vec<EventCount>> {
    if filter.text.is_some() {
        let answered = format!("SELECT user_id, session_id FROM ({ANSWERED})");
        return read::events::count_each(reader, scope, filter, answered);
    }
    let conditions = Conditions::of_events(DUCKDB, scope, filter)?;
    let sql = format!(
        "SELECT CAST(e.ts AS DATE) AS day, e.event_type, e.tool_name, e.model, e.provider,
            {FAILED} AS failed,
            count(*), coalesce(list(e.summary) FILTER (WHERE contains(e.summary, '\"usage\"') AND NOT {}), [])
         FROM events e JOIN sessions s {EVENT_OF_SESSION} {} WHERE {} GROUP BY 1, 2, 3, 4, 5, 6",
        counted_elsewhere(),
        join_answered(),
        conditions.sql()
    );
    reader.rows(&Query::with_conditions("count_events", sql, conditions, event_count))
}

fn event_count(row: &dyn Columns) -> Result<EventCount> {
    let group = rows::event_group(row)?;
    let mut usage = Usage::default();
    row.texts(7)?.iter().for_each(|summary| usage.add_summary(summary));
    Ok(EventCount { group, events: rows::count(row, 6)?, usage })
}
