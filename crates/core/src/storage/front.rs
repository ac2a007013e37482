//! [`SessionStorage`]: the entry to the subjects.

use std::sync::Arc;

use super::{
    read_masking::ReadMasking,
    read_meter::ReadMeter,
    settings::StorageSettings,
    store::{
        ArchiveTransfer, ChangeFeed, Ingestion, Rederivation, RowReading, SessionCatalog, SessionExchange,
        StoreContext, StoreCopying, StoreSalvage, StoreStatistics, StoreUsers, StoredSecrets, StoredTurns,
        StoredVectors, SupersededHistory, TranscriptSearch, Verification,
    },
};
use crate::{
    Result,
    backend::{IndexUpdate, StorageBackend},
    content::{Redaction, Redactor},
    embedding::EmbeddingProvider,
    model::{Session, Timestamp, UserId},
};

/// Stores and searches sessions on a backend. Its methods are in subjects: `storage.search()`, `storage.sessions()` ….
/// Cheap to clone; clones share everything.
#[derive(Debug, Clone)]
pub struct SessionStorage {
    pub(super) store: StoreContext,
}

impl SessionStorage {
    /// A storage on `backend`, without embeddings.
    #[must_use]
    pub fn new(backend: Arc<dyn StorageBackend>) -> Self {
        Self { store: StoreContext::new(backend) }
    }

    /// Sets the embedding provider. With `None`, no vectors are made, and searches use only words.
    #[must_use]
    pub fn with_embedding(mut self, embedding: Option<Arc<dyn EmbeddingProvider>>) -> Self {
        self.store.embedding = embedding;
        self
    }

    /// Sets the settings.
    #[must_use]
    pub fn with_settings(mut self, settings: StorageSettings) -> Self {
        self.store.settings = settings;
        self
    }

    /// Sets the redactor, and the models for which it masks secrets. Without a redactor, the default, nothing is
    /// masked.
    #[must_use]
    pub fn with_redactor(mut self, redaction: Redaction, redactor: Arc<dyn Redactor>) -> Self {
        (self.store.redaction, self.store.redactor) = (redaction, Some(redactor));
        self
    }

    /// Masks secrets in what this storage reads, whatever the store keeps: in messages, in the results of searches before
    /// they are cut, in turns, in summaries of events and their lines, and in the titles and descriptions of sessions. For
    /// readers that must not learn them. Needs a [redactor](Self::with_redactor). Superseded lines are not masked, exports
    /// are errors, and such a storage is not for writing.
    #[must_use]
    pub fn with_masked_reads(mut self) -> Self {
        self.store.read_masking = ReadMasking::Everybody;
        self
    }

    /// Masks secrets in what this storage reads of the sessions of all users but one, as [`Self::with_masked_reads`] does:
    /// for that user, who may read and write their own sessions as they are.
    #[must_use]
    pub fn with_masked_reads_of_others(mut self, user: UserId) -> Self {
        self.store.read_masking = ReadMasking::Except(user);
        self
    }

    /// Whether secrets are masked in what is read: see [`Self::with_masked_reads`].
    #[must_use]
    pub fn masks_reads(&self) -> bool {
        self.store.masks_reads()
    }

    /// Counts the lines that are read for an answer: messages, lines of events, turns, and results of searches. Pages of
    /// messages and of events end at [`ReadMeter::page_bytes`]. What is written, copied and exported is not counted,
    /// because it is never in memory as a whole. One meter is for one answer.
    #[must_use]
    pub fn with_read_meter(mut self, meter: Arc<dyn ReadMeter>) -> Self {
        self.store.read_meter = Some(meter);
        self
    }

    /// The meter for an answer, if there is one.
    #[must_use]
    pub fn read_meter(&self) -> Option<&Arc<dyn ReadMeter>> {
        self.store.read_meter.as_ref()
    }

    /// Changes this session only if its fields are still these. Otherwise, editing, sharing, rewinding and deleting it, and
    /// purging its secrets, fails with `Conflict` and the context [`CHANGED_SINCE`](crate::CHANGED_SINCE), whoever changed
    /// it, and nothing is changed. For callers that decide by what they have seen. Other sessions are changed as always.
    #[must_use]
    pub fn only_unchanged(mut self, seen: Session) -> Self {
        self.store.seen = Some(Arc::new(seen));
        self
    }

    /// Sets the clock for the times when rows are stored.
    #[must_use]
    pub fn with_clock(mut self, clock: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        self.store.clock = Arc::new(clock);
        self
    }

    /// The backend.
    #[must_use]
    pub fn backend(&self) -> &Arc<dyn StorageBackend> {
        &self.store.backend
    }

    /// The embedding provider, if there is one.
    #[must_use]
    pub fn embedding(&self) -> Option<&Arc<dyn EmbeddingProvider>> {
        self.store.embedding.as_ref()
    }

    /// The settings.
    #[must_use]
    pub fn settings(&self) -> &StorageSettings {
        &self.store.settings
    }

    /// The time by this storage's clock.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.store.now()
    }

    /// Updates derived indexes from the rows. Searches are correct without it, only slower.
    ///
    /// # Errors
    ///
    /// Errors of the backend.
    pub async fn update_index(&self) -> Result<()> {
        self.store.backend.update_index(IndexUpdate::Now).await
    }

    /// As [`SessionStorage::update_index`], but may leave a few new rows to a later call.
    ///
    /// # Errors
    ///
    /// Errors of the backend.
    pub async fn update_index_if_due(&self) -> Result<()> {
        self.store.backend.update_index(IndexUpdate::IfDue).await
    }
}

/// The accessors of the subjects.
macro_rules! accessors {
    ($($(#[$doc:meta])* $name:ident -> $subject:ident;)*) => {
        impl SessionStorage {
            $(
                $(#[$doc])*
                #[must_use]
                pub fn $name(&self) -> $subject<'_> {
                    $subject::new(&self.store)
                }
            )*
        }
    };
}

accessors! {
    /// Finds, lists, changes and deletes sessions.
    sessions -> SessionCatalog;
    /// The users of the store.
    users -> StoreUsers;
    /// Reads the lines of sessions.
    reading -> RowReading;
    /// Reports which sessions changed.
    changes -> ChangeFeed;
    /// Writes sessions from their lines.
    ingestion -> Ingestion;
    /// Searches messages and turns.
    search -> TranscriptSearch;
    /// Makes vectors.
    vectors -> StoredVectors;
    /// Turns, and their summaries.
    turns -> StoredTurns;
    /// Secrets in stored lines.
    secrets -> StoredSecrets;
    /// Lines that were replaced or rewound.
    superseded -> SupersededHistory;
    /// Exports and imports sessions.
    archive -> ArchiveTransfer;
    /// Copies sessions to another store.
    copying -> StoreCopying;
    /// Sends sessions to another store and takes them from it, row by row.
    exchange -> SessionExchange;
    /// Takes sessions from a damaged store.
    salvage -> StoreSalvage;
    /// Compares stored data with the lines, and repairs it.
    verification -> Verification;
    /// Counts what is stored.
    statistics -> StoreStatistics;
    /// Derives data again that earlier versions derived by other rules.
    rederivation -> Rederivation;
}
