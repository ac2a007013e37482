//! What is remembered of a session's files between two syncs.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use amplifier_session_core::{
    model::{Digest, ProjectSlug, Timestamp},
    storage::EventDetail,
};
use serde::{Deserialize, Serialize};

use crate::files::{EVENTS, SessionFiles, Source, Stamp, TRANSCRIPT, TRANSCRIPT_BACKUP};

/// The form that is written and understood. A state of another form counts as none: the files are read again, and
/// what is stored already is left alone.
const VERSION: u32 = 2;

/// The form of before, of sessions whose times, titles and counts are to be derived again.
const EARLIER: u32 = 1;

/// What is remembered of a session, kept in the store in the same transaction as the rows that were read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct SyncState {
    version: u32,
    project: String,
    /// The session folder, on the machine that read it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    folder: Option<String>,
    files: BTreeMap<String, FileState>,
    /// Of a state of the form of before: whether payloads of events were kept.
    #[serde(skip)]
    earlier: Option<bool>,
}

/// What is remembered of a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct FileState {
    /// What it looked like before it was read.
    pub(crate) stamp: Stamp,
    /// Whether all of it was read, and long enough after it changed that `stamp` can be trusted.
    pub(crate) settled: bool,
    /// How far an event log was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) log: Option<LogPosition>,
    /// What an event log looked like when it was read for its times alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) timed: Option<Stamp>,
    /// Why rows are stored that the file does not contain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) damage: Option<Damage>,
}

/// What is wrong with a file, and what was kept for its sake.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Damage {
    /// In words, with the file as the subject.
    pub(crate) reason: String,
    /// The line where it begins.
    pub(crate) line: u64,
    /// How many stored rows the file does not contain.
    pub(crate) missing: u32,
}

/// What is known of a file that was read to its end.
#[derive(Debug, Default)]
pub(crate) struct WasRead {
    /// How far, of an event log.
    pub(crate) log: Option<LogPosition>,
    /// Why stored rows were kept.
    pub(crate) damage: Option<Damage>,
}

/// A place in an event log, behind the ending of a line.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct LogPosition {
    /// Bytes before it.
    pub(crate) bytes: u64,
    /// Lines before it, bad and blank ones included.
    pub(crate) lines: u64,
    /// Good lines before it: the sequence of the next one.
    pub(crate) rows: u32,
    /// The last line before it that is neither blank nor too large.
    pub(crate) last: Option<ReadLine>,
    /// Whether the payloads of the events were kept.
    pub(crate) payloads: bool,
}

/// A line that was read, to be recognised.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ReadLine {
    /// Where its text begins.
    pub(crate) offset: u64,
    /// How long its text is, without its ending.
    pub(crate) length: u64,
    /// Digest of its text.
    digest: String,
}

impl ReadLine {
    pub(crate) fn new(offset: u64, text: &[u8]) -> Self {
        Self { offset, length: text.len() as u64, digest: hex(text) }
    }

    /// Whether `text` is that line.
    pub(crate) fn is(&self, text: &[u8]) -> bool {
        self.digest == hex(text)
    }
}

/// The folder that a session was read from, according to its stored sync state; none where that does not say it.
#[must_use]
pub fn source_folder(sync_state: &str) -> Option<PathBuf> {
    SyncState::parse(sync_state)?.folder.map(PathBuf::from)
}

fn hex(text: &[u8]) -> String {
    format!("{:032x}", u128::from_be_bytes(Digest::of(text).0))
}

impl SyncState {
    /// The stored state of a session that lies in `project` now; where there is none, that of a session of which
    /// nothing was read.
    pub(crate) fn of(project: &ProjectSlug, stored: Option<&str>) -> Self {
        let known = stored.and_then(Self::parse);
        let (folder, files, earlier) =
            known.map(|state| (state.folder, state.files, state.earlier)).unwrap_or_default();
        Self { version: VERSION, project: project.to_string(), folder, files, earlier }
    }

    /// Remembers which folder is read.
    pub(crate) fn set_folder(&mut self, folder: &Path) {
        let absolute = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
        self.folder = Some(absolute.to_string_lossy().into_owned());
    }

    /// Reads a stored state; none when it is of another form.
    pub(crate) fn parse(json: &str) -> Option<Self> {
        let mut state: Self = serde_json::from_str(json).ok()?;
        match state.version {
            VERSION => {}
            EARLIER => state.begin_anew(),
            _ => return None,
        }
        Some(state)
    }

    /// Has all files read from their beginning, the same ones as before.
    fn begin_anew(&mut self) {
        let logs = self.files.values_mut().filter_map(|file| file.log.as_mut());
        self.earlier = Some(logs.fold(false, |kept, log| {
            let payloads = log.payloads;
            *log = LogPosition { payloads, ..LogPosition::default() };
            kept || payloads
        }));
        self.files.values_mut().for_each(|file| file.settled = false);
    }

    /// Whether an earlier version read the files, which derived less from them; and whether it kept payloads of events.
    pub(crate) fn is_of_earlier_version(&self) -> Option<bool> {
        self.earlier
    }

