//! Compares the files of a session folder with the stored session.
//!
//! The lines are those of a sync that reads all files from their beginning, and they are read by its code. They go to
//! [`ComparedLog`] instead of an ingest: a verification reports what differs now, while an ingest also decides which rows
//! to replace, to keep and to supersede.

use std::{collections::HashSet, io};

use amplifier_session_core::{
    ErrorKind, KnownPart, Result, SessionStorage,
    backend::StoredSession,
    blocking,
    model::{Difference, DifferenceKind, Digest, LineKind, RowKind, SessionKey},
    storage::{EventDetail, LineDigester, SessionCheck, SessionIngest},
    text::counted,
};

use super::diff::{Hunk, differences};
use crate::{
    discover::SessionFolder,
    files::{self, EventLogs, SessionFiles, Source, TRANSCRIPT_BACKUP},
    lines::{Line, LineText},
    position::LogPosition,
    second_log::{FirstLog, SecondLog, stored_identities},
    session::{FileError, metadata, open::OpenLog},
    state::{FileState, SyncState},
};

/// The result of a comparison.
#[derive(Debug, Default)]
pub(super) struct Compared {
    pub(super) differences: Vec<Difference>,
    /// Number of lines in the files.
    pub(super) lines: u64,
    /// Number of bytes that were read.
    pub(super) bytes: u64,
    /// Lines that a sync skips.
    pub(super) skipped: u64,
    /// Rows that a sync keeps although the files do not contain them.
    pub(super) kept: u64,
    /// Lines whose rows were removed by a rewind.
    pub(super) rewound: u64,
    /// Whether stored events lack their lines.
    pub(super) lacks_lines: bool,
}

/// A session folder and its stored session.
pub(super) struct Comparison<'a> {
    storage: &'a SessionStorage,
    folder: &'a SessionFolder,
    stored: &'a StoredSession,
    check: &'a SessionCheck,
    key: SessionKey,
    state: SyncState,
    /// Computes digests as the store does, which may mask secrets.
    digester: LineDigester,
    found: Compared,
}

/// A file, and the numbers of the lines in it to compare, if not all.
type LogPart = (Source, Option<HashSet<u64>>);

/// The lines of one or two logs, compared with the stored rows.
struct ComparedLog {
    row: RowKind,
    rows: Vec<Option<Digest>>,
    /// The files, as they were when they were opened.
    files: Vec<Source>,
    /// The number of lines that equal the stored rows, from the beginning.
    equal: usize,
    /// The lines after them that a sync would store: the position of the file, the line number, and the digest.
    lines: Vec<(usize, u64, Digest)>,
    /// The number of lines that a sync skips, and of all lines.
    skipped: u64,
    all: u64,
}

impl<'a> Comparison<'a> {
    pub(super) async fn new(
        storage: &'a SessionStorage,
        folder: &'a SessionFolder,
        stored: &'a StoredSession,
        check: &'a SessionCheck,
    ) -> Result<Self> {
        let state = SyncState::of(&folder.project, stored.sync_state.as_ref());
        let digester = storage.secrets().line_digester().await?;
        let found = Compared::default();
        Ok(Self { storage, folder, stored, check, key: stored.session.key(), state, digester, found })
    }

    pub(super) async fn run(mut self) -> Result<Compared> {
        let places = self.folder.places();
        let files = match blocking(move || SessionFiles::find(&places)).await? {
            Ok(Some(files)) => self.state.choose(files),
            // The folder disappeared after it was found: the store keeps the session.
            Ok(None) => return Ok(self.found),
            Err(error) => {
                self.find(DifferenceKind::Unreadable, format!("the folder can't be read: {error}"));
                return Ok(self.found);
            }
        };
        if self.stored.session.project_slug != self.folder.project {
            let (stored, found) = (&self.stored.session.project_slug, &self.folder.project);
            let reason = format!("it is stored in project {stored}; its folder is in {found}");
            self.find(DifferenceKind::Metadata, reason);
        }
        // A backup is only read for a file that is missing.
        let is_own = |file: &&Source| files::without_backup(file.name) == file.name;
        for file in files.metadata.iter().filter(is_own) {
            let read = self.metadata(*file).await;
            self.unless_unreadable(file.name, read)?;
        }
        match files.transcript {
            Some(file) => self.transcript(file).await?,
            // A transcript that is missing or withheld removes nothing.
            None => self.found.kept += self.check.messages,
        }
        let logs = files.event_logs(self.state.known_events());
        match logs.all().next() {
            Some(file) => self.events(file, logs).await?,
            None => self.found.kept += self.check.events,
        }
        Ok(self.found)
    }

