//! The table of routes.

use amplifier_session_api::{AccessRight, Reach};

use super::{HttpRoute, HttpVerb, OpenPage, OpenRoute, RouteBody, RoutePace, RouteParameter as P};
use crate::rest::{
    about, changing, ingesting, listing,
    reading::{self, JSON_LINES},
    removing, searching,
};

/// A route that reads own sessions, without a body.
const READ: HttpRoute = HttpRoute {
    name: "",
    method: HttpVerb::Get,
    path: "",
    about: "",
    right: AccessRight::Read,
    reach: Reach::Own,
    parameters: &[],
    body: RouteBody::None,
    pace: RoutePace::Short,
    response: "",
    handler: about::version,
};
/// A route that changes own sessions.
const WRITE: HttpRoute =
    HttpRoute { method: HttpVerb::Post, right: AccessRight::Write, body: RouteBody::Json, ..READ };
/// A route that deletes.
const REMOVE: HttpRoute = HttpRoute { right: AccessRight::Delete, ..WRITE };
/// A route that stores lines.
const STORE: HttpRoute = HttpRoute {
    method: HttpVerb::Put,
    body: RouteBody::Bytes(JSON_LINES),
    pace: RoutePace::Store,
    response: "IngestResponse",
    ..WRITE
};

const ID: P = P::text("id", "The address of a session: its id, a unique prefix of the id, or `latest`")
    .of("session")
    .required();
