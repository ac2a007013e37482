//! The routes that change sessions.

use super::{HttpRoute, HttpVerb, RouteBody, RouteParameter as P, groups::*};
use crate::rest::{changing, ingesting, removing};

/// The routes that change sessions.
pub(super) static CHANGE_ROUTES: &[HttpRoute] = &[
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
        parameters: &[&[P::json("summaries", "SummaryOfTurn[]", "The summaries").required()]],
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
        response: "PurgeSecretsResponse | PurgePreview",
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
