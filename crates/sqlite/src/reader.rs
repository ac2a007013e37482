//! Runs queries on a connection, in SQLite's dialect.

use std::ops::ControlFlow;

use amplifier_session_core::{
    Result, Scope,
    backend::SessionQuery,
    model::Level,
    search::{EventFilter, SessionFilter},
};
use amplifier_session_sql::{Conditions, Dialect, Query, Reader, Value, rows::EVENT_OF_SESSION};
use rusqlite::{Connection, ParamsFromIter, params_from_iter, types};

use crate::{columns::Cursor, error::storage};

/// A connection that reads.
#[derive(Debug)]
pub struct Read<'a>(pub(crate) &'a Connection);

impl Reader for Read<'_> {
    const DIALECT: Dialect = SQLITE;

    fn each<T>(&self, query: &Query<T>, mut each: impl FnMut(T) -> ControlFlow<()>) -> Result<()> {
        let failed = storage(query.operation);
        let mut statement = self.0.prepare_cached(&query.sql).map_err(&failed)?;
        let mut found = statement.query(params(&query.values)).map_err(&failed)?;
        while let Some(row) = found.next().map_err(&failed)? {
            if each((query.decode)(&Cursor(row))?).is_break() {
                break;
            }
        }
        Ok(())
    }
}

/// Lists are JSON; words are looked for by a function of the library. Tables are joined with `CROSS JOIN` and indexes are
/// named because SQLite has no statistics to choose by.
pub(crate) const SQLITE: Dialect = Dialect {
    list_holds: |list, value| {
        format!("EXISTS (SELECT 1 FROM json_each({list}) item WHERE item.value = {value})")
    },
    session_says: Some(|text| {
        format!("holds_words({text}, s.name, s.first_prompt, s.session_id, s.description)")
    }),
    event_says: Some(|text| format!("event_says({text}, e.error_type, e.summary)")),
    day: |time| format!("substr({time}, 1, instr({time}, 'T') - 1)"),
    list_from,
    messages_of_sessions: "sessions s CROSS JOIN transcripts t INDEXED BY transcripts_by_role
        ON t.user_id = s.user_id AND t.session_id = s.session_id",
    events_in_order,
    beside_sessions: |table| format!("sessions s CROSS JOIN {table} t USING (user_id, session_id)"),
    all_vectors: "transcript_vectors",
};

/// The index that gives a list: the few sessions that a condition selects, else all of them in order.
fn list_from(query: &SessionQuery) -> &'static str {
    let own = matches!(query.scope, Scope::User(_));
    let by_id = query.filter.session.is_some() || query.id_prefix.is_some();
    match query {
        _ if by_id && own => "sessions s INDEXED BY sqlite_autoindex_sessions_1",
        _ if by_id => "sessions s INDEXED BY sessions_by_id",
        SessionQuery { parent: Some(_), .. } => "sessions s INDEXED BY sessions_by_parent",
        _ if !own => "sessions s INDEXED BY sessions_of_all_by_activity",
        SessionQuery { filter: SessionFilter { project: Some(_), .. }, .. } => {
            "sessions s INDEXED BY sessions_by_project_activity"
        }
        SessionQuery { filter: SessionFilter { bundle: Some(_), .. }, .. } => {
            "sessions s INDEXED BY sessions_by_bundle"
        }
        _ => "sessions s INDEXED BY sessions_by_activity",
    }
}

/// The index that gives events in order of time. SQLite would rather sort all events of a user than read the newest of them.
fn events_in_order(scope: &Scope, filter: &EventFilter) -> String {
    if filter.sessions.session.is_some() {
        return format!(
            "sessions s CROSS JOIN events e INDEXED BY events_by_session_time {EVENT_OF_SESSION}"
        );
    }
    let index = own_events_index(scope, filter).unwrap_or("events_by_time");
    format!("events e INDEXED BY {index} CROSS JOIN sessions s {EVENT_OF_SESSION}")
}

/// The index of what the filter asks for among one user's events.
pub(crate) fn own_events_index(scope: &Scope, filter: &EventFilter) -> Option<&'static str> {
    match (scope, filter) {
        (Scope::User(_), EventFilter { tool: Some(_), .. }) => Some("events_by_tool"),
        (Scope::User(_), EventFilter { event_type: Some(_), .. }) => Some("events_by_type"),
        (Scope::User(_), EventFilter { level: Some(level), .. }) if *level != Level::Info => {
            Some("events_by_level")
        }
        _ => None,
    }
}

/// The values of a statement with these conditions.
pub(crate) fn values(conditions: &Conditions) -> ParamsFromIter<impl Iterator<Item = types::Value>> {
    params(conditions.values())
}

fn params(values: &[Value]) -> ParamsFromIter<impl Iterator<Item = types::Value>> {
    params_from_iter(values.iter().map(|value| match value {
        Value::Text(text) => types::Value::Text(text.clone()),
        Value::Integer(number) => types::Value::Integer(*number),
        Value::Time(ts) => types::Value::Text(ts.to_string()),
        _ => types::Value::Null,
    }))
}

/// A list as it is stored.
pub(crate) fn json(list: &[String]) -> String {
    serde_json::to_string(list).unwrap_or_default()
}
