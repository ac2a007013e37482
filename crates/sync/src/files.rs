//! The files of a session folder: which there are, what they look like, which are read.

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
/// Its last state that is to be trusted, while [`APPEND_PENDING`] is there.
pub(crate) const TRANSCRIPT_BACKUP: &str = "transcript.jsonl.backup";
/// Tells that somebody is about to append to the transcript.
const APPEND_PENDING: &str = "transcript.jsonl.append-pending";

/// How long a file must have been left alone before its time can be trusted: some file systems tell time in steps
/// of two seconds, so that a second change within a step looks like none.
const SETTLE_NANOS: i64 = 2_000_000_000;

/// What a file looks like from outside. If two stamps are the same, so is the content, once it has settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Stamp {
    pub(crate) size: u64,
    /// When it was changed, in nanoseconds since the epoch.
    mtime: i64,
    /// Which file it is, where the system has such a number.
    inode: Option<u64>,
}

impl Stamp {
    fn new(metadata: &Metadata) -> Self {
        Self { size: metadata.len(), mtime: nanoseconds(metadata), inode: inode(metadata) }
    }

    /// When it was changed.
    pub(crate) fn modified(&self) -> Timestamp {
        Timestamp::from_micros(self.mtime.div_euclid(1_000))
    }

    /// Whether a change after `read` would show, so that the stamp stands for what was read then.
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

/// A file and what it looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Source {
    /// Path within the session folder.
    pub(crate) name: &'static str,
    pub(crate) stamp: Stamp,
}

/// The files of a session folder that are ours.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SessionFiles {
    metadata: Vec<Source>,
    transcript: Option<Source>,
    /// Whether there is a transcript that is not to be trusted, and no other.
    transcript_withheld: bool,
    events: Vec<Source>,
}

impl SessionFiles {
    /// Looks at the folder; none when it holds nothing of a session.
    pub(crate) fn look(folder: &Path) -> io::Result<Option<Self>> {
        let pending = look(folder, APPEND_PENDING)?.is_some();
        let own = look(folder, TRANSCRIPT)?;
        let transcript = if pending { look(folder, TRANSCRIPT_BACKUP)? } else { own };
        let files = Self {
            metadata: present(folder, &METADATA)?,
            transcript,
            transcript_withheld: own.is_some() && transcript.is_none(),
            events: present(folder, &EVENTS)?,
        };
        let is_session = own.is_some() || files.all().next().is_some();
        Ok(is_session.then_some(files))
    }

    /// The metadata files, the session's own first.
    pub(crate) fn metadata(&self) -> &[Source] {
        &self.metadata
    }

    /// The file to read the transcript from.
    pub(crate) fn transcript(&self) -> Option<Source> {
        self.transcript
    }

    /// Whether there is a transcript that is not to be trusted, and no other.
    pub(crate) fn transcript_withheld(&self) -> bool {
        self.transcript_withheld
    }

    /// The file to read the events from. `known` is the one that they were read from before: two logs hold the same
    /// events in different words, and going from one to the other would replace them all.
    pub(crate) fn events(&self, known: Option<&str>) -> Option<Source> {
        let mut logs = self.events.iter().copied();
        match known {
            Some(known) => logs.find(|log| log.name == known),
            None => logs.clone().find(|log| log.stamp.size > 0).or_else(|| logs.next()),
        }
    }

    /// All files that are there.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Source> {
        self.metadata.iter().chain(&self.transcript).chain(&self.events)
    }
}

fn present(folder: &Path, names: &[&'static str]) -> io::Result<Vec<Source>> {
    names.iter().filter_map(|name| look(folder, name).transpose()).collect()
}

fn look(folder: &Path, name: &'static str) -> io::Result<Option<Source>> {
    match fs::metadata(folder.join(name)) {
        Ok(metadata) => Ok(Some(Source { name, stamp: Stamp::new(&metadata) })),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Opens a file for reading, with what it looks like now.
///
/// A pipe or a device may have taken the place of a file at any moment: opening one does not wait for its other end, and
/// what is open is looked at before it is read.
pub(crate) fn open(path: &Path) -> io::Result<(File, Stamp)> {
    // Opening a device may do something to it.
    check_kind(&fs::metadata(path)?)?;
    open_unseen(path)
}

/// Opens what may be anything by now.
fn open_unseen(path: &Path) -> io::Result<(File, Stamp)> {
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
    fn what_is_no_file_is_refused_without_waiting() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        for path in [pipe.as_path(), folder.path(), Path::new("/dev/null"), Path::new("/dev/tty")] {
            // As if it had taken the place of a file that was just looked at.
            assert!(open_unseen(path).is_err(), "{path:?}");
            assert!(open(path).is_err(), "{path:?}");
        }
        let file = folder.path().join("file");
        fs::write(&file, "text").unwrap();
        assert_eq!(open(&file).unwrap().1.size, 4);
    }
}
