//! Positions in files that are read line by line.

use amplifier_session_core::model::Digest;
use serde::{Deserialize, Serialize};

/// A position in an event log, after the end of a line.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct LogPosition {
    /// Bytes before it.
    pub(crate) bytes: u64,
    /// Lines before it, including invalid and blank ones.
    pub(crate) lines: u64,
    /// Valid lines before it: the sequence of the next one.
    pub(crate) rows: u32,
    /// The last line before it that is neither blank nor too large.
    pub(crate) last: Option<ReadLine>,
    /// Whether the payloads of the events were stored.
    pub(crate) payloads: bool,
}

impl LogPosition {
    /// The beginning of the log, from which it must be read again. The number of rows stays known.
    pub(crate) fn forgotten(&self) -> Self {
        Self { rows: self.rows, payloads: self.payloads, ..Self::default() }
    }
}

/// A line that was read, to recognise it later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ReadLine {
    /// The offset of its text.
    pub(crate) offset: u64,
    /// The length of its text, without the ending.
    pub(crate) length: u64,
    /// The digest of its text.
    digest: String,
}

impl ReadLine {
    pub(crate) fn new(offset: u64, text: &[u8]) -> Self {
        Self { offset, length: text.len() as u64, digest: hex(text) }
    }

    /// Whether `text` is the text of this line.
    pub(crate) fn is(&self, text: &[u8]) -> bool {
        self.digest == hex(text)
    }
}

fn hex(text: &[u8]) -> String {
    format!("{:032x}", u128::from_be_bytes(Digest::of(text).0))
}
