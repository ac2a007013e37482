//! Counting events.

use amplifier_session_core::{
    Result, Scope,
    backend::{CountedEvents, REPEATS},
    search::EventFilter,
};
use amplifier_session_sql::{Reader, read, read::events::GroupedEvents, rows::EVENT_OF_SESSION};

use crate::connection::{DUCKDB, DuckDbReader};

/// The condition that an event reports a failure: `Event::failed`. Only a JSON `true` is a failure; a summary that is not JSON
/// reports nothing.
pub(crate) const FAILED: &str = "(level = 'ERROR' OR error_type IS NOT NULL
    OR coalesce(CASE WHEN json_valid(summary) THEN CAST(json_extract(summary, '$.has_error') AS VARCHAR) END = 'true', FALSE))";

/// The condition that an equal line in the same log is certainly the same event: see `EventCounter`.
pub(crate) const MAY_RECUR: &str = "(NOT ts_estimated AND (epoch_us(ts) % 1000000 <> 0
    OR contains(summary, '\"usage\":') OR contains(summary, '\"tool_call_id\":')))";

/// The sessions that have a response with usage.
const ANSWERED: &str = "SELECT DISTINCT user_id, session_id FROM events
        WHERE event_type = 'llm:response' AND contains(summary, '\"usage\"')
            AND CASE WHEN json_valid(summary) THEN json_type(summary, '$.usage') END = 'OBJECT'";

/// Joins the events `e` with the sessions that have a response with usage, as `a`.
pub(crate) fn join_answered() -> String {
    format!("LEFT JOIN ({ANSWERED}) a ON a.user_id = e.user_id AND a.session_id = e.session_id")
}

/// The condition that the usage of an event repeats that of a response of its session. Needs [`join_answered`].
pub(crate) fn counted_elsewhere() -> String {
    format!("(a.session_id IS NOT NULL AND {})", repeats_usage("e"))
}

/// The condition that events of the table `name` are of a type whose usage repeats that of a response ([`REPEATS`]).
pub(crate) fn repeats_usage(name: &str) -> String {
    let prefixes = REPEATS.map(|prefix| format!("starts_with({name}.event_type, '{prefix}')"));
    format!("({})", prefixes.join(" OR "))
}

/// The events that match `filter`, counted by group.
pub(crate) fn count(reader: &DuckDbReader<'_>, scope: &Scope, filter: &EventFilter) -> Result<CountedEvents> {
    if filter.text.is_some() {
        let answered = format!("SELECT user_id, session_id FROM ({ANSWERED})");
        return read::events::count_each(reader, scope, filter, answered);
    }
    let group = format!(
        "{} AS quarter, e.event_type, e.tool_name, e.model, e.provider, {FAILED} AS failed,
         CASE WHEN contains(e.summary, '\"session_id\":') AND json_valid(e.summary)
             THEN json_extract_string(e.summary, '$.session_id') END",
        (DUCKDB.quarter_hour)("e.ts")
    );
    let sql = GroupedEvents {
        group: &group,
        from: &format!("events e JOIN sessions s {EVENT_OF_SESSION}"),
        again: &format!(
            "count(*) FILTER (WHERE {MAY_RECUR})
             - count(DISTINCT hash(e.user_id, e.session_id, e.digest)) FILTER (WHERE {MAY_RECUR})"
        ),
        has_usage: "contains(e.summary, '\"usage\":')",
    };
    let mut counter = read::events::count_groups(reader, scope, filter, sql)?;
    if !counter.unanswered().is_empty() {
        let answered = read::events::answered_sessions(ANSWERED.to_owned());
        counter.set_answered(reader.rows(&answered)?);
    }
    Ok(counter.into_counts())
}
