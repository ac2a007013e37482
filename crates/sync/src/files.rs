//! The files of a session folder: which exist, their metadata, and which ones to read.

use std::{
    ffi::OsString,
    fs::{self, File, Metadata},
    io,
    path::{Path, PathBuf},
    time::UNIX_EPOCH,
};

use amplifier_session_core::{metadata::TRANSFER_FENCE, model::Timestamp};
use serde::{Deserialize, Serialize};

/// The ending of the name of a backup: the previous state of a file, which its writer keeps beside it.
const BACKUP: &str = ".backup";
/// The metadata files, the session's own first.
pub(crate) const METADATA: [&str; 3] = ["metadata.json", CAPTURE_METADATA, TRANSFER_FENCE];
/// The metadata that a capture has.
pub(crate) const CAPTURE_METADATA: &str = "context-intelligence/metadata.json";
/// The backups of [`METADATA`]. A fence that is gone was lifted.
const METADATA_BACKUPS: [Option<&str>; 3] =
    [Some("metadata.json.backup"), Some("context-intelligence/metadata.json.backup"), None];
/// The folder of a session's capture, which may also be in another place than the session.
const CAPTURE: &str = "context-intelligence";
/// The event logs, the session's own first.
pub(crate) const EVENTS: [&str; 2] = ["events.jsonl", "context-intelligence/events.jsonl"];
/// The transcript.
pub(crate) const TRANSCRIPT: &str = "transcript.jsonl";
/// A complete earlier state of the transcript. While [`APPEND_PENDING`] exists, the last one.
pub(crate) const TRANSCRIPT_BACKUP: &str = "transcript.jsonl.backup";
/// Exists while the transcript is being appended to.
pub(crate) const APPEND_PENDING: &str = "transcript.jsonl.append-pending";

/// How long a file must be unchanged before its modification time can be trusted. Some file systems have a resolution
/// of two seconds, so a second change within that time is not visible.
const SETTLE_NANOS: i64 = 2_000_000_000;

/// How long a file must be unchanged before its incomplete end counts as damage: until then, its writer may be about to
/// complete it. If [`APPEND_PENDING`] is older than the transcript by this, the writer that created it has crashed.
const ABANDONED_MICROS: i64 = 60 * 60 * 1_000_000;

/// The metadata of a file. If two stamps are equal, so is the content, once the stamp has settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Stamp {
    pub(crate) size: u64,
    /// The modification time, in nanoseconds since the epoch.
    mtime: i64,
    /// The inode number, if the system has one.
    inode: Option<u64>,
}

impl Stamp {
    fn new(metadata: &Metadata) -> Self {
        Self { size: metadata.len(), mtime: nanoseconds(metadata), inode: inode(metadata) }
    }

    /// The current stamp of an open file.
    pub(crate) fn of(file: &File) -> io::Result<Self> {
        Ok(Self::new(&file.metadata()?))
    }

    /// Whether a file with this stamp may be the one with the stamp `before`, with more at its end.
    pub(crate) fn may_continue(&self, before: &Self) -> bool {
        self == before || (self.inode.is_some() && self.inode == before.inode && self.size > before.size)
    }

    /// The modification time.
    pub(crate) fn modified(&self) -> Timestamp {
        Timestamp::from_micros(self.mtime.div_euclid(1_000))
    }

    /// Whether the file was unchanged at `now` for so long that its writer does not complete it any more.
    pub(crate) fn is_abandoned(&self, now: Timestamp) -> bool {
        is_long_before(self.modified(), now)
    }

    /// Whether a change after `read` would change the stamp, so that the stamp identifies the content at that time.
    pub(crate) fn is_unchanging(&self, read: Timestamp) -> bool {
        self.mtime < read.as_micros().saturating_mul(1_000).saturating_sub(SETTLE_NANOS)
    }
}

fn is_long_before(earlier: Timestamp, later: Timestamp) -> bool {
    later.as_micros().saturating_sub(earlier.as_micros()) > ABANDONED_MICROS
}