    /// The stored form.
    pub(crate) fn to_json(&self) -> String {
        // Maps with text keys and numbers always have a JSON form.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Whether no file was read.
    pub(crate) fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// What is remembered of a file.
    pub(crate) fn file(&self, name: &str) -> Option<&FileState> {
        self.files.get(name)
    }

    /// Remembers that a file was read as a whole at `read`.
    pub(crate) fn set_read(&mut self, file: Source, read: Timestamp, WasRead { log, damage }: WasRead) {
        let settled = file.stamp.is_settled(read);
        self.set(file, FileState { stamp: file.stamp, settled, log, timed: None, damage });
    }

    /// Remembers that an event log was read up to `position`.
    pub(crate) fn set_reading(&mut self, file: Source, position: LogPosition) {
        let log = Some(position);
        self.set(file, FileState { stamp: file.stamp, settled: false, log, timed: None, damage: None });
    }

    /// Remembers that an event log was read at `read` for its times alone. What is known of how far its events are stored
    /// stays.
    pub(crate) fn set_timed(&mut self, file: Source, read: Timestamp) {
        let nothing =
            || FileState { stamp: file.stamp, settled: false, log: None, timed: None, damage: None };
        let known = self.files.entry(file.name.to_owned()).or_insert_with(nothing);
        known.timed = file.stamp.is_settled(read).then_some(file.stamp);
    }

    fn set(&mut self, file: Source, state: FileState) {
        // The stored transcript is that of one file: the other must be read when its turn comes.
        match file.name {
            TRANSCRIPT => self.files.remove(TRANSCRIPT_BACKUP),
            TRANSCRIPT_BACKUP => self.files.remove(TRANSCRIPT),
            _ => None,
        };
        self.files.insert(file.name.to_owned(), state);
    }

    /// Which event log was read.
    pub(crate) fn known_events(&self) -> Option<&'static str> {
        EVENTS.into_iter().find(|name| self.files.contains_key(*name))
    }

    /// Whether a file is as it was read.
    pub(crate) fn holds(&self, file: Source) -> bool {
        self.files.get(file.name).is_some_and(|known| known.settled && known.stamp == file.stamp)
    }

    /// What is wrong with a file that is as it was read.
    pub(crate) fn damage(&self, file: Source) -> Option<&Damage> {
        self.file(file.name).filter(|_| self.holds(file))?.damage.as_ref()
    }

    /// The damaged files of a session that are as they were read.
    pub(crate) fn damages(&self, files: &SessionFiles) -> impl Iterator<Item = (Source, &Damage)> {
        let logs = files.transcript().into_iter().chain(files.events(self.known_events()));
        logs.filter_map(|file| Some((file, self.damage(file)?)))
    }

    /// Has damaged files read again.
    pub(crate) fn forget_damage(&mut self) {
        self.files.values_mut().filter(|file| file.damage.is_some()).for_each(|file| file.settled = false);
    }

    /// Whether an event log is as it was read, and as much of it was kept as is wanted now.
    pub(crate) fn holds_events(&self, file: Source, detail: EventDetail) -> bool {
        if detail == EventDetail::None {
            return self.holds(file)
                || self.file(file.name).is_some_and(|known| known.timed == Some(file.stamp));
        }
        let has_payloads = || self.files.get(file.name)?.log.as_ref().map(|log| log.payloads);
        self.holds(file) && (detail != EventDetail::Full || has_payloads() == Some(true))
    }

    /// Whether files are not as they were when they were read. One that was changed a moment before it was read has to be
    /// read again, but is no news as long as it looks the same.
    pub(crate) fn is_outdated(
        &self,
        project: &ProjectSlug,
        files: &SessionFiles,
        detail: EventDetail,
    ) -> bool {
        let mut trusted = self.clone();
        for file in trusted.files.values_mut() {
            let is_whole = file.log.as_ref().is_none_or(|log| log.bytes >= file.stamp.size);
            file.settled |= self.earlier.is_none() && is_whole;
        }
        trusted.bytes_to_read(project, files, detail).is_some()
    }

    /// How many bytes a sync would read of `files`; none when the store holds them as they are.
    pub(crate) fn bytes_to_read(
        &self,
        project: &ProjectSlug,
        files: &SessionFiles,
        detail: EventDetail,
    ) -> Option<u64> {
        let whole =
            files.metadata().iter().copied().chain(files.transcript()).filter(|file| !self.holds(*file));
        let mut sizes: Vec<u64> = whole.map(|file| file.stamp.size).collect();
        if let Some(log) = files.events(self.known_events())
            && (!self.holds_events(log, detail) || (detail == EventDetail::None && !sizes.is_empty()))
        {
            let read = self.file(log.name).and_then(|file| file.log.as_ref()).map_or(0, |log| log.bytes);
            // Times are read from its beginning.
            let read = if detail == EventDetail::None { 0 } else { read };
            sizes.push(log.stamp.size.checked_sub(read).unwrap_or(log.stamp.size));
        }
        let is_unchanged = sizes.is_empty() && self.project == project.as_str();
        (!is_unchanged).then(|| sizes.iter().sum())
    }
}
