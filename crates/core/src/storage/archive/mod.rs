//! Archives: sessions as a sequence of records, to copy them to a store of any kind.
//!
//! | record | is |
//! | --- | --- |
//! | `archive` | the first line: the version of the format, and who wrote it |
//! | `session` | the fields of a session, its metadata files, and the skipped lines of its files |
//! | `message`, `event` | the rows of the session, in order, with their original lines |
//! | `superseded` | the superseded lines of the session, after its rows; only if it has some |
//! | `again` | the session changed while it was written: discard its records; it is written again |
//! | `end` | the end of a session, with the number of its rows and their checksum; without it, the session is incomplete |
//! | `complete` | the last line, with the number of sessions and the checksum of their checksums; without it, the archive is incomplete |
//!
//! The checksum of a session covers its lines in the archive, from `session` to the last row, without line ends.
//! An import skips a session with a broken line, and continues with the next.
//!
//! Lines of transcripts and event logs and metadata files are text, or hexadecimal digits if they are not UTF-8, so
//! they are preserved byte for byte. Vectors are left out unless the writer takes them, because they can be made again
//! from the lines. An import stores vectors if the store has vectors of the same space, or no vectors. The message that
//! begins a turn contains the summary of the turn and, if vectors are included, the embeddings of the turn.
//!
//! [`JsonLinesWriter`] writes records as JSON lines. Other formats implement [`ArchiveWriter`] and [`ArchiveReader`].

mod checksum;
mod export;
mod import;
mod json_lines;
mod session;
mod superseded;
mod transfer;
mod turns;
mod vectors;
mod writing;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    Error, ErrorField, Result,
    backend::{SkippedLine, StoredSyncState},
    events::MAX_LINE_BYTES,
    model::{Digest, EmbeddingSpace, Level, RawJson, Role, Session, TimeSource, Timestamp, time_fields},
    text::size,
};

pub use checksum::Checksum;
pub use export::ExportReport;
pub(super) use export::{event_record, message_record};
pub use import::{BrokenPart, ImportOptions, ImportReport, RefusedSession};
pub(super) use json_lines::LONGEST_RECORD;
pub use json_lines::{JsonLinesReader, JsonLinesWriter};
pub use superseded::SupersededRecord;
pub use transfer::{FollowingLines, RowChain, RowChains, SentSuperseded, TransferHead};
pub use turns::{ArchivedSummary, ArchivedTurn};
pub use vectors::ArchivedVector;

/// The version of the format, for writing and reading.
pub(super) const FORMAT: u32 = 1;

/// Writes the records of an archive.
pub trait ArchiveWriter: Send {
    /// Writes a record.
    ///
    /// # Errors
    ///
    /// `StorageIo` if it can't be written.
    fn put(&mut self, record: Record) -> Result<()>;

    /// Whether messages are written with their vectors. Default: no.
    fn takes_vectors(&self) -> bool {
        false
    }

    /// Writes buffered records. No record follows.
    ///
    /// # Errors
    ///
    /// `StorageIo` if it can't be written.
    fn finish(&mut self) -> Result<()>;
}

/// Reads the records of an archive.
pub trait ArchiveReader: Send {
    /// The next record, or `None` at the end.
    ///
    /// # Errors
    ///
    /// `StorageIo` if it can't be read; `Validation` (`archive`) if it is not a record, or the end of a session with
    /// another checksum. Then the next call returns the record after it.
    fn next(&mut self) -> Result<Option<Record>>;

