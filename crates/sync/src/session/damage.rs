//! What a damaged log may take out of the store: nothing.
//!
//! A log that has whole lines and ends with one is what its writer wants it to be, also when it is shorter than it was:
//! that is a rewind. One that is empty, has lines that can't be read, or ends within a line lost something instead.

use amplifier_session_core::{
    backend::SkippedLine,
    model::RawJson,
    storage::{Extent, SessionIngest},
};

use super::{
    Taking,
    logs::{Kind, Reading},
};
use crate::{
    Kept,
    files::Source,
    state::{Damage, FileState},
};

/// What is noticed of damage while a log is read.
#[derive(Debug, Default)]
pub(super) struct Noticed {
    /// Lines that could not be read before either, when what is stored was read.
    known: Vec<SkippedLine>,
    /// The first damaged line, and what is wrong with the file.
    first: Option<(u64, String)>,
    /// The last line, where it has no ending.
    unended: Option<u64>,
    /// Whether the file was damaged or larger when it was last read: lines that begin otherwise are no rewind of it.
    was_more: bool,
    /// Whether removals are accepted, so that none of this matters.
    accepted: bool,
}

impl Noticed {
    /// Nothing yet, of a file whose unreadable lines are `skipped` according to the store.
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
            true => format!("holds binary data in line {line}"),
            false => otherwise(),
        };
        self.first.get_or_insert_with(|| (line, reason()));
    }

    /// What is wrong with a log of which `rows` good lines were read.
    fn reason(&self, file: Source, rows: u32) -> Option<(u64, String)> {
        let unended = || Some((self.unended?, format!("ends without a newline in line {}", self.unended?)));
        let blank = || match (rows, file.stamp.size) {
            (0, 0) => Some((1, "is empty".to_owned())),
            (0, _) => Some((1, "holds no readable line".to_owned())),
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
    /// Whether the last line, which has no ending, is left for the next time: it is not complete, or it stands where the
    /// file was cut off.
    pub(super) fn leaves_unended(&mut self, ingest: &SessionIngest, line: u64, text: &RawJson) -> bool {
        self.noticed.unended = Some(line);
        if text.parse().is_err() {
            let is_binary = is_binary(text.as_bytes());
            self.noticed.note(line, is_binary, || format!("ends in the middle of line {line}"));
            return true;
        }
        !self.noticed.accepted && self.kind.cuts_off(ingest, text)
    }

    /// Keeps all that is stored where the first line is another one and the file has become shorter: as when it was
    /// emptied, and lines were appended since.
    pub(super) fn check_beginning(&mut self, ingest: &mut SessionIngest, line: u64, text: &RawJson) {
        let is_suspect = self.noticed.was_more && !self.noticed.accepted && self.position.rows == 0;
        if is_suspect && self.kind.begins_otherwise(ingest, text) && text.parse_object().is_ok() {
            self.noticed.note(line, false, || "does not begin as it did before".to_owned());
            self.kind.keep_stored(ingest);
            self.resumable = false;
        }
    }

    /// Keeps what is stored from an unreadable line on, unless that line is no news.
    pub(super) fn unreadable(
        &mut self,
        ingest: &mut SessionIngest,
        line: u64,
        reason: &str,
        is_binary: bool,
    ) {
        if self.noticed.accepted || self.noticed.is_known(line, reason) {
            return;
        }
        self.noticed.note(line, is_binary, || format!("can't be read in line {line}"));
        self.kind.keep_stored(ingest);
        if self.kind.missing(ingest) > 0 {
            // Lines and rows don't go together any more.
            self.resumable = false;
        }
    }

    /// What is wrong with the log that keeps stored rows in the store.
    fn damage(&self, ingest: &SessionIngest) -> Option<Damage> {
        let missing = self.kind.missing(ingest);
        if missing == 0 || self.noticed.accepted {
            return None;
        }
        let (line, reason) = self.noticed.reason(self.file, self.position.rows)?;
        Some(Damage { reason, line, missing })
    }
}

impl Taking<'_> {
    /// Ends a log. Returns what is wrong with it where stored rows are kept for that.
    pub(super) fn end_log(&mut self, ingest: &mut SessionIngest, reading: &Reading) -> Option<Damage> {
        let damage = reading.damage(ingest);
        let extent = if damage.is_some() { Extent::Part } else { Extent::Whole };
        reading.kind.end(ingest, extent);
        if let Some(damage) = &damage {
            self.report.keep(Kept::of(self.folder, reading.file.name, damage));
        }
        damage
    }

    /// Names a log that is damaged as it was, and therefore not read again.
    pub(super) fn keep_damaged(&mut self, file: Source) {
        if let Some(damage) = self.state.damage(file) {
            self.report.keep(Kept::of(self.folder, file.name, damage));
        }
    }
}

/// Whether a text holds a NUL, which no JSON text does.
pub(super) fn is_binary(text: &[u8]) -> bool {
    text.contains(&0)
}
