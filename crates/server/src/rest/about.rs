//! The caller, and the server.

use serde::Serialize;

use crate::{answer::HttpAnswer, call::HttpCall, routes::Answering};

/// The caller, as the server knows them.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct CallerView<'a> {
    user_id: &'a str,
    teams: &'a [String],
    org: Option<&'a str>,
    reach: &'a str,
    rights: Vec<&'a str>,
    /// The id of the token, or `proxy:` with the user.
    token: &'a str,
}

/// The version of the server, for clients of other versions.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct VersionView {
    version: &'static str,
    /// The versions of the routes that it has.
    api: [&'static str; 1],
}

/// GET /v1/me
pub(crate) fn me(call: HttpCall) -> Answering {
    Box::pin(async move {
        let caller = call.signed_in().caller();
        let viewer = caller.viewer();
        HttpAnswer::json(&CallerView {
            user_id: viewer.user_id.as_str(),
            teams: &viewer.team_ids,
            org: viewer.org_id.as_deref(),
            reach: caller.reach().as_str(),
            rights: caller.rights().iter().map(|right| right.as_str()).collect(),
            token: call.signed_in().by(),
        })
    })
}

/// GET /v1/version
pub(crate) fn version(_: HttpCall) -> Answering {
    Box::pin(async { HttpAnswer::json(&VersionView { version: env!("CARGO_PKG_VERSION"), api: ["v1"] }) })
}
