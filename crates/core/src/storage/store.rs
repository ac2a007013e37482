//! The context that all subjects of a [`SessionStorage`](super::SessionStorage) share.

use std::{
    collections::BTreeSet,
    fmt,
    sync::{Arc, Mutex},
};

use tokio::sync::OnceCell;

use super::{
    at_rest::CachedAtRest, read_masking::ReadMasking, read_meter::ReadMeter, settings::StorageSettings,
};
use crate::{
    CHANGED_SINCE, Error, ErrorKind, Result,
    backend::{SessionDeletion, StorageBackend, StoredSession, meta::Generations},
    content::{Redaction, Redactor},
    embedding::EmbeddingProvider,
    model::{DamagedRow, Session, Timestamp},
};

/// How often to retry a write if another process wrote the same session in the meantime.
const CONFLICT_ATTEMPTS: usize = 64;

type StorageClock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// The backend, the settings, and what else the subjects need. It knows none of them. Cheap to clone; clones share
/// everything.
#[derive(Clone)]
pub(crate) struct StoreContext {
    pub(super) backend: Arc<dyn StorageBackend>,
    pub(super) embedding: Option<Arc<dyn EmbeddingProvider>>,
    pub(super) redactor: Option<Arc<dyn Redactor>>,
    pub(super) redaction: Redaction,
    /// Whose secrets are masked in what is read.
    pub(super) read_masking: ReadMasking,
    /// Counts what is read for an answer.
    pub(super) read_meter: Option<Arc<dyn ReadMeter>>,
    pub(super) settings: StorageSettings,
    pub(super) clock: StorageClock,
    /// Set once the store is known to follow the current rules.
    pub(super) renewed: Arc<OnceCell<u64>>,
    /// The store's setting for secrets.
    pub(super) at_rest: CachedAtRest,
    /// A session that is only changed if it is still as it was seen.
    pub(super) seen: Option<Arc<Session>>,
    /// Sessions that lists have skipped because they can't be read.
    pub(super) damaged_sessions: Arc<Mutex<BTreeSet<DamagedRow>>>,
}

impl StoreContext {
    pub(super) fn new(backend: Arc<dyn StorageBackend>) -> Self {
        Self {
            backend,
            embedding: None,
            redactor: None,
            redaction: Redaction::default(),
            read_masking: ReadMasking::default(),
            read_meter: None,
            settings: StorageSettings::default(),
            clock: Arc::new(Timestamp::now),
            renewed: Arc::default(),
            at_rest: CachedAtRest::default(),
            seen: None,
            damaged_sessions: Arc::default(),
        }
    }

    /// The redactor that masks secrets in texts for `provider`, if they are masked.
    pub(super) fn redactor_for(&self, provider: &dyn EmbeddingProvider) -> Option<&Arc<dyn Redactor>> {
        self.redactor.as_ref().filter(|_| self.redaction.applies_to(provider))
    }

    /// The time by the clock of the storage.
    pub(super) fn now(&self) -> Timestamp {
        (self.clock)()
    }

    /// The generations of the store's vectors.
    pub(super) async fn generations(&self) -> Result<Generations> {
        Ok(Generations::of(&self.backend.meta().await?))
    }

    /// Checks that a session that is about to change is still as the caller has seen it. Whoever calls this writes with
    /// the version of `stored`, so that nobody can change it in between.
    pub(super) fn check_unchanged(&self, stored: &Session) -> Result<()> {
        match &self.seen {
            Some(seen) if seen.key() == stored.key() && **seen != *stored => {
                let changed = Error::new(ErrorKind::Conflict, "the session has changed since it was read");
                Err(changed.with(CHANGED_SINCE, stored.updated))
            }
            _ => Ok(()),
        }
    }

    /// The deletion of a session: if the caller has seen it, only as it was seen. See [`Self::check_unchanged`].
    pub(super) fn deletion_of(&self, stored: &StoredSession) -> Result<SessionDeletion> {
        let key = stored.session.key();
        self.check_unchanged(&stored.session)?;
        let is_seen = self.seen.as_ref().is_some_and(|seen| seen.key() == key);
        let expected = is_seen.then(|| stored.version.clone());
        Ok(SessionDeletion::new(key).with_expected(expected))
    }

    /// Runs `attempt` until there is no conflict that another attempt can solve.
    pub(super) async fn retry_conflicts<T, F: Future<Output = Result<T>>>(
        &self,
        attempt: impl Fn() -> F,
    ) -> Result<T> {
        for _ in 1..CONFLICT_ATTEMPTS {
            match attempt().await {
                Err(error)
                    if error.kind() == ErrorKind::Conflict && error.context(CHANGED_SINCE).is_none() => {}
                other => return other,
            }
        }
        attempt().await
    }
}

impl fmt::Debug for StoreContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreContext")
            .field("backend", &self.backend)
            .field("embedding", &self.embedding)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

/// Declares subjects of a [`SessionStorage`](super::SessionStorage): views of its context whose methods belong together.
/// A subject that needs another one names its type, so that the imports show which subject uses which.
macro_rules! subjects {
    ($($(#[$doc:meta])* $name:ident;)*) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Clone, Copy)]
            pub struct $name<'a> {
                pub(in crate::storage) store: &'a StoreContext,
            }

            impl<'a> $name<'a> {
                pub(in crate::storage) const fn new(store: &'a StoreContext) -> Self {
                    Self { store }
                }
            }
        )*
    };
}

subjects! {
    /// Sessions as a whole: finds, lists, changes and deletes them.
    SessionCatalog;
    /// The users of a store.
    StoreUsers;
    /// Reads the lines of sessions.
    RowReading;
    /// Writes sessions from their lines.
    Ingestion;
    /// The sessions that changed since a reader last looked.
    ChangeFeed;
    /// Searches messages and turns.
    TranscriptSearch;
    /// Makes vectors, and replaces all of them if the model changes.
    StoredVectors;
    /// Turns of conversations, and their summaries.
    StoredTurns;
    /// Secrets in stored lines.
    StoredSecrets;
    /// Lines that were replaced or rewound.
    SupersededHistory;
    /// Exports sessions to files, and imports them.
    ArchiveTransfer;
    /// Copies sessions to another store.
    StoreCopying;
    /// Sends sessions to another store and takes them from it, row by row: push and pull.
    SessionExchange;
    /// Takes sessions from a damaged store.
    StoreSalvage;
    /// Compares stored data with the lines, and repairs it.
    Verification;
    /// Counts what is stored.
    StoreStatistics;
    /// Derives data again that earlier versions derived by other rules.
    Rederivation;
}
