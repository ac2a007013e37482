//! [`SessionStorage`]: everything that is the same on every backend.

mod archive;
mod context;
mod copy;
mod damage;
mod deleted;
mod embed;
mod embeddings;
mod events;
mod ingest;
mod line_masker;
mod rebuild;
mod rederivation;
mod salvage;
mod search;
mod secrets;
mod session_rows;
mod session_writer;
mod sessions;
mod statistics;
mod store;
mod superseded;
mod transcript;
mod turn_texts;
mod turns;
mod users;
mod verify;

use std::sync::Arc;

use crate::{
    Result,
    backend::{IndexUpdate, StorageBackend},
    content::{Redaction, Redactor, TOOL_OUTPUT_LIMIT},
    embedding::EmbeddingProvider,
    model::Timestamp,
};

pub(crate) use store::StoreContext;

pub use archive::{
    ArchiveReader, ArchiveWriter, ArchivedSummary, ArchivedTurn, ArchivedVector, BrokenPart, Checksum,
    EventRecord, ExportReport, FileRecord, ImportOptions, ImportReport, JsonLinesReader, JsonLinesWriter,
    MessageRecord, Raw, Record, RefusedSession, SessionRecord, SupersededRecord,
};
pub use context::MessageContext;
pub use copy::{CopyOptions, CopyProgress, CopyReport, NotCopied, NotCopiedBecause, OnCopied};
pub use damage::Readable;
pub use embed::{EmbedReport, OnEmbedded};
pub use embeddings::{EmbeddedChunk, GivenEmbeddings, MessageEmbeddings};
pub use events::{EventLine, EventLines};
pub use ingest::{
    Extent, IngestRepair, IngestReport, IngestTarget, LineOutcome, Remaining, RewindOptions, RewindReport,
    SessionIngest,
};
pub use line_masker::LineDigester;
pub use rebuild::{Estimate, EstimateOf, GenerationStatus, VectorStatus, VectorsOf};
pub use salvage::SalvageReport;
pub use search::TouchedSessions;
pub use secrets::{SecretIn, SecretsAtRest, SessionSecrets, StoredSecret};
pub use session_writer::{Finished, SessionWriter, WrittenRows};
pub use sessions::{
    Activity, Addressed, AddressedLine, FolderProject, Origin, SessionEdit, SessionStatistics, SessionTree,
    Sharing,
};
pub use statistics::{
    DayStatistics, EventTypeStatistics, LeftOut, ModelStatistics, PeriodStatistics, Relation, SessionGroup,
    Statistics, StatisticsOptions, SyncStatistics, ToolStatistics,
};
pub use store::{
    ArchiveTransfer, Ingestion, Rederivation, RowReading, SessionCatalog, StoreCopying, StoreSalvage,
    StoreStatistics, StoreUsers, StoredSecrets, StoredTurns, StoredVectors, SupersededHistory,
    TranscriptSearch, Verification,
};
pub use superseded::{
    PruneOptions, PruneReport, SupersededLine, SupersededLines, SupersededMatch, SupersededSession,
};
pub use transcript::SyncLines;
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

/// Stores and searches sessions on a backend. Its methods are in subjects: `storage.search()`, `storage.sessions()` ….
/// Cheap to clone; clones share everything.
#[derive(Debug, Clone)]
pub struct SessionStorage {
    store: StoreContext,
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
    /// Takes sessions from a damaged store.
    salvage -> StoreSalvage;
    /// Compares stored data with the lines, and repairs it.
    verification -> Verification;
    /// Counts what is stored.
    statistics -> StoreStatistics;
    /// Derives data again that earlier versions derived by other rules.
    rederivation -> Rederivation;
}
