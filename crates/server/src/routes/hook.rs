//! The routes of the hook of Amplifier's context intelligence: their paths, and what they read, are given.

use axum::http::StatusCode;

use super::{HttpRoute, HttpVerb, RouteBody, RoutePace, RouteParameter as P, groups::*};
use crate::rest::hook;

/// The routes of the hook.
pub(super) static HOOK_ROUTES: &[HttpRoute] = &[
    HttpRoute {
        name: "hook_events",
        method: HttpVerb::Post,
        path: "/events",
        about: "Stores an event that the hook of context intelligence posts; the line of its log replaces it later",
        parameters: &[&[P::flag("replay", "The hook posts the event again; it makes no difference")]],
        body: RouteBody::Bytes("application/json"),
        pace: RoutePace::Event,
        status: StatusCode::ACCEPTED,
        response: "PostEventResponse",
        handler: hook::post,
        ..STORE
    },
    HttpRoute {
        name: "hook_version",
        path: "/version",
        about: "Says the version of the server to the hook of context intelligence",
        or_right: Some(amplifier_session_api::AccessRight::Write),
        response: "application/json",
        handler: hook::version,
        ..READ
    },
    HttpRoute {
        name: "hook_status",
        path: "/status",
        about: "Says to the hook of context intelligence whether the store answers",
        or_right: Some(amplifier_session_api::AccessRight::Write),
        response: "application/json",
        handler: hook::status,
        ..READ
    },
    HttpRoute {
        name: "hook_blobs",
        path: "/blobs/{id}",
        about: "Lists the values of a session that are stored outside of its events: there are none",
        parameters: &[ONE],
        response: "application/json",
        handler: hook::blobs,
        ..READ
    },
];