    fn find(&mut self, kind: DifferenceKind, reason: impl Into<String>) {
        self.found.differences.push(Difference::of(&self.key, kind, reason));
    }

    fn find_in(&mut self, kind: DifferenceKind, file: &str, reason: impl Into<String>) {
        self.found.differences.push(Difference::of(&self.key, kind, reason).in_file(file));
    }

    /// Reports a file that can't be read. One that is missing changes nothing in the store.
    fn unless_unreadable<T>(&mut self, file: &str, read: Result<T, FileError>) -> Result<Option<T>> {
        match read {
            Ok(read) => return Ok(Some(read)),
            Err(FileError::Store(error)) => return Err(error),
            Err(FileError::Unreadable(error)) if error.kind() == io::ErrorKind::NotFound => {}
            Err(FileError::Unreadable(error)) => {
                self.find_in(DifferenceKind::Unreadable, file, error.to_string())
            }
        }
        Ok(None)
    }

    /// A file that can't be parsed changes nothing in the store.
    async fn metadata(&mut self, file: Source) -> Result<(), FileError> {
        let path = self.folder.file(file.name);
        let (stamp, content) = blocking(move || metadata::read_whole(&path)).await??;
        self.found.bytes += stamp.size;
        let Ok((_, raw)) = metadata::object(content) else {
            self.found.skipped += 1;
            return Ok(());
        };
        let raw = self.digester.stored(raw);
        let what = match self.stored.metadata_files.iter().find(|stored| stored.name == file.name) {
            Some(stored) if stored.raw == raw => return Ok(()),
            Some(_) => "differs from the stored one",
            None => "is not stored",
        };
        let reason = format!("it {what}{}", self.since(file));
        self.find_in(DifferenceKind::Metadata, file.name, reason);
        Ok(())
    }

    async fn transcript(&mut self, file: Source) -> Result<()> {
        let states = match self.check.gaps.message_states(&**self.storage.backend(), &self.key).await {
            // The check has reported it.
            Err(error) if error.kind() == ErrorKind::Damaged => return Ok(()),
            states => states?,
        };
        let rows = states.into_iter().map(|state| Some(state?.digest)).collect();
        self.log(RowKind::Message, vec![(file, None)], 0, rows).await
    }

    /// Compares the event logs; `file` is one of them.
    async fn events(&mut self, file: Source, logs: EventLogs) -> Result<()> {
        let known = self.state.file(self.state.known_events().unwrap_or(file.name));
        let has_log = known.is_some_and(|known| known.log.is_some());
        // A store that keeps no events has none.
        if !has_log && (known.is_some() || self.storage.settings().events == EventDetail::None) {
            return Ok(());
        }
        let keeps_lines = known.and_then(|known| known.log.as_ref()).is_some_and(|log| log.payloads);
        if keeps_lines && self.check.events_without_line > 0 {
            let reason =
                format!("the lines of {} are not stored", counted(self.check.events_without_line, "event"));
            self.find_in(DifferenceKind::NotStored, file.name, reason);
            self.found.lacks_lines = true;
        }
        let mut rows = match self.check.gaps.event_digests(&**self.storage.backend(), &self.key, 0).await {
            Err(error) if error.kind() == ErrorKind::Damaged => return Ok(()),
            rows => rows?,
        };
        // Those that were posted are not in the log, or not yet.
        let posted = self.stored.session.event_count.saturating_sub(self.stored.events_of_logs());
        rows.truncate(rows.len().saturating_sub(posted as usize));
        let Some((first, second)) = logs.pair() else {
            return self.log(RowKind::Event, vec![(file, None)], 0, rows).await;
        };
        // If the first log is gone, there is nothing to compare its rows with.
        let of_first = self.state.rows_of_first(rows.len() as u32);
        let before = if first.is_none() { of_first } else { 0 };
        self.found.kept += u64::from(before);
        let read = self.second_log(first, second, of_first).await;
        let Some(log) = self.unless_unreadable(second.name, read)? else { return Ok(()) };
        let first = first.map(|file| (file, None));
        let parts = first.into_iter().chain([(second, Some(log.numbers()))]).collect();
        self.log(RowKind::Event, parts, before as usize, rows).await
    }

