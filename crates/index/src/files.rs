//! Files of the index: private to their owner, and written completely or not at all.

use std::{
    ffi::OsString,
    fs::{self, DirBuilder, DirEntry, File, OpenOptions},
    io::{self, Write},
    path::Path,
    time::UNIX_EPOCH,
};

use amplifier_session_core::Error;
use serde::{Deserialize, Serialize};

use crate::error::io_error;

/// Creates a folder that only its owner can enter, unless it exists.
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

/// Options to create a file that only its owner can read.
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

/// Replaces a file atomically: writes a temporary file, syncs and renames it.
pub(crate) fn replace_file(path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    let mut temporary = OsString::from(path);
    temporary.push(".new");
    let mut file = private_file().truncate(true).open(&temporary)?;
    write(&mut file)?;
    file.flush()?;
    file.sync_data()?;
    drop(file);
    fs::rename(&temporary, path)?;
    path.parent().map_or(Ok(()), sync_folder)
}

/// Syncs the entries of a folder to disk.
pub(crate) fn sync_folder(path: &Path) -> io::Result<()> {
    // On other systems a folder can't be opened as a file, and its entries need no separate sync.
    if cfg!(unix) { File::open(path)?.sync_data() } else { Ok(()) }
}

/// Removes all files of a folder for whose names `keep` returns false. If a file can't be removed, still removes the
/// others, and fails with the last error.
pub(crate) fn sweep(folder: &Path, keep: impl Fn(&str) -> bool) -> Result<(), Error> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(|error| io_error(error, folder))?,
    };
    let mut swept = Ok(());
    let is_file = |entry: &DirEntry| entry.file_type().is_ok_and(|kind| !kind.is_dir());
    let unused = |entry: &DirEntry| is_file(entry) && !entry.file_name().to_str().is_some_and(&keep);
    for entry in entries.flatten().filter(unused) {
        if let Err(error) = fs::remove_file(entry.path())
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::debug!(path = %entry.path().display(), %error, "an unused file of the index could not be removed");
            swept = Err(io_error(error, &entry.path()));
        }
    }
    swept
}

/// The length and the times of a finished file. If they are unchanged, the file has not been written since.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileStamp {
    /// The length in bytes.
    pub(crate) length: u64,
    /// When the file and its entry were last changed, in nanoseconds since the epoch.
    ///
    /// A program can reset the first time, but not the second.
    changed: (i128, i128),
}

impl FileStamp {
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
