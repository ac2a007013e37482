//! [`SessionStorage`]: everything that is the same on every backend.

mod archive;
mod at_rest;
mod changes;
mod context;
mod copy;
mod damage;
mod deleted;
mod embed;
mod embeddings;
mod events;
mod exchange;
mod front;
mod ingest;
mod line_masker;
mod read_masking;
mod read_meter;
mod rebuild;
mod rederivation;
mod salvage;
mod search;
mod secrets;
mod session_rows;
mod session_writer;
mod sessions;
mod settings;
mod statistics;
mod store;
mod superseded;
mod transcript;
mod turn_texts;
mod turns;
mod used_files;
mod users;
mod verify;

pub use archive::{
    ArchiveReader, ArchiveWriter, ArchivedSummary, ArchivedTurn, ArchivedVector, BrokenPart, Checksum,
    EventRecord, ExportReport, FileRecord, FollowingLines, ImportOptions, ImportReport, JsonLinesReader,
    JsonLinesWriter, MessageRecord, Raw, Record, RefusedSession, RowChain, RowChains, SentSuperseded,
    SessionRecord, SupersededRecord, TransferHead,
};
pub use at_rest::SecretsAtRest;
pub use context::MessageContext;
pub use copy::{CopyOptions, CopyProgress, CopyReport, NotCopied, NotCopiedBecause, OnCopied};
pub use damage::Readable;
pub use embed::{EmbedReport, OnEmbedded, VectorsOf};
pub use embeddings::{EmbeddedChunk, GivenEmbeddings, MessageEmbeddings};
pub use events::{EventLine, EventLines};
pub use exchange::{
    ExtentPage, ExtentQuery, PlannedTransfer, PostResult, PostedEvent, PullOptions, PullReport, PushOptions,
    PushReport, PushSelection, ReceiveOptions, ReceiveResult, ReceivedSession, RowEncoder, RowIntake,
    RowOrigin, RowSink, RowTarget, RowUpload, SendRows, SentExtent, SentRows, SessionExtent, TransferFailure,
    TransferProgress,
};
pub use front::SessionStorage;
pub use ingest::{
    Extent, IngestRepair, IngestReport, IngestTarget, LineOutcome, Remaining, RewindOptions, RewindReport,
    SessionIngest,
};
pub use line_masker::LineDigester;
pub use read_meter::ReadMeter;
pub use rebuild::{Estimate, EstimateOf, GenerationStatus, VectorStatus};
pub use salvage::SalvageReport;
pub use search::{AllMatches, TouchedSessions};
pub use secrets::{SecretIn, SessionSecrets, StoredSecret};
pub use session_writer::{Finished, SessionWriter, WrittenRows};
pub use sessions::{
    Activity, Addressed, AddressedLine, FolderProject, NamedProjects, Origin, SessionEdit, SessionStatistics,
    SessionTree, Sharing,
};
pub use settings::{EventDetail, StorageSettings};
pub use statistics::{
    Breakdown, DayStatistics, EventTypeStatistics, LeftOut, ModelStatistics, PeriodStatistics, Relation,
    SessionGroup, SessionOrder, SortedProject, SortedSession, Statistics, StatisticsOptions, SyncStatistics,
    ToolStatistics,
};
pub use store::{
    ArchiveTransfer, ChangeFeed, Ingestion, Rederivation, RowReading, SessionCatalog, SessionExchange,
    StoreCopying, StoreSalvage, StoreStatistics, StoreUsers, StoredSecrets, StoredTurns, StoredVectors,
    SupersededHistory, TranscriptSearch, Verification,
};
pub use superseded::{
    PruneOptions, PruneReport, SupersededLine, SupersededLines, SupersededMatch, SupersededSession,
};
pub use transcript::SyncLines;
pub use turns::{GivenSummary, StoredTurnEmbedding, SummaryReport, SummarySource, Turn, TurnSide};
pub use verify::{Gaps, RowRepair, SessionCheck};
