//! The routes that read one session.

use super::{HttpRoute, RoutePace, RouteParameter as P, groups::*};
use crate::rest::{
    listing,
    reading::{self, JSON_LINES},
};

/// The routes that read one session.
pub(super) static SESSION_ROUTES: &[HttpRoute] = &[
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
                P::flag("line", "Only the line, as it is stored"),
            ],
        ],
        response: "SessionEventsResponse | application/octet-stream",
        handler: reading::event,
        ..READ
    },
    HttpRoute {
        name: "session_statistics",
        path: "/v1/sessions/{id}/statistics",
        about: "Counts messages, events, tokens and cost of a session",
        parameters: &[ONE, &[BY]],
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
        about: "Writes one of your sessions byte for byte, as JSON lines that `import` reads",
        parameters: &[&[ID, P::flag("vectors", "With its vectors")]],
        pace: RoutePace::Stream,
        response: JSON_LINES,
        handler: reading::export,
        ..READ
    },
];
