//! [`SessionStorage`]: everything that is the same on every backend.

mod activity;
mod archive;
mod at_rest;
mod checked;
mod context;
mod copy;
mod damage;
mod dates;
mod deleted;
mod edit;
mod embed;
mod embeddings;
mod events;
mod find;
mod ingest;
mod judged;
mod line_masker;
mod periods;
mod projects;
mod rebuild;
mod renewal;
mod rewind;
mod salvage;
mod search;
mod secrets;
mod session_rows;
mod session_writer;
mod sessions;
mod short_ids;
mod statistics;
mod superseded;
mod sync_statistics;
mod text_plan;
mod touched;
mod transcript;
mod tree;
mod turns;
mod vector_search;
mod verify;

use std::{
    collections::BTreeSet,
    fmt,
    sync::{Arc, Mutex},
};

use tokio::sync::OnceCell;

use crate::{
    Result,
    backend::{IndexUpdate, StorageBackend, StorageBackendExt, meta},
    content::{Redaction, Redactor, TOOL_OUTPUT_LIMIT},
    embedding::EmbeddingProvider,
    model::{DamagedRow, EmbeddingSpace, Timestamp, UserId},
};

pub use activity::Activity;
pub use archive::{
    ArchiveReader, ArchiveWriter, ArchivedSummary, ArchivedTurn, ArchivedVector, BrokenPart, Checksum,
    EventRecord, ExportReport, FileRecord, ImportOptions, ImportReport, JsonLinesReader, JsonLinesWriter,
    MessageRecord, Raw, Record, RefusedSession, SessionRecord, SupersededRecord,
};
pub use at_rest::SecretsAtRest;
pub use context::MessageContext;
pub use copy::{CopyOptions, CopyProgress, CopyReport, NotCopied, NotCopiedBecause, OnCopied};
pub use damage::Readable;
pub use edit::{SessionEdit, Sharing};
pub use embed::{EmbedReport, OnEmbedded};
pub use embeddings::{EmbeddedChunk, GivenEmbeddings, MessageEmbeddings};
pub use events::{EventLine, EventLines};
pub use find::{Addressed, AddressedLine};
pub use ingest::{
    Extent, IngestRepair, IngestReport, IngestTarget, LineOutcome, Remaining, SessionIngest, SettledRows,
    SyncStateWithSettled,
};
pub use line_masker::LineDigester;
pub use periods::PeriodStatistics;
pub use projects::FolderProject;
pub use rebuild::{Estimate, EstimateOf, GenerationStatus, VectorStatus, VectorsOf};
pub use rewind::{RewindOptions, RewindReport, SyncStateAfterRewind};
pub use salvage::SalvageReport;
pub use secrets::{SecretIn, SessionSecrets, StoredSecret};
pub use session_writer::{Finished, SessionWriter, WrittenRows};
pub use sessions::SessionStatistics;
pub use statistics::{
    DayStatistics, EventTypeStatistics, LeftOut, ModelStatistics, Relation, SessionGroup, Statistics,
    StatisticsOptions, ToolStatistics,
};
pub use superseded::{
    PruneOptions, PruneReport, SupersededLine, SupersededLines, SupersededMatch, SupersededSession,
};
pub use sync_statistics::SyncStatistics;
pub use touched::TouchedSessions;
pub use transcript::SyncLines;
pub use tree::{Origin, SessionTree};
pub use turns::{GivenSummary, StoredTurnEmbedding, SummaryReport, SummarySource, Turn, TurnSide};
pub use verify::{Gaps, RowRepair, SessionCheck};

/// How much of events to store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EventDetail {
    /// Fields, summary and the original line.
    #[default]
    Full,
    /// Fields and summary.
    Summary,
    /// Nothing: events are not stored.
    None,
}

/// Settings of a [`SessionStorage`].
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct StorageSettings {
    /// How much of events to store. Default: everything.
    pub events: EventDetail,
    /// How many characters of tool output to embed. Default: 10,000.
    pub tool_output_chars: usize,
    /// Whether ids of new sessions must be UUIDs. Default: no.
    pub uuid_session_ids: bool,
    /// Whether turns are embedded with their messages. Default: no.
    pub turns: bool,
    /// How secrets in stored lines are treated. The store remembers it. Default: what the store remembers, or else
    /// [`SecretsAtRest::Mark`].
    pub secrets: Option<SecretsAtRest>,
}

impl Default for StorageSettings {
    fn default() -> Self {
        Self {
            events: EventDetail::Full,
            tool_output_chars: TOOL_OUTPUT_LIMIT,
            uuid_session_ids: false,
            turns: false,
            secrets: None,
        }
    }
}

impl StorageSettings {
    setters! {
        /// Sets how much of events to store.
        with_events(events: EventDetail);
        /// Sets how many characters of tool output to embed.
        with_tool_output_chars(tool_output_chars: usize);
        /// Sets whether ids of new sessions must be UUIDs.
        with_uuid_session_ids(uuid_session_ids: bool);
        /// Sets whether turns are embedded with their messages.
        with_turns(turns: bool);
        /// Sets how secrets in stored lines are treated.
        with_secrets(secrets: Option<SecretsAtRest>);
    }
}

