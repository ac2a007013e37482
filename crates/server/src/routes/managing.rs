//! The routes that are about the whole store.

use amplifier_session_api::AccessRight;

use super::{HttpRoute, HttpVerb, RouteBody, RoutePace, RouteParameter as P, groups::*};
use crate::rest::{managing, reading::JSON_LINES};

/// The routes that are about the whole store.
pub(super) static MANAGING_ROUTES: &[HttpRoute] = &[
    HttpRoute {
        name: "import",
        method: HttpVerb::Post,
        path: "/v1/import",
        about: "Reads sessions that `export` wrote",
        parameters: &[&[
            P::flag(
                "replace",
                "Replace sessions that exist, with the right to delete; by default, they are refused",
            ),
            P::flag(
                "all_users",
                "Also sessions of others, with the right to administer; by default, they are refused",
            ),
        ]],
        body: RouteBody::Bytes(JSON_LINES),
        response: "ImportReport",
        handler: managing::import,
        ..STORE
    },
    HttpRoute {
        name: "make_vectors",
        path: "/v1/vectors",
        about: "Makes vectors of your messages that lack them",
        parameters: &[
            PROJECT,
            &[
                P::texts("projects", "Further projects"),
                SESSION,
                P::flag("everything", "All vectors, also those that exist. Needs the right to administer"),
            ],
        ],
        pace: RoutePace::Store,
        response: "EmbedResponse",
        handler: managing::make_vectors,
        ..WRITE
    },
    HttpRoute {
        name: "ignore_secrets",
        path: "/v1/sessions/{id}/secrets/ignore",
        about: "Ignores harmless findings in one of your sessions or in one of its lines, wherever they occur",
        right: AccessRight::Admin,
        parameters: &[&[
            P::text("id", "The address of a session, or of a line such as `7f3c9a52#4`")
                .of("address")
                .required(),
            P::flag("ignore", "Ignore them (default), or list and mask them again"),
        ]],
        response: "IgnoreSecretsResponse",
        handler: managing::ignore_secrets,
        ..WRITE
    },
    HttpRoute {
        name: "rename_user",
        path: "/v1/users/rename",
        about: "Changes the owner of all sessions of a user",
        right: AccessRight::Admin,
        parameters: &[&[
            P::text("old", "The id of the user").required(),
            P::text("new", "The new id").required(),
        ]],
        response: "RenameUserResponse",
        handler: managing::rename_user,
        ..WRITE
    },
    HttpRoute {
        name: "check",
        path: "/v1/check",
        about: "Checks whether the store can be written, is of this version, and has vectors of the server's model",
        right: AccessRight::Admin,
        parameters: &[&[SCOPE]],
        response: "CheckStoreResponse",
        handler: managing::check,
        ..READ
    },
    HttpRoute {
        name: "metrics",
        path: "/metrics",
        about: "Numbers of requests and of what is going on, for Prometheus",
        right: AccessRight::Admin,
        response: "application/openmetrics-text",
        handler: managing::metrics,
        ..READ
    },
];
