//! Opens the store for each call of a tool.

use std::{fmt, sync::Arc, time::Instant};

use amplifier_session_api::opening;
use amplifier_session_mcp::{AccessError, OpenedSessions, SessionAccess, StoreUse};
use amplifier_session_storage::config::Configuration;
use async_trait::async_trait;

use crate::{
    app::App,
    args::GlobalArgs,
    environment::Environment,
    failure::{Failure, say},
    refresh,
};

/// Opens the store as a command does, so that a call sees what the other programs of the machine have stored, and no store
/// stays locked between calls.
pub(super) struct StoreAccess {
    environment: Arc<Environment>,
    global: GlobalArgs,
    config: Configuration,
    began: Instant,
}

impl StoreAccess {
    pub(super) fn new(app: &App) -> Self {
        let (environment, global) = (app.environment.clone(), app.global.clone());
        Self { environment, global, config: app.config.clone(), began: Instant::now() }
    }

    /// A run of a command at the present time.
    fn app(&self) -> App {
        let mut app = App::new(self.environment.clone(), self.global.clone(), self.config.clone());
        let elapsed = jiff::SignedDuration::try_from(self.began.elapsed()).unwrap_or_default();
        app.now = app.now.checked_add(elapsed).unwrap_or(app.now);
        app
    }

    async fn opened(&self, needs: StoreUse) -> Result<Result<OpenedSessions, AccessError>, Failure> {
        let app = self.app();
        let reader = app.open_reader(needs.embeds).await?;
        if let Some(server) = reader.server() {
            let opened = OpenedSessions::of_server(server.clone(), app.now.clone());
            return Ok(Ok(opened.with_home(app.home.clone()).with_reach(app.global.scope.into())));
        }
        reader.prioritize();
        let unread = refresh::before_reading(&app, &reader, false).await;
        let storage = reader.storage()?.clone();
        let notices = opening::other_user(&storage, &reader.caller).await?;
        let opened = OpenedSessions::new(storage, reader.caller, app.now.clone());
        Ok(opened.map(|opened| {
            opened
                .with_home(app.home.clone())
                .with_reach(app.global.scope.into())
                .with_unread(unread)
                .with_notices(notices)
        }))
    }
}

#[async_trait]
impl SessionAccess for StoreAccess {
    async fn open(&self, needs: StoreUse) -> Result<OpenedSessions, AccessError> {
        self.opened(needs).await.unwrap_or_else(|failure| {
            let app = self.app();
            let hint = failure.hint(&app.program(), None);
            say("error", failure.message());
            Err(AccessError::new(failure.message(), hint))
        })
    }
}

impl fmt::Debug for StoreAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreAccess").finish_non_exhaustive()
    }
}
