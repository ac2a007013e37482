//! Kinds of routes, and parameters that several routes have.

use amplifier_session_api::{AccessRight, Reach};
use axum::http::StatusCode;

use super::{HttpRoute, HttpVerb, RouteBody, RoutePace, RouteParameter as P};
use crate::{
    call::SESSION_OWNER,
    rest::{about, reading::JSON_LINES},
};

/// A route that reads own sessions, without a body.
pub(super) const READ: HttpRoute = HttpRoute {
    name: "",
    method: HttpVerb::Get,
    path: "",
    about: "",
    right: AccessRight::Read,
    or_right: None,
    reach: Reach::Own,
    parameters: &[],
    body: RouteBody::None,
    pace: RoutePace::Short,
    status: StatusCode::OK,
    response: "",
    handler: about::version,
};
/// A route that changes own sessions.
pub(super) const WRITE: HttpRoute =
    HttpRoute { method: HttpVerb::Post, right: AccessRight::Write, body: RouteBody::Json, ..READ };
/// A route that deletes.
pub(super) const REMOVE: HttpRoute = HttpRoute { right: AccessRight::Delete, ..WRITE };
/// A route that stores lines.
pub(super) const STORE: HttpRoute = HttpRoute {
    method: HttpVerb::Put,
    body: RouteBody::Bytes(JSON_LINES),
    pace: RoutePace::Store,
    response: "IngestResponse",
    ..WRITE
};

pub(super) const ID: P =
    P::text("id", "The address of a session: its id, a unique prefix of the id, or `latest`")
        .of("session")
        .required();
pub(super) const NEW_ID: P = P::text("id", "The id of the session").of("session").required();
pub(super) const SCOPE: P = P::choice(
    "scope",
    &["own", "visible", "all"],
    "Whose sessions: your own (default), also those shared with you, or everyone's. The token must reach as far",
);
pub(super) const TZ: P =
    P::text("tz", "The time zone of dates and days, such as `Europe/Berlin`; by default UTC");
pub(super) const PROJECT: &[P] = &[
    P::text("project", "Only this project: its slug, a part or a pattern of it, or its absolute folder"),
    P::text("repo", "Only this repository: its address or the end of the address"),
];
pub(super) const FILTER: &[P] = &[
    P::text("project", "Only this project: its slug, a part or a pattern of it, or its absolute folder"),
    P::texts("projects", "Further projects"),
    P::text("repo", "Only this repository: its address or the end of the address"),
    P::text("since", "Only from this date on: `7d`, `monday`, `2026-01-31` or `2026-01-31T09:30`"),
    P::text("until", "Only until this date"),
    TZ,
    P::text("bundle", "Only sessions that ran with this bundle"),
    P::choice("source", &["amplifier", "amplifier-agent"], "Only sessions of this program"),
    P::texts("tag", "Only sessions with all of these tags").of("tags"),
    P::number("min_turns", "Only sessions with at least this many turns"),
    P::number("max_turns", "Only sessions with at most this many turns"),
];
pub(super) const SESSION: P = P::text("session", "Only this session, by its address");
pub(super) const LIMIT: P = P::count("limit", 1_000, "The largest number of items");
pub(super) const AFTER: P = P::text("after", "The cursor `next` of the answer before");
pub(super) const SHORT_IDS: P = P::flag("short_ids", "Add the shortest ids that name the sessions");
pub(super) const BY: P = P::choices(
    "by",
    &["project", "bundle", "event_type", "tool", "model", "day", "week", "month"],
    "Only these breakdowns; by default all",
);
pub(super) const LENGTH: &[P] = &[
    P::count("max_chars", 1_000_000, "Cut each message to this many characters"),
    P::count("budget", 1_000_000, "Cut the answer to this many tokens"),
];
pub(super) const ONE: &[P] = &[
    ID,
    SCOPE,
    P::text("user", "Only a session of this owner. Without `scope`, those of others are found as far as the token reaches")
        .of(SESSION_OWNER),
];
pub(super) const LINES: &[P] = &[
    P::number("from", "The number of the first one, from 0"),
    P::count("limit", 1_000, "The largest number; by default 100"),
];
pub(super) const QUERY: &[P] = &[
    P::text("q", "Words or a question, with fields such as `tool:bash`").of("query"),
    P::flag("plain", "The query is text without fields"),
    P::flag("exact", "Find exactly this text"),
    SCOPE,
    P::choice("mode", &["hybrid", "semantic", "full_text"], "By words, by meaning, or both (default)"),
    P::choices(
        "in",
        &["user", "assistant", "thinking", "tool", "tool_output", "tool_call", "system"],
        "Only these texts; by default all but `system`. `tool` is calls and their output",
    ),
    P::choice("role", &["user", "assistant", "tool", "system", "developer"], "Only messages with this role"),
    P::texts("file", "Only sessions with a tool call on each of these files").of("files"),
    P::texts("not_session", "Leave these sessions out").of("not_sessions"),
    SESSION,
];
pub(super) const SEARCH: &[P] = &[
    P::count("limit", 200, "The largest number of results"),
    P::count("skip", 10_000, "Leave this many of the best results out"),
    P::choice(
        "unit",
        &["message", "turn", "superseded"],
        "Find messages (default), turns, or superseded messages",
    ),
    P::choice("group", &["session", "none"], "Group results by session, or not (default)"),
    P::count("per_session", 200, "The largest number of results of a session, if they are grouped"),
    P::decimal("mmr_lambda", "The weight of relevance against diversity, from 0 to 1"),
    P::decimal("min_similarity", "The least similarity of results by meaning"),
    P::flag("explain", "Explain how results were found"),
    P::flag("full", "Return whole messages"),
    P::count("snippet_chars", 100_000, "The length of snippets in characters"),
];
pub(super) const DRY_RUN: P = P::flag("dry_run", "Only say what would be removed");
pub(super) const SENT: &[P] = &[
    NEW_ID,
    P::text("project", "The project slug. Required for a new session").of("project_slug"),
    P::text("host", "The machine on which it was recorded. Required for a new session").of("host_id"),
    P::choice("source", &["amplifier", "amplifier-agent"], "The program that wrote the lines"),
    P::text("working_dir", "The folder in which it ran: an absolute path there"),
    P::text("repository", "The address of the repository of this folder"),
    P::text("seen", "The time of lines that state none; by default now"),
    P::flag("include_deleted", "Store the session also if it was deleted from the store"),
];
pub(super) const SENT_LINES: &[P] = &[
    P::number("from", "The number of lines before these; at most `stored` of the answer before").of("start"),
    P::flag("whole", "No line follows these: stored lines after them are superseded"),
];
pub(super) const REMOVED: &[P] = &[
    P::texts("sessions", "The addresses of sessions"),
    P::text("project", "The sessions of this project"),
    P::text("repo", "The sessions of this repository"),
    P::text("older_than", "Those without activity since this date: `90d`"),
    TZ,
    DRY_RUN,
];
