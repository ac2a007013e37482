//! Staging folders, in which files are written before they replace others, or to which files are copied to be read.

use std::{
    ffi::OsString,
    fs::{self, File},
    io,
    path::Path,
};

use tempfile::TempDir;

use crate::file::folder_of;

/// The suffix of the staging folders in which a database is rewritten.
pub const REWRITING: &str = ".rewriting-";
/// That of the folders in which a database is created.
pub const MAKING: &str = ".making-";
/// That of the folders to which a database is copied.
pub const COPYING: &str = ".copying-";

/// A hidden folder that only its owner may enter. It is removed when it is dropped.
#[derive(Debug)]
pub struct StagingFolder {
    folder: TempDir,
    /// Locks the folder, so that other processes don't mistake it for the leftover of a killed process.
    _lock: Option<File>,
}

impl StagingFolder {
    /// A folder beside `path`.
    pub fn beside(path: &Path, suffix: &str) -> io::Result<Self> {
        Self::within(folder_of(path), path, suffix)
    }

    /// [`StagingFolder::beside`] in another folder than that of `path`.
    pub fn within(parent: &Path, path: &Path, suffix: &str) -> io::Result<Self> {
        let name = name(path, suffix);
        let mut builder = tempfile::Builder::new();
        builder.prefix(&name);
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
        let mut attempts = 3;
        loop {
            let folder = builder.tempdir_in(parent)?;
            let lock = lock(folder.path());
            attempts -= 1;
            // Another process may have removed it before it was locked.
            if folder.path().exists() || attempts == 0 {
                return Ok(Self { folder, _lock: lock });
            }
        }
    }

    /// The folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// As if the process had been killed.
    #[cfg(test)]
    pub(crate) fn keep(self) -> std::path::PathBuf {
        self.folder.keep()
    }
}

/// Removes the staging folders beside `path` that killed processes left. If folders can't be locked on this system, they
/// are kept.
pub fn remove_left(path: &Path) {
    remove_left_in(folder_of(path), path);
}

/// [`remove_left`] in another folder than that of `path`.
pub fn remove_left_in(parent: &Path, path: &Path) {
    let names = [REWRITING, MAKING, COPYING].map(|suffix| name(path, suffix));
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let found = entry.file_name();
        let is_staging =
            names.iter().any(|name| found.as_encoded_bytes().starts_with(name.as_encoded_bytes()))
                && entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_staging && let Some(_lock) = lock(&entry.path()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Locks a folder; `None` if another process has locked it, or if that is not possible.
fn lock(folder: &Path) -> Option<File> {
    let file = File::open(folder).ok()?;
    file.try_lock().ok()?;
    Some(file)
}

/// The start of the names of these folders.
fn name(path: &Path, suffix: &str) -> OsString {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(suffix);
    name
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn only_folders_of_killed_processes_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("sessions.duckdb");
        fs::write(folder.path().join(".sessions.duckdb.making-file"), "").unwrap();
        fs::create_dir(folder.path().join(".other.duckdb.making-1")).unwrap();
        let used = StagingFolder::beside(&store, MAKING).unwrap();
        let left: Vec<_> = [MAKING, REWRITING, COPYING]
            .iter()
            .map(|suffix| StagingFolder::beside(&store, suffix).unwrap().keep())
            .collect();
        remove_left(&store);
        assert!(used.path().exists() && left.iter().all(|folder| !folder.exists()));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3);
    }
}