    /// Compares the second event log with the first one, which has `of_first` stored rows. If it is damaged or gone, these
    /// count as its events.
    async fn second_log(
        &self,
        first: Option<Source>,
        second: Source,
        of_first: u32,
    ) -> Result<SecondLog, FileError> {
        let mut known = match first {
            Some(first) => FirstLog::read(self.folder.file(first.name)).await??,
            None => FirstLog::default(),
        };
        let is_damaged = known.binary.is_some() && self.stored.events_of_logs() > 0;
        if first.is_none() || is_damaged {
            let stored = stored_identities(self.storage, &self.key, (0, of_first)).await?;
            known = FirstLog::of_stored(known.with(stored));
        }
        let (path, digester) = (self.folder.file(second.name), self.digester.clone());
        let (from, now) = (LogPosition::default(), self.storage.now());
        Ok(blocking(move || SecondLog::compare(&path, &from, &known, &digester, now)).await??)
    }

    /// Compares the lines of files, one after the other, with the rows from the row `before` on.
    async fn log(
        &mut self,
        row: RowKind,
        parts: Vec<LogPart>,
        before: usize,
        rows: Vec<Option<Digest>>,
    ) -> Result<()> {
        let mut log = ComparedLog {
            row,
            rows,
            files: Vec::new(),
            equal: before,
            lines: Vec::new(),
            skipped: 0,
            all: 0,
        };
        for (file, only) in parts {
            let read = log.read(self.folder, (file, only), &self.digester).await;
            if self.unless_unreadable(file.name, read)?.is_none() {
                return Ok(());
            }
        }
        self.found.lines += log.all;
        self.found.skipped += log.skipped;
        self.found.bytes += log.files.iter().map(|file| file.stamp.size).sum::<u64>();
        let digests: Vec<Digest> = log.lines.iter().map(|(.., digest)| *digest).collect();
        let rest = log.rows.part(log.equal..);
        let mut kept = self.kept_rows(&log);
        for hunk in differences(&digests, rest) {
            self.hunk(&log, rest, hunk, &mut kept);
        }
        Ok(())
    }

    /// The number of rows that a sync keeps although the damaged file does not contain them.
    fn kept_rows(&self, log: &ComparedLog) -> u64 {
        let kept = |file: &Source| {
            let known = self.state.file(file.name).filter(|known| known.stamp == file.stamp)?;
            known.damage.as_ref().map(|damage| u64::from(damage.missing))
        };
        log.files.iter().filter_map(kept).sum()
    }

