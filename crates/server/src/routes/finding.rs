//! The routes that find, list and count.

use amplifier_session_api::AccessRight;

use super::{HttpRoute, HttpVerb, RouteBody, RoutePace, RouteParameter as P, groups::*};
use crate::rest::{
    about, listing,
    reading::{self, JSON_LINES},
    searching,
};

/// The routes that find, list and count.
pub(super) static FINDING_ROUTES: &[HttpRoute] = &[
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
        name: "export",
        path: "/v1/export",
        // Archives have vectors and superseded lines, which are for owners only.
        about: "Writes your sessions byte for byte, as JSON lines that `import` reads",
        parameters: &[
            PROJECT,
            &[P::texts("projects", "Further projects"), P::flag("vectors", "With their vectors")],
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
        response: "SearchResponse | TurnsResponse | SupersededResponse",
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
        response: "SearchResponse | TurnsResponse | SupersededResponse",
        handler: searching::search,
        ..READ
    },
    HttpRoute {
        name: "search_vector",
        method: HttpVerb::Post,
        path: "/v1/search/vector",
        about: "Finds the messages nearest in meaning to a vector that you have made with the model of the store",
        parameters: &[
            &[P::numbers("vector", "The vector, of any length but zero").required(), SCOPE, SESSION],
            FILTER,
            &[
                P::choices(
                    "in",
                    &["user", "assistant", "thinking", "tool"],
                    "Only these texts; by default all that are embedded",
                ),
                P::choice(
                    "role",
                    &["user", "assistant", "tool", "system", "developer"],
                    "Only messages with this role",
                ),
                P::count("limit", 200, "The largest number of results"),
                P::decimal("min_similarity", "The least similarity"),
                P::flag("full", "Return whole messages"),
                P::count("snippet_chars", 100_000, "The length of snippets in characters"),
            ],
            LENGTH,
        ],
        body: RouteBody::Json,
        pace: RoutePace::Search,
        response: "SearchResponse",
        handler: searching::search_vector,
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
        parameters: &[FILTER, &[SCOPE, SESSION, BY]],
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
        pace: RoutePace::Scan,
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
];
