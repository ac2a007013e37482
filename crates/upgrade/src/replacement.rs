//! Replaces the old file by the new store.
//!
//! The store is built as `<old>.upgrading`. Two renames put it in place: `<old>` becomes `<old>.python-backup`, and
//! `<old>.upgrading` becomes `<old>`. A process that is killed before the first rename leaves the old file. One that is
//! killed between the two leaves a backup and no old file; [`FileReplacement::recover`] undoes this, so that the
//! upgrade starts over.

use std::{
    ffi::{OsStr, OsString},
    fs::{self, File, OpenOptions, TryLockError},
    io,
    path::{Path, PathBuf},
};

use amplifier_session_core::{Error, ErrorKind, Result};
use amplifier_session_sql::{
    file::{beside, folder_of},
    staging,
};

const STAGED: &str = ".upgrading";
const LOCK: &str = ".upgrading.lock";
const BACKUP: &str = ".python-backup";

/// The files that SQLite and DuckDB keep beside a file. They would mistake those of another file for their own.
const LOGS: [&str; 6] = ["-wal", "-journal", "-shm", ".wal", ".wal.checkpoint", ".wal.recovery"];

/// Replaces an old file by a store. Only one process at a time can do this.
#[derive(Debug)]
pub(crate) struct FileReplacement {
    old: PathBuf,
    _lock: File,
}

impl FileReplacement {
    pub(crate) fn begin(old: &Path) -> Result<Self> {
        let path = beside(old, LOCK);
        let lock = OpenOptions::new().create(true).truncate(false).write(true).open(&path);
        let lock = lock.map_err(|error| failed("create", &path, error))?;
        match lock.try_lock() {
            // The process that had it may have finished and removed the file.
            Ok(()) if is_at(&lock, &path) => Ok(Self { old: old.to_owned(), _lock: lock }),
            Ok(()) | Err(TryLockError::WouldBlock) => {
                let message = format!("another process is upgrading {}", old.display());
                Err(Error::new(ErrorKind::StorageConnection, message).retryable())
            }
            Err(TryLockError::Error(error)) => Err(failed("lock", &path, error)),
        }
    }

    /// The file in which the store is built.
    pub(crate) fn staged(&self) -> PathBuf {
        beside(&self.old, STAGED)
    }

    /// Undoes the renames of a process that was killed between them.
    pub(crate) fn recover(&self) -> Result<()> {
        match last_backup(&self.old) {
            Some(backup) if is_interrupted(&self.old) => move_with_logs(&backup, &self.old),
            _ => Ok(()),
        }
    }

    /// Removes files that an interrupted upgrade left, except backups.
    pub(crate) fn clear(&self) -> Result<()> {
        staging::remove_left(&self.old);
        // DuckDB also creates hidden folders.
        for start in ["", "."] {
            self.parts(start)?.into_iter().try_for_each(|(path, _)| remove(&path))?;
        }
        Ok(())
    }

    /// Puts the staged store in place. Returns the new name of the old file.
    pub(crate) fn put(&self) -> Result<PathBuf> {
        let backup = next_backup(&self.old);
        let rename = || fs::rename(&self.old, &backup).map_err(|error| failed("rename", &self.old, error));
        let renamed = sync(&self.staged()).and_then(|()| check_unused(&self.old)).and_then(|()| rename());
        match renamed.and_then(|()| self.finish(&backup)) {
            Ok(()) => Ok(backup),
            // The backup is the old file. Because the staged store exists, the next upgrade copies the backup.
            Err(error) if backup.exists() && self.old.exists() => Err(error),
            Err(error) => {
                if !self.old.exists() {
                    move_with_logs(&backup, &self.old)?;
                }
                let _ = self.clear();
                Err(error)
            }
        }
    }

    fn finish(&self, backup: &Path) -> Result<()> {
        let occupied = || {
            let message = format!("another program created {}", self.old.display());
            Error::new(ErrorKind::Conflict, message).with_operation("upgrade").retryable()
        };
        move_logs(&self.old, backup)?;
        if self.old.exists() {
            return Err(occupied());
        }
        let staged = self.staged();
        for (path, suffix) in self.parts("")?.into_iter().filter(|(path, _)| *path != staged) {
            let to = beside(&self.old, &suffix);
            remove(&to)?;
            fs::rename(&path, &to).map_err(|error| failed("rename", &path, error))?;
        }
        // Unlike a rename, a link does not replace a file that another program has created there meanwhile.
        match fs::hard_link(&staged, &self.old) {
            Ok(()) => remove(&staged)?,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(occupied()),
            Err(_) => fs::rename(&staged, &self.old).map_err(|error| failed("rename", &staged, error))?,
        }
        sync_folder(&self.old);
        Ok(())
    }

