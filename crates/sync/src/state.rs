//! The stored state of a session's files between two syncs.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use amplifier_session_core::{
    backend::{RewoundTo, StoredSyncState},
    known_json,
    metadata::TRANSFER_FENCE,
    model::{HostId, ProjectSlug, SupersededReason, Timestamp},
    storage::EventDetail,
};
use serde::{Deserialize, Serialize};

use crate::{
    discover::SessionFolder,
    files::{EVENTS, SessionFiles, Source, Stamp, TRANSCRIPT, TRANSCRIPT_BACKUP, absolute},
    head::Head,
    known_copy::{CopyKind, KnownCopy, ReadFolder},
    position::LogPosition,
};

/// The current format. A state with an unknown format is ignored: the files are read again, and unchanged rows are not
/// written.
pub(crate) const VERSION: u32 = 3;

/// The previous format. Times, titles and counts of these sessions must be derived again.
const EARLIER: u32 = 2;

/// The state of a session's files. It is stored in the same transaction as the rows that were read.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct SyncState {
    version: u32,
    project: String,
    /// The session folder, on the machine that read it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    folder: Option<String>,
    /// That machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    host: Option<String>,
    /// Other folders of the session, which changed nothing.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    copies: BTreeMap<String, KnownCopy>,
    files: BTreeMap<String, FileState>,
    /// The stamp of a damaged transcript instead of which the backup was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    damaged_transcript: Option<Stamp>,
    /// The event log that was read first, if there are two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    first_log: Option<String>,
    /// For files that count as read although they contain more: the number of rows that a rewind left.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    rewound: BTreeMap<String, u32>,
    /// Whether the repository of the session was looked up. Earlier versions did not do this.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    repository_looked_up: bool,
    /// For a state in the previous format: whether payloads of events were stored.
    #[serde(skip)]
    earlier: Option<bool>,
}

/// The state of a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct FileState {
    /// Its stamp before it was read.
    pub(crate) stamp: Stamp,
    /// Whether it was read completely, and long enough after its last change that `stamp` can be trusted.
    pub(crate) settled: bool,
    /// The position up to which an event log was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) log: Option<LogPosition>,
    /// The part of a long transcript that was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) head: Option<Head>,
    /// The stamp of an event log when it was read only for its times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) timed: Option<Stamp>,
    /// Damage that causes stored rows to be kept that the file does not contain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) damage: Option<Damage>,
    /// Present while stored rows that the file no longer contains are being replaced. If a stored state has it, the
    /// replacement was interrupted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) replacing: Option<SupersededReason>,
}

/// The damage of a file, and the number of rows that were kept because of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Damage {
    /// A description, with the file as the subject.
    pub(crate) reason: String,
    /// The line where it begins.
    pub(crate) line: u64,
    /// The number of stored rows that the file does not contain.
    pub(crate) missing: u32,
}

/// The result of reading a file to its end.
#[derive(Debug, Default)]
pub(crate) struct FileEnd {
    /// The position in an event log.
    pub(crate) log: Option<LogPosition>,
    /// The part of a long transcript that was read.
    pub(crate) head: Option<Head>,
    /// Damage that caused stored rows to be kept.
    pub(crate) damage: Option<Damage>,
    /// Whether the file has an incomplete end that its writer may complete. It is read again even if it does not change.
    pub(crate) is_unfinished: bool,
}

impl FileState {
    /// The state of a file that was not read.
    fn unread(file: Source) -> Self {
        Self {
            stamp: file.stamp,
            settled: false,
            log: None,
            head: None,
            timed: None,
            damage: None,
            replacing: None,
        }
    }

    /// Whether the file was read to its end.
    fn is_whole(&self) -> bool {
        self.replacing.is_none() && self.log.as_ref().is_none_or(|log| log.bytes >= self.stamp.size)
    }
}

/// The folder from which a session was read, if its stored sync state contains it.
#[must_use]
pub fn source_folder(sync_state: &StoredSyncState) -> Option<PathBuf> {
    SyncState::parse(sync_state)?.folder.map(PathBuf::from)
}

impl SyncState {
    /// The stored state of a session that is now in `project`, or an empty state if there is none.
    pub(crate) fn of(project: &ProjectSlug, stored: Option<&StoredSyncState>) -> Self {
        let known = stored.and_then(Self::parse).unwrap_or_default();
        Self { version: VERSION, project: project.to_string(), ..known }
    }