fn nanoseconds(metadata: &Metadata) -> i64 {
    let Ok(modified) = metadata.modified() else { return 0 };
    match modified.duration_since(UNIX_EPOCH) {
        Ok(after) => i64::try_from(after.as_nanos()).unwrap_or(i64::MAX),
        Err(before) => i64::try_from(before.duration().as_nanos()).map_or(i64::MIN, |nanos| -nanos),
    }
}

#[cfg(unix)]
fn inode(metadata: &Metadata) -> Option<u64> {
    Some(std::os::unix::fs::MetadataExt::ino(metadata))
}

#[cfg(not(unix))]
fn inode(_: &Metadata) -> Option<u64> {
    None
}

/// Where the files of a session are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Places {
    /// The session's folder.
    pub(crate) folder: PathBuf,
    /// The folder that contains the session's capture, if captures are not in the folders of their sessions.
    pub(crate) capture: Option<PathBuf>,
}

impl Places {
    /// The path of a file, given its path within the session folder. A file of a capture elsewhere comes before one in
    /// the session's folder, which is from the time before captures were moved.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        let moved = self.capture.as_ref().filter(|_| Path::new(name).starts_with(CAPTURE));
        let moved = moved.map(|capture| capture.join(name)).filter(|path| path.symlink_metadata().is_ok());
        moved.unwrap_or_else(|| self.folder.join(name))
    }

    /// Whether there is a capture in the session's folder that is not read, because one elsewhere comes before it.
    fn has_capture_left_behind(&self) -> bool {
        let [_, capture] = EVENTS;
        let own = self.folder.join(capture);
        self.capture.is_some()
            && self.file(capture) != own
            && fs::metadata(own).is_ok_and(|own| own.len() > 0)
    }
}

/// A file and its stamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Source {
    /// Path within the session folder.
    pub(crate) name: &'static str,
    pub(crate) stamp: Stamp,
}

/// The event logs of a session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct EventLogs {
    /// The one that was read first, unless it is gone.
    pub(crate) first: Option<Source>,
    /// The other one, unless it is empty.
    pub(crate) second: Option<Source>,
}

impl EventLogs {
    /// Those that exist.
    pub(crate) fn all(self) -> impl Iterator<Item = Source> {
        self.first.into_iter().chain(self.second)
    }

    /// The first log, unless it is gone or empty, and the second one, if there are two. An emptied log has lost its
    /// events.
    pub(crate) fn pair(self) -> Option<(Option<Source>, Source)> {
        Some((self.first.filter(|first| first.stamp.size > 0), self.second?))
    }
}

/// The files of a session folder that a sync reads.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct SessionFiles {
    /// The metadata files, the session's own first.
    pub(crate) metadata: Vec<Source>,
    /// The file to read the transcript from.
    pub(crate) transcript: Option<Source>,
    /// Whether there is only a transcript that is being appended to, without a backup.
    pub(crate) transcript_withheld: bool,
    /// The backup of the transcript, if it is not the file to read.
    backup: Option<Source>,
    /// Files that are not read, and why.
    pub(crate) passed_over: Vec<(&'static str, &'static str)>,
    /// Files that are links to something that does not exist, or to themselves.
    pub(crate) dangling: Vec<&'static str>,
    events: Vec<Source>,
}

impl SessionFiles {
    /// Finds the files of a session; `None` if there is no session.
    pub(crate) fn find(places: &Places) -> io::Result<Option<Self>> {
        let listed = Listed::of(places);
        let own = listed.stat(TRANSCRIPT)?;
        let backup = listed.stat(TRANSCRIPT_BACKUP)?;
        let mut files =
            Self { metadata: metadata(&listed)?, events: present(&listed, &EVENTS)?, ..Self::default() };
        if places.has_capture_left_behind() {
            files
                .passed_over
                .push((EVENTS[1], "is not read, because there is another one outside of the session folder"));
        }
        // Even if it was not listed: its writer may have begun since.
        files.choose_transcript(own, backup, stat(places, APPEND_PENDING)?);
        let names = METADATA.into_iter().chain(EVENTS).chain([TRANSCRIPT]);
        let missing = names.filter(|name| !files.all().any(|file| file.name == *name));
        files.dangling = missing.filter(|name| listed.leads_nowhere(name)).collect();
        let is_session = own.is_some() || files.all().next().is_some() || !files.dangling.is_empty();
        Ok(is_session.then_some(files))
    }

