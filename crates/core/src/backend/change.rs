//! Data to write: a session with its rows, and the vectors of its messages.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::model::{
    Digest, Message, MetadataFile, Retimed, Session, StoredEvent, SupersededPiece, Timestamp, VectorRecord,
    VectorState,
};

/// The version of a stored session, such as a revision or an ETag. It changes with every write, and is not reused if
/// the session is deleted and created again.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Version(pub String);

/// A line that was skipped, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SkippedLine {
    /// The path within the session folder.
    pub file: String,
    /// The line number, from 1.
    pub line: u64,
    /// The reason.
    pub reason: String,
    /// Where its text is stored, if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<KeptLine>,
}

/// A skipped line whose text is stored, among the superseded lines of its session: see
/// [`SupersededReason::Unreadable`](crate::model::SupersededReason::Unreadable).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KeptLine {
    /// The number of rows before it in the file.
    pub row: u32,
    /// The digest of its text.
    pub digest: Digest,
}

impl SkippedLine {
    /// A line whose text is not stored.
    #[must_use]
    pub fn new(file: impl Into<String>, line: u64, reason: impl Into<String>) -> Self {
        Self { file: file.into(), line, reason: reason.into(), kept: None }
    }
}

/// How far the files of a session were read, and facts about its rows that hold only together with this state. So it is
/// always replaced as a whole.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredSyncState {
    /// The state of the files, in a format known only to the sync.
    #[serde(rename = "sync_state")]
    pub files: String,
    /// The state of the rows from which the next ingest continues, in a format known only to the ingest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settled: Option<String>,
    /// The rows that a rewind left since the files were read. The files may still contain the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rewound: Option<RewoundTo>,
}

impl StoredSyncState {
    /// The state of files, without facts about rows.
    #[must_use]
    pub fn of(files: impl Into<String>) -> Self {
        Self { files: files.into(), ..Self::default() }
    }
}

/// The rows that a rewind left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RewoundTo {
    /// The number of messages.
    pub messages: u32,
    /// The number of events.
    pub events: u32,
}

/// A session with the data stored beside its fields.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredSession {
    /// The fields.
    pub session: Session,
    /// Its current version.
    pub version: Version,
    /// Its original metadata files, the session's own first.
    pub metadata_files: Vec<MetadataFile>,
    /// The lines of its files that were skipped.
    pub skipped: Vec<SkippedLine>,
    /// How far its files were read.
    pub sync_state: Option<StoredSyncState>,
}

/// One write of one session: each value that is `Some` replaces the stored one.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionChange {
    /// All fields of the session after the write, including counts.
    pub session: Session,
    /// The version that the change is based on; `None` means that the session must not exist yet.
    pub expected: Option<Version>,
    /// The metadata files.
    pub metadata_files: Option<Vec<MetadataFile>>,
    /// The skipped lines.
    pub skipped: Option<Vec<SkippedLine>>,
    /// How far the files were read.
    pub sync_state: Option<StoredSyncState>,
    /// Messages to store and to remove.
    pub messages: RowChange<Message>,
    /// Stored messages whose time changes.
    pub retimed: Vec<Retimed>,
    /// Events to store and to remove.
    pub events: RowChange<StoredEvent>,
    /// Superseded lines to store: lines of this session that the change removes, or that a later one will, and lines
    /// that can't be read.
    pub superseded: Vec<SupersededPiece>,
}

impl SessionChange {
    /// A change that writes only the fields of `session`.
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
            superseded: Vec::new(),
        }
    }

    /// The total size of the lines of the messages, which a search index will have to read.
    #[must_use]
    pub fn message_bytes(&self) -> usize {
        self.messages.put.iter().map(|message| message.raw.as_bytes().len()).sum()
    }
}

impl SessionChange {
    /// The stored messages that the change removes or replaces.
    #[must_use]
    pub fn removed_messages(&self) -> RemovedMessages {
        RemovedMessages {
            from: self.messages.truncate,
            put: self.messages.put.iter().map(|message| (message.sequence, message.digest)).collect(),
        }
    }
}

/// The stored messages that a change removes or replaces, for data that belongs to messages.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RemovedMessages {
    from: Option<u32>,
    put: BTreeMap<u32, Digest>,
}

