//! Finding events, and counting them.

use amplifier_session_core::{
    Result, Scope,
    backend::{EventCount, EventGroup, Usage},
    model::Event,
    search::{EventFilter, EventSearchOptions},
};
use amplifier_session_sql::{
    Columns, Conditions,
    rows::{self, EVENT, EVENT_OF_SESSION},
};
use duckdb::Connection;

use crate::{
    columns::Cursor,
    conditions::{DUCKDB, values},
    error::storage,
    sessions::limit,
};

/// Whether an event tells of a failure: `Event::failed`. What is no JSON `true` is no failure.
pub(crate) const FAILED: &str = "(level = 'ERROR' OR error_type IS NOT NULL
    OR coalesce(CAST(json_extract(summary, '$.has_error') AS VARCHAR) = 'true', FALSE))";

/// The events that `options` ask for, newest first.
pub(crate) fn search(
    connection: &Connection,
    scope: &Scope,
    options: &EventSearchOptions,
) -> Result<Vec<Event>> {
    let mut conditions = Conditions::of_events(DUCKDB, scope, &options.filter)?;
    if let Some(after) = &options.after {
        conditions.behind_event(after);
    }
    conditions.without_events(&options.without);
    let most = conditions.bind(limit(options.limit.min(EventSearchOptions::MAX_LIMIT)));
    let sql = format!(
        "SELECT {EVENT} FROM events e JOIN sessions s {EVENT_OF_SESSION} WHERE {}
         ORDER BY e.ts DESC, e.user_id DESC, e.session_id DESC, e.sequence DESC LIMIT {most}",
        conditions.sql()
    );
    let mut statement = connection.prepare_cached(&sql).map_err(storage("search_events"))?;
    let mut found = statement.query(values(&conditions)).map_err(storage("search_events"))?;
    let mut events = Vec::new();
    while let Some(row) = found.next().map_err(storage("search_events"))? {
        events.push(rows::event(&Cursor(row))?);
    }
    Ok(events)
}

/// The events that `filter` admits, counted by what they have in common.
///
/// DuckDB counts; what summaries tell of usage is summed here, by the rules of `core` about what is a number.
pub(crate) fn count(connection: &Connection, scope: &Scope, filter: &EventFilter) -> Result<Vec<EventCount>> {
    let conditions = Conditions::of_events(DUCKDB, scope, filter)?;
    let sql = format!(
        "SELECT CAST(e.ts AS DATE) AS day, e.event_type, e.tool_name, e.model, e.provider,
            {FAILED} AS failed,
            count(*), coalesce(list(e.summary) FILTER (WHERE contains(e.summary, '\"usage\"')), [])
         FROM events e JOIN sessions s {EVENT_OF_SESSION} WHERE {} GROUP BY 1, 2, 3, 4, 5, 6",
        conditions.sql()
    );
    let mut statement = connection.prepare_cached(&sql).map_err(storage("count_events"))?;
    let mut found = statement.query(values(&conditions)).map_err(storage("count_events"))?;
    let mut counts = Vec::new();
    while let Some(row) = found.next().map_err(storage("count_events"))? {
        let row = Cursor(row);
        let group = EventGroup {
            day: row.time(0)?.day(),
            event_type: row.text(1)?,
            tool_name: row.maybe_text(2)?,
            model: row.maybe_text(3)?,
            provider: row.maybe_text(4)?,
            failed: row.flag(5)?,
        };
        let mut usage = Usage::default();
        row.texts(7)?.iter().for_each(|summary| usage.add_summary(summary));
        counts.push(EventCount { group, events: rows::count(&row, 6)?, usage });
    }
    Ok(counts)
}
