//! What is written: a session with its rows, and the vectors of its messages.

use serde::{Deserialize, Serialize};

use crate::model::{Digest, Message, MetadataFile, Retimed, Session, StoredEvent, Timestamp, VectorRecord};

/// The state of a stored session that changes with every write of it: a revision, an ETag. A session that is deleted and
/// made again never gets one back that it had.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Version(pub String);

/// A line that was left out, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkippedLine {
    /// Path within the session folder.
    pub file: String,
    /// 1-based line number.
    pub line: u64,
    /// What is wrong with it.
    pub reason: String,
}

/// A session with what is kept beside its fields.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredSession {
    /// The fields.
    pub session: Session,
    /// Its present version.
    pub version: Version,
    /// Its metadata files as they came in, the session's own first.
    pub metadata_files: Vec<MetadataFile>,
    /// Lines of its files that were left out.
    pub skipped: Vec<SkippedLine>,
    /// How far its files were read: written and understood by the sync alone.
    pub sync_state: Option<String>,
}

/// One write of one session: everything that is `Some` replaces what is stored.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionChange {
    /// All fields of the session, counts included, as they are after the write.
    pub session: Session,
    /// The version that the change was computed from; `None`: the session must not exist yet.
    pub expected: Option<Version>,
    /// The metadata files.
    pub metadata_files: Option<Vec<MetadataFile>>,
    /// The lines that were left out.
    pub skipped: Option<Vec<SkippedLine>>,
    /// How far the files were read.
    pub sync_state: Option<String>,
    /// Messages to put and to remove.
    pub messages: RowChange<Message>,
    /// Stored messages that get another time.
    pub retimed: Vec<Retimed>,
    /// Events to put and to remove.
    pub events: RowChange<StoredEvent>,
}

impl SessionChange {
    /// A change that writes the fields of `session` and nothing else.
    #[must_use]
    pub fn new(session: Session, expected: Option<Version>) -> Self {
        Self {
            session,
            expected,
            metadata_files: None,
            skipped: None,
            sync_state: None,
            messages: RowChange::default(),
            retimed: Vec::new(),
            events: RowChange::default(),
        }
    }

    /// How many bytes of lines the messages bring, which a search index will have to read.
    #[must_use]
    pub fn message_bytes(&self) -> usize {
        self.messages.put.iter().map(|message| message.raw.as_bytes().len()).sum()
    }
}

/// Rows to put, each under its own sequence, and a length to cut to.
#[derive(Debug, Clone, PartialEq)]
pub struct RowChange<T> {
    /// Rows that are new or replace the one of the same sequence.
    pub put: Vec<T>,
    /// Rows of this sequence and above are removed before `put`.
    pub truncate: Option<u32>,
}

impl<T> Default for RowChange<T> {
    fn default() -> Self {
        Self { put: Vec::new(), truncate: None }
    }
}

impl<T> RowChange<T> {
    /// Whether the change does nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.put.is_empty() && self.truncate.is_none()
    }
}

/// All vectors of one message.
#[derive(Debug, Clone, PartialEq)]
pub struct MessageVectors {
    /// The message.
    pub sequence: u32,
    /// The line that the vectors were made from.
    pub digest: Digest,
    /// When they were made.
    pub created_at: Timestamp,
    /// The vectors; they replace those of the same generation that are stored.
    pub records: Vec<VectorRecord>,
    /// Why some or all of its texts have none, if that is so: they will not be owed again by themselves.
    pub failure: Option<String>,
}

impl MessageVectors {
    /// How many bytes of vectors there are.
    #[must_use]
    pub fn vector_bytes(&self) -> usize {
        self.records.iter().map(|record| size_of_val(record.vector.as_slice())).sum()
    }
}

/// Whose vectors are to be made anew.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum OweAgain {
    /// Those of all messages with something to embed.
    All,
    /// Those of messages that failed.
    Failed,
    /// Those of the messages of these sequences.
    At(Vec<u32>),
}

impl OweAgain {
    /// Whether the message of a sequence is meant; `failed` says whether one of its texts could not be embedded.
    #[must_use]
    pub fn means(&self, sequence: u32, failed: bool) -> bool {
        match self {
            Self::All => true,
            Self::Failed => failed,
            Self::At(sequences) => sequences.contains(&sequence),
        }
    }
}