    /// The files and folders of the staged store, with the rest of their names. `start` precedes the name.
    fn parts(&self, start: &str) -> Result<Vec<(PathBuf, String)>> {
        let folder = folder_of(&self.old);
        let mut name = OsString::from(start);
        name.push(beside(Path::new(self.old.file_name().unwrap_or_default()), STAGED));
        let entries = fs::read_dir(folder).map_err(|error| failed("list", folder, error))?;
        let parts = entries.flatten().filter_map(|entry| {
            let suffix = after(&entry.file_name(), &name)?;
            (format!("{STAGED}{suffix}") != LOCK).then(|| (entry.path(), suffix))
        });
        Ok(parts.collect())
    }
}

impl Drop for FileReplacement {
    fn drop(&mut self) {
        // Removed while it is locked. If that fails, it does no harm.
        let _ = fs::remove_file(beside(&self.old, LOCK));
    }
}

/// Whether an upgrade of this file was killed after it had renamed the file to the backup, and before the store had
/// taken its place. [`upgrade`](crate::upgrade) then starts over.
#[must_use]
pub fn is_interrupted(old: &Path) -> bool {
    !old.exists() && beside(old, STAGED).exists() && last_backup(old).is_some()
}

/// The path for comparing a file, even one that does not exist.
pub(crate) fn resolved(path: &Path) -> PathBuf {
    if let Ok(path) = path.canonicalize() {
        return path;
    }
    let folder = folder_of(path).canonicalize();
    let found = folder.ok().zip(path.file_name()).map(|(folder, name)| folder.join(name));
    found.unwrap_or_else(|| path.to_owned())
}

/// The newest backup of a file.
pub(crate) fn last_backup(old: &Path) -> Option<PathBuf> {
    last_number(old).map(|number| backup_path(old, number))
}

/// The path of the next backup.
pub(crate) fn next_backup(old: &Path) -> PathBuf {
    backup_path(old, last_number(old).map_or(1, |last| last.saturating_add(1)))
}

fn backup_path(old: &Path, number: u32) -> PathBuf {
    match number {
        1 => beside(old, BACKUP),
        _ => beside(old, &format!("{BACKUP}-{number}")),
    }
}

fn last_number(old: &Path) -> Option<u32> {
    let name = beside(Path::new(old.file_name()?), BACKUP).into_os_string();
    let number = |found: OsString| {
        let suffix = after(&found, &name)?;
        if suffix.is_empty() { Some(1) } else { suffix.strip_prefix('-')?.parse().ok() }
    };
    fs::read_dir(folder_of(old)).ok()?.flatten().filter_map(|entry| number(entry.file_name())).max()
}

/// The rest of a name after `start`.
fn after(name: &OsStr, start: &OsStr) -> Option<String> {
    Some(name.to_str()?.strip_prefix(start.to_str()?)?.to_owned())
}

/// Renames a file and its logs, the file last.
fn move_with_logs(from: &Path, to: &Path) -> Result<()> {
    move_logs(from, to)?;
    fs::rename(from, to).map_err(|error| failed("rename", from, error))
}

fn move_logs(from: &Path, to: &Path) -> Result<()> {
    for log in LOGS.map(|suffix| (beside(from, suffix), beside(to, suffix))) {
        match fs::rename(&log.0, &log.1) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(failed("rename", &log.0, error));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Fails if another process has a lock on a file: SQLite and DuckDB hold one while they read or write, and with a
/// write-ahead log, as long as they have the file open.
///
/// This process must not have it open, because its locks would be released.
fn check_unused(file: &Path) -> Result<()> {
    #[cfg(unix)]
    {
        use rustix::process::{Flock, FlockType, fcntl_getlk};

        let opened = File::open(file).map_err(|error| failed("open", file, error))?;
        // If locks are not supported, no process has any.
        if let Ok(Some(lock)) = fcntl_getlk(&opened, &Flock::from(FlockType::WriteLock)) {
            let pid = lock.pid.map_or_else(String::new, |pid| format!(" (PID {})", pid.as_raw_nonzero()));
            let message = format!("another program{pid} has {} open; close it first", file.display());
            return Err(Error::new(ErrorKind::StorageConnection, message).retryable());
        }
    }
    #[cfg(not(unix))]
    let _ = file;
    Ok(())
}

/// Whether this is the file at `path`.
fn is_at(file: &File, path: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        let id = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
        file.metadata().map(id).ok() == fs::metadata(path).map(id).ok()
    }
    #[cfg(not(unix))]
    {
        let _ = file;
        path.exists()
    }
}

/// Removes a file or folder, if it exists.
fn remove(path: &Path) -> Result<()> {
    let removed = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed("remove", path, error)),
        _ => Ok(()),
    }
}

