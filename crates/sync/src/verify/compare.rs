//! Compares the files of a session folder with the stored session.

use std::{
    collections::HashSet,
    io::{self, Read},
    path::Path,
};

use amplifier_session_core::{
    ErrorKind, KnownPart, Result, SessionStorage,
    backend::StoredSession,
    blocking, events,
    model::{Difference, DifferenceKind, Digest, LineKind, RawJson, RowKind, SessionKey},
    storage::{EventDetail, LineDigester, SessionCheck, SessionIngest},
    text::counted,
};

use super::diff::{Hunk, differences};
use crate::{
    discover::SessionFolder,
    files::{self, EventLogs, Places, SessionFiles, Source, Stamp, TRANSCRIPT_BACKUP},
    lines::{BYTE_ORDER_MARK, LineReader, LineText},
    position::LogPosition,
    second_log::{FirstLog, SecondLog, is_complete, stored_identities},
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
    pub(super) storage: &'a SessionStorage,
    pub(super) folder: &'a SessionFolder,
    pub(super) stored: &'a StoredSession,
    pub(super) check: &'a SessionCheck,
    pub(super) key: SessionKey,
    pub(super) state: SyncState,
    /// Computes digests as the store does, which may mask secrets.
    pub(super) digester: LineDigester,
    pub(super) found: Compared,
}

/// A file, and the numbers of the lines in it to compare, if not all.
#[derive(Debug, Clone)]
struct LogPart {
    file: Source,
    only: Option<HashSet<u64>>,
}

/// The files of a log, one after the other.
struct ComparedLog {
    row: RowKind,
    parts: Vec<LogPart>,
    /// The number of lines that equal the stored rows, from the beginning.
    equal: usize,
    /// The lines after them that a sync would store: the part, the line number, and the digest.
    lines: Vec<(usize, u64, Digest)>,
    /// The number of lines that a sync skips, and of all lines.
    skipped: u64,
    all: u64,
}

impl<'a> Comparison<'a> {
    pub(super) fn new(
        storage: &'a SessionStorage,
        folder: &'a SessionFolder,
        stored: &'a StoredSession,
        check: &'a SessionCheck,
    ) -> Self {
        let state = SyncState::of(&folder.project, stored.sync_state.as_ref());
        let (digester, found) = (LineDigester::default(), Compared::default());
        Self { storage, folder, stored, check, key: stored.session.key(), state, digester, found }
    }

