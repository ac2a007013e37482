//! Finding events, and counting them.

use amplifier_session_core::{
    Result, Scope,
    backend::{EventCount, EventGroup},
    model::{Event, Level},
    search::{EventCursor, EventFilter, EventSearchOptions, SessionFilter},
};
use rusqlite::Connection;

use crate::{
    conditions::Conditions,
    error::storage,
    events::{FIELDS, event},
    functions::read_usage,
    sessions::column,
};

/// How the events belong to the sessions.
const OF_SESSION: &str = "ON e.user_id = s.user_id AND e.session_id = s.session_id";

/// The events that `options` ask for, newest first.
pub(crate) fn search(
    connection: &Connection,
    scope: &Scope,
    options: &EventSearchOptions,
) -> Result<Vec<Event>> {
    let mut conditions = conditions(scope, &options.filter)?;
    if let Some(after) = &options.after {
        behind(&mut conditions, after);
    }
    let limit = conditions.bind(options.limit.min(EventSearchOptions::MAX_LIMIT) as i64);
    let sql = format!(
        "SELECT {FIELDS} FROM {} WHERE {}
         ORDER BY e.ts DESC, e.user_id DESC, e.session_id DESC, e.sequence DESC LIMIT {limit}",
        in_order(scope, &options.filter),
        conditions.sql()
    );
    let mut statement = connection.prepare_cached(&sql).map_err(storage("search_events"))?;
    let mut rows = statement.query(conditions.values()).map_err(storage("search_events"))?;
    let mut events = Vec::new();
    while let Some(row) = rows.next().map_err(storage("search_events"))? {
        events.push(event(row)?);
    }
    Ok(events)
}

/// The events that `filter` admits, counted by what they have in common.
pub(crate) fn count(connection: &Connection, scope: &Scope, filter: &EventFilter) -> Result<Vec<EventCount>> {
    let conditions = conditions(scope, filter)?;
    // `failed` is `Event::failed`: what is no JSON `true` is no failure.
    let sql = format!(
        "SELECT substr(e.ts, 1, instr(e.ts, 'T') - 1) AS day, e.event_type, e.tool_name, e.model, e.provider,
            e.level = 'ERROR' OR e.error_type IS NOT NULL OR (e.summary -> '$.has_error') IS 'true' AS failed,
            count(*), usage_of(e.summary)
         FROM {} WHERE {} GROUP BY 1, 2, 3, 4, 5, 6",
        in_any_order(scope, filter),
        conditions.sql()
    );
    let mut statement = connection.prepare_cached(&sql).map_err(storage("count_events"))?;
    let mut rows = statement.query(conditions.values()).map_err(storage("count_events"))?;
    let mut counts = Vec::new();
    while let Some(row) = rows.next().map_err(storage("count_events"))? {
        let group = EventGroup {
            day: column(row, 0)?,
            event_type: column(row, 1)?,
            tool_name: column(row, 2)?,
            model: column(row, 3)?,
            provider: column(row, 4)?,
            failed: column(row, 5)?,
        };
        let events = column::<i64>(row, 6)?.unsigned_abs();
        counts.push(EventCount { group, events, usage: read_usage(&column::<String>(row, 7)?) });
    }
    Ok(counts)
}

/// The tables and the index that give events in order of time.
///
/// The join is written so that SQLite takes the tables as they stand, and the index is named: without statistics it
/// would rather sort all events of a user than read the newest of them.
fn in_order(scope: &Scope, filter: &EventFilter) -> String {
    if filter.sessions.session.is_some() {
        return format!("sessions s CROSS JOIN events e INDEXED BY events_by_session_time {OF_SESSION}");
    }
    let index = own_index(scope, filter).unwrap_or("events_by_time");
    format!("events e INDEXED BY {index} CROSS JOIN sessions s {OF_SESSION}")
}

/// The tables and the index that give the fewest events to count.
fn in_any_order(scope: &Scope, filter: &EventFilter) -> String {
    if let Some(index) = own_index(scope, filter)
        && filter.sessions == SessionFilter::default()
    {
        return format!("events e INDEXED BY {index} CROSS JOIN sessions s {OF_SESSION}");
    }
    let by_type = filter.event_type.is_some() || filter.category.is_some();
    let index = if by_type { "events_by_session_type" } else { "events_by_session_time" };
    format!("sessions s CROSS JOIN events e INDEXED BY {index} {OF_SESSION}")
}

/// The index of what the filter asks for among one user's events.
fn own_index(scope: &Scope, filter: &EventFilter) -> Option<&'static str> {
    match (scope, filter) {
        (Scope::User(_), EventFilter { tool: Some(_), .. }) => Some("events_by_tool"),
        (Scope::User(_), EventFilter { event_type: Some(_), .. }) => Some("events_by_type"),
        (Scope::User(_), EventFilter { level: Some(level), .. }) if *level != Level::Info => {
            Some("events_by_level")
        }
        _ => None,
    }
}

fn conditions(scope: &Scope, filter: &EventFilter) -> Result<Conditions> {
    let mut conditions = Conditions::of_sessions(scope, &filter.sessions)?;
    if let Scope::User(user) = scope {
        conditions.compare("e.user_id = ?", user.to_string());
    }
    let names = [
        ("e.event_type = ?", &filter.event_type),
        ("e.tool_name = ?", &filter.tool),
        ("e.model = ?", &filter.model),
        ("e.provider = ?", &filter.provider),
        ("e.error_type = ?", &filter.error_type),
    ];
    for (condition, name) in names {
        if let Some(name) = name {
            conditions.compare(condition, name.clone());
        }
    }
    if let Some(category) = &filter.category {
        of_category(&mut conditions, category);
    }
    if let Some(level) = filter.level {
        conditions.compare("e.level = ?", level.as_str().to_owned());
        if level != Level::Info {
            // Nothing new, but what SQLite takes the index for.
            conditions.require("e.level <> 'INFO'");
        }
    }
    if let Some(since) = filter.since {
        conditions.compare("e.ts >= ?", since.to_string());
    }
    if let Some(until) = filter.until {
        conditions.compare("e.ts < ?", until.to_string());
    }
    Ok(conditions)
}

/// The type is `category`, or goes on with a colon behind it: one stretch of an index, `;` being what follows a
/// colon, in which a few others lie (`llm-x`), which the last condition leaves out.
fn of_category(conditions: &mut Conditions, category: &str) {
    if category.contains(':') {
        // It would be no category, but a type.
        return conditions.require("FALSE");
    }
    let category = conditions.bind(category.to_owned());
    conditions.require(format!(
        "e.event_type >= {category} AND e.event_type < {category} || ';'
         AND (e.event_type = {category} OR e.event_type >= {category} || ':')"
    ));
}

/// Behind the last event of a page.
fn behind(conditions: &mut Conditions, after: &EventCursor) {
    let EventCursor { ts, place } = after;
    let ts = conditions.bind(ts.to_string());
    let user = conditions.bind(place.session.user_id.to_string());
    let session = conditions.bind(place.session.session_id.to_string());
    let sequence = conditions.bind(place.sequence);
    conditions.require(format!(
        "e.ts <= {ts}
         AND (e.ts < {ts} OR (e.user_id, e.session_id, e.sequence) < ({user}, {session}, {sequence}))"
    ));
}