    /// Sets the folder that is read.
    pub(crate) fn set_read_folder(&mut self, folder: &Path, host: &HostId) {
        let folder = absolute(folder);
        self.copies.remove(&folder);
        (self.folder, self.host) = (Some(folder), Some(host.to_string()));
    }

    /// Records that the repository of the session was looked up.
    pub(crate) fn set_repository_looked_up(&mut self) {
        self.repository_looked_up = true;
    }

    /// Whether the session has to be read for its repository, even if its files are unchanged.
    pub(crate) fn lacks_repository(&self) -> bool {
        !self.repository_looked_up
    }

    /// Records that the backup is read instead of the transcript with this stamp.
    pub(crate) fn set_damaged_transcript(&mut self, stamp: Stamp) {
        self.damaged_transcript = Some(stamp);
    }

    /// The files to read.
    pub(crate) fn choose(&self, files: SessionFiles) -> SessionFiles {
        files.without_damaged(self.damaged_transcript)
    }

    /// The folder that was read, if it is not `folder` on `host`.
    pub(crate) fn read_elsewhere(&self, folder: &Path, host: &HostId) -> Option<ReadFolder> {
        let read = ReadFolder {
            folder: self.folder.clone()?,
            // Earlier versions did not record it.
            host: self.host.clone().unwrap_or_else(|| host.to_string()),
        };
        (read.host != host.as_str() || read.folder != absolute(folder)).then_some(read)
    }

    /// Records a copy. Returns whether this was not known.
    pub(crate) fn add_copy(&mut self, folder: &Path, copy: KnownCopy) -> bool {
        let before = self.copies.insert(absolute(folder), copy.clone());
        before != Some(copy)
    }

    /// The recorded result for a copy in `folder`, if its transcript has not changed since.
    pub(crate) fn known_copy(&self, folder: &SessionFolder, host: &HostId) -> Option<(CopyKind, ReadFolder)> {
        let read = self.read_elsewhere(&folder.path, host)?;
        let copy = self.copies.get(&absolute(&folder.path))?;
        (copy.stamp == folder.files.transcript?.stamp).then_some((copy.kind, read))
    }

    /// Parses a stored state; `None` if it has another format.
    pub(crate) fn parse(stored: &StoredSyncState) -> Option<Self> {
        let mut state: Self = serde_json::from_str(&stored.files).ok()?;
        match state.version {
            VERSION => {}
            EARLIER => state.reset(),
            _ => return None,
        }
        if let Some(rows) = stored.rewound {
            state.set_rewound(rows);
        }
        Some(state)
    }

    /// Makes the next sync read the same files again from their beginning, except those whose last rows a rewind removed:
    /// reading them would store these rows again.
    fn reset(&mut self) {
        let mut logs = self.files.values().filter_map(|file| file.log.as_ref());
        self.earlier = Some(logs.any(|log| log.payloads));
        for (_, file) in self.files.iter_mut().filter(|(name, _)| !self.rewound.contains_key(*name)) {
            file.settled = false;
            file.log.iter_mut().for_each(|log| *log = log.forgotten());
        }
    }

    /// If an earlier version that derived less data read the files: whether it stored payloads of events.
    pub(crate) fn is_of_earlier_version(&self) -> Option<bool> {
        self.earlier
    }

    /// The stored form.
    pub(crate) fn to_json(&self) -> String {
        // Maps with text keys and numbers always have a JSON form.
        known_json(self)
    }

    /// Whether no file was read yet.
    pub(crate) fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// The state of a file.
    pub(crate) fn file(&self, name: &str) -> Option<&FileState> {
        self.files.get(name)
    }

    /// Records that a file was read completely at `read`.
    pub(crate) fn set_read(&mut self, file: Source, read: Timestamp, end: FileEnd) {
        let FileEnd { log, head, damage, is_unfinished } = end;
        let settled = file.stamp.is_unchanging(read) && !is_unfinished;
        let state = FileState { stamp: file.stamp, settled, log, head, timed: None, damage, replacing: None };
        self.set(file, state);
    }

    /// Records that an event log was read up to `position`.
    pub(crate) fn set_reading(&mut self, file: Source, position: LogPosition) {
        self.set(file, FileState { log: Some(position), ..FileState::unread(file) });
    }

    /// Records that stored rows that a file no longer contains are being replaced. If the replacement is interrupted,
    /// the file is read again from its beginning.
    pub(crate) fn set_replacing(&mut self, file: Source, log: Option<LogPosition>, reason: SupersededReason) {
        self.set(file, FileState { log, replacing: Some(reason), ..FileState::unread(file) });
    }

