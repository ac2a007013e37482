//! Database files: made for their owner alone.

use std::{
    fs::{DirBuilder, OpenOptions},
    io,
    path::Path,
};

use amplifier_session_core::{Error, ErrorKind, Result};

/// Makes an empty file that only its owner may read, and the folders above it, unless they exist.
///
/// # Errors
///
/// `StorageConnection` when that is not possible.
pub fn create(path: &Path) -> Result<()> {
    let failed = |source: io::Error| {
        Error::new(ErrorKind::StorageConnection, format!("can't create the database: {source}"))
            .with("file", path.display())
            .with_source(source)
    };
    create_folder_of(path).map_err(failed)?;
    match private().create_new(true).open(path) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(failed(error)),
    }
}

/// Makes the folders above a file, for their owner alone, unless they exist.
///
/// # Errors
///
/// Those of the system.
pub fn create_folder_of(path: &Path) -> io::Result<()> {
    let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.exists())
    else {
        return Ok(());
    };
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// A file that is not ours, or that this program does not know.
#[must_use]
pub fn refused(path: &Path, why: &str) -> Error {
    Error::new(ErrorKind::StorageConnection, format!("{} {why}; nothing was changed", path.display()))
}
