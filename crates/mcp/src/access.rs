//! The sessions that a call reads.

use std::{fmt, path::PathBuf, sync::Arc};

use amplifier_session_api::{
    Api, ApiCaller, CallerPlace, Notice, Reach,
    incomplete::IncompleteReason,
    remote::{AnyApi, OperationServer, RemoteApi, SkippedSessions},
};
use amplifier_session_core::SessionStorage;
use async_trait::async_trait;
use jiff::Zoned;
use tokio::sync::OwnedSemaphorePermit;

/// Opens the sessions for each call, so that a call sees what is stored by then.
#[async_trait]
pub trait SessionAccess: fmt::Debug + Send + Sync + 'static {
    /// Opens the store, which may have changed since the last call.
    ///
    /// # Errors
    ///
    /// If it can't be opened.
    async fn open(&self, needs: StoreUse) -> Result<OpenedSessions, AccessError>;
}

/// What a call does with the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreUse {
    /// Whether it searches, which uses a processor for long.
    pub searches: bool,
    /// Whether it searches by meaning, which needs the embedding model.
    pub embeds: bool,
}

/// Sessions that were opened for a call.
#[derive(Debug)]
pub struct OpenedSessions {
    place: SessionsPlace,
    now: Zoned,
    home: Option<PathBuf>,
    is_elsewhere: bool,
    reach: Reach,
    permit: Option<OwnedSemaphorePermit>,
    unread: Option<IncompleteReason>,
    notices: Vec<Notice>,
}

/// The place of the sessions.
#[derive(Debug)]
enum SessionsPlace {
    /// This process has opened their store.
    Here(Box<SessionStorage>, ApiCaller),
    /// A server has their store. It names the sessions that it skipped in its responses too.
    There(Arc<dyn OperationServer>, SkippedSessions),
}

impl OpenedSessions {
    /// The sessions in `storage` for `caller` at the time `now`, which also sets the time zone of dates. Secrets are
    /// masked in all that is read, whatever the store keeps.
    ///
    /// # Errors
    ///
    /// If `storage` has no [redactor](SessionStorage::with_redactor).
    pub fn new(storage: SessionStorage, caller: ApiCaller, now: Zoned) -> Result<Self, AccessError> {
        let storage = storage.with_masked_reads();
        if !storage.masks_reads() {
            return Err(AccessError::new("secrets can't be masked: the store has no rules for them", None));
        }
        Ok(Self::at(SessionsPlace::Here(Box::new(storage), caller), now))
    }

    /// The sessions of a server, for the caller whom it knows, at the time `now`, which also sets the time zone of dates.
    /// The server masks secrets in all that is read, or refuses.
    #[must_use]
    pub fn of_server(server: Arc<dyn OperationServer>, now: Zoned) -> Self {
        Self::at(SessionsPlace::There(server, SkippedSessions::default()), now)
    }

    fn at(place: SessionsPlace, now: Zoned) -> Self {
        Self {
            place,
            now,
            home: None,
            is_elsewhere: false,
            reach: Reach::Own,
            permit: None,
            unread: None,
            notices: Vec::new(),
        }
    }

    /// Sets the home folder of the caller, who is on this machine: folders in requests may begin with `~`.
    #[must_use]
    pub fn with_home(mut self, home: Option<PathBuf>) -> Self {
        self.home = home;
        self
    }

    /// The caller is on another machine: folders in requests are absolute, and only compared with those of sessions.
    #[must_use]
    pub fn for_elsewhere(mut self) -> Self {
        self.is_elsewhere = true;
        self
    }

    /// Keeps a permit until the call is answered.
    #[must_use]
    pub fn with_permit(mut self, permit: Option<OwnedSemaphorePermit>) -> Self {
        self.permit = permit;
        self
    }

    /// Sets which sessions are read. Default: the caller's own.
    #[must_use]
    pub fn with_reach(mut self, reach: Reach) -> Self {
        self.reach = reach;
        self
    }

    /// Sets why changes on disk were not read first, if they were not.
    #[must_use]
    pub fn with_unread(mut self, unread: Option<IncompleteReason>) -> Self {
        self.unread = unread;
        self
    }

    /// Adds remarks about the store, for the answer.
    #[must_use]
    pub fn with_notices(mut self, notices: impl IntoIterator<Item = Notice>) -> Self {
        self.notices.extend(notices);
        self
    }

    /// The operations. Secrets are masked in all that they read.
    pub(crate) fn api(&self) -> AnyApi<'_> {
        let (now, home) = (&self.now, self.home.as_deref());
        match &self.place {
            SessionsPlace::Here(storage, caller) => {
                let place =
                    if self.is_elsewhere { CallerPlace::Elsewhere } else { CallerPlace::Here { home } };
                AnyApi::Here(Api { storage, caller, now, place })
            }
            SessionsPlace::There(server, skipped) => {
                AnyApi::There(RemoteApi { server: &**server, now, home, skipped, masked: true })
            }
        }
    }

    pub(crate) fn now(&self) -> &Zoned {
        &self.now
    }

    pub(crate) fn reach(&self) -> Reach {
        self.reach
    }

    pub(crate) fn unread(&self) -> Option<&IncompleteReason> {
        self.unread.as_ref()
    }

    pub(crate) fn notices(&self) -> &[Notice] {
        &self.notices
    }
}

/// Why the sessions can't be opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessError {
    message: String,
    hint: Option<String>,
}

impl AccessError {
    /// An error, with advice for the person at the computer.
    pub fn new(message: impl Into<String>, hint: Option<String>) -> Self {
        Self { message: message.into(), hint }
    }
}

impl fmt::Display for AccessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        self.hint.as_ref().map_or(Ok(()), |hint| write!(f, "\nhint for the user: {hint}"))
    }
}

impl std::error::Error for AccessError {}
