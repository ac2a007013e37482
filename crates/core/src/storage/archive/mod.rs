//! Sessions out of one store, and into another of any kind: an archive is a row of records.
//!
//! | record | is |
//! | --- | --- |
//! | `archive` | the first line: the version of the format, and who wrote it |
//! | `session` | the fields of a session, its metadata files, the lines of its files that were left out |
//! | `message`, `event` | the rows of the session above, in order, each with its line as it came in |
//! | `again` | the session above changed while it was written: what was told of it does not count, and it follows anew |
//! | `end` | the end of a session, with the number of its rows: without it the session is not whole |
//! | `complete` | the last line, with the number of sessions: without it the archive is not whole |
//!
//! Lines of transcripts, of event logs and metadata files stand there as texts, and where they are not UTF-8 in hexadecimal
//! digits, so that they come back byte for byte. Vectors are left out: they are made from the lines again.
//!
//! Records are written as lines of JSON here ([`JsonLinesWriter`]); other forms bring an [`ArchiveWriter`] and an
//! [`ArchiveReader`].

mod export;
mod import;
mod json_lines;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    Error, Result,
    backend::SkippedLine,
    model::{Digest, Level, RawJson, Role, Session, TimeSource, Timestamp},
};

pub use export::ExportReport;
pub use import::{ImportOptions, ImportReport, RefusedSession};
pub use json_lines::{JsonLinesReader, JsonLinesWriter};

/// The version of the format that is written, and the only one that is read.
const FORMAT: u32 = 1;

/// Takes the records of an archive as they come.
pub trait ArchiveWriter: Send {
    /// Writes one more.
    ///
    /// # Errors
    ///
    /// `StorageIo` when it can't be written.
    fn put(&mut self, record: Record) -> Result<()>;

    /// Writes what has been held back. Nothing is put after it.
    ///
    /// # Errors
    ///
    /// `StorageIo` when it can't be written.
    fn finish(&mut self) -> Result<()>;
}

/// Hands out the records of an archive.
pub trait ArchiveReader: Send {
    /// The next one, or nothing at the end.
    ///
    /// # Errors
    ///
    /// `StorageIo` when it can't be read, `Validation` (`archive`) when it is no record.
    fn next(&mut self) -> Result<Option<Record>>;

    /// Where the last one stood, for a person: what is counted, and its number from 1. `("line", 7)`.
    fn place(&self) -> (&'static str, u64);
}

/// A record of an archive.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case")]
pub enum Record {
    /// The first.
    Archive {
        /// The version of the format.
        format: u32,
        /// Who wrote it.
        writer: String,
    },
    /// A session begins.
    Session(Box<SessionRecord>),
    /// A message of the session.
    Message(Box<MessageRecord>),
    /// An event of the session.
    Event(Box<EventRecord>),
    /// The session changed while it was written. What was told of it does not count, and it follows anew.
    Again,
    /// The session is whole.
    End {
        /// How many messages it has.
        messages: u32,
        /// How many events it has.
        events: u32,
    },
    /// The last: nothing is missing.
    Complete {
        /// How many sessions there are.
        sessions: u64,
    },
}

/// A session with what is kept beside it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SessionRecord {
    /// Its fields.
    pub session: Session,
    /// Its metadata files.
    pub metadata_files: Vec<FileRecord>,
    /// Lines of its files that were left out.
    pub skipped: Vec<SkippedLine>,
    /// How far it was synced: for the one who syncs.
    pub sync_state: Option<String>,
}

/// A metadata file.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FileRecord {
    /// Its name.
    pub name: String,
    /// What is in it.
    #[serde(flatten)]
    pub raw: Raw,
}

/// A message.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct MessageRecord {
    /// Its place, from 0.
    pub sequence: u32,
    /// Who speaks.
    pub role: Role,
    /// Its turn, from 1.
    pub turn: Option<u32>,
    /// When it was said.
    pub ts: Timestamp,
    /// Whether that is an estimate.
    pub ts_estimated: bool,
    /// Where the time comes from. Archives of earlier versions do not say.
    #[serde(default)]
    pub ts_source: Option<TimeSource>,
    /// When it was stored.
    pub synced_at: Timestamp,
    /// Its line.
    #[serde(flatten)]
    pub raw: Raw,
}

/// An event. Its fields stand there too, because its line may not be kept.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct EventRecord {
    /// Its place, from 0.
    pub sequence: u32,
    /// Its id, unique for its user.
    pub event_id: String,
    /// What happened.
    pub event_type: String,
    /// When.
    pub ts: Timestamp,
    /// Whether that is a guess.
    pub ts_estimated: bool,
    /// The turn it belongs to, from 1.
    pub turn: Option<u32>,
    /// How much it matters.
    pub level: Level,
    /// The tool it tells of.
    pub tool_name: Option<String>,
    /// The kind of failure it tells of.
    pub error_type: Option<String>,
    /// The model it tells of.
    pub model: Option<String>,
    /// That model's provider.
    pub provider: Option<String>,
    /// What is kept of its payload for queries.
    pub summary: Map<String, Value>,
    /// The length of its payload in bytes.
    pub data_size_bytes: u64,
    /// When it was stored. Archives of earlier versions do not say.
    #[serde(default)]
    pub synced_at: Option<Timestamp>,
    /// The digest of its line, as hexadecimal digits.
    pub digest: String,
    /// Its line, where it is kept.
    #[serde(flatten)]
    pub raw: Raw,
}

/// Bytes: a text, or hexadecimal digits where they are none; neither where they are not kept.
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
    /// The bytes, where they are kept.
    fn kept(self) -> Result<Option<RawJson>> {
        match (self.raw, self.raw_hex) {
            (Some(text), _) => Ok(Some(RawJson::new(text))),
            (None, Some(digits)) => Ok(Some(RawJson::new(bytes(&digits)?))),
            (None, None) => Ok(None),
        }
    }

    /// The bytes, which must be there.
    fn whole(self) -> Result<RawJson> {
        self.kept()?.ok_or_else(|| Error::validation("archive", "the record has no raw line"))
    }
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;

    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut digits, byte| {
        let _ = write!(digits, "{byte:02x}");
        digits
    })
}

fn bytes(digits: &str) -> Result<Vec<u8>> {
    let wrong =
        || Error::validation("archive", "the record has bytes that are not written as hexadecimal digits");
    let digit = |digit: &u8| char::from(*digit).to_digit(16);
    let byte = |pair: &[u8]| match pair {
        [high, low] => Some((digit(high)? * 16 + digit(low)?) as u8),
        _ => None,
    };
    digits.as_bytes().chunks(2).map(|pair| byte(pair).ok_or_else(wrong)).collect()
}

fn digest(digits: &str) -> Result<Digest> {
    let bytes = bytes(digits)?;
    let wrong = |_| Error::validation("archive", "the record has a digest of another length");
    Ok(Digest(bytes.try_into().map_err(wrong)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back() {
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
}
