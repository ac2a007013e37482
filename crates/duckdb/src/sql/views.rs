//! Views that answer what is asked most. They are made for the connection that asks, and are not part of a file.
//!
//! Numbers are those of `SessionStorage::get_statistics`: what counts as a use, a call or a failure is decided in `core`,
//! and said here once more in SQL.

use crate::event_counts::{FAILED, counted_elsewhere, join_answered};

/// A view that is there for every question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReadyView {
    /// Its name.
    pub name: &'static str,
    /// What a row of it is.
    pub about: &'static str,
    /// Its columns, in order.
    pub columns: &'static [&'static str],
    sql: &'static str,
}

impl ReadyView {
    /// The statement that makes the view.
    pub(crate) fn create(&self) -> String {
        let sql = self.sql.replace("{FAILED}", FAILED).replace("{BEGUN}", BEGUN).replace("{ENDED}", ENDED);
        let sql = sql
            .replace("{JOIN_ANSWERED}", &join_answered())
            .replace("{COUNTED_ELSEWHERE}", &counted_elsewhere());
        format!("CREATE OR REPLACE TEMP VIEW {} AS {sql}", self.name)
    }
}

/// What a use of a tool leaves at its beginning.
const BEGUN: &str = "('tool:pre', 'tool:call')";
/// What a use of a tool leaves at its end.
const ENDED: &str = "('tool:post', 'tool:result', 'tool:error')";

/// The views, in the order in which they are listed.
pub const READY_VIEWS: [ReadyView; 5] =
    [MESSAGES_BY_DAY, TOOL_USE, TOKENS_BY_MODEL_AND_DAY, LONGEST_SESSIONS, ERRORS_BY_TYPE];

/// Days are days in UTC. `sessions` are those with a message of the day, whenever they began.
const MESSAGES_BY_DAY: ReadyView = ReadyView {
    name: "messages_by_day",
    about: "messages of each day (UTC) by who speaks, and the sessions that they belong to",
    columns: &["day", "messages", "user_messages", "assistant_messages", "tool_messages", "sessions"],
    sql: "
SELECT CAST(ts AS DATE) AS day, count(*) AS messages,
    count(*) FILTER (WHERE role = 'user') AS user_messages,
    count(*) FILTER (WHERE role = 'assistant') AS assistant_messages,
    count(*) FILTER (WHERE role = 'tool') AS tool_messages,
    count(DISTINCT (user_id, session_id)) AS sessions
FROM transcripts GROUP BY day ORDER BY day",
};

/// A use leaves an event at its beginning and one at its end: the more frequent of the two count. One that failed may leave
/// several events that tell so, hence the least. Durations are those that events at the end tell.
const TOOL_USE: ReadyView = ReadyView {
    name: "tool_use",
    about: "uses of each tool, how many failed, and how long they took in milliseconds",
    columns: &["tool", "calls", "failures", "failure_rate", "mean_ms", "p95_ms"],
    sql: "
SELECT tool, CASE WHEN greatest(begun, ended) > 0 THEN greatest(begun, ended) ELSE told END AS calls, failures,
    round(least(failures / calls, 1), 4) AS failure_rate, round(mean_ms, 1) AS mean_ms, round(p95_ms, 1) AS p95_ms
FROM (
    SELECT tool_name AS tool, count(*) AS told,
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

/// A number of tokens that a summary tells.
macro_rules! told {
    ($name:literal) => {
        concat!(
            "coalesce(TRY_CAST(trunc(greatest(TRY_CAST(usage ->> '$.",
            $name,
            "' AS DOUBLE), 0)) AS UBIGINT), 0) AS ",
            $name
        )
    };
}

/// Their sum.
macro_rules! total {
    ($name:literal) => {
        concat!("CAST(least(sum(", $name, "), 9223372036854775807) AS BIGINT) AS ", $name)
    };
}

/// What summaries tell of usage: `Usage::of`. Numbers are cut to whole ones, and what is below none counts as none. A call
/// counts once, as in `StorageBackend::count_events`; the cost is exact.
const TOKENS_BY_MODEL_AND_DAY: ReadyView = ReadyView {
    name: "tokens_by_model_and_day",
    about: "calls of each model on each day (UTC), tokens and cost, as far as event logs tell them",
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
    sql: concat!(
        "
SELECT CAST(ts AS DATE) AS day, coalesce(model, 'unknown') AS model, provider, count(*) AS calls, ",
        total!("input_tokens"),
        ", ",
        total!("output_tokens"),
        ", ",
        total!("cache_read_tokens"),
        ", ",
        total!("cache_write_tokens"),
        ",
    sum(coalesce(TRY_CAST(json_extract_string(usage, '$.cost') AS DECIMAL(38, 18)), 0)) AS cost
FROM (
    SELECT ts, model, provider, usage, ",
        told!("input_tokens"),
        ", ",
        told!("output_tokens"),
        ", ",
        told!("cache_read_tokens"),
        ", ",
        told!("cache_write_tokens"),
        "
    FROM (
        SELECT e.ts, e.model, e.provider, json_extract(e.summary, '$.usage') AS usage
        FROM events e {JOIN_ANSWERED} WHERE contains(e.summary, '\"usage\"') AND NOT {COUNTED_ELSEWHERE}
    ) WHERE json_type(usage) = 'OBJECT'
) GROUP BY ALL ORDER BY day, model, provider"
    ),
};

/// The title is `Session::title`.
const LONGEST_SESSIONS: ReadyView = ReadyView {
    name: "longest_sessions",
    about: "sessions, those with the most messages first, and how many minutes lie between their first and last change",
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

/// Of an event that names no type of error `error_type` is nothing.
const ERRORS_BY_TYPE: ReadyView = ReadyView {
    name: "errors_by_type",
    about: "events that tell of a failure, by the type of error that they name, the type of event, and the tool",
    columns: &["error_type", "event_type", "tool", "errors", "sessions", "first_ts", "last_ts"],
    sql: "
SELECT error_type, event_type, tool_name AS tool, count(*) AS errors,
    count(DISTINCT (user_id, session_id)) AS sessions, min(ts) AS first_ts, max(ts) AS last_ts
FROM events WHERE {FAILED}
GROUP BY error_type, event_type, tool_name ORDER BY errors DESC, error_type, event_type, tool",
};
