//! Ready-made views for common queries. They are created for the connection of a query and are not part of the file.
//!
//! Their numbers are those of `SessionStorage::get_statistics`: `core` defines a use, a call and a failure, and the views repeat
//! the definitions in SQL.

use crate::event_counts::{FAILED, MAY_RECUR, counted_elsewhere, join_answered, repeats_usage};

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
            .replace("{TRANSCRIPTS_ONCE}", &transcripts_once())
            .replace("{COPIED}", &copied())
            .replace("{CALLS_ONCE}", &calls_once())
            .replace("{EVENTS_ONCE}", &events_once())
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

/// Sessions that begin with the messages of an older one, with an answer, and how many these are: see
/// `SessionStorage::get_statistics`. Two sessions have the same lines at the same places, from the first on.
const PAIRS: &str = "(
    SELECT user_id, session_id, other, count(*) AS messages FROM (
        SELECT a.user_id, a.session_id, b.session_id AS other, a.sequence, a.role, a.turn,
            a.ts_estimated, row_number() OVER (PARTITION BY a.user_id, a.session_id, b.session_id ORDER BY a.sequence) - 1 AS before
        FROM transcripts a
        JOIN transcripts b ON b.user_id = a.user_id AND b.sequence = a.sequence AND b.digest = a.digest
        JOIN sessions s ON s.user_id = a.user_id AND s.session_id = a.session_id
        JOIN sessions o ON o.user_id = b.user_id AND o.session_id = b.session_id
        WHERE o.first_prompt = s.first_prompt AND (o.created, o.session_id) < (s.created, s.session_id)
    ) WHERE sequence = before
    GROUP BY user_id, session_id, other
    HAVING bool_or(role IN ('assistant', 'tool')) AND (bool_or(NOT ts_estimated) OR count(DISTINCT turn) > 1)
)";

/// Messages, without the copied ones.
fn transcripts_once() -> String {
    format!(
        "(SELECT t.* FROM transcripts t LEFT JOIN {} c ON c.user_id = t.user_id AND c.session_id = t.session_id
        WHERE t.sequence >= coalesce(c.messages, 0))",
        copied()
    )
}

/// How many of the first messages of a session are copies, if any are.
fn copied() -> String {
    format!(
        "(SELECT user_id, session_id, max(messages) AS messages FROM {PAIRS} GROUP BY user_id, session_id)"
    )
}

/// Events, without those that are in the same log again, that an older session has too, or that are of another session
/// with a log of its own.
fn events_once() -> String {
    // The same in a copy that names the session it was copied from.
    let content = |name: &str| format!("regexp_replace({name}.summary, ',?\"session_id\":\"[^\"]*\"', '')");
    let (own, other) = (content("e"), content("o"));
    format!(
        "(SELECT e.* EXCLUDE (again) FROM (
            SELECT *, row_number() OVER (
                PARTITION BY user_id, session_id, digest, CASE WHEN {MAY_RECUR} THEN -1 ELSE sequence END
            ) AS again FROM events
        ) e
        LEFT JOIN sessions n ON n.user_id = e.user_id AND n.event_count > 0
            AND n.session_id = CASE WHEN contains(e.summary, '\"session_id\":') AND json_valid(e.summary)
                THEN json_extract_string(e.summary, '$.session_id') END
        LEFT JOIN {PAIRS} p ON p.user_id = e.user_id AND p.session_id = e.session_id AND p.other = n.session_id
        WHERE again = 1 AND (n.session_id IS NULL OR p.other IS NOT NULL)
        AND NOT EXISTS (
            SELECT 1 FROM {PAIRS} p JOIN events o ON o.user_id = p.user_id AND o.session_id = p.other
            WHERE p.user_id = e.user_id AND p.session_id = e.session_id AND o.event_type = e.event_type
                AND o.ts = e.ts AND {other} = {own}
        ))"
    )
}

