//! The routes through which another store sends and takes sessions.

use amplifier_session_api::AccessRight;

use super::{HttpRoute, HttpVerb, RouteBody, RoutePace, RouteParameter as P, groups::*};
use crate::rest::{reading::JSON_LINES, rows};

/// The routes through which another store sends and takes sessions, row by row.
pub(super) static ROW_ROUTES: &[HttpRoute] = &[
    HttpRoute {
        name: "row_extents",
        path: "/v1/rows/extents",
        about: "Says how much of each of your sessions is stored, and how much of it another store has sent",
        or_right: Some(AccessRight::Write),
        parameters: &[&[
            P::text("store", "The identity of the other store"),
            P::texts("session", "Only these sessions, by their ids").of("sessions"),
            P::text("after", "The id `next` of the answer before"),
            P::count("limit", 10_000, "The largest number of sessions; by default 1,000"),
        ]],
        response: "ExtentPage",
        handler: rows::extents,
        ..READ
    },
    HttpRoute {
        name: "read_rows",
        path: "/v1/rows/{id}",
        about: "Writes the rows of one of your sessions that another store lacks, as JSON lines that it takes",
        parameters: &[&[
            ID,
            P::number("after_message", "The number of messages that the other store has"),
            P::number("after_event", "The number of events that the other store has"),
            P::text("digest", "The digests of both, 32 hexadecimal digits each: first that of the messages"),
            P::number("superseded", "The number of superseded pieces that the other store has"),
            P::text("superseded_until", "The time when the last of them was superseded"),
            P::flag("may_replace", "The other store may have other rows in place of those that follow"),
            P::number("max_bytes", "The size after which the rest is left for the next request"),
        ]],
        pace: RoutePace::Stream,
        response: JSON_LINES,
        handler: rows::read,
        ..READ
    },
    HttpRoute {
        name: "write_rows",
        method: HttpVerb::Post,
        path: "/v1/rows",
        about: "Takes sessions from another store, as JSON lines that it writes",
        parameters: &[&[
            P::flag("dry_run", "Only say what would be stored"),
            P::flag("include_deleted", "Store sessions also if they were deleted from the store"),
        ]],
        body: RouteBody::Stream(JSON_LINES),
        response: "WriteRowsResponse",
        handler: rows::write,
        ..STORE
    },
];
