//! Staging folders, in which files are written before they replace others, or to which files are copied to be read.

use std::{ffi::OsString, fs, io, path::Path};

use tempfile::TempDir;

use crate::file::folder_of;

/// The suffix of the staging folders in which a database is rewritten.
pub const REWRITING: &str = ".rewriting-";

/// A hidden folder beside `path` that only its owner may enter. It is removed when it is dropped.
pub fn staging_folder(path: &Path, suffix: &str) -> io::Result<TempDir> {
    private_folder(folder_of(path), path, suffix)
}

/// [`staging_folder`] in another folder than that of `path`.
pub(crate) fn private_folder(parent: &Path, path: &Path, suffix: &str) -> io::Result<TempDir> {
    let name = name(path, suffix);
    let mut builder = tempfile::Builder::new();
    builder.prefix(&name);
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
    builder.tempdir_in(parent)
}

/// Removes the staging folders that killed processes left. No other process may be using them.
pub fn remove_staging_folders(path: &Path, suffix: &str) {
    let name = name(path, suffix);
    for entry in fs::read_dir(folder_of(path)).into_iter().flatten().flatten() {
        if entry.file_name().as_encoded_bytes().starts_with(name.as_encoded_bytes()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// The start of the names of these folders.
fn name(path: &Path, suffix: &str) -> OsString {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(suffix);
    name
}
