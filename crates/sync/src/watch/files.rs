//! Whether a path still leads to the same file or folder.

use std::{fs, path::Path};

/// What identifies a file or folder as long as it exists. `None` if there is nothing.
pub(super) type Identity = (u64, u64);

/// The identity of what `path` leads to.
#[cfg(unix)]
pub(super) fn identity(path: &Path) -> Option<Identity> {
    use std::os::unix::fs::MetadataExt as _;
    let metadata = fs::metadata(path).ok()?;
    Some((metadata.dev(), metadata.ino()))
}

/// The identity of what `path` leads to: here, only whether it exists.
#[cfg(not(unix))]
pub(super) fn identity(path: &Path) -> Option<Identity> {
    fs::metadata(path).ok().map(|_| (0, 0))
}