    /// Records that an event log was read at `read` only for its times. The position up to which its events are stored
    /// does not change.
    pub(crate) fn set_timed(&mut self, file: Source, read: Timestamp) {
        let known = self.files.entry(file.name.to_owned()).or_insert_with(|| FileState::unread(file));
        known.timed = file.stamp.is_unchanging(read).then_some(file.stamp);
    }

    fn set(&mut self, file: Source, state: FileState) {
        // The stored transcript comes from one of these files; the other one must be read when it is used next.
        match file.name {
            TRANSCRIPT => self.files.remove(TRANSCRIPT_BACKUP),
            TRANSCRIPT_BACKUP => self.files.remove(TRANSCRIPT),
            _ => None,
        };
        self.rewound.remove(file.name);
        self.files.insert(file.name.to_owned(), state);
    }

    /// The number of rows that a rewind left of a file that has not changed since.
    pub(crate) fn rewound_rows(&self, file: Source) -> Option<u32> {
        let is_unchanged = self.file(file.name).is_some_and(|known| known.stamp == file.stamp);
        self.rewound.get(file.name).copied().filter(|_| is_unchanged)
    }

    /// Whether there was a fence that is gone now: the session goes on here. Forgets it.
    pub(crate) fn forget_lifted_fence(&mut self, files: &SessionFiles) -> bool {
        let is_lifted = self.has_lifted_fence(files);
        if is_lifted {
            self.files.remove(TRANSFER_FENCE);
        }
        is_lifted
    }

    fn has_lifted_fence(&self, files: &SessionFiles) -> bool {
        let is_there = files.metadata.iter().any(|file| file.name == TRANSFER_FENCE);
        !is_there && self.files.contains_key(TRANSFER_FENCE)
    }

    /// Restores the state that a file had before it was read.
    pub(crate) fn put_back(&mut self, before: &Self, name: &str) {
        if let Some(file) = before.files.get(name) {
            self.files.insert(name.to_owned(), file.clone());
            self.rewound.extend(before.rewound.get_key_value(name).map(|(name, rows)| (name.clone(), *rows)));
        }
    }