    fn choose_transcript(&mut self, own: Option<Source>, backup: Option<Source>, marker: Option<Source>) {
        let is_left = |marker: &Source| {
            own.is_some_and(|own| is_long_before(marker.stamp.modified(), own.stamp.modified()))
        };
        if marker.as_ref().is_some_and(is_left) {
            self.passed_over
                .push((APPEND_PENDING, "is more than an hour older than the transcript: it is ignored"));
        } else if marker.is_some() {
            self.transcript = backup;
            self.transcript_withheld = own.is_some() && backup.is_none();
            return;
        }
        let empty = |own: &Source| own.stamp.size == 0;
        match backup.filter(|backup| backup.stamp.size > 0 && own.as_ref().is_none_or(empty)) {
            Some(backup) => {
                let reason = if own.is_some() { INSTEAD_OF_EMPTY } else { INSTEAD_OF_MISSING };
                self.passed_over.push((TRANSCRIPT, reason));
                self.transcript = Some(backup);
            }
            None => (self.transcript, self.backup) = (own, backup),
        }
    }

    /// Reads the backup instead of the transcript, if that has the stamp `damaged`.
    pub(crate) fn without_damaged(mut self, damaged: Option<Stamp>) -> Self {
        let is_damaged =
            self.transcript.is_some_and(|file| file.name == TRANSCRIPT && Some(file.stamp) == damaged);
        if is_damaged && let Some(backup) = self.backup.take() {
            self.passed_over.push((TRANSCRIPT, INSTEAD_OF_DAMAGED));
            self.transcript = Some(backup);
        }
        self
    }

    /// The backup of a transcript that is read.
    pub(crate) fn backup(&self) -> Option<Source> {
        self.backup
    }

    /// The event logs. `known` is the one that was read first: see `second_log`.
    pub(crate) fn event_logs(&self, known: Option<&'static str>) -> EventLogs {
        let mut logs = self.events.iter().copied();
        let first = match known {
            Some(known) => logs.clone().find(|log| log.name == known),
            None => logs.clone().find(|log| log.stamp.size > 0).or_else(|| logs.clone().next()),
        };
        let name = known.or(first.map(|first| first.name));
        let second = logs.find(|log| Some(log.name) != name && log.stamp.size > 0);
        EventLogs { first, second }
    }

    /// The event log that was written last.
    pub(crate) fn newest_events(&self) -> Option<Source> {
        self.events.iter().filter(|log| log.stamp.size > 0).max_by_key(|log| log.stamp.mtime).copied()
    }

    /// The modification time of the newest of them.
    pub(crate) fn modified(&self) -> Option<Timestamp> {
        self.all().map(|file| file.stamp.modified()).max()
    }

    /// All existing files.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Source> {
        self.metadata.iter().chain(&self.transcript).chain(&self.events)
    }
}

const INSTEAD_OF_MISSING: &str = "is missing: its backup is read";
const INSTEAD_OF_EMPTY: &str = "is empty: its backup is read";
pub(crate) const INSTEAD_OF_DAMAGED: &str =
    "is damaged: its backup is read, which has as many messages or more";

/// The entries of a session's folder. One list of them takes less time than looking for each of a dozen files, most of
/// which do not exist.
struct Listed<'a> {
    places: &'a Places,
    /// `None` if the folder can't be listed; its files may still be readable.
    names: Option<Vec<OsString>>,
}

impl<'a> Listed<'a> {
    fn of(places: &'a Places) -> Self {
        let names = match fs::read_dir(&places.folder) {
            Ok(entries) => {
                entries.map(|entry| entry.map(|entry| entry.file_name())).collect::<Result<_, _>>().ok()
            }
            Err(_) => None,
        };
        Self { places, names }
    }

    /// Whether a file, given its path within the session folder, may exist.
    fn may_have(&self, name: &str) -> bool {
        let first = name.split('/').next().unwrap_or(name);
        (first == CAPTURE && self.places.capture.is_some())
            || self.names.as_ref().is_none_or(|names| names.iter().any(|listed| listed == first))
    }

