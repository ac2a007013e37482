//! Prevents a damaged log from removing rows from the store.
//!
//! A log with complete lines is what its writer intended, even if it is shorter than before: see `replaced.rs`. A log
//! that is empty, has unreadable lines, or ends in the middle of a line has lost data instead.

use amplifier_session_core::{
    backend::SkippedLine,
    model::{LineKind, RawJson, SupersededReason},
    storage::SessionIngest,
};

use super::SessionReader;
use crate::{
    files::Source,
    report::Kept,
    state::{Damage, FileState},
};

/// Signs of damage that were found while a log is read.
#[derive(Debug)]
pub(super) struct DamageNotes {
    kind: LineKind,
    file: Source,
    /// Lines that were already unreadable when the stored rows were read.
    known: Vec<SkippedLine>,
    /// The first damaged line, and what is wrong with the file.
    first: Option<(u64, String)>,
    /// The last line, if it has no ending.
    unended: Option<u64>,
    /// Whether the last line is incomplete.
    is_torn: bool,
    /// Whether removals are accepted, so damage does not matter.
    accepted: bool,
    /// Whether stored rows were kept, so that lines and rows no longer correspond.
    pub(super) keeps_rows: bool,
}

/// What the last line of a log is, if it has no ending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unended {
    /// A line like the others.
    Complete,
    /// A valid line, at whose end the file was cut off.
    CutsOff,
    /// Half a line, or binary data.
    Torn { is_binary: bool },
}

impl DamageNotes {
    /// For a file whose unreadable lines, according to the store, are `skipped`.
    pub(super) fn new(
        kind: LineKind,
        file: Source,
        skipped: &[SkippedLine],
        before: Option<&FileState>,
        accepted: bool,
    ) -> Self {
        let damaged_from =
            before.and_then(|before| before.damage.as_ref()).map_or(u64::MAX, |damage| damage.line);
        let is_known = |line: &&SkippedLine| line.file == file.name && line.line < damaged_from;
        let known = skipped.iter().filter(is_known).cloned().collect();
        Self { kind, file, known, first: None, unended: None, is_torn: false, accepted, keeps_rows: false }
    }

    fn is_known(&self, line: u64, reason: &str) -> bool {
        self.known.iter().any(|known| known.line == line && known.reason == reason)
    }

    fn note(&mut self, line: u64, is_binary: bool, otherwise: impl FnOnce() -> String) {
        let reason = || if is_binary { format!("contains binary data in line {line}") } else { otherwise() };
        self.first.get_or_insert_with(|| (line, reason()));
    }

    /// The damage of the log, which has `rows` valid lines.
    fn reason(&self, rows: u32) -> Option<(u64, String)> {
        let unended = || {
            let line = self.unended?;
            Some(if self.is_torn {
                (line, format!("ends in the middle of line {line}"))
            } else {
                (line, format!("ends without a newline in line {line}"))
            })
        };
        let blank = || match (rows, self.file.stamp.size) {
            (0, 0) => Some((1, "is empty".to_owned())),
            (0, _) => Some((1, "has no readable line".to_owned())),
            _ => None,
        };
        self.first.clone().or_else(unended).or_else(blank)
    }

    /// Examines the last line, which has no ending.
    pub(super) fn unended(
        &mut self,
        ingest: &SessionIngest,
        line: u64,
        text: &RawJson,
        reason: Option<SupersededReason>,
    ) -> Unended {
        self.unended = Some(line);
        if text.parse().is_err() {
            self.is_torn = true;
            let is_binary = is_binary(text.as_bytes());
            if is_binary {
                self.note(line, true, String::new);
            }
            return Unended::Torn { is_binary };
        }
        if !self.accepted && reason.is_none() && ingest.cuts_off(self.kind, text.as_bytes()) {
            Unended::CutsOff
        } else {
            Unended::Complete
        }
    }

    /// Whether the file, which has `rows` valid lines, is damaged, whether or not it lacks stored rows.
    pub(super) fn is_damaged(&self, rows: u32) -> bool {
        self.first.is_some() || self.is_torn || rows == 0
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
        ingest.keep_stored(self.kind);
        self.keeps_rows |= ingest.missing(self.kind) > 0;
    }

    /// The damage that causes stored rows to be kept, if any. The log has `rows` valid lines.
    pub(super) fn damage(&self, ingest: &SessionIngest, rows: u32) -> Option<Damage> {
        let missing = ingest.missing(self.kind);
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
