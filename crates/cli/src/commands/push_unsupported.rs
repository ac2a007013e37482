//! `--push`, in a build without the client of servers.

use amplifier_session_storage::{SessionStorage, model::UserId};

use super::pushed::PushedTo;
use crate::{
    app::App,
    args::PushArgs,
    failure::{Failure, say},
    progress::PlannedSession,
};

/// No server gets anything.
pub(super) struct NoServers;

pub(super) fn servers(app: &App, _: &PushArgs, _: bool) -> Result<NoServers, Failure> {
    if !app.config.list("push.to").is_empty() {
        say("note", "this build has no client for servers, so nothing is sent to those of `push.to`");
    }
    Ok(NoServers)
}

impl NoServers {
    pub(super) async fn run(&self, _: &SessionStorage, _: &UserId) -> Vec<PushedTo> {
        Vec::new()
    }

    pub(super) async fn preview(
        &self,
        _: &SessionStorage,
        _: &UserId,
        _: &[PlannedSession],
    ) -> Vec<PushedTo> {
        Vec::new()
    }
}
