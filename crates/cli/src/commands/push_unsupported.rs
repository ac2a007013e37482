//! Builds without the client of servers push nothing.

use amplifier_session_storage::{SessionStorage, model::UserId};

use super::pushed::PushedTo;
use crate::{
    app::App,
    args::PushArgs,
    failure::{Failure, say},
};

/// No server.
pub(super) struct Pushing;

impl Pushing {
    pub(super) fn of(app: &App, _: &PushArgs) -> Result<Self, Failure> {
        if !app.config.list("push.to").is_empty() {
            say("note", "this build has no client for servers, so nothing is sent to those of `push.to`");
        }
        Ok(Self)
    }

    pub(super) async fn run(
        &self,
        _: &SessionStorage,
        _: &UserId,
        _: bool,
    ) -> Result<Vec<PushedTo>, Failure> {
        Ok(Vec::new())
    }
}
