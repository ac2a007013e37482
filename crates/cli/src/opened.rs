//! A store that is opened for a command, here or behind a server.

use std::{path::Path, sync::Arc};

use amplifier_session_api::{
    Api, ApiCaller, CallerPlace,
    remote::{AnyApi, OperationServer, RemoteApi, SkippedSessions},
};
use amplifier_session_storage::{Error, ErrorKind, Scope, SessionStorage, model::Session};
use jiff::Zoned;

use crate::{
    app::App,
    failure::{Failure, say},
};

/// A store opened for a user: to read sessions, or to change their own.
#[derive(Debug)]
pub(crate) struct OpenedStore {
    at: OpenedAt,
    /// The scope of the sessions.
    pub(crate) scope: Scope,
    /// The user.
    pub(crate) caller: ApiCaller,
}

/// The place of an opened store.
#[derive(Debug)]
enum OpenedAt {
    /// This program has opened it.
    Here(SessionStorage),
    /// A server has it.
    There(Arc<dyn OperationServer>, SkippedSessions),
}

impl OpenedStore {
    /// A store that this program has opened.
    pub(crate) fn here(storage: SessionStorage, scope: Scope, caller: ApiCaller) -> Self {
        Self { at: OpenedAt::Here(storage), scope, caller }
    }

    /// A store behind a server.
    pub(crate) fn there(
        server: Arc<dyn OperationServer>,
        skipped: SkippedSessions,
        scope: Scope,
        caller: ApiCaller,
    ) -> Self {
        Self { at: OpenedAt::There(server, skipped), scope, caller }
    }

    /// The operations, for requests of this user.
    pub(crate) fn api<'a>(&'a self, app: &'a App) -> AnyApi<'a> {
        self.api_at(&app.now, app.home.as_deref())
    }

    /// As [`Self::api`], at a time and for a user with this home folder.
    pub(crate) fn api_at<'a>(&'a self, now: &'a Zoned, home: Option<&'a Path>) -> AnyApi<'a> {
        match &self.at {
            OpenedAt::Here(storage) => {
                let place = CallerPlace::Here { home };
                AnyApi::Here(Api { storage, caller: &self.caller, now, place })
            }
            OpenedAt::There(server, skipped) => {
                AnyApi::There(RemoteApi { server: &**server, now, home, skipped, masked: false })
            }
        }
    }

    /// The API of a store that is not behind a server.
    pub(crate) fn api_here<'a>(&'a self, app: &'a App) -> Result<Api<'a>, Failure> {
        Ok(app.api(self.storage()?, &self.caller))
    }

    /// The storage. Fails if a server has it: `commands::needs_store` refuses these commands before.
    pub(crate) fn storage(&self) -> Result<&SessionStorage, Error> {
        match &self.at {
            OpenedAt::Here(storage) => Ok(storage),
            OpenedAt::There(..) => {
                let message = "this command needs the store itself, and a server has it";
                let hint = "run it on the machine of the server, with the store that `serve` uses there";
                Err(Error::new(ErrorKind::Unsupported, message).with_hint(hint))
            }
        }
    }

    /// The server that has the store, if one has it.
    pub(crate) fn server(&self) -> Option<&Arc<dyn OperationServer>> {
        match &self.at {
            OpenedAt::Here(_) => None,
            OpenedAt::There(server, _) => Some(server),
        }
    }

    /// Replaces the storage by one with other settings.
    pub(crate) fn set_storage(&mut self, storage: SessionStorage) {
        self.at = OpenedAt::Here(storage);
    }

    /// Makes concurrent writers give priority to this reader. A server does so itself.
    pub(crate) fn prioritize(&self) {
        if let OpenedAt::Here(storage) = &self.at {
            storage.backend().prioritize();
        }
    }

    /// The session that `address` names, with a note if `latest` had to leave one out.
    pub(crate) async fn find_session(&self, address: &str) -> Result<Session, Error> {
        let found = self.storage()?.sessions().find_address(&self.scope, address).await?;
        if let Some(notice) = &found.notice {
            say("note", notice);
        }
        Ok(found.session)
    }

    /// Whether output must name the owners.
    pub(crate) fn names_owners(&self) -> bool {
        !matches!(self.scope, Scope::User(_))
    }
}
