//! The routes that follow changes, and that of agents, which have protocols of their own.

use super::{HttpRoute, HttpVerb, LONGEST_WAIT, RouteBody, RoutePace, RouteParameter as P, groups::*};
use crate::{agents, live, rest::feed};

/// The routes that follow changes, and that of agents.
pub(super) static FEED_ROUTES: &[HttpRoute] = &[
    HttpRoute {
        name: "changes",
        path: "/v1/changes",
        about: "Lists the sessions that changed after a cursor",
        parameters: &[&[
            SCOPE,
            P::text(
                "after",
                "The `cursor` of the answer before. Without it, there are no changes and the cursor of now",
            ),
            P::count(
                "wait",
                LONGEST_WAIT,
                "Wait for changes for at most this many seconds; by default, do not wait",
            ),
            LIMIT,
        ]],
        pace: RoutePace::Wait,
        response: "ChangesResponse",
        handler: feed::changes,
        ..READ
    },
    HttpRoute {
        name: "live",
        path: "/v1/live",
        about: "Reports changed sessions over a WebSocket, with the protocol `ams.v1`",
        body: RouteBody::Socket,
        response: "application/json",
        handler: live::live,
        ..READ
    },
    HttpRoute {
        name: "mcp",
        method: HttpVerb::Post,
        path: "/mcp",
        about: "Answers a message of an agent in the Model Context Protocol (streamable HTTP, without sessions)",
        body: RouteBody::Bytes("application/json"),
        pace: RoutePace::Agent,
        response: "application/json",
        handler: agents::mcp,
        ..READ
    },
];
