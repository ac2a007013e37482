//! The routes of operations, for the command line of another machine: their requests and answers are those of the API, as
//! JSON.

use std::sync::LazyLock;

use amplifier_session_api::{
    AccessRight,
    remote::{ApiOperation, EXPORT_PATH},
};

use super::{HttpRoute, RouteBody, RoutePace, RouteParameter as P, groups::*};
use crate::rest::{asking, reading::JSON_LINES};

const NOW: P = P::text(
    "now",
    "The time at the caller, with their time zone: `2026-01-31T09:30:00+01:00[Europe/Berlin]`",
)
.required();
const MASKED: P =
    P::flag("masked", "Whether secrets are masked in the caller's own sessions too; for what only reads");
const PARAMETERS: &[&[P]] = &[&[NOW, P::json("request", "Request", "The request").required(), MASKED]];

/// A route for each operation, and one to export sessions.
pub(super) static OPERATION_ROUTES: LazyLock<Vec<HttpRoute>> =
    LazyLock::new(|| ApiOperation::ALL.iter().map(|operation| route(*operation)).chain([EXPORT]).collect());

const EXPORT: HttpRoute = HttpRoute {
    name: "operations.export",
    path: EXPORT_PATH,
    about: "Exports sessions of the token's user, and says at the end how many",
    right: AccessRight::Read,
    parameters: PARAMETERS,
    pace: RoutePace::Stream,
    response: JSON_LINES,
    handler: asking::export,
    ..WRITE
};

fn route(operation: ApiOperation) -> HttpRoute {
    HttpRoute {
        name: operation.route(),
        path: operation.path(),
        about: "An operation of the command line: its request and its response as that has them",
        right: operation.right(),
        parameters: PARAMETERS,
        body: RouteBody::Json,
        pace: pace(operation),
        response: "OperationAnswer",
        handler: asking::answer,
        ..WRITE
    }
}

fn pace(operation: ApiOperation) -> RoutePace {
    use ApiOperation::*;
    match operation {
        Search | SearchSuperseded | SearchTurns | Timeline => RoutePace::Search,
        ListSecrets => RoutePace::Scan,
        // They may embed many turns, or read all lines of the store.
        Summaries | PurgeSecrets | PurgeSecretsPreview | RenameUser => RoutePace::Store,
        _ => RoutePace::Short,
    }
}
