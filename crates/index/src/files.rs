//! Files of the index: made for their owner alone, written whole or not at all.

use std::{
    ffi::OsString,
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
    time::UNIX_EPOCH,
};

use serde::{Deserialize, Serialize};

/// Makes a folder that only its owner may enter, unless it exists.
pub(crate) fn create_folder(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt;
        builder.mode(0o700);
    }
    builder.create(path)
}

/// Options to create a file that only its owner may read.
pub(crate) fn private_file() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).create(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    options
}

/// Puts a file in place by writing it beside, syncing and renaming: a reader sees the old one or the new one.
pub(crate) fn replace_file(path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    let temporary = temporary_path(path);
    let mut file = private_file().truncate(true).open(&temporary)?;
    write(&mut file)?;
    file.flush()?;
    file.sync_data()?;
    drop(file);
    fs::rename(&temporary, path)?;
    path.parent().map_or(Ok(()), sync_folder)
}

/// Makes the entries of a folder durable.
pub(crate) fn sync_folder(path: &Path) -> io::Result<()> {
    // Elsewhere a folder can't be opened as a file, and entries need no sync of their own.
    if cfg!(unix) { File::open(path)?.sync_data() } else { Ok(()) }
}

fn temporary_path(path: &Path) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(".new");
    PathBuf::from(name)
}

/// Removes every file of a folder whose name `keep` does not know. What can't be removed stays for the next time.
pub(crate) fn sweep(folder: &Path, keep: impl Fn(&str) -> bool) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        if !entry.file_name().to_str().is_some_and(&keep)
            && let Err(error) = fs::remove_file(entry.path())
        {
            tracing::debug!(path = %entry.path().display(), %error, "a file of the index that is not used stays");
        }
    }
}

/// Bytes of all files of a folder.
pub(crate) fn folder_bytes(folder: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    entries.flatten().filter_map(|entry| entry.metadata().ok()).map(|metadata| metadata.len()).sum()
}

/// How a finished file looks from outside. A file that still looks so has not been written since.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Stamp {
    /// Its length in bytes.
    pub(crate) length: u64,
    /// When it was last written, and when its entry was last changed: nanoseconds since the epoch.
    ///
    /// A writer can set the first back, but not the second.
    changed: (i128, i128),
}

impl Stamp {
    /// The stamp of a file on disk.
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        let metadata = fs::metadata(path)?;
        let written = metadata.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as i128;
        #[cfg(unix)]
        let entry = {
            use std::os::unix::fs::MetadataExt;
            i128::from(metadata.ctime()) * 1_000_000_000 + i128::from(metadata.ctime_nsec())
        };
        #[cfg(not(unix))]
        let entry = 0;
        Ok(Self { length: metadata.len(), changed: (written, entry) })
    }
}