    /// The event log that was read first.
    pub(crate) fn known_events(&self) -> Option<&'static str> {
        let is_known = |name: &&str| match &self.first_log {
            Some(first) => first == name,
            None => self.files.contains_key(*name),
        };
        EVENTS.into_iter().find(is_known)
    }

    /// Records that the event log `name` is the second one.
    pub(crate) fn set_second(&mut self, name: &str) {
        self.first_log = EVENTS.into_iter().find(|other| *other != name).map(str::to_owned);
    }

    /// The second event log, if there is one.
    pub(crate) fn second_log(&self) -> Option<&'static str> {
        let first = self.first_log.as_ref()?;
        EVENTS.into_iter().find(|name| first != name)
    }

    /// The number of events that came from the first log, of `all` that are stored.
    pub(crate) fn rows_of_first(&self, all: u32) -> u32 {
        let of_second = self.second_log().and_then(|second| self.file(second)?.log.as_ref());
        all.saturating_sub(of_second.map_or(0, |log| log.rows))
    }

    /// Records that `rows` stored events belong to an event log, which must be read again from its beginning.
    pub(crate) fn set_rows(&mut self, name: &str, rows: u32) {
        if let Some(log) = self.files.get_mut(name).and_then(|file| file.log.as_mut()) {
            *log = LogPosition { rows, ..log.forgotten() };
        }
    }

    /// Counts the `rows` of the second log, which is gone, as events of the first one.
    pub(crate) fn add_second_to_first(&mut self, rows: u32) {
        let (Some(second), Some(first)) = (self.second_log(), self.known_events()) else { return };
        self.files.remove(second);
        self.first_log = None;
        if let Some(log) = self.files.get_mut(first).and_then(|file| file.log.as_mut()) {
            log.rows += rows;
        }
    }

    /// Whether a file is unchanged since it was read.
    pub(crate) fn is_current(&self, file: Source) -> bool {
        self.files.get(file.name).is_some_and(|known| known.settled && known.stamp == file.stamp)
    }

    /// The damage of a file that is unchanged since it was read.
    pub(crate) fn damage(&self, file: Source) -> Option<&Damage> {
        self.file(file.name).filter(|_| self.is_current(file))?.damage.as_ref()
    }

    /// The damaged files of a session that are unchanged since they were read.
    pub(crate) fn damages(&self, files: &SessionFiles) -> impl Iterator<Item = (Source, &Damage)> {
        let logs = files.transcript.into_iter().chain(files.event_logs(self.known_events()).all());
        logs.filter_map(|file| Some((file, self.damage(file)?)))
    }

    /// Makes the next sync read damaged files again.
    pub(crate) fn forget_damage(&mut self) {
        self.copies.clear();
        self.damaged_transcript = None;
        self.files.values_mut().filter(|file| file.damage.is_some()).for_each(|file| file.settled = false);
    }

    /// Makes the next sync read all files from their beginning.
    pub(crate) fn forget_positions(&mut self) {
        self.copies.clear();
        for file in self.files.values_mut() {
            (file.settled, file.head, file.timed) = (false, None, None);
            if let Some(log) = &mut file.log {
                *log = log.forgotten();
            }
        }
    }

    /// Makes the completely read files count as unchanged, although only these of their rows are left since a rewind.
    fn set_rewound(&mut self, left: RewoundTo) {
        self.version = VERSION;
        // Data derived by an earlier version stays until the files change.
        let is_of_earlier = self.earlier.take().is_some();
        let (second, of_first) = (self.second_log(), self.rows_of_first(left.events));
        for (name, file) in &mut self.files {
            file.settled |= is_of_earlier || file.is_whole();
            let rows = match name {
                name if Some(name.as_str()) == second => left.events - of_first,
                name if EVENTS.contains(&name.as_str()) => of_first,
                _ => left.messages,
            };
            if let Some(damage) = &mut file.damage {
                damage.missing = damage.missing.min(rows);
            }
            file.damage.take_if(|damage| damage.missing == 0);
            self.rewound.insert(name.clone(), rows);
        }
    }

    /// Whether an event log is unchanged since it was read, and at least `detail` of it is stored.
    pub(crate) fn has_current_events(&self, file: Source, detail: EventDetail) -> bool {
        if detail == EventDetail::None {
            return self.is_current(file)
                || self.file(file.name).is_some_and(|known| known.timed == Some(file.stamp));
        }
        let has_payloads = || self.files.get(file.name)?.log.as_ref().map(|log| log.payloads);
        self.is_current(file) && (detail != EventDetail::Full || has_payloads() == Some(true))
    }

    /// Whether files have changed since they were read. A file that changed shortly before it was read must be read
    /// again, but does not count as changed if its stamp is the same.
    pub(crate) fn is_outdated(
        &self,
        project: &ProjectSlug,
        files: &SessionFiles,
        detail: EventDetail,
    ) -> bool {
        let mut trusted = self.clone();
        for file in trusted.files.values_mut() {
            file.settled |= self.earlier.is_none() && file.is_whole();
        }
        trusted.bytes_to_read(project, files, detail).is_some()
    }

    /// The number of bytes that need not be read again if the file was only appended to.
    fn head_bytes(&self, file: Source) -> u64 {
        let known = self.file(file.name).filter(|known| file.stamp.may_continue(&known.stamp));
        known.and_then(|known| known.head.as_ref()).map_or(0, |head| head.bytes.min(file.stamp.size))
    }

    /// The number of bytes of `files` to read; `None` if the stored rows are up to date.
    pub(crate) fn bytes_to_read(
        &self,
        project: &ProjectSlug,
        files: &SessionFiles,
        detail: EventDetail,
    ) -> Option<u64> {
        let whole =
            files.metadata.iter().copied().chain(files.transcript).filter(|file| !self.is_current(*file));
        let mut sizes: Vec<u64> = whole.map(|file| file.stamp.size - self.head_bytes(file)).collect();
        sizes.extend(self.has_lifted_fence(files).then_some(0));
        if detail == EventDetail::None {
            // For times only, the log is read from the beginning.
            let is_read = |log: &Source| !self.has_current_events(*log, detail) || !sizes.is_empty();
            sizes.extend(files.newest_events().filter(is_read).map(|log| log.stamp.size));
        } else {
            let is_read = |log: &Source| !self.has_current_events(*log, detail);
            let size = |log: Source| {
                let read = self.file(log.name).and_then(|file| file.log.as_ref()).map_or(0, |log| log.bytes);
                log.stamp.size.checked_sub(read).unwrap_or(log.stamp.size)
            };
            sizes.extend(files.event_logs(self.known_events()).all().filter(is_read).map(size));
        }
        let is_unchanged = sizes.is_empty() && self.project == project.as_str();
        (!is_unchanged).then(|| sizes.iter().sum())
    }
}