/// Events with usage, one for each request of a session.
fn calls_once() -> String {
    let field = |name: &str| {
        format!("CASE WHEN json_valid(summary) THEN json_extract_string(summary, '$.{name}') END")
    };
    let (request, cost, tokens) = (field("request_id"), field("usage.cost"), field("usage.output_tokens"));
    let repeats = repeats_usage("c");
    format!(
        "(SELECT * EXCLUDE (reported) FROM (
            SELECT *, CASE WHEN {request} IS NULL THEN 1 ELSE row_number() OVER (
                PARTITION BY user_id, session_id, {request}, {repeats}
                ORDER BY {cost} IS NULL, TRY_CAST({tokens} AS DOUBLE) DESC NULLS LAST
            ) END AS reported
            FROM {} c WHERE contains(summary, '\"usage\":')
        ) WHERE reported = 1)",
        events_once()
    )
}

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
FROM {TRANSCRIPTS_ONCE} GROUP BY day ORDER BY day",
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
        FROM {EVENTS_ONCE} WHERE tool_name IS NOT NULL
    ) GROUP BY tool_name
) ORDER BY calls DESC, tool",
};

/// The numbers of tokens that a summary may have.
const TOKENS: [&str; 4] = ["input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens"];

/// Usage as `Usage::of` reads it from summaries: numbers are truncated, negative ones count as 0. A call counts once, as in
/// `Events::count_events`; the cost is exact. A model is named without a path before it.
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
        "priced_calls",
    ],
    sql: "
SELECT CAST(ts AS DATE) AS day,
    coalesce(nullif(regexp_extract(model, '[^/]*$'), ''), model, 'unknown') AS model, provider,
    count(*) AS calls, {TOTALS}, sum(coalesce(price, 0)) AS cost, count(price) AS priced_calls
FROM (
    SELECT ts, model, provider,
        CASE WHEN TRY_CAST(json_extract_string(usage, '$.cost') AS DECIMAL(38, 24)) >= 0
            THEN TRY_CAST(json_extract_string(usage, '$.cost') AS DECIMAL(38, 24)) END AS price,
        {REPORTED}
    FROM (
        SELECT e.ts, e.model, e.provider, json_extract(e.summary, '$.usage') AS usage
        FROM {CALLS_ONCE} e {JOIN_ANSWERED} WHERE contains(e.summary, '\"usage\"') AND NOT {COUNTED_ELSEWHERE}
    ) WHERE json_type(usage) = 'OBJECT'
) GROUP BY ALL ORDER BY day, model, provider",
};

/// The title is `Session::title`. What a session has of an older one is not counted.
const LONGEST_SESSIONS: ReadyView = ReadyView {
    name: "longest_sessions",
    about: "sessions by number of messages, without copied ones, and the minutes between first and last change",
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
SELECT s.user_id, s.session_id, project_slug AS project,
    message_count - coalesce(c.messages, 0) AS messages, turn_count - coalesce(c.turns, 0) AS turns,
    coalesce(e.events, 0) AS events, round(epoch(updated - created) / 60, 1) AS minutes, created, updated,
    coalesce(CASE WHEN trim(name) <> '' THEN name END, first_prompt, s.session_id) AS title
FROM sessions s
LEFT JOIN (
    SELECT t.user_id, t.session_id, count(*) AS messages, count(DISTINCT t.turn) AS turns
    FROM transcripts t JOIN {COPIED} p ON p.user_id = t.user_id AND p.session_id = t.session_id
    WHERE t.sequence < p.messages GROUP BY t.user_id, t.session_id
) c ON c.user_id = s.user_id AND c.session_id = s.session_id
LEFT JOIN (SELECT user_id, session_id, count(*) AS events FROM {EVENTS_ONCE} GROUP BY user_id, session_id) e
    ON e.user_id = s.user_id AND e.session_id = s.session_id
ORDER BY messages DESC, created, s.session_id",
};

/// `error_type` is `NULL` if the event names no type.
const ERRORS_BY_TYPE: ReadyView = ReadyView {
    name: "errors_by_type",
    about: "events that report a failure, by error type, event type and tool",
    columns: &["error_type", "event_type", "tool", "errors", "sessions", "first_ts", "last_ts"],
    sql: "
SELECT error_type, event_type, tool_name AS tool, count(*) AS errors,
    count(DISTINCT (user_id, session_id)) AS sessions, min(ts) AS first_ts, max(ts) AS last_ts
FROM {EVENTS_ONCE} WHERE {FAILED}
GROUP BY error_type, event_type, tool_name ORDER BY errors DESC, error_type, event_type, tool",
};
