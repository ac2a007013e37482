//! Superseded lines: stored lines of a file that no longer contains them, and lines that can't be read as a row.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use super::{Digest, SessionKey, Timestamp};
use crate::{Error, ErrorField, Result};

/// The kind of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum LineKind {
    /// A line of a transcript.
    Message,
    /// A line of an event log.
    Event,
}

names! {
    LineKind { Message: "message", Event: "event" }
}

/// Why lines were superseded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SupersededReason {
    /// The event log became shorter.
    Compacted,
    /// The file begins with another line than before.
    HeadLost,
    /// A line in the middle changed, or the file has the same number of lines with other content.
    Edited,
    /// The file now ends earlier, within a turn.
    CutOff,
    /// The session was rewound: the transcript now ends before a turn, or goes on with another one.
    Rewound,
    /// The line is not a message or an event: for example, it is not JSON. It was never a row.
    Unreadable,
    /// Another store sent the line, of a copy of the session that goes on differently. It was never a row here.
    Diverged,
}

names! {
    SupersededReason {
        Compacted: "compacted", HeadLost: "head_lost", Edited: "edited", CutOff: "cut_off",
        Rewound: "rewound", Unreadable: "unreadable", Diverged: "diverged",
    }
}

impl SupersededReason {
    /// Whether superseded events still count: their log was shortened, and nothing was undone. If events were appended
    /// too before it was read, the lines look edited.
    pub(crate) fn still_counts(self) -> bool {
        matches!(self, Self::Compacted | Self::HeadLost | Self::Edited)
    }
}

/// Parses a name among those of all values.
fn named<T: Copy>(field: ErrorField, text: &str, all: &[T], name: fn(T) -> &'static str) -> Result<T> {
    let found = all.iter().copied().find(|value| name(*value) == text);
    found.ok_or_else(|| {
        Error::validation(field, "has an unknown value").with("value", format_args!("{text:?}"))
    })
}

impl FromStr for LineKind {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        named(ErrorField::Kind, text, &Self::ALL, Self::as_str)
    }
}

impl FromStr for SupersededReason {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        named(ErrorField::Reason, text, &Self::ALL, Self::as_str)
    }
}

/// Names a piece of superseded lines: see [`SupersededPiece`]. Ordered by session, kind and sequence.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SupersededRef {
    /// Its session.
    pub session: SessionKey,
    /// Its id, unique in the session: see [`SupersededPiece::new_id`].
    pub id: String,
}

/// Superseded lines as a backend stores them: some lines of one kind of a session, compressed, in ascending order of
/// sequence. A line that is too long for one piece is continued in the pieces with the following ids.
///
/// Pieces never change. The id is derived from the content, so a piece that is written again is the same piece.
#[derive(Clone, PartialEq, Eq)]
pub struct SupersededPiece {
    /// Its session.
    pub session: SessionKey,
    /// Its id, unique in the session.
    pub id: String,
    /// The kind of its lines.
    pub kind: LineKind,
    /// The sequence of its first line when that was superseded. For unreadable lines, the line number in the file.
    pub first_sequence: u32,
    /// The sequence of its last line.
    pub last_sequence: u32,
    /// The number of lines that begin in it.
    pub lines: u32,
    /// The size of its part of the lines, before compression.
    pub bytes: u64,
    /// When its lines were superseded.
    pub superseded_at: Timestamp,
    /// The reason.
    pub reason: SupersededReason,
    /// The lines, in a form that only `core` reads. Empty if not requested.
    pub data: Vec<u8>,
}

impl SupersededPiece {
    /// Its name.
    #[must_use]
    pub fn piece_ref(&self) -> SupersededRef {
        SupersededRef { session: self.session.clone(), id: self.id.clone() }
    }

    /// The id of the piece `part` of lines from `first_sequence` on with this content. In ASCII order, ids are in order
    /// of kind (events first), sequence and part.
    #[must_use]
    pub fn new_id(kind: LineKind, first_sequence: u32, content: Digest, part: usize) -> String {
        let kind = match kind {
            LineKind::Message => 'm',
            LineKind::Event => 'e',
        };
        format!("{kind}-{first_sequence:010}-{content:?}-{part:06}")
    }

    /// The common prefix of the ids of all parts of the same lines.
    #[must_use]
    pub fn group(&self) -> &str {
        Self::group_of(&self.id)
    }

    /// The [group](Self::group) of the piece with this id.
    #[must_use]
    pub fn group_of(id: &str) -> &str {
        id.rsplit_once('-').map_or(id, |(group, _)| group)
    }
}

impl fmt::Debug for SupersededPiece {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { session, id, lines, bytes, superseded_at, reason, data, .. } = self;
        write!(
            f,
            "SupersededPiece({session:?} {id}: {lines} lines, {bytes} bytes, {reason} at {superseded_at}, {} stored)",
            data.len()
        )
    }
}
