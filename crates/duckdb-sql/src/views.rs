//! Ready-made views for common queries. They are created for the connection of a query and are not part of the file.
//!
//! Their numbers are those of `SessionStorage::get_statistics`: `core` defines a use, a call and a failure, and the views repeat
//! the definitions in SQL.

use amplifier_session_duckdb::{FAILED, counted_elsewhere, join_answered};

/// A view that every query can use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReadyView {
    /// Its name.
    pub name: &'static str,
    /// A description of its rows.
    pub about: &'static str,
    /// Its columns, in order.
    pub columns: &'static [&'static str],
    sql: &'static str,
}

impl ReadyView {
    /// The statement that creates the view.
    pub(crate) fn create(&self) -> String {
        let sql = self.sql.replace("{FAILED}", FAILED).replace("{BEGUN}", BEGUN).replace("{ENDED}", ENDED);
        let reported = TOKENS.map(|name| {
            format!(
                "coalesce(TRY_CAST(trunc(greatest(TRY_CAST(usage ->> '$.{name}' AS DOUBLE), 0)) AS UBIGINT), 0) \
                 AS {name}"
            )
        });
        let totals =
            TOKENS.map(|name| format!("CAST(least(sum({name}), 9223372036854775807) AS BIGINT) AS {name}"));
        let sql = sql
            .replace("{JOIN_ANSWERED}", &join_answered())
            .replace("{COUNTED_ELSEWHERE}", &counted_elsewhere())
            .replace("{REPORTED}", &reported.join(", "))
            .replace("{TOTALS}", &totals.join(", "));
        format!("CREATE OR REPLACE TEMP VIEW {} AS {sql}", self.name)
    }
}

/// The events at the start of a tool use.
const BEGUN: &str = "('tool:pre', 'tool:call')";
/// The events at the end of a tool use.
const ENDED: &str = "('tool:post', 'tool:result', 'tool:error')";

/// The views, in the order in which they are listed.
pub const READY_VIEWS: [ReadyView; 5] =
    [MESSAGES_BY_DAY, TOOL_USE, TOKENS_BY_MODEL_AND_DAY, LONGEST_SESSIONS, ERRORS_BY_TYPE];

/// Days are in UTC. `sessions` counts the sessions with a message on that day.
const MESSAGES_BY_DAY: ReadyView = ReadyView {
    name: "messages_by_day",
    about: "messages of each day (UTC) by role, and the number of sessions they belong to",
    columns: &["day", "messages", "user_messages", "assistant_messages", "tool_messages", "sessions"],
    sql: "
SELECT CAST(ts AS DATE) AS day, count(*) AS messages,
    count(*) FILTER (WHERE role = 'user') AS user_messages,
    count(*) FILTER (WHERE role = 'assistant') AS assistant_messages,
    count(*) FILTER (WHERE role = 'tool') AS tool_messages,
    count(DISTINCT (user_id, session_id)) AS sessions
FROM transcripts GROUP BY day ORDER BY day",
};

/// A use has an event at its start and one at its end; the more frequent of the two is counted. A failed use may have several
/// events that report the failure, so the rate is at most 1. Durations come from the events at the end.
const TOOL_USE: ReadyView = ReadyView {
    name: "tool_use",
    about: "uses of each tool, how many failed, and how long they took in milliseconds",
    columns: &["tool", "calls", "failures", "failure_rate", "mean_ms", "p95_ms"],
    sql: "
SELECT tool, CASE WHEN greatest(begun, ended) > 0 THEN greatest(begun, ended) ELSE reported END AS calls, failures,
    round(least(failures / calls, 1), 4) AS failure_rate, round(mean_ms, 1) AS mean_ms, round(p95_ms, 1) AS p95_ms
FROM (
    SELECT tool_name AS tool, count(*) AS reported,
        count(*) FILTER (WHERE event_type IN {BEGUN}) AS begun,
        count(*) FILTER (WHERE event_type IN {ENDED}) AS ended,
        count(*) FILTER (WHERE {FAILED}) AS failures,
        avg(ms) AS mean_ms, quantile_cont(ms, 0.95) AS p95_ms
    FROM (
        SELECT *, CASE WHEN event_type IN {ENDED}
            THEN TRY_CAST(json_extract_string(summary, '$.duration_ms') AS DOUBLE) END AS ms
        FROM events WHERE tool_name IS NOT NULL
    ) GROUP BY tool_name
) ORDER BY calls DESC, tool",
};

/// The numbers of tokens that a summary may have.
const TOKENS: [&str; 4] = ["input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens"];

/// Usage as `Usage::of` reads it from summaries: numbers are truncated, negative ones count as 0. A call counts once, as in
/// `Events::count_events`; the cost is exact.
const TOKENS_BY_MODEL_AND_DAY: ReadyView = ReadyView {
    name: "tokens_by_model_and_day",
    about: "calls of each model on each day (UTC), tokens and cost, as reported in event logs",
    columns: &[
        "day",
        "model",
        "provider",
        "calls",
        "input_tokens",
        "output_tokens",
        "cache_read_tokens",
        "cache_write_tokens",
        "cost",
    ],
    sql: "
SELECT CAST(ts AS DATE) AS day, coalesce(model, 'unknown') AS model, provider, count(*) AS calls, {TOTALS},
    sum(coalesce(TRY_CAST(json_extract_string(usage, '$.cost') AS DECIMAL(38, 18)), 0)) AS cost
FROM (
    SELECT ts, model, provider, usage, {REPORTED}
    FROM (
        SELECT e.ts, e.model, e.provider, json_extract(e.summary, '$.usage') AS usage
        FROM events e {JOIN_ANSWERED} WHERE contains(e.summary, '\"usage\"') AND NOT {COUNTED_ELSEWHERE}
    ) WHERE json_type(usage) = 'OBJECT'
) GROUP BY ALL ORDER BY day, model, provider",
};

/// The title is `Session::title`.
const LONGEST_SESSIONS: ReadyView = ReadyView {
    name: "longest_sessions",
    about: "sessions by number of messages, with the minutes between their first and last change",
    columns: &[
        "user_id",
        "session_id",
        "project",
        "messages",
        "turns",
        "events",
        "minutes",
        "created",
        "updated",
        "title",
    ],
    sql: "
SELECT user_id, session_id, project_slug AS project, message_count AS messages, turn_count AS turns,
    event_count AS events, round(epoch(updated - created) / 60, 1) AS minutes, created, updated,
    coalesce(CASE WHEN trim(name) <> '' THEN name END, first_prompt, session_id) AS title
FROM sessions ORDER BY messages DESC, created, session_id",
};

/// `error_type` is `NULL` if the event names no type.
const ERRORS_BY_TYPE: ReadyView = ReadyView {
    name: "errors_by_type",
    about: "events that report a failure, by error type, event type and tool",
    columns: &["error_type", "event_type", "tool", "errors", "sessions", "first_ts", "last_ts"],
    sql: "
SELECT error_type, event_type, tool_name AS tool, count(*) AS errors,
    count(DISTINCT (user_id, session_id)) AS sessions, min(ts) AS first_ts, max(ts) AS last_ts
FROM events WHERE {FAILED}
GROUP BY error_type, event_type, tool_name ORDER BY errors DESC, error_type, event_type, tool",
};
