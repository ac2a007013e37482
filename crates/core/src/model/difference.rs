//! The differences that a verification found, between a store and the files on disk, and within a store.

use std::fmt;

use serde::Serialize;

use super::{RowKind, SessionId, SessionKey, UserId};

/// The kind of a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum DifferenceKind {
    /// A row can't be read, or its line is not the one whose digest is stored.
    Damaged,
    /// Sequences have no row.
    Gap,
    /// A count of the session is not the number of its rows.
    Count,
    /// A message belongs to another turn.
    Turn,
    /// Vectors of a message are missing or wrong, or belong to no message.
    Vectors,
    /// Pieces of payloads belong to no event.
    Chunks,
    /// Rows belong to a session that is not stored.
    NoSession,
    /// The search index differs from the rows.
    Index,
    /// A line, file or folder on disk is not in the store.
    NotStored,
    /// A stored row is not in the file.
    NotInFile,
    /// A stored row differs from its line in the file.
    OtherLine,
    /// A metadata file or the project of a session differs.
    Metadata,
    /// A file or folder can't be read.
    Unreadable,
}

/// A difference between a store and the files on disk, or within a store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Difference {
    /// Its kind.
    pub kind: DifferenceKind,
    /// The owner of the session; `None` if it concerns no session.
    pub user_id: Option<UserId>,
    /// The session.
    pub session_id: Option<SessionId>,
    /// The kind of the row that it is about.
    pub row: Option<RowKind>,
    /// The sequence of the row.
    pub sequence: Option<u32>,
    /// The sequence of the last row, if it is about several.
    pub last_sequence: Option<u32>,
    /// The path within the session folder.
    pub file: Option<String>,
    /// The line number, from 1.
    pub line: Option<u64>,
    /// The number of the last line, if it is about several.
    pub last_line: Option<u64>,
    /// What differs.
    pub reason: String,
}

impl Difference {
    /// A difference that concerns no session.
    #[must_use]
    pub fn new(kind: DifferenceKind, reason: impl Into<String>) -> Self {
        Self {
            kind,
            user_id: None,
            session_id: None,
            row: None,
            sequence: None,
            last_sequence: None,
            file: None,
            line: None,
            last_line: None,
            reason: reason.into(),
        }
    }

    /// A difference in a session.
    #[must_use]
    pub fn of(key: &SessionKey, kind: DifferenceKind, reason: impl Into<String>) -> Self {
        let SessionKey { user_id, session_id } = key.clone();
        Self { user_id: Some(user_id), session_id: Some(session_id), ..Self::new(kind, reason) }
    }

    /// Sets the rows that it is about.
    #[must_use]
    pub fn at_rows(mut self, row: RowKind, first: u32, last: u32) -> Self {
        (self.row, self.sequence) = (Some(row), Some(first));
        self.last_sequence = Some(last).filter(|last| *last > first);
        self
    }

    /// Sets the row that it is about.
    #[must_use]
    pub fn at_row(self, row: RowKind, sequence: u32) -> Self {
        self.at_rows(row, sequence, sequence)
    }

    /// Sets the file that it is about.
    #[must_use]
    pub fn in_file(mut self, file: &str) -> Self {
        self.file = Some(file.to_owned());
        self
    }

    /// Sets the lines of the file that it is about.
    #[must_use]
    pub fn at_lines(mut self, first: u64, last: u64) -> Self {
        self.line = Some(first);
        self.last_line = Some(last).filter(|last| *last > first);
        self
    }
}

/// The place and the reason, for example `transcript.jsonl:7: not in the store`. Does not name the session.
impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            f.write_str(file)?;
            if let Some(line) = self.line {
                write!(f, ":{line}")?;
            }
            if let Some(last) = self.last_line {
                write!(f, "-{last}")?;
            }
            f.write_str(": ")?;
        }
        if let (Some(row), Some(sequence)) = (self.row, self.sequence) {
            match self.last_sequence {
                Some(last) => write!(f, "{}s {sequence}-{last}: ", row.as_str())?,
                None => write!(f, "{} {sequence}: ", row.as_str())?,
            }
        }
        f.write_str(&self.reason)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_names_its_place() {
        let key = SessionKey::new(UserId::new("ana").unwrap(), SessionId::new("s").unwrap());
        let missing = || Difference::of(&key, DifferenceKind::Gap, "missing");
        assert_eq!(missing().to_string(), "missing");
        assert_eq!(missing().at_row(RowKind::Message, 3).to_string(), "message 3: missing");
        assert_eq!(missing().at_rows(RowKind::Event, 3, 5).to_string(), "events 3-5: missing");
        let in_file = missing().in_file("events.jsonl");
        assert_eq!(in_file.clone().to_string(), "events.jsonl: missing");
        assert_eq!(in_file.clone().at_lines(7, 7).to_string(), "events.jsonl:7: missing");
        let both = in_file.at_lines(7, 9).at_row(RowKind::Event, 2);
        assert_eq!(both.to_string(), "events.jsonl:7-9: event 2: missing");
    }
}
