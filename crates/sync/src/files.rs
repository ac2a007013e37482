//! The files of a session folder: which exist, their metadata, and which ones to read.

use std::{
    fs::{self, File, Metadata},
    io,
    path::Path,
    time::UNIX_EPOCH,
};

use amplifier_session_core::model::Timestamp;
use serde::{Deserialize, Serialize};

/// The metadata files, the session's own first.
pub(crate) const METADATA: [&str; 2] = ["metadata.json", "context-intelligence/metadata.json"];
/// The event logs, the session's own first.
pub(crate) const EVENTS: [&str; 2] = ["events.jsonl", "context-intelligence/events.jsonl"];
/// The transcript.
pub(crate) const TRANSCRIPT: &str = "transcript.jsonl";
/// The last complete state of the transcript, while [`APPEND_PENDING`] exists.
pub(crate) const TRANSCRIPT_BACKUP: &str = "transcript.jsonl.backup";
/// Exists while the transcript is being appended to.
pub(crate) const APPEND_PENDING: &str = "transcript.jsonl.append-pending";

/// How long a file must be unchanged before its modification time can be trusted. Some file systems have a resolution
/// of two seconds, so a second change within that time is not visible.
const SETTLE_NANOS: i64 = 2_000_000_000;

/// The metadata of a file. If two stamps are equal, so is the content, once the stamp has settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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

    /// Whether a change after `read` would change the stamp, so that the stamp identifies the content at that time.
    pub(crate) fn is_settled(&self, read: Timestamp) -> bool {
        self.mtime < read.as_micros().saturating_mul(1_000).saturating_sub(SETTLE_NANOS)
    }
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

/// A file and its stamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Source {
    /// Path within the session folder.
    pub(crate) name: &'static str,
    pub(crate) stamp: Stamp,
}

/// The files of a session folder that a sync reads.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SessionFiles {
    /// The metadata files, the session's own first.
    pub(crate) metadata: Vec<Source>,
    /// The file to read the transcript from.
    pub(crate) transcript: Option<Source>,
    /// Whether there is only a transcript that is being appended to, without a backup.
    pub(crate) transcript_withheld: bool,
    events: Vec<Source>,
}

impl SessionFiles {
    /// Finds the files in a folder; `None` if it contains no session.
    pub(crate) fn find(folder: &Path) -> io::Result<Option<Self>> {
        let pending = stat(folder, APPEND_PENDING)?.is_some();
        let own = stat(folder, TRANSCRIPT)?;
        let transcript = if pending { stat(folder, TRANSCRIPT_BACKUP)? } else { own };
        let files = Self {
            metadata: present(folder, &METADATA)?,
            transcript,
            transcript_withheld: own.is_some() && transcript.is_none(),
            events: present(folder, &EVENTS)?,
        };
        let is_session = own.is_some() || files.all().next().is_some();
        Ok(is_session.then_some(files))
    }

    /// The file to read the events from. `known` is the one that was read before: two logs contain the same events with
    /// different text, and changing from one to the other would replace all of them.
    pub(crate) fn events(&self, known: Option<&str>) -> Option<Source> {
        let mut logs = self.events.iter().copied();
        match known {
            Some(known) => logs.find(|log| log.name == known),
            None => logs.clone().find(|log| log.stamp.size > 0).or_else(|| logs.next()),
        }
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

fn present(folder: &Path, names: &[&'static str]) -> io::Result<Vec<Source>> {
    names.iter().filter_map(|name| stat(folder, name).transpose()).collect()
}

fn stat(folder: &Path, name: &'static str) -> io::Result<Option<Source>> {
    match fs::metadata(folder.join(name)) {
        Ok(metadata) => Ok(Some(Source { name, stamp: Stamp::new(&metadata) })),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
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
        || [TRANSCRIPT, TRANSCRIPT_BACKUP, APPEND_PENDING, "context-intelligence"].contains(&name)
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
