//! Permissions of the files beside a database.

use std::path::Path;

/// Gives the files that SQLite keeps beside a database the permissions of the database, if they are not writable.
///
/// SQLite gives a new file the mode of the database, and uses existing files. So if a process that reads a read-only
/// database is killed, it leaves files that remain read-only even after the database becomes writable again. They may
/// be in use, so they are not removed. If changing the permissions fails, opening the database reports it.
#[cfg(unix)]
pub(crate) fn restore(path: &Path) {
    use std::{fs, os::unix::fs::PermissionsExt as _};

    use amplifier_session_sql::file::beside;

    const WRITE: u32 = 0o222;
    // If the path is a link, they are beside its target.
    let Ok(path) = path.canonicalize() else { return };
    let mode = |path: &Path| {
        let file = fs::symlink_metadata(path).ok().filter(fs::Metadata::is_file)?;
        Some(file.permissions().mode() & 0o777)
    };
    let Some(wanted) = mode(&path) else { return };
    for suffix in ["-wal", "-shm"] {
        let file = beside(&path, suffix);
        if mode(&file).is_none_or(|mode| wanted & WRITE & !mode == 0) {
            continue;
        }
        if let Err(error) = fs::set_permissions(&file, fs::Permissions::from_mode(wanted)) {
            tracing::warn!(file = %file.display(), %error, "a file beside the database can't be made writable");
        }
    }
}

/// On other systems, the files have no modes.
#[cfg(not(unix))]
pub(crate) fn restore(_: &Path) {}
