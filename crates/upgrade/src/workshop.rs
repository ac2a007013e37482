//! The folder in which a new store is built, beside the file whose place it takes.

use std::{
    fs::{self, DirBuilder, File, OpenOptions, TryLockError},
    io,
    path::{Path, PathBuf},
};

use amplifier_session_core::{Error, ErrorKind, Result};

/// What stands behind the file's name in that of the folder.
const SUFFIX: &str = ".upgrading";
const LOCK: &str = "lock";

/// The folder, which only its owner may enter. One process at a time has it; what another that was killed left in it is
/// there to be seen. It is removed when it is dropped, unless it is kept.
#[derive(Debug)]
pub(crate) struct Workshop {
    folder: PathBuf,
    kept: bool,
    _lock: File,
}

impl Workshop {
    /// The folder of a file, which is made.
    pub(crate) fn enter(file: &Path) -> Result<Self> {
        let folder = Self::folder_of(file);
        let mut builder = DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(&folder).map_err(|error| failed("make the folder", &folder, error))?;
        let path = folder.join(LOCK);
        let lock = OpenOptions::new().create(true).truncate(false).write(true).open(&path);
        let lock = lock.map_err(|error| failed("write to", &path, error))?;
        match lock.try_lock() {
            // Whoever had it may be done, and have removed the folder, and somebody else have made another.
            Ok(()) if is_at(&lock, &path) => Ok(Self { folder, kept: false, _lock: lock }),
            Ok(()) | Err(TryLockError::WouldBlock) => Err(busy(file)),
            Err(TryLockError::Error(error)) => Err(failed("lock", &path, error)),
        }
    }

    /// Removes the folder of a file, if nobody is in it.
    pub(crate) fn remove_left(file: &Path) {
        if Self::folder_of(file).exists() {
            drop(Self::enter(file));
        }
    }

    /// Where the folder of a file is.
    pub(crate) fn folder_of(file: &Path) -> PathBuf {
        beside(file, SUFFIX)
    }

    /// The path of something in the folder.
    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Removes what an upgrade that was broken off has left.
    pub(crate) fn clear(&self) -> Result<()> {
        let clear = || {
            for entry in fs::read_dir(&self.folder)? {
                let entry = entry?;
                if entry.file_type()?.is_dir() {
                    fs::remove_dir_all(entry.path())?;
                } else if entry.file_name() != LOCK {
                    fs::remove_file(entry.path())?;
                }
            }
            Ok(())
        };
        clear().map_err(|error| failed("empty the folder", &self.folder, error))
    }

    /// Has the folder stay when it is dropped, or not.
    pub(crate) fn keep(&mut self, kept: bool) {
        self.kept = kept;
    }
}

impl Drop for Workshop {
    fn drop(&mut self) {
        if !self.kept {
            // What can't be removed goes with the next upgrade.
            let _ = fs::remove_dir_all(&self.folder);
        }
    }
}

/// Whether it is this file that lies at `path`.
fn is_at(file: &File, path: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        let place = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
        file.metadata().map(place).ok() == fs::metadata(path).map(place).ok()
    }
    #[cfg(not(unix))]
    {
        let _ = file;
        path.exists()
    }
}

/// `path` with something behind its name.
pub(crate) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// An error of the system.
pub(crate) fn failed(what: &str, path: &Path, source: io::Error) -> Error {
    let message = match source.kind() {
        io::ErrorKind::StorageFull => "the disk is full".to_owned(),
        _ => format!("can't {what} {}: {source}", path.display()),
    };
    Error::new(ErrorKind::StorageIo, message).with_operation("upgrade").with_source(source)
}

fn busy(file: &Path) -> Error {
    let message = format!("another process is upgrading {}", file.display());
    Error::new(ErrorKind::StorageConnection, message).retryable()
}
