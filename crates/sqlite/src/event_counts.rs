//! Counting events.

use amplifier_session_core::{
    Result, Scope,
    backend::{EventCount, RESPONSE},
    search::{EventFilter, SessionFilter},
};
use amplifier_session_sql::{
    Columns, Conditions, Query, Reader, repeats_usage,
    rows::{self, EVENT_OF_SESSION as OF_SESSION},
    unless_damaged,
};

use crate::{
    connection::{Read, SQLITE, own_events_index},
    functions::read_usage,
};

/// The events that match `filter`, counted by group.
pub(crate) fn count(reader: &Read<'_>, scope: &Scope, filter: &EventFilter) -> Result<Vec<EventCount>> {
    let conditions = Conditions::of_events(SQLITE, scope, filter)?;
    // `failed` is `Event::failed`: only a JSON `true` is a failure. A summary that is not JSON reports nothing.
    let sql = format!(
        "SELECT substr(e.ts, 1, instr(e.ts, 'T') - 1) AS day, e.event_type, e.tool_name, e.model, e.provider,
            e.level = 'ERROR' OR e.error_type IS NOT NULL OR (CASE WHEN instr(e.summary, 'true') > 0
                AND json_valid(e.summary) THEN e.summary -> '$.has_error' END) IS 'true' AS failed,
            count(*), usage_of(CASE WHEN {} THEN '' ELSE e.summary END)
         FROM {} WHERE {} GROUP BY 1, 2, 3, 4, 5, 6",
        counted_elsewhere(),
        in_any_order(scope, filter),
        conditions.sql()
    );
    let counts = reader.rows(&Query::with_conditions("count_events", sql, conditions, |row| {
        unless_damaged(event_count(row))
    }))?;
    Ok(counts.into_iter().flatten().collect())
}

fn event_count(row: &dyn Columns) -> Result<EventCount> {
    let group = rows::event_group(row)?;
    Ok(EventCount { group, events: rows::count(row, 6)?, usage: read_usage(row.text_ref(7)?) })
}

/// The condition that the usage of an event repeats that of a response of its session.
fn counted_elsewhere() -> String {
    format!(
        "{} AND instr(e.summary, '\"usage\"') > 0 AND EXISTS (
            SELECT 1 FROM events r INDEXED BY events_by_session_type
            WHERE r.user_id = e.user_id AND r.session_id = e.session_id AND r.event_type = '{RESPONSE}'
                AND CASE WHEN instr(r.summary, '\"usage\"') > 0 AND json_valid(r.summary)
                    THEN json_type(r.summary, '$.usage') END = 'object'
        )",
        repeats_usage("e")
    )
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
