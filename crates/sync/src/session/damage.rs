//! A damaged log must not remove rows from the store.
//!
//! A log with complete lines is what its writer intended, even if it is shorter than before: that is a rewind. A log
//! that is empty, has unreadable lines, or ends in the middle of a line has lost something instead.

use amplifier_session_core::{backend::SkippedLine, model::RawJson, storage::SessionIngest};

use super::{SessionReader, kind::Kind};
use crate::{
    files::Source,
    report::Kept,
    state::{Damage, FileState},
};

/// Signs of damage that were found while a log is read.
#[derive(Debug)]
pub(super) struct DamageNotes {
    kind: Kind,
    file: Source,
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
    /// Whether stored rows were kept, so that lines and rows no longer correspond.
    pub(super) keeps_rows: bool,
}

impl DamageNotes {
    /// For a file with the unreadable lines `skipped`, according to the store.
    pub(super) fn new(
        kind: Kind,
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
        Self { kind, file, known, first: None, unended: None, was_more, accepted, keeps_rows: false }
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

    /// What is wrong with the log, which has `rows` valid lines.
    fn reason(&self, rows: u32) -> Option<(u64, String)> {
        let unended = || Some((self.unended?, format!("ends without a newline in line {}", self.unended?)));
        let blank = || match (rows, self.file.stamp.size) {
            (0, 0) => Some((1, "is empty".to_owned())),
            (0, _) => Some((1, "has no readable line".to_owned())),
            _ => None,
        };
        self.first.clone().or_else(unended).or_else(blank)
    }

    /// Whether the last line, which has no ending, is left for the next sync: it is incomplete, or the file was cut off
    /// there.
    pub(super) fn leaves_unended(&mut self, ingest: &SessionIngest, line: u64, text: &RawJson) -> bool {
        self.unended = Some(line);
        if text.parse().is_err() {
            let is_binary = is_binary(text.as_bytes());
            self.note(line, is_binary, || format!("ends in the middle of line {line}"));
            return true;
        }
        !self.accepted && self.kind.cuts_off(ingest, text)
    }

    /// Checks the first valid line. Keeps all stored rows if it is different and the file has become shorter, as when it
    /// was emptied and appended to since.
    pub(super) fn check_beginning(&mut self, ingest: &mut SessionIngest, line: u64, text: &RawJson) {
        let is_suspect = self.was_more && !self.accepted;
        if is_suspect && self.kind.begins_otherwise(ingest, text) && text.parse_object().is_ok() {
            self.note(line, false, || "begins differently than before".to_owned());
            self.kind.keep_stored(ingest);
            self.keeps_rows = true;
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
        if self.accepted || self.is_known(line, reason) {
            return;
        }
        self.note(line, is_binary, || format!("can't be read in line {line}"));
        self.kind.keep_stored(ingest);
        self.keeps_rows |= self.kind.missing(ingest) > 0;
    }

    /// The damage because of which stored rows are kept, if any. The log has `rows` valid lines.
    pub(super) fn damage(&self, ingest: &SessionIngest, rows: u32) -> Option<Damage> {
        let missing = self.kind.missing(ingest);
        if missing == 0 || self.accepted {
            return None;
        }
        let (line, reason) = self.reason(rows)?;
        Some(Damage { reason, line, missing })
    }
}

impl SessionReader<'_> {
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