    /// The file, if it exists. A link that leads nowhere counts as missing.
    fn stat(&self, name: &'static str) -> io::Result<Option<Source>> {
        if self.may_have(name) { stat(self.places, name) } else { Ok(None) }
    }

    fn leads_nowhere(&self, name: &str) -> bool {
        self.may_have(name) && leads_nowhere(&self.places.file(name))
    }
}

/// The metadata files; for one that is missing, its backup.
fn metadata(listed: &Listed<'_>) -> io::Result<Vec<Source>> {
    let mut found = Vec::new();
    for (name, backup) in METADATA.into_iter().zip(METADATA_BACKUPS) {
        found.extend(match (listed.stat(name)?, backup) {
            (None, Some(backup)) => listed.stat(backup)?,
            (own, _) => own,
        });
    }
    Ok(found)
}

/// The name of a file without the ending of a backup.
pub(crate) fn without_backup(name: &str) -> &str {
    name.strip_suffix(BACKUP).unwrap_or(name)
}

/// The path of the backup of a file.
pub(crate) fn backup_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(BACKUP);
    name.into()
}

fn present(listed: &Listed<'_>, names: &[&'static str]) -> io::Result<Vec<Source>> {
    names.iter().filter_map(|name| listed.stat(name).transpose()).collect()
}

fn stat(places: &Places, name: &'static str) -> io::Result<Option<Source>> {
    let path = places.file(name);
    match fs::metadata(&path) {
        Ok(metadata) => Ok(Some(Source { name, stamp: Stamp::new(&metadata) })),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Ok(None)
        }
        Err(_) if leads_nowhere(&path) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether `path` is a link to something that does not exist, or to itself.
pub(crate) fn leads_nowhere(path: &Path) -> bool {
    path.is_symlink()
        && fs::metadata(path).is_err_and(|error| error.kind() != io::ErrorKind::PermissionDenied)
}

/// The absolute path as text.
pub(crate) fn absolute(path: &Path) -> String {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    absolute.to_string_lossy().into_owned()
}

/// Whether a path within a session folder may affect what a sync reads: a file, a marker, or the folder of such a file.
#[cfg(feature = "watch")]
pub(crate) fn is_relevant(name: &str) -> bool {
    METADATA.contains(&name)
        || EVENTS.contains(&name)
        || [TRANSCRIPT, TRANSCRIPT_BACKUP, APPEND_PENDING, CAPTURE].contains(&name)
}

/// Opens a file for reading, and returns its stamp at that time.
///
/// A pipe or a device may have replaced the file at any moment, so opening does not wait for the other end of a pipe,
/// and the kind of the opened file is checked before it is read.
pub(crate) fn open(path: &Path) -> io::Result<(File, Stamp)> {
    // Opening a device may have side effects.
    check_kind(&fs::metadata(path)?)?;
    open_unchecked(path)
}

/// Opens a path that may have been replaced by now.
fn open_unchecked(path: &Path) -> io::Result<(File, Stamp)> {
    let file = open_at_once(path)?;
    let metadata = file.metadata()?;
    check_kind(&metadata)?;
    Ok((file, Stamp::new(&metadata)))
}

fn check_kind(metadata: &Metadata) -> io::Result<()> {
    if metadata.is_file() {
        return Ok(());
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a file"))
}

#[cfg(unix)]
fn open_at_once(path: &Path) -> io::Result<File> {
    use rustix::fs::{Mode, OFlags};
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::empty())?.into())
}

#[cfg(not(unix))]
fn open_at_once(path: &Path) -> io::Result<File> {
    File::open(path)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn pipes_devices_and_folders_are_refused_without_waiting() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        for path in [pipe.as_path(), folder.path(), Path::new("/dev/null"), Path::new("/dev/tty")] {
            // As if the path had been replaced after it was checked.
            assert!(open_unchecked(path).is_err(), "{path:?}");
            assert!(open(path).is_err(), "{path:?}");
        }
        let file = folder.path().join("file");
        fs::write(&file, "text").unwrap();
        assert_eq!(open(&file).unwrap().1.size, 4);
    }
}
