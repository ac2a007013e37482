//! Private copies of files that can't be read without writing to them.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use amplifier_session_core::{Error, ErrorKind, Result};
use tempfile::TempDir;

use crate::{
    file::{beside, make_private},
    staging::{private_folder, remove_staging_folders, staging_folder},
};

/// The end of the folders' names, before a random part.
const COPYING: &str = ".copying-";

/// A copy of a file with its logs that only its owner can read. Dropping it removes it.
#[derive(Debug)]
pub struct FileCopy {
    folder: TempDir,
}

impl FileCopy {
    /// Copies `file` and the existing ones of its `logs`: to a folder beside it, or to the system's folder for
    /// temporary files if that is not allowed.
    ///
    /// # Errors
    ///
    /// `StorageIo` if there is no room, or the file can't be read.
    pub fn of(file: &Path, logs: &[&str]) -> Result<Self> {
        let copied = || {
            let folder = staging_folder(file, COPYING)
                .or_else(|_| private_folder(&std::env::temp_dir(), file, COPYING))?;
            let copy = Self { folder };
            for suffix in std::iter::once(&"").chain(logs) {
                let from = beside(file, suffix);
                if from.exists() {
                    let to = beside(&copy.path(), suffix);
                    fs::copy(from, &to)?;
                    // Even if the file itself can't be written.
                    make_private(&to)?;
                }
            }
            Ok(copy)
        };
        copied().map_err(|source: io::Error| {
            Error::new(ErrorKind::StorageIo, format!("can't copy the database: {source}"))
                .with("file", file.display())
                .with_source(source)
        })
    }

    /// The copy of the file.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.folder.path().join("copy")
    }

    /// Removes the copies of `file` that killed processes left.
    pub fn remove_left(file: &Path) {
        remove_staging_folders(file, COPYING);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_its_owners_and_goes() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("old");
        fs::write(&file, "rows").unwrap();
        fs::write(beside(&file, "-wal"), "more").unwrap();
        #[cfg(unix)]
        fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o400)).unwrap();
        let copy = FileCopy::of(&file, &["-wal", "-journal"]).unwrap();
        assert_eq!(fs::read_to_string(beside(&copy.path(), "-wal")).unwrap(), "more");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            assert_eq!(fs::metadata(copy.folder.path()).unwrap().permissions().mode() & 0o777, 0o700);
            assert_eq!(fs::metadata(copy.path()).unwrap().permissions().mode() & 0o777, 0o600);
        }
        drop(copy);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
        // As if the process had been killed.
        let left = FileCopy::of(&file, &[]).unwrap().folder.keep();
        assert!(left.exists());
        FileCopy::remove_left(&file);
        assert!(!left.exists() && file.exists());
    }
}