    /// The position of the last record for error messages: a unit and a number from 1, such as `("line", 7)`.
    fn place(&self) -> (&'static str, u64);

    /// Remembers the position after the last record. Returns whether [`Self::go_back`] can return to it; if not, every
    /// session must fit into memory.
    fn mark(&mut self) -> bool {
        false
    }

    /// Returns to the position of the last [`Self::mark`].
    ///
    /// # Errors
    ///
    /// `StorageIo` if that fails.
    fn go_back(&mut self) -> Result<()> {
        Ok(())
    }
}

/// A record of an archive.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case")]
pub enum Record {
    /// The first record.
    Archive {
        /// The version of the format.
        format: u32,
        /// The program that wrote it.
        writer: String,
        /// Whether each session has a checksum.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        checksums: bool,
    },
    /// A session begins.
    Session(Box<SessionRecord>),
    /// A message of the session.
    Message(Box<MessageRecord>),
    /// An event of the session.
    Event(Box<EventRecord>),
    /// A superseded line of the session.
    Superseded(Box<SupersededRecord>),
    /// The session changed while it was written. Its records must be discarded, and it is written again.
    Again,
    /// The session is complete.
    End {
        /// The number of its messages.
        messages: u32,
        /// The number of its events.
        events: u32,
        /// The checksum of its lines. Writers set it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        checksum: Option<String>,
        /// Whether the session has more rows, which a later transfer sends. Never in an archive.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_part: bool,
    },
    /// The last record: the archive is complete.
    Complete {
        /// The number of sessions.
        sessions: u64,
        /// The checksum of the checksums of all sessions. Writers set it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        checksum: Option<String>,
    },
}

/// A session with the data stored beside it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SessionRecord {
    /// Its fields.
    pub session: Session,
    /// Its metadata files.
    pub metadata_files: Vec<FileRecord>,
    /// The skipped lines of its files.
    pub skipped: Vec<SkippedLine>,
    /// How far its files were synced.
    #[serde(flatten)]
    pub sync_state: Option<StoredSyncState>,
    /// The space of the vectors of its messages, if they are in the archive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub embedding_space: Option<EmbeddingSpace>,
    /// In a transfer of rows to another store: who sends them, and after which rows they come. Never in an archive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transfer: Option<Box<TransferHead>>,
}

/// A metadata file.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FileRecord {
    /// Its name.
    pub name: String,
    /// Its content.
    #[serde(flatten)]
    pub raw: Raw,
}

/// A message.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct MessageRecord {
    /// Its sequence, from 0.
    pub sequence: u32,
    /// The speaker.
    pub role: Role,
    /// Its turn, from 1.
    pub turn: Option<u32>,
    /// When it was written.
    pub ts: Timestamp,
    /// Where the time comes from.
    #[serde(flatten, with = "time_fields")]
    pub ts_source: TimeSource,
    /// When it was stored.
    pub synced_at: Timestamp,
    /// The digest of its line, in a transfer of rows to another store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
    /// Its line.
    #[serde(flatten)]
    pub raw: Raw,
    /// Its vectors, if they are in the archive.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vectors: Vec<ArchivedVector>,
    /// Why some or all of its texts have no vectors, if they could not be made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vector_failure: Option<String>,
    /// The summary of the turn that it begins, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_summary: Option<ArchivedSummary>,
    /// The embeddings of the turn that it begins, if vectors are in the archive.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub turn_embeddings: Vec<ArchivedTurn>,
}

/// An event. Its fields are included, because its line may not be stored.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct EventRecord {
    /// Its sequence, from 0.
    pub sequence: u32,
    /// Its id, unique per user.
    pub event_id: String,
    /// The type.
    pub event_type: String,
    /// The time.
    pub ts: Timestamp,
    /// Whether the time is an estimate.
    pub ts_estimated: bool,
    /// Its turn, from 1.
    pub turn: Option<u32>,
    /// The level.
    pub level: Level,
    /// The tool it is about.
    pub tool_name: Option<String>,
    /// The kind of error it reports.
    pub error_type: Option<String>,
    /// The model it is about.
    pub model: Option<String>,
    /// The provider it is about.
    pub provider: Option<String>,
    /// The summary of its payload.
    pub summary: Map<String, Value>,
    /// The length of its payload in bytes.
    pub data_size_bytes: u64,
    /// When it was stored; absent in archives of earlier versions.
    #[serde(default)]
    pub synced_at: Option<Timestamp>,
    /// The digest of its line, as hexadecimal digits.
    pub digest: String,
    /// Its line, if it is stored.
    #[serde(flatten)]
    pub raw: Raw,
}

