//! The state of reading a log.

use amplifier_session_core::{
    model::{LineKind, SupersededReason, Timestamp},
    storage::SessionIngest,
};

use super::damage::DamageNotes;
use crate::{
    files::Source,
    position::LogPosition,
    state::{Damage, FileState},
};

/// The state of reading a log.
#[derive(Debug)]
pub(super) struct Reading {
    pub(super) kind: LineKind,
    /// The file as it was when it was opened.
    pub(super) file: Source,
    /// When reading began.
    pub(super) read: Timestamp,
    /// Whether to store the position while reading.
    pub(super) resumable: bool,
    /// Whether all rows are written again, because more of each is to be stored.
    pub(super) rewriting: bool,
    pub(super) position: LogPosition,
    /// Signs of damage.
    pub(super) notes: DamageNotes,
    /// The comparison with the stored rows.
    pub(super) replaced: Replaced,
    /// The maximum number of lines to store: a rewind has removed the rows of later ones.
    pub(super) most: Option<u32>,
    /// Whether the file is unchanged for so long that an incomplete end counts as damage.
    pub(super) is_abandoned: bool,
    /// Whether the file has an incomplete end that its writer may complete.
    pub(super) is_unfinished: bool,
}

impl Reading {
    /// Deals with a line that can't be read: stored rows from there on are kept, unless a line before it already differs.
    /// Then the file was rewritten, and what it lacks is superseded.
    pub(super) fn unreadable(
        &mut self,
        ingest: &mut SessionIngest,
        line: u64,
        reason: &str,
        is_binary: bool,
    ) {
        if !self.replaced.differs {
            self.notes.unreadable(ingest, line, reason, is_binary);
        }
    }

    /// The damage that causes stored rows to be kept, if any.
    pub(super) fn damage(&self, ingest: &SessionIngest) -> Option<Damage> {
        self.notes.damage(ingest, self.position.rows).filter(|_| !self.replaced.differs)
    }
}

/// The comparison of a log with the stored rows.
#[derive(Debug, Clone, Default)]
pub(super) struct Replaced {
    /// Whether a line differed.
    pub(super) differs: bool,
    /// Why stored rows are superseded that the log does not contain, if there are any.
    pub(super) reason: Option<SupersededReason>,
    /// The number of lines that must follow.
    pub(super) expected: usize,
    /// Whether an earlier sync was interrupted while it replaced rows.
    pub(super) interrupted: bool,
    /// Why that sync did, if the file is still the same.
    pub(super) decided: Option<SupersededReason>,
}

impl Replaced {
    pub(super) fn new(file: Source, before: Option<&FileState>) -> Self {
        let replacing = before.filter(|before| before.replacing.is_some());
        let is_same = replacing.filter(|before| before.stamp == file.stamp);
        Self {
            differs: false,
            reason: None,
            expected: 0,
            interrupted: replacing.is_some(),
            decided: is_same.and_then(|before| before.replacing),
        }
    }
}
