//! Private copies of files that can't be read without writing to them.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use amplifier_session_core::{Error, ErrorKind, Result};

use crate::{
    file::{beside, make_private},
    staging::{COPYING, StagingFolder, remove_left_in},
};

/// A copy of a file with its logs that only its owner can read. Dropping it removes it.
#[derive(Debug)]
pub struct FileCopy {
    folder: StagingFolder,
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
            let folder = StagingFolder::beside(file, COPYING).or_else(|_| {
                let temporary = std::env::temp_dir();
                remove_left_in(&temporary, file);
                StagingFolder::within(&temporary, file, COPYING)
            })?;
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
    }
}