    pub(super) async fn run(mut self) -> Result<Compared> {
        self.digester = self.storage.secrets().line_digester().await?;
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
        self.metadata(&files).await?;
        match files.transcript {
            Some(file) => self.transcript(file).await?,
            // A transcript that is missing or withheld removes nothing.
            None => self.found.kept += self.check.messages,
        }
        let logs = files.event_logs(self.state.known_events());
        match logs.all().next() {
            Some(_) => self.events(logs).await?,
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

    /// A file that is missing or can't be parsed changes nothing in the store.
    async fn metadata(&mut self, files: &SessionFiles) -> Result<()> {
        let is_own = |file: &&Source| files::without_backup(file.name) == file.name;
        // A backup is only read for a file that is missing.
        for file in files.metadata.iter().filter(is_own).copied().collect::<Vec<_>>() {
            let path = self.folder.file(file.name);
            let content = match blocking(move || read_metadata(&path)).await? {
                Ok(content) => content,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => {
                    self.find_in(DifferenceKind::Unreadable, file.name, error.to_string());
                    continue;
                }
            };
            self.found.bytes += content.len() as u64;
            let content = content.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&content);
            let stored = self.stored.metadata_files.iter().find(|stored| stored.name == file.name);
            match stored {
                Some(stored) if stored.raw == self.digester.stored(RawJson::new(content)) => {}
                _ if content.len() > events::MAX_LINE_BYTES
                    || RawJson::new(content).parse_object().is_err() =>
                {
                    self.found.skipped += 1;
                }
                stored => {
                    let what = if stored.is_some() { "differs from the stored one" } else { "is not stored" };
                    let reason = format!("it {what}{}", self.since(file));
                    self.find_in(DifferenceKind::Metadata, file.name, reason);
                }
            }
        }
        Ok(())
    }

    async fn transcript(&mut self, file: Source) -> Result<()> {
        let states = match self.check.gaps.message_states(&**self.storage.backend(), &self.key).await {
            // The check has reported it.
            Err(error) if error.kind() == ErrorKind::Damaged => return Ok(()),
            states => states?,
        };
        let rows = states.into_iter().map(|state| Some(state?.digest)).collect();
        self.log(RowKind::Message, vec![LogPart { file, only: None }], 0, rows).await
    }

    async fn events(&mut self, logs: EventLogs) -> Result<()> {
        let Some(file) = logs.all().next() else { return Ok(()) };
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
        let rows = match self.check.gaps.event_digests(&**self.storage.backend(), &self.key, 0).await {
            Err(error) if error.kind() == ErrorKind::Damaged => return Ok(()),
            rows => rows?,
        };
        let Some(second) = logs.second else {
            return self.log(RowKind::Event, vec![LogPart { file, only: None }], 0, rows).await;
        };
        let first = logs.first.filter(|first| first.stamp.size > 0);
        // If the first log is gone, there is nothing to compare its rows with.
        let of_first = self.state.rows_of_first(rows.len() as u32);
        let before = if first.is_none() { of_first } else { 0 };
        self.found.kept += u64::from(before);
        let only = match self.missing_in_first(first, second, of_first).await? {
            Ok(only) => only,
            Err(error) => {
                self.find_in(DifferenceKind::Unreadable, second.name, error.to_string());
                return Ok(());
            }
        };
        let first = first.map(|file| LogPart { file, only: None });
        let parts = first.into_iter().chain([LogPart { file: second, only: Some(only) }]).collect();
        self.log(RowKind::Event, parts, before as usize, rows).await
    }

    /// The numbers of the lines of the second event log that a sync stores.
    async fn missing_in_first(
        &self,
        first: Option<Source>,
        second: Source,
        of_first: u32,
    ) -> Result<io::Result<HashSet<u64>>> {
        let stored = stored_identities(self.storage, &self.key, (0, of_first)).await?;
        let [first_path, path] = [first.unwrap_or(second), second].map(|log| self.folder.file(log.name));
        let (digester, now) = (self.digester.clone(), self.storage.now());
        let is_recent = first.is_some_and(|first| !is_complete(first.stamp.modified(), now));
        blocking(move || {
            let events = match first.map(|_| FirstLog::read(&first_path)).transpose()? {
                Some(log) if log.binary.is_none() => log.events,
                Some(log) => log.with(stored),
                None => stored,
            };
            let log = SecondLog::compare(&path, &LogPosition::default(), &events, &digester)?;
            Ok(if is_recent { log.settled_at(now) } else { log }.numbers())
        })
        .await
    }

    /// Compares the lines of files, one after the other, with the rows from the row `before` on.
    async fn log(
        &mut self,
        row: RowKind,
        parts: Vec<LogPart>,
        before: usize,
        rows: Vec<Option<Digest>>,
    ) -> Result<()> {
        let (folder, digester) = (self.folder.places(), self.digester.clone());
        let mut log = ComparedLog { row, parts, equal: before, lines: Vec::new(), skipped: 0, all: 0 };
        let (rows, log, read) = blocking(move || {
            let read = log.read(&folder, &rows, &digester);
            (rows, log, read)
        })
        .await?;
        if let Err((file, error)) = read {
            if error.kind() != io::ErrorKind::NotFound {
                self.find_in(DifferenceKind::Unreadable, file, error.to_string());
            }
            return Ok(());
        }
        self.found.lines += log.all;
        self.found.skipped += log.skipped;
        self.found.bytes += log.parts.iter().map(|part| part.file.stamp.size).sum::<u64>();
        let digests: Vec<Digest> = log.lines.iter().map(|(.., digest)| *digest).collect();
        let rest = rows.part(log.equal..);
        let mut kept = self.kept_rows(&log);
        for hunk in differences(&digests, rest) {
            self.hunk(&log, rest, hunk, &mut kept);
        }
        Ok(())
    }

    /// The number of rows that a sync keeps although the damaged file does not contain them.
    fn kept_rows(&self, log: &ComparedLog) -> u64 {
        let kept = |part: &LogPart| {
            let known = self.state.file(part.file.name).filter(|known| known.stamp == part.file.stamp)?;
            known.damage.as_ref().map(|damage| u64::from(damage.missing))
        };
        log.parts.iter().filter_map(kept).sum()
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

/// The content of a metadata file, up to a byte more than a sync accepts.
fn read_metadata(path: &Path) -> io::Result<Vec<u8>> {
    let (file, _) = files::open(path)?;
    let mut content = Vec::new();
    file.take(events::MAX_LINE_BYTES as u64 + 1).read_to_end(&mut content)?;
    Ok(content)
}

impl ComparedLog {
    /// The file of a line, or of the last line before it.
    fn file_of(&self, line: usize) -> Option<Source> {
        let part = self.lines.get(line).or(self.lines.last()).map_or(0, |(part, ..)| *part);
        self.parts.get(part).map(|part| part.file)
    }

    /// Reads the files, and compares them with the stored rows up to the first difference.
    fn read(
        &mut self,
        folder: &Places,
        rows: &[Option<Digest>],
        digester: &LineDigester,
    ) -> Result<(), (&'static str, io::Error)> {
        for at in 0..self.parts.len() {
            let Some(part) = self.parts.get(at).cloned() else { break };
            let read = self.read_part(folder, (at, part.only.as_ref()), rows, digester, part.file.name);
            let stamp = read.map_err(|error| (part.file.name, error))?;
            self.parts.iter_mut().skip(at).take(1).for_each(|part| part.file.stamp = stamp);
        }
        Ok(())
    }

    fn read_part(
        &mut self,
        folder: &Places,
        (part, only): (usize, Option<&HashSet<u64>>),
        rows: &[Option<Digest>],
        digester: &LineDigester,
        name: &str,
    ) -> io::Result<Stamp> {
        let (opened, stamp) = files::open(&folder.file(name))?;
        let mut reader = LineReader::new(opened, 0, 0, events::MAX_LINE_BYTES)?;
        let kind = if self.row == RowKind::Event { LineKind::Event } else { LineKind::Message };
        loop {
            let batch = reader.batch()?;
            for line in batch.lines {
                if only.is_some_and(|only| !only.contains(&line.number)) {
                    continue;
                }
                self.all += 1;
                let (text, has_ending) = match line.text {
                    LineText::Ended(text) => (text, true),
                    LineText::Unended(text) => (text, false),
                    LineText::TooLarge => {
                        self.skipped += 1;
                        continue;
                    }
                };
                let digest = digester.digest(&text);
                if self.lines.is_empty() && rows.get(self.equal) == Some(&Some(digest)) {
                    self.equal += 1;
                } else if SessionIngest::is_valid(kind, &text) {
                    self.lines.push((part, line.number, digest));
                } else {
                    // A line without an ending is still being written.
                    self.skipped += u64::from(has_ending);
                }
            }
            if batch.is_last {
                return Ok(stamp);
            }
        }
    }
}