/// Bytes: a text, or hexadecimal digits if they are not UTF-8; neither if they are not stored.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Raw {
    /// The text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<String>,
    /// The digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw_hex: Option<String>,
}

impl From<RawJson> for Raw {
    fn from(raw: RawJson) -> Self {
        match String::from_utf8(raw.into_bytes()) {
            Ok(text) => Self { raw: Some(text), raw_hex: None },
            Err(error) => Self { raw: None, raw_hex: Some(hex(error.as_bytes())) },
        }
    }
}

impl Raw {
    /// The bytes, if they are stored. No file has longer lines than [`MAX_LINE_BYTES`], and no store can read them.
    pub(in crate::storage) fn kept(self) -> Result<Option<RawJson>> {
        let raw = match (self.raw, self.raw_hex) {
            (Some(text), _) => RawJson::new(text),
            (None, Some(digits)) => RawJson::new(bytes(&digits)?),
            (None, None) => return Ok(None),
        };
        if raw.as_bytes().len() > MAX_LINE_BYTES {
            return Err(invalid(format!(
                "the record has a line of more than {}",
                size(MAX_LINE_BYTES as u64)
            )));
        }
        Ok(Some(raw))
    }

    /// The bytes, which must be present.
    pub(in crate::storage) fn whole(self) -> Result<RawJson> {
        self.kept()?.ok_or_else(|| invalid("the record has no raw line"))
    }
}

/// The error for an archive that can't be imported.
pub(in crate::storage) fn invalid(message: impl Into<String>) -> Error {
    Error::validation(ErrorField::Archive, message)
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;

    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut digits, byte| {
        let _ = write!(digits, "{byte:02x}");
        digits
    })
}

fn bytes(digits: &str) -> Result<Vec<u8>> {
    let wrong = || invalid("the record has bytes that are not hexadecimal digits");
    let digit = |digit: &u8| char::from(*digit).to_digit(16);
    let byte = |pair: &[u8]| match pair {
        [high, low] => Some((digit(high)? * 16 + digit(low)?) as u8),
        _ => None,
    };
    digits.as_bytes().chunks(2).map(|pair| byte(pair).ok_or_else(wrong)).collect()
}

pub(in crate::storage) fn digest(digits: &str) -> Result<Digest> {
    let bytes = bytes(digits)?;
    let wrong = |_| invalid("the record has a digest of the wrong length");
    Ok(Digest(bytes.try_into().map_err(wrong)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_preserved() {
        for line in
            [&b"{\"a\":\"caf\xe9\"}"[..], b"", b"{\"a\": 1.10, \"b\":\"\\ud800\"}\r", "é\u{2028}".as_bytes()]
        {
            let raw = Raw::from(RawJson::new(line));
            let json = serde_json::to_string(&raw).unwrap();
            let read: Raw = serde_json::from_str(&json).unwrap();
            assert_eq!(read.whole().unwrap().as_bytes(), line, "{json}");
        }
        for wrong in ["abc", "zz", "é0", "+f"] {
            assert!(bytes(wrong).is_err(), "{wrong}");
        }
        assert!(Raw::default().kept().unwrap().is_none() && Raw::default().whole().is_err());
    }

    #[test]
    fn lines_that_no_store_can_read_are_refused() {
        let line = |length: usize| Raw { raw: Some("x".repeat(length)), raw_hex: None }.whole();
        assert!(line(MAX_LINE_BYTES).is_ok());
        let error = line(MAX_LINE_BYTES + 1).unwrap_err();
        assert_eq!(error.message(), "the record has a line of more than 67.1 MB");
    }
}