type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// Stores and searches sessions on a backend. Cheap to clone; clones share everything.
#[derive(Clone)]
pub struct SessionStorage {
    backend: Arc<dyn StorageBackend>,
    embedding: Option<Arc<dyn EmbeddingProvider>>,
    redactor: Option<Arc<dyn Redactor>>,
    redaction: Redaction,
    settings: StorageSettings,
    clock: Clock,
    /// Set once the store is known to follow the current rules.
    renewed: Arc<OnceCell<u64>>,
    /// The store's setting for secrets.
    at_rest: at_rest::CachedAtRest,
    /// Sessions that lists have skipped because they can't be read.
    damaged_sessions: Arc<Mutex<BTreeSet<DamagedRow>>>,
}

impl SessionStorage {
    /// A storage on `backend`, without embeddings.
    #[must_use]
    pub fn new(backend: Arc<dyn StorageBackend>) -> Self {
        Self {
            backend,
            embedding: None,
            redactor: None,
            redaction: Redaction::default(),
            settings: StorageSettings::default(),
            clock: Arc::new(Timestamp::now),
            renewed: Arc::default(),
            at_rest: at_rest::CachedAtRest::default(),
            damaged_sessions: Arc::default(),
        }
    }

    setters! {
        /// Sets the embedding provider. With `None`, no vectors are made, and searches use only words.
        with_embedding(embedding: Option<Arc<dyn EmbeddingProvider>>);
        /// Sets the settings.
        with_settings(settings: StorageSettings);
    }

    /// Sets the redactor, and the models for which it masks secrets. Without a redactor, the default, nothing is
    /// masked.
    #[must_use]
    pub fn with_redactor(mut self, redaction: Redaction, redactor: Arc<dyn Redactor>) -> Self {
        (self.redaction, self.redactor) = (redaction, Some(redactor));
        self
    }

    /// Sets the clock for the times when rows are stored.
    #[must_use]
    pub fn with_clock(mut self, clock: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// The backend.
    #[must_use]
    pub fn backend(&self) -> &Arc<dyn StorageBackend> {
        &self.backend
    }

    /// The embedding provider, if there is one.
    #[must_use]
    pub fn embedding(&self) -> Option<&Arc<dyn EmbeddingProvider>> {
        self.embedding.as_ref()
    }

    /// The redactor that masks secrets in texts for `provider`, if they are masked.
    fn redactor_for(&self, provider: &dyn EmbeddingProvider) -> Option<&Arc<dyn Redactor>> {
        self.redactor.as_ref().filter(|_| self.redaction.applies_to(provider))
    }

    /// The settings.
    #[must_use]
    pub fn settings(&self) -> &StorageSettings {
        &self.settings
    }

    /// The user who first wrote the store, if any.
    ///
    /// # Errors
    ///
    /// `Validation` if the stored name is not a user id; errors of the backend.
    pub async fn pinned_user(&self) -> Result<Option<UserId>> {
        self.backend.meta().await?.get(meta::USER_ID).map(UserId::new).transpose()
    }

    /// Pins `user` as the store's user unless another user is pinned. Returns the pinned user.
    ///
    /// # Errors
    ///
    /// `Validation` if the stored name is not a user id; errors of the backend.
    pub async fn pin_user(&self, user: &UserId) -> Result<UserId> {
        UserId::new(self.backend.put_meta_if_absent(meta::USER_ID, user.as_str()).await?)
    }

    /// Changes the owner of all sessions of `from` to `to`, for a user whose id has changed. Returns the number of
    /// sessions. If `from` is pinned as the store's user, `to` is pinned instead.
    ///
    /// # Errors
    ///
    /// `Conflict` if both have a session or an event with the same id: then nothing is changed; errors of the backend.
    pub async fn rename_user(&self, from: &UserId, to: &UserId) -> Result<u64> {
        let renamed = if from == to { 0 } else { self.backend.rename_user(from, to).await? };
        self.backend.replace_meta(meta::USER_ID, from.as_str(), to.as_str()).await?;
        Ok(renamed)
    }

    /// The space of the store's vectors; `None` if the store has no vectors.
    ///
    /// # Errors
    ///
    /// Errors of the backend.
    pub async fn embedding_space(&self) -> Result<Option<EmbeddingSpace>> {
        Ok(self.generations().await?.current.map(|current| current.space))
    }

    /// Updates derived indexes from the rows. Searches are correct without it, only slower.
    ///
    /// # Errors
    ///
    /// Errors of the backend.
    pub async fn update_index(&self) -> Result<()> {
        self.backend.update_index(IndexUpdate::Now).await
    }

    /// As [`SessionStorage::update_index`], but may leave a few new rows to a later call.
    ///
    /// # Errors
    ///
    /// Errors of the backend.
    pub async fn update_index_if_due(&self) -> Result<()> {
        self.backend.update_index(IndexUpdate::IfDue).await
    }

    /// The time by this storage's clock.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        (self.clock)()
    }
}

impl fmt::Debug for SessionStorage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionStorage")
            .field("backend", &self.backend)
            .field("embedding", &self.embedding)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}
