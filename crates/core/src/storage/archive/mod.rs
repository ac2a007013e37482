//! Sessions as lines of JSON: out of one store, and into another of any kind.
//!
//! | record | is |
//! | --- | --- |
//! | `archive` | the first line: the version of the format, and who wrote it |
//! | `session` | the fields of a session, its metadata files, the lines of its files that were left out |
//! | `message`, `event` | the rows of the session above, in order, each with its line as it came in |
//! | `again` | the session above changed while it was written: what was told of it does not count, and it follows anew |
//! | `end` | the end of a session, with the number of its rows: without it the session is not whole |
//!
//! Lines of transcripts, of event logs and metadata files stand there as texts, and where they are not UTF-8 in hexadecimal
//! digits, so that they come back byte for byte. Vectors are left out: they are made from the lines again.

mod export;
mod import;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    Error, Result,
    backend::SkippedLine,
    model::{Digest, Level, RawJson, Role, Session, Timestamp},
};

pub use export::ExportReport;
pub use import::{ImportOptions, ImportReport, RefusedSession};

/// The version of the format that is written, and the only one that is read.
const FORMAT: u32 = 1;

/// A line of an archive.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case")]
enum Record {
    Archive { format: u32, writer: String },
    Session(Box<SessionRecord>),
    Message(Box<MessageRecord>),
    Event(Box<EventRecord>),
    Again,
    End { messages: u32, events: u32 },
}

/// A session with what is kept beside it.
#[derive(Debug, Serialize, Deserialize)]
struct SessionRecord {
    session: Session,
    metadata_files: Vec<FileRecord>,
    skipped: Vec<SkippedLine>,
    sync_state: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
struct FileRecord {
    name: String,
    #[serde(flatten)]
    raw: Raw,
}

#[derive(Debug, Serialize, Deserialize)]
struct MessageRecord {
    sequence: u32,
    role: Role,
    turn: Option<u32>,
    ts: Timestamp,
    ts_estimated: bool,
    synced_at: Timestamp,
    #[serde(flatten)]
    raw: Raw,
}

/// An event. Its fields stand there too, because its line may not be kept.
#[derive(Debug, Serialize, Deserialize)]
struct EventRecord {
    sequence: u32,
    event_id: String,
    event_type: String,
    ts: Timestamp,
    ts_estimated: bool,
    turn: Option<u32>,
    level: Level,
    tool_name: Option<String>,
    error_type: Option<String>,
    model: Option<String>,
    provider: Option<String>,
    summary: Map<String, Value>,
    data_size_bytes: u64,
    digest: String,
    #[serde(flatten)]
    raw: Raw,
}

/// Bytes: a text, or hexadecimal digits where they are none; neither where they are not kept.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Raw {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    raw: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    raw_hex: Option<String>,
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
    let pair = |pair: &[u8]| {
        let pair = std::str::from_utf8(pair).ok().filter(|pair| pair.len() == 2);
        pair.and_then(|pair| u8::from_str_radix(pair, 16).ok()).ok_or_else(wrong)
    };
    digits.as_bytes().chunks(2).map(pair).collect()
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
            assert!(bytes(wrong).is_err() || wrong == "+f", "{wrong}");
        }
        assert!(Raw::default().kept().unwrap().is_none() && Raw::default().whole().is_err());
    }
}