impl RemovedMessages {
    /// The messages of a session from this sequence on.
    #[must_use]
    pub fn from(start: u32) -> Self {
        Self { from: Some(start), put: BTreeMap::new() }
    }

    /// Leaves out messages from this sequence on. Use it when none of those were stored before the change.
    #[must_use]
    pub fn below(mut self, stored: u32) -> Self {
        self.from = self.from.filter(|from| *from < stored);
        self.put.retain(|sequence, _| *sequence < stored);
        self
    }

    /// Whether the change removes and replaces no messages.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.from.is_none() && self.put.is_empty()
    }

    /// Whether the message is removed or put again: vectors made from it are removed.
    #[must_use]
    pub fn has(&self, sequence: u32) -> bool {
        self.from.is_some_and(|from| sequence >= from) || self.put.contains_key(&sequence)
    }

    /// Whether the line with this digest is gone after the change. Summaries of it are removed then.
    #[must_use]
    pub fn has_line(&self, sequence: u32, digest: Digest) -> bool {
        self.has(sequence) && self.put.get(&sequence) != Some(&digest)
    }
}

/// Rows to store, each under its sequence, and a length to truncate to.
#[derive(Debug, Clone, PartialEq)]
pub struct RowChange<T> {
    /// Rows that are new or replace the row with the same sequence.
    pub put: Vec<T>,
    /// Rows from this sequence on are removed before `put`.
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

/// All vectors of one message, including that of the turn that it begins.
#[derive(Debug, Clone, PartialEq)]
pub struct MessageVectors {
    /// The message.
    pub sequence: u32,
    /// The line that the vectors were made from.
    pub digest: Digest,
    /// When they were made.
    pub created_at: Timestamp,
    /// The digest of the lines of the turn that the message begins ([`TurnLines`](super::TurnLines)), if the vector of
    /// the turn was made from them or is not needed. `None` if it is still to be made, or if the message begins no
    /// turn.
    pub turn: Option<Digest>,
    /// The vectors. They replace the stored ones of the same generation. `None` if those are right.
    pub records: Option<Vec<VectorRecord>>,
    /// Why some or all of its texts have no vectors, if so. These do not become pending again automatically.
    pub failure: Option<String>,
}

impl MessageVectors {
    /// The vectors of a message that begins no turn, or whose turn is still to be embedded.
    #[must_use]
    pub fn new(sequence: u32, digest: Digest, created_at: Timestamp, records: Vec<VectorRecord>) -> Self {
        Self { sequence, digest, created_at, turn: None, records: Some(records), failure: None }
    }

    /// The new vectors.
    #[must_use]
    pub fn records(&self) -> &[VectorRecord] {
        self.records.as_deref().unwrap_or_default()
    }

    /// Whether the vector of a turn is pending after these vectors are stored. `begun` are the lines of the turn that
    /// the message begins, if it does.
    #[must_use]
    pub fn leaves_turn(&self, begun: Option<Digest>) -> bool {
        begun.is_some() && self.turn != begun
    }

    /// The total size of the vectors in bytes.
    #[must_use]
    pub fn vector_bytes(&self) -> usize {
        self.records().iter().map(|record| size_of_val(record.vector.as_slice())).sum()
    }
}

/// Which messages need their vectors made again.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum MessagesToEmbed {
    /// All messages with something to embed.
    All,
    /// Messages that failed.
    Failed,
    /// The messages with these sequences.
    At(Vec<u32>),
    /// Only the vectors of the turns that these messages begin.
    TurnsAt(Vec<u32>),
}

impl MessagesToEmbed {
    /// Whether it includes the message with this sequence. `failed` says whether one of its texts could not be
    /// embedded.
    #[must_use]
    pub fn includes(&self, sequence: u32, failed: bool) -> bool {
        match self {
            Self::All => true,
            Self::Failed => failed,
            Self::At(sequences) | Self::TurnsAt(sequences) => sequences.contains(&sequence),
        }
    }

    /// The state of a message afterwards, and the states before that change into it.
    #[must_use]
    pub fn transition(&self) -> (&'static [VectorState], VectorState) {
        match self {
            Self::TurnsAt(_) => (&[VectorState::Stored], VectorState::TurnPending),
            _ => (&[VectorState::Stored, VectorState::TurnPending], VectorState::Outdated),
        }
    }
}