    fn hunk(&mut self, log: &ComparedLog, rest: &[Option<Digest>], hunk: Hunk, kept: &mut u64) {
        let (first_line, mut lines) = hunk.lines;
        let (first_row, mut rows) = hunk.rows;
        let sequence = |row: usize| (log.equal + row) as u32;
        let number = |line: usize| log.lines.get(line).map_or(0, |(_, number, _)| *number);
        let Some(file) = log.file_of(first_line) else { return };
        let name = log.row.as_str();
        let is_tail = first_line + lines == log.lines.len() && first_row + rows == rest.len();
        let is_rewound = self.state.rewound_rows(file) == Some(sequence(first_row)) && rows == 0;
        if is_tail && is_rewound {
            self.found.rewound += lines as u64;
            return;
        }
        // While an append is pending, the backup may lack the newest messages.
        if lines == 0 && first_row + rows == rest.len() && file.name == TRANSCRIPT_BACKUP {
            self.found.kept += rows as u64;
            return;
        }
        // The rows that a damaged file does not contain.
        if lines == 0 && rows as u64 <= *kept {
            *kept -= rows as u64;
            self.found.kept += rows as u64;
            return;
        }
        let since = self.since(file);
        let difference = |kind, reason: String| Difference::of(&self.key, kind, reason).in_file(file.name);
        let mut found = Vec::new();
        for pair in 0..lines.min(rows) {
            let (line, row) = (number(first_line + pair), first_row + pair);
            let of_pair = match rest.get(row) {
                // The check has reported the gap.
                Some(None) => difference(
                    DifferenceKind::NotStored,
                    format!("it is {name} {}, which is not stored{since}", sequence(row)),
                ),
                _ => difference(
                    DifferenceKind::OtherLine,
                    format!("the line is not the one that is stored as {name} {}{since}", sequence(row)),
                ),
            };
            found.push(of_pair.at_lines(line, line));
        }
        let pairs = lines.min(rows);
        (lines, rows) = (lines - pairs, rows - pairs);
        if lines > 0 {
            let (first, last) = (number(first_line + pairs), number(first_line + pairs + lines - 1));
            let reason = format!("not in the store{since}");
            found.push(difference(DifferenceKind::NotStored, reason).at_lines(first, last));
        }
        let extra = first_row + pairs..first_row + pairs + rows;
        let extra: Vec<usize> = extra.filter(|row| rest.get(*row).is_some_and(Option::is_some)).collect();
        if let (Some(first), Some(last)) = (extra.first(), extra.last()) {
            let reason = format!("stored, but not in the file{since}");
            let not_in_file = difference(DifferenceKind::NotInFile, reason);
            found.push(not_in_file.at_rows(log.row, sequence(*first), sequence(*last)));
        }
        self.found.differences.append(&mut found);
    }

    /// Whether a file has changed since it was synced, in words.
    fn since(&self, file: Source) -> &'static str {
        let is_changed = |known: &FileState| known.stamp != file.stamp;
        match self.state.file(file.name) {
            Some(known) if is_changed(known) => " (the file has changed since it was synced)",
            None => " (the file has not been synced)",
            Some(_) => "",
        }
    }
}

impl ComparedLog {
    /// The file of a line, or of the last line before it.
    fn file_of(&self, line: usize) -> Option<Source> {
        let file = self.lines.get(line).or(self.lines.last()).map_or(0, |(file, ..)| *file);
        self.files.get(file).copied()
    }

    /// Reads a file after those that were read before.
    async fn read(
        &mut self,
        folder: &SessionFolder,
        (file, only): LogPart,
        digester: &LineDigester,
    ) -> Result<(), FileError> {
        let mut open = OpenLog::open(folder.file(file.name), None).await?;
        open.only = only;
        let at = self.files.len();
        self.files.push(Source { stamp: open.stamp, ..file });
        while let Some(batch) = open.batch().await? {
            batch.lines.iter().for_each(|line| self.line(at, line, digester));
        }
        Ok(())
    }

    /// Compares a line with the stored row in its place, until a line differs.
    fn line(&mut self, file: usize, line: &Line, digester: &LineDigester) {
        self.all += 1;
        let digest = line.digest(digester);
        if digest.is_some() && self.lines.is_empty() && self.rows.get(self.equal) == Some(&digest) {
            self.equal += 1;
            return;
        }
        let kind = if self.row == RowKind::Event { LineKind::Event } else { LineKind::Message };
        let is_valid = |text| SessionIngest::is_valid(kind, text);
        match digest.filter(|_| line.text().is_some_and(is_valid)) {
            Some(digest) => self.lines.push((file, line.number, digest)),
            // A line without an ending is still being written.
            None => self.skipped += u64::from(!matches!(line.text, LineText::Unended(_))),
        }
    }
}