/// Waits until a file is on disk.
fn sync(path: &Path) -> Result<()> {
    let file = File::options().read(true).write(true).open(path);
    file.and_then(|file| file.sync_all()).map_err(|error| failed("write", path, error))
}

/// Waits until the names in the folder of a file are on disk, if the system supports that.
fn sync_folder(path: &Path) {
    let _ = File::open(folder_of(path)).and_then(|folder| folder.sync_all());
}

fn failed(what: &str, path: &Path, source: io::Error) -> Error {
    let message = match source.kind() {
        io::ErrorKind::StorageFull => "the disk is full".to_owned(),
        io::ErrorKind::FileTooLarge => {
            "a file has reached the size limit of the process (`ulimit -f`)".to_owned()
        }
        _ => format!("can't {what} {}: {source}", path.display()),
    };
    Error::new(ErrorKind::StorageIo, message).with_operation("upgrade").with_source(source)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(path: &Path, content: &str) {
        fs::write(path, content).unwrap();
    }

    fn content(folder: &Path) -> Vec<(String, String)> {
        let name = |entry: &fs::DirEntry| entry.file_name().into_string().unwrap();
        let entries = fs::read_dir(folder).unwrap().map(Result::unwrap);
        let mut found: Vec<_> =
            entries.map(|entry| (name(&entry), fs::read_to_string(entry.path()).unwrap())).collect();
        found.sort();
        found
    }

    fn texts(content: &[(String, String)]) -> Vec<(&str, &str)> {
        content.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect()
    }

    /// A folder with an old file, its log, and a staged store.
    fn staged() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let old = folder.path().canonicalize().unwrap().join("old");
        write(&old, "old");
        write(&beside(&old, "-wal"), "log");
        write(&beside(&old, STAGED), "new");
        write(&beside(&old, ".upgrading.index"), "index");
        (folder, old)
    }

    #[test]
    fn the_store_takes_the_place_of_the_old_file_and_its_log() {
        let (folder, old) = staged();
        write(&beside(&old, ".python-backup-2"), "somebody's");
        let backup = FileReplacement::begin(&old).unwrap().put().unwrap();
        assert_eq!(backup, beside(&old, ".python-backup-3"));
        let expected = [
            ("old", "new"),
            ("old.index", "index"),
            ("old.python-backup-2", "somebody's"),
            ("old.python-backup-3", "old"),
            ("old.python-backup-3-wal", "log"),
        ];
        assert_eq!(texts(&content(folder.path())), expected);
    }

    #[test]
    fn renames_of_a_killed_process_are_taken_back() {
        for log_was_moved in [false, true] {
            let (folder, old) = staged();
            assert!(!is_interrupted(&old));
            fs::rename(&old, beside(&old, BACKUP)).unwrap();
            if log_was_moved {
                move_logs(&old, &beside(&old, BACKUP)).unwrap();
            }
            assert!(is_interrupted(&old));
            let replacement = FileReplacement::begin(&old).unwrap();
            replacement.recover().unwrap();
            replacement.clear().unwrap();
            drop(replacement);
            assert_eq!(texts(&content(folder.path())), [("old", "old"), ("old-wal", "log")]);
        }
    }

    #[test]
    fn a_file_that_another_program_makes_meanwhile_is_not_replaced() {
        let (folder, old) = staged();
        let (replacement, backup) = (FileReplacement::begin(&old).unwrap(), beside(&old, BACKUP));
        fs::rename(&old, &backup).unwrap();
        write(&old, "other");
        assert_eq!(replacement.finish(&backup).unwrap_err().kind(), ErrorKind::Conflict);
        drop(replacement);
        let found = content(folder.path());
        for kept in [("old", "other"), ("old.python-backup", "old"), ("old.upgrading", "new")] {
            assert!(texts(&found).contains(&kept), "{found:?}");
        }
    }

    #[test]
    fn one_process_at_a_time() {
        let (_folder, old) = staged();
        let replacement = FileReplacement::begin(&old).unwrap();
        assert!(
            FileReplacement::begin(&old).unwrap_err().to_string().contains("another process is upgrading")
        );
        drop(replacement);
        FileReplacement::begin(&old).unwrap();
    }
}
