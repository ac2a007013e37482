//! Whether a path still leads to the same file or folder.

use std::{fs, path::Path};

/// Identifies a file or folder as long as it exists. `None` if it does not exist.
pub(super) type Identity = (u64, u64);

/// The identity of the target of `path`.
#[cfg(unix)]
pub(super) fn identity(path: &Path) -> Option<Identity> {
    use std::os::unix::fs::MetadataExt as _;
    let metadata = fs::metadata(path).ok()?;
    Some((metadata.dev(), metadata.ino()))
}

/// The identity of the target of `path`. On this system, it only shows whether the target exists.
#[cfg(not(unix))]
pub(super) fn identity(path: &Path) -> Option<Identity> {
    fs::metadata(path).ok().map(|_| (0, 0))
}