const NEW_ID: P = P::text("id", "The id of the session").of("session").required();
const SCOPE: P = P::choice(
    "scope",
    &["own", "visible", "all"],
    "Whose sessions: your own (default), also those shared with you, or everyone's. The token must reach as far",
);
const TZ: P = P::text("tz", "The time zone of dates and days, such as `Europe/Berlin`; by default UTC");
const PROJECT: &[P] = &[
    P::text("project", "Only this project: its slug, a part or a pattern of it, or its absolute folder"),
    P::text("repo", "Only this repository: its address or the end of the address"),
];
const FILTER: &[P] = &[
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
const SESSION: P = P::text("session", "Only this session, by its address");
const LIMIT: P = P::count("limit", 1_000, "The largest number of items");
const AFTER: P = P::text("after", "The cursor `next` of the answer before");
const SHORT_IDS: P = P::flag("short_ids", "Add the shortest ids that name the sessions");
const LENGTH: &[P] = &[
    P::count("max_chars", 1_000_000, "Cut each message to this many characters"),
    P::count("budget", 1_000_000, "Cut the answer to this many tokens"),
];
const ONE: &[P] = &[ID, SCOPE];
const LINES: &[P] = &[
    P::number("from", "The number of the first one, from 0"),
    P::count("limit", 1_000, "The largest number; by default 100"),
];
const QUERY: &[P] = &[
    P::text("q", "Words or a question, with fields such as `tool:bash`").of("query"),
    P::flag("plain", "The query is text without fields"),
    P::flag("exact", "Find exactly this text"),
    SCOPE,
    P::choice("mode", &["hybrid", "semantic", "full_text"], "By words, by meaning, or both (default)"),
    P::choices(
        "in",
        &["user", "assistant", "thinking", "tool", "system"],
        "Only these texts; by default all but `system`",
    ),
    P::choice("role", &["user", "assistant", "tool", "system", "developer"], "Only messages with this role"),
    P::texts("file", "Only sessions with a tool call on each of these files").of("files"),
    P::texts("not_session", "Leave these sessions out").of("not_sessions"),
    SESSION,
];
const SEARCH: &[P] = &[
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
const DRY_RUN: P = P::flag("dry_run", "Only say what would be removed");
const SENT: &[P] = &[
    NEW_ID,
    P::text("project", "The project slug. Required for a new session").of("project_slug"),
    P::text("host", "The machine on which it was recorded. Required for a new session").of("host_id"),
    P::choice("source", &["amplifier", "amplifier-agent"], "The program that wrote the lines"),
    P::text("working_dir", "The folder in which it ran: an absolute path there"),
    P::text("repository", "The address of the repository of this folder"),
    P::text("seen", "The time of lines that state none; by default now"),
    P::flag("include_deleted", "Store the session also if it was deleted from the store"),
];
const SENT_LINES: &[P] = &[
    P::number("from", "The number of lines before these; at most `stored` of the answer before").of("start"),
    P::flag("whole", "No line follows these: stored lines after them are superseded"),
];
const REMOVED: &[P] = &[
    P::texts("sessions", "The addresses of sessions"),
    P::text("project", "The sessions of this project"),
    P::text("repo", "The sessions of this repository"),
    P::text("older_than", "Those without activity since this date: `90d`"),
    TZ,
    DRY_RUN,
];

/// The routes for everyone. They read no sessions.
pub(crate) static OPEN_ROUTES: &[OpenRoute] = &[
    OpenRoute {
        name: "healthz",
        path: "/healthz",
        about: "Whether the process runs",
        response: "text/plain; charset=utf-8",
        page: OpenPage::Health,
    },
    OpenRoute {
        name: "readyz",
        path: "/readyz",
        about: "Whether the store answers; 503 if it does not, or if the server is stopping",
        response: "text/plain; charset=utf-8",
        page: OpenPage::Readiness,
    },
    OpenRoute {
        name: "openapi",
        path: "/openapi.json",
        about: "This description",
        response: "application/json",
        page: OpenPage::Description,
    },
    OpenRoute {
        name: "docs",
        path: "/docs",
        about: "This description as a page",
        response: "text/html; charset=utf-8",
        page: OpenPage::Documentation,
    },
];

/// The routes for callers who have signed in.
pub(crate) static ROUTES: &[HttpRoute] = &[
    HttpRoute {
        name: "me",
        path: "/v1/me",
        about: "Who you are, and what your token may do",
        response: "CallerView",
        handler: about::me,
        ..READ
    },
    HttpRoute {
        name: "version",
        path: "/v1/version",
        about: "The version of the server",
        response: "VersionView",
        handler: about::version,
        ..READ
    },
    HttpRoute {
        name: "sessions",
        path: "/v1/sessions",
        about: "Lists sessions, the last changed first",
        parameters: &[
            FILTER,
            &[
                SCOPE,
                P::text("text", "Only sessions with all these words in title or description"),
                P::text("id_prefix", "Only sessions whose id begins so"),
                P::text("parent", "Only children of this session, by its address"),
                P::choice("sort", &["updated", "cost", "messages", "duration"], "The order"),
                P::flag("tree", "Children under their parents"),
                LIMIT,
                AFTER,
                SHORT_IDS,
            ],
        ],
        response: "SessionsResponse",
        handler: listing::sessions,
        ..READ
    },
    HttpRoute {
        name: "session",
        path: "/v1/sessions/{id}",
        about: "Reads a session, without its messages",
        parameters: &[ONE],
        response: "SessionResponse",
        handler: reading::session,
        ..READ
    },
    HttpRoute {
        name: "messages",
        path: "/v1/sessions/{id}/messages",
        about: "Reads messages",
        parameters: &[ONE, LINES, LENGTH, &[P::flag("vectors", "Say which texts have vectors"), SHORT_IDS]],
        response: "MessagesResponse",
        handler: reading::messages,
        ..READ
    },
    HttpRoute {
        name: "message",
        path: "/v1/sessions/{id}/messages/{n}",
        about: "Reads a message and those around it",
        parameters: &[
            ONE,
            LENGTH,
            &[
                P::number("n", "The number of the message").of("message").required(),
                P::count("before", 1_000, "The number of messages before it"),
                P::count("after", 1_000, "The number of messages after it"),
                SHORT_IDS,
            ],
        ],
        response: "ContextResponse",
        handler: reading::context,
        ..READ
    },
    HttpRoute {
        name: "turn",
        path: "/v1/sessions/{id}/turns/{n}",
        about: "Reads a turn: a question with its last answer and its summary",
        parameters: &[
            ONE,
            &[
                P::number("n", "The number of the turn").of("turn").required(),
                P::flag("embedding", "Add what is known of its vector"),
                P::flag("turn_count", "Add the number of turns"),
            ],
        ],
        response: "TurnResponse",
        handler: reading::turn,
        ..READ
    },
    HttpRoute {
        name: "turn_context",
        path: "/v1/sessions/{id}/turns/{n}/context",
        about: "Reads the messages of a turn, and of the turns around it",
        parameters: &[
            ONE,
            LENGTH,
            &[
                P::number("n", "The number of the turn").of("turn").required(),
                P::count("before", 100, "The number of turns before it"),
                P::count("after", 100, "The number of turns after it"),
                SHORT_IDS,
            ],
        ],
        response: "ContextResponse",
        handler: reading::context,
        ..READ
    },
    HttpRoute {
        name: "session_events",
        path: "/v1/sessions/{id}/events",
        about: "Reads the event log of a session",
        parameters: &[ONE, LINES, &[P::flag("full", "Add the lines")]],
        response: "SessionEventsResponse",
        handler: reading::session_events,
        ..READ
    },
    HttpRoute {
        name: "event",
        path: "/v1/sessions/{id}/events/{n}",
        about: "Reads an event",
        parameters: &[
            ONE,
            &[
                P::number("n", "The number of the event").of("from").required(),
                P::flag("full", "Add the line"),
            ],
        ],
        response: "SessionEventsResponse",
        handler: reading::event,
        ..READ
    },
    HttpRoute {
        name: "session_statistics",
        path: "/v1/sessions/{id}/statistics",
        about: "Counts messages, events, tokens and cost of a session",
        parameters: &[ONE],
        response: "StatisticsResponse",
        handler: listing::statistics,
        ..READ
    },
    HttpRoute {
        name: "files",
        path: "/v1/sessions/{id}/files",
        about: "Lists the files that a session read and changed",
        parameters: &[ONE, &[P::flag("changed", "Only those that it changed"), LIMIT]],
        response: "FilesResponse",
        handler: reading::files,
        ..READ
    },
    HttpRoute {
        name: "session_vectors",
        path: "/v1/sessions/{id}/vectors",
        about: "Says which texts of a session have vectors",
        parameters: &[ONE],
        response: "SessionVectorsResponse",
        handler: reading::session_vectors,
        ..READ
    },
    HttpRoute {
        name: "session_secrets",
        path: "/v1/sessions/{id}/secrets",
        about: "Lists the secrets in one of your sessions",
        parameters: &[&[ID, SHORT_IDS]],
        response: "SecretsResponse",
        handler: listing::secrets,
        ..READ
    },
    HttpRoute {
        name: "superseded",
        path: "/v1/sessions/{id}/superseded",
        about: "Reads the superseded messages of one of your sessions",
        parameters: &[
            &[ID],
            LINES,
            &[P::count("max_chars", 1_000_000, "Cut each message to this many characters")],
        ],
        response: "SupersededMessagesResponse",
        handler: reading::superseded,
        ..READ
    },
    HttpRoute {
        name: "session_export",
        path: "/v1/sessions/{id}/export",
        about: "Writes a session byte for byte, as JSON lines that `import` reads",
        parameters: &[ONE, &[P::flag("vectors", "With its vectors")]],
        pace: RoutePace::Stream,
        response: JSON_LINES,
        handler: reading::export,
        ..READ
    },
    HttpRoute {
        name: "export",
        path: "/v1/export",
        about: "Writes sessions byte for byte, as JSON lines that `import` reads",
        parameters: &[
            PROJECT,
            &[P::texts("projects", "Further projects"), SCOPE, P::flag("vectors", "With their vectors")],
        ],
        pace: RoutePace::Stream,
        response: JSON_LINES,
        handler: reading::export,
        ..READ
    },
    HttpRoute {
        name: "search",
        path: "/v1/search",
        about: "Searches messages by words and by meaning",
        parameters: &[QUERY, FILTER, SEARCH, LENGTH],
        pace: RoutePace::Search,
        response: "SearchResponse",
        handler: searching::search,
        ..READ
    },
    HttpRoute {
        name: "search.post",
        method: HttpVerb::Post,
        path: "/v1/search",
        about: "As GET, for queries that must not be in addresses, which proxies log",
        parameters: &[QUERY, FILTER, SEARCH, LENGTH],
        body: RouteBody::Json,
        pace: RoutePace::Search,
        response: "SearchResponse",
        handler: searching::search,
        ..READ
    },
    HttpRoute {
        name: "timeline",
        path: "/v1/timeline",
        about: "Counts matching messages by day, week or month",
        parameters: &[
            QUERY,
            FILTER,
            &[P::choice("by", &["day", "week", "month"], "The unit; by default one that fits")],
        ],
        pace: RoutePace::Search,
        response: "TimelineResponse",
        handler: searching::timeline,
        ..READ
    },
    HttpRoute {
        name: "events",
        path: "/v1/events",
        about: "Finds events in all logs, the newest first",
        parameters: &[
            FILTER,
            &[
                SCOPE,
                SESSION,
                P::text("text", "Only events with this text"),
                P::text("type", "Only events of this type").of("event_type"),
                P::text("category", "Only events of this category"),
                P::text("tool", "Only events of this tool"),
                P::text("model", "Only events of this model"),
                P::text("provider", "Only events of this provider"),
                P::choice("level", &["DEBUG", "INFO", "WARN", "ERROR"], "Only events of at least this level"),
                P::text("error_type", "Only errors of this type"),
                LIMIT,
                AFTER,
                P::flag("full", "Add the lines"),
                SHORT_IDS,
            ],
        ],
        pace: RoutePace::Search,
        response: "EventsResponse",
        handler: listing::events,
        ..READ
    },
    HttpRoute {
        name: "statistics",
        path: "/v1/statistics",
        about: "Counts sessions, messages, events, tokens and cost",
        parameters: &[FILTER, &[SCOPE, SESSION]],
        response: "StatisticsResponse",
        handler: listing::statistics,
        ..READ
    },
    HttpRoute {
        name: "projects",
        path: "/v1/projects",
        about: "Lists projects",
        parameters: &[FILTER, &[SCOPE]],
        response: "ProjectsResponse",
        handler: listing::projects,
        ..READ
    },
    HttpRoute {
        name: "recent",
        path: "/v1/projects/recent",
        about: "Lists recent projects with their newest sessions",
        parameters: &[
            FILTER,
            &[
                SCOPE,
                P::choice("sort", &["updated", "cost", "messages", "duration"], "The order"),
                LIMIT,
                SHORT_IDS,
            ],
        ],
        response: "RecentResponse",
        handler: listing::recent,
        ..READ
    },
    HttpRoute {
        name: "users",
        path: "/v1/users",
        about: "You, and the users whose sessions you can read",
        parameters: &[&[SCOPE]],
        response: "UsersResponse",
        handler: listing::users,
        ..READ
    },
    HttpRoute {
        name: "tags",
        path: "/v1/tags",
        about: "Lists tags",
        parameters: &[&[SCOPE]],
        response: "TagsResponse",
        handler: listing::tags,
        ..READ
    },
    HttpRoute {
        name: "gaps",
        path: "/v1/gaps",
        about: "Lists missing messages and events",
        parameters: &[&[SCOPE, P::texts("sessions", "Only these sessions, by their addresses")]],
        response: "GapsResponse",
        handler: listing::gaps,
        ..READ
    },
    HttpRoute {
        name: "vectors",
        path: "/v1/vectors",
        about: "Says how many messages have vectors",
        parameters: &[&[SCOPE]],
        response: "VectorStatus",
        handler: listing::vectors,
        ..READ
    },
    HttpRoute {
        name: "status",
        path: "/v1/status",
        about: "Says what keeps the store up to date",
        right: AccessRight::Admin,
        response: "StoreStatusResponse",
        handler: listing::status,
        ..READ
    },
    HttpRoute {
        name: "secrets",
        path: "/v1/secrets",
        about: "Lists the secrets in your sessions",
        parameters: &[PROJECT, &[P::texts("projects", "Further projects"), SHORT_IDS]],
        pace: RoutePace::Search,
        response: "SecretsResponse",
        handler: listing::secrets,
        ..READ
    },
    HttpRoute {
        name: "superseded_sessions",
        path: "/v1/superseded",
        about: "Lists your sessions with superseded lines",
        parameters: &[FILTER, &[LIMIT, SHORT_IDS]],
        response: "SupersededSessionsResponse",
        handler: listing::superseded_sessions,
        ..READ
    },
    HttpRoute {
        name: "superseded_events",
        path: "/v1/superseded/events",
        about: "Lists superseded events of your sessions",
        parameters: &[
            FILTER,
            LINES,
            &[
                SESSION,
                P::text("type", "Only events of this type").of("event_type"),
                P::flag("full", "Add the lines"),
            ],
        ],
        response: "SupersededEventsResponse",
        handler: listing::superseded_events,
        ..READ
    },
    HttpRoute {
        name: "edit",
        method: HttpVerb::Patch,
        path: "/v1/sessions/{id}",
        about: "Sets name or description of one of your sessions",
        parameters: &[&[
            ID,
            P::text("name", "The name"),
            P::text("description", "The description"),
            P::choices("clear", &["name", "description", "tags"], "Remove these"),
            P::choices("reset", &["name", "description", "tags"], "Take these from the files again"),
        ]],
        response: "ChangedView",
        handler: changing::edit,
        ..WRITE
    },
    HttpRoute {
        name: "share",
        method: HttpVerb::Put,
        path: "/v1/sessions/{id}/sharing",
        about: "Sets who else can see one of your sessions",
        parameters: &[&[
            ID,
            P::choice("visibility", &["private", "team", "org", "public"], "Who can see it").required(),
            P::texts("team_ids", "The teams, with `team`"),
            P::text("org_id", "The organisation, with `org`"),
        ]],
        response: "ChangedView",
        handler: changing::share,
        ..WRITE
    },
    HttpRoute {
        name: "tag",
        path: "/v1/sessions/{id}/tags",
        about: "Adds and removes tags of one of your sessions",
        parameters: &[&[ID, P::texts("add", "The tags to add"), P::texts("remove", "The tags to remove")]],
        response: "ChangedView",
        handler: changing::tag,
        ..WRITE
    },
    HttpRoute {
        name: "summaries",
        path: "/v1/summaries",
        about: "Sets summaries of turns of your sessions",
        parameters: &[&[P::json("summaries", "SummaryOfTurn", "The summaries").required()]],
        response: "SummariesResponse",
        handler: changing::summaries,
        ..WRITE
    },
    HttpRoute {
        name: "purge_secrets",
        path: "/v1/sessions/{id}/secrets/purge",
        about: "Masks the secrets in one of your sessions, or in one of its lines",
        parameters: &[&[
            P::text("id", "The address of a session, or of a line such as `7f3c9a52#4`")
                .of("address")
                .required(),
            DRY_RUN,
        ]],
        response: "PurgeSecretsResponse",
        handler: changing::purge_secrets,
        ..WRITE
    },
    HttpRoute {
        name: "rewind",
        path: "/v1/sessions/{id}/rewind",
        about: "Removes what follows a turn of one of your sessions",
        parameters: &[&[
            ID,
            P::number("to_turn", "The last turn to keep").required(),
            P::flag("keep_events", "Keep all events"),
            P::json("at_most", "RemovedRows", "The most rows that may be removed"),
            DRY_RUN,
        ]],
        response: "RewindResponse",
        handler: removing::rewind,
        ..REMOVE
    },
    HttpRoute {
        name: "delete_session",
        method: HttpVerb::Delete,
        path: "/v1/sessions/{id}",
        about: "Deletes one of your sessions",
        parameters: &[&[ID, DRY_RUN]],
        body: RouteBody::None,
        response: "DeleteResponse",
        handler: removing::delete_one,
        ..REMOVE
    },
    HttpRoute {
        name: "delete",
        path: "/v1/sessions/delete",
        about: "Deletes some of your sessions",
        parameters: &[REMOVED, &[P::flag("all", "All of your sessions")]],
        response: "DeleteResponse",
        handler: removing::delete,
        ..REMOVE
    },
    HttpRoute {
        name: "prune",
        path: "/v1/superseded/delete",
        about: "Deletes superseded lines of your sessions; by default all",
        parameters: &[REMOVED],
        response: "PruneResponse",
        handler: removing::prune,
        ..REMOVE
    },
    HttpRoute {
        name: "store_transcript",
        path: "/v1/sessions/{id}/transcript",
        about: "Stores lines of the transcript of one of your sessions",
        parameters: &[SENT, SENT_LINES],
        handler: ingesting::transcript,
        ..STORE
    },
    HttpRoute {
        name: "store_events",
        path: "/v1/sessions/{id}/events",
        about: "Stores lines of the event log of one of your sessions",
        parameters: &[SENT, SENT_LINES],
        handler: ingesting::events,
        ..STORE
    },
    HttpRoute {
        name: "store_metadata",
        path: "/v1/sessions/{id}/metadata",
        about: "Stores the metadata of one of your sessions, a JSON object",
        parameters: &[SENT],
        body: RouteBody::Bytes("application/json"),
        handler: ingesting::metadata,
        ..STORE
    },
];
