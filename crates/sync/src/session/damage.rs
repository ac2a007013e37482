//! A damaged log must not remove rows from the store.
//!
//! A log with complete lines is what its writer intended, even if it is shorter than before: that is a rewind. A log
//! that is empty, has unreadable lines, or ends in the middle of a line has lost something instead.

use amplifier_session_core::{
    backend::SkippedLine,
    model::RawJson,
    storage::{Extent, SessionIngest},
};

use super::{
    SessionReader,
    logs::{Kind, Reading},
};
use crate::{
    Kept,
    files::Source,
    state::{Damage, FileState},
};

/// Signs of damage that were found while a log is read.
#[derive(Debug, Default)]
pub(super) struct DamageNotes {
    /// Lines that were already unreadable when the stored rows were read.
    known: Vec<SkippedLine>,
    /// The first damaged line, and what is wrong with the file.
    first: Option<(u64, String)>,
    /// The last line, if it has no ending.
    unended: Option<u64>,
    /// Whether the file was damaged or larger when it was last read. Then a different first line is not a rewind.
    was_more: bool,
    /// Whether removals are accepted, so damage does not matter.
    accepted: bool,
}

impl DamageNotes {
    /// For a file with the unreadable lines `skipped`, according to the store.
    pub(super) fn new(
        file: Source,
        skipped: &[SkippedLine],
        before: Option<&FileState>,
        accepted: bool,
    ) -> Self {
        let damaged_from =
            before.and_then(|before| before.damage.as_ref()).map_or(u64::MAX, |damage| damage.line);
        let is_known = |line: &&SkippedLine| line.file == file.name && line.line < damaged_from;
        let known = skipped.iter().filter(is_known).cloned().collect();
        let was_more =
            before.is_some_and(|known| known.damage.is_some() || known.stamp.size > file.stamp.size);
        Self { known, first: None, unended: None, was_more, accepted }
    }

    fn is_known(&self, line: u64, reason: &str) -> bool {
        self.known.iter().any(|known| known.line == line && known.reason == reason)
    }

    fn note(&mut self, line: u64, is_binary: bool, otherwise: impl FnOnce() -> String) {
        let reason = || match is_binary {
            true => format!("contains binary data in line {line}"),
            false => otherwise(),
        };
        self.first.get_or_insert_with(|| (line, reason()));
    }

    /// What is wrong with a log with `rows` valid lines.
    fn reason(&self, file: Source, rows: u32) -> Option<(u64, String)> {
        let unended = || Some((self.unended?, format!("ends without a newline in line {}", self.unended?)));
        let blank = || match (rows, file.stamp.size) {
            (0, 0) => Some((1, "is empty".to_owned())),
            (0, _) => Some((1, "has no readable line".to_owned())),
            _ => None,
        };
        self.first.clone().or_else(unended).or_else(blank)
    }
}

impl Kind {
    fn keep_stored(self, ingest: &mut SessionIngest) {
        match self {
            Self::Transcript => ingest.keep_stored_messages(),
            Self::Events => ingest.keep_stored_events(),
        }
    }

    fn missing(self, ingest: &SessionIngest) -> u32 {
        match self {
            Self::Transcript => ingest.missing_messages(),
            Self::Events => ingest.missing_events(),
        }
    }

    fn begins_otherwise(self, ingest: &SessionIngest, line: &RawJson) -> bool {
        match self {
            Self::Transcript => ingest.begins_other_messages(line),
            Self::Events => ingest.begins_other_events(line),
        }
    }

    fn cuts_off(self, ingest: &SessionIngest, line: &RawJson) -> bool {
        match self {
            Self::Transcript => ingest.cuts_off_messages(line),
            Self::Events => ingest.cuts_off_events(line),
        }
    }
}

impl Reading {
    /// Whether the last line, which has no ending, is left for the next sync: it is incomplete, or the file was cut off
    /// there.
    pub(super) fn leaves_unended(&mut self, ingest: &SessionIngest, line: u64, text: &RawJson) -> bool {
        self.notes.unended = Some(line);
        if text.parse().is_err() {
            let is_binary = is_binary(text.as_bytes());
            self.notes.note(line, is_binary, || format!("ends in the middle of line {line}"));
            return true;
        }
        !self.notes.accepted && self.kind.cuts_off(ingest, text)
    }

    /// Keeps all stored rows if the first line is different and the file has become shorter, as when it was emptied and
    /// appended to since.
    pub(super) fn check_beginning(&mut self, ingest: &mut SessionIngest, line: u64, text: &RawJson) {
        let is_suspect = self.notes.was_more && !self.notes.accepted && self.position.rows == 0;
        if is_suspect && self.kind.begins_otherwise(ingest, text) && text.parse_object().is_ok() {
            self.notes.note(line, false, || "begins differently than before".to_owned());
            self.kind.keep_stored(ingest);
            self.resumable = false;
        }
    }

    /// Keeps the stored rows from an unreadable line on, unless the line was already unreadable before.
    pub(super) fn unreadable(
        &mut self,
        ingest: &mut SessionIngest,
        line: u64,
        reason: &str,
        is_binary: bool,
    ) {
        if self.notes.accepted || self.notes.is_known(line, reason) {
            return;
        }
        self.notes.note(line, is_binary, || format!("can't be read in line {line}"));
        self.kind.keep_stored(ingest);
        if self.kind.missing(ingest) > 0 {
            // Lines and rows no longer correspond.
            self.resumable = false;
        }
    }

    /// The damage because of which stored rows are kept, if any.
    fn damage(&self, ingest: &SessionIngest) -> Option<Damage> {
        let missing = self.kind.missing(ingest);
        if missing == 0 || self.notes.accepted {
            return None;
        }
        let (line, reason) = self.notes.reason(self.file, self.position.rows)?;
        Some(Damage { reason, line, missing })
    }
}

impl SessionReader<'_> {
    /// Ends a log. Returns the damage because of which stored rows are kept, if any.
    pub(super) fn end_log(&mut self, ingest: &mut SessionIngest, reading: &Reading) -> Option<Damage> {
        let damage = reading.damage(ingest);
        let extent = if damage.is_some() { Extent::Part } else { Extent::Whole };
        reading.kind.end(ingest, extent);
        if let Some(damage) = &damage {
            self.report.keep(Kept::of(self.folder, reading.file.name, damage));
        }
        damage
    }

    /// Reports a damaged log that is unchanged and therefore not read again.
    pub(super) fn keep_damaged(&mut self, file: Source) {
        if let Some(damage) = self.state.damage(file) {
            self.report.keep(Kept::of(self.folder, file.name, damage));
        }
    }
}

/// Whether a text contains a NUL, which JSON text never does.
pub(super) fn is_binary(text: &[u8]) -> bool {
    text.contains(&0)
}
