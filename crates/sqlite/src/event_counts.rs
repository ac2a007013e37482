//! Counting events.

use amplifier_session_core::{
    Result, Scope,
    backend::{CountedEvents, RESPONSE},
    model::SessionKey,
    search::{EventFilter, SessionFilter},
};
use amplifier_session_sql::{
    Query, Reader, read, read::events::GroupedEvents, rows::EVENT_OF_SESSION as OF_SESSION,
};

use crate::connection::{SQLITE, SqliteReader, own_events_index};

/// Type, tool, model, provider, `Event::failed`, and the session that the line names. Only a JSON `true` is a failure. A
/// summary that is not JSON reports nothing.
const GROUP: &str = "e.event_type, e.tool_name, e.model, e.provider,
    e.level = 'ERROR' OR e.error_type IS NOT NULL OR (CASE WHEN instr(e.summary, 'true') > 0
        AND json_valid(e.summary) THEN e.summary -> '$.has_error' END) IS 'true' AS failed,
    CASE WHEN instr(e.summary, '\"session_id\":') > 0 AND json_valid(e.summary) THEN e.summary ->> '$.session_id' END";

/// How many events are in the same log again. A line that may occur several times has no digest here.
const AGAIN: &str = "lines_again(s.key, CASE WHEN NOT e.ts_estimated AND (substr(e.ts, -8) <> '.000000Z'
        OR instr(e.summary, '\"usage\":') > 0 OR instr(e.summary, '\"tool_call_id\":') > 0)
    THEN e.digest END)";

/// The events that match `filter`, counted by group.
pub(crate) fn count(reader: &SqliteReader<'_>, scope: &Scope, filter: &EventFilter) -> Result<CountedEvents> {
    let sql = GroupedEvents {
        group: &format!("{} AS quarter, {GROUP}", (SQLITE.quarter_hour)("e.ts")),
        from: &in_any_order(scope, filter),
        again: AGAIN,
        has_usage: "instr(e.summary, '\"usage\":') > 0",
    };
    let mut counter = read::events::count_groups(reader, scope, filter, sql)?;
    for session in counter.unanswered() {
        if is_answered(reader, &session)? {
            counter.set_answered([session]);
        }
    }
    Ok(counter.into_counts())
}

/// Whether a session has a response with usage.
fn is_answered(reader: &SqliteReader<'_>, key: &SessionKey) -> Result<bool> {
    let sql = format!(
        "SELECT 1 FROM events INDEXED BY events_by_session_type
         WHERE user_id = ?1 AND session_id = ?2 AND event_type = '{RESPONSE}'
             AND CASE WHEN instr(summary, '\"usage\":') > 0 AND json_valid(summary)
                 THEN json_type(summary, '$.usage') END = 'object' LIMIT 1"
    );
    let values = [key.user_id.as_str().into(), key.session_id.as_str().into()];
    Ok(reader.first(&Query::new("count_events", sql, values, |_| Ok(())))?.is_some())
}

/// The tables, with the index that leaves the fewest events to count.
fn in_any_order(scope: &Scope, filter: &EventFilter) -> String {
    if let Some(index) = own_events_index(scope, filter)
        && filter.sessions == SessionFilter::default()
    {
        return format!("events e INDEXED BY {index} CROSS JOIN sessions s {OF_SESSION}");
    }
    let by_type = filter.event_type.is_some() || filter.category.is_some();
    let index = if by_type { "events_by_session_type" } else { "events_by_session_time" };
    format!("sessions s CROSS JOIN events e INDEXED BY {index} {OF_SESSION}")
}
