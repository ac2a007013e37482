//! Database files, which only their owner can read.

use std::{
    fs::{DirBuilder, OpenOptions},
    io,
    path::{Path, PathBuf},
};

use amplifier_session_core::{Error, ErrorKind, Result};

/// Creates an empty file that only its owner can read, and the folders above it, unless they exist.
///
/// # Errors
///
/// `StorageConnection` if that is not possible.
pub fn create(path: &Path) -> Result<()> {
    let failed = |source: io::Error| {
        Error::new(ErrorKind::StorageConnection, format!("can't create the database: {source}"))
            .with("file", path.display())
            .with_source(source)
    };
    create_folder(folder_of(path)).map_err(failed)?;
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(path) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(failed(error)),
    }
}

/// Creates a folder that only its owner may enter, and the folders above it, unless it exists.
pub fn create_folder(folder: &Path) -> io::Result<()> {
    if folder.exists() {
        return Ok(());
    }
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// The folder of a file, even if its path is only a name.
#[must_use]
pub fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// `path` with a suffix after its name.
#[must_use]
pub fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Makes a file readable by its owner only.
pub fn make_private(path: &Path) -> io::Result<()> {
    #[cfg(unix)]
    std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    #[cfg(not(unix))]
    let _ = path;
    Ok(())
}

/// The URI that opens a SQLite file as immutable: SQLite then takes no locks and creates no files. `None` if the path
/// is not valid Unicode.
#[must_use]
pub fn immutable_uri(path: &Path) -> Option<String> {
    let path = std::path::absolute(path).ok()?;
    let escape = |c| match c {
        '%' | '?' | '#' => format!("%{:02x}", u32::from(c)),
        _ => c.to_string(),
    };
    Some(format!("file:{}?immutable=1", path.to_str()?.chars().map(escape).collect::<String>()))
}

/// Whether a file exists and is not empty.
#[must_use]
pub fn holds_something(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|file| file.len() > 0)
}

/// The reason why the file `path` is read-only: either it cannot be written, or no files can be created in its folder,
/// where a database needs to create logs. `None` if both are possible, or if the file does not exist.
///
/// Checks the permissions of this process without opening the file, because closing it would release locks of this
/// process.
#[must_use]
pub fn read_only(path: &Path) -> Option<String> {
    // If the path is a link, logs are beside the file that it points to.
    let file = path.canonicalize().ok()?;
    let denied = |path: &Path| may_write(path).err();
    if let Some(error) = denied(&file) {
        return Some(format!("{} can't be written: {error}", path.display()));
    }
    let folder = file.parent()?;
    denied(folder).map(|error| format!("no files can be created in {}: {error}", folder.display()))
}

#[cfg(unix)]
fn may_write(path: &Path) -> io::Result<()> {
    use rustix::{
        fs::{Access, AtFlags, CWD, accessat},
        io::Errno,
    };

    match accessat(CWD, path, Access::WRITE_OK, AtFlags::EACCESS) {
        Err(error @ (Errno::ACCESS | Errno::ROFS | Errno::PERM)) => Err(error.into()),
        _ => Ok(()),
    }
}

#[cfg(not(unix))]
fn may_write(path: &Path) -> io::Result<()> {
    let file = std::fs::metadata(path)?;
    // The attribute has no meaning for folders.
    if file.is_file() && file.permissions().readonly() {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    Ok(())
}

/// The space that this process can still use on the disk of a file or folder; `None` if that is unknown.
#[must_use]
pub fn free_space(path: &Path) -> Option<u64> {
    #[cfg(unix)]
    {
        let disk = rustix::fs::statvfs(path).ok()?;
        // Some network file systems report no sizes.
        (disk.f_blocks > 0).then(|| disk.f_bavail.saturating_mul(disk.f_frsize))
    }
    #[cfg(not(unix))]
    {
        let _ = path;
        None
    }
}

/// Whether the system limits the size of the files that this process writes.
///
/// A write beyond the limit fails with `EFBIG`, which databases report like a broken disk. Before, the system sends the
/// signal `SIGXFSZ`, which ends a process that does not ignore or handle it.
#[must_use]
pub fn is_size_limited() -> bool {
    #[cfg(unix)]
    return rustix::process::getrlimit(rustix::process::Resource::Fsize).current.is_some();
    #[cfg(not(unix))]
    false
}

/// The error of a write to a read-only store; `reason` comes from [`read_only`].
#[must_use]
pub fn refuses_writes(reason: &str) -> Error {
    Error::new(ErrorKind::StorageIo, format!("the store is read-only: {reason}"))
}

/// The error for a file that is not a store, or is of an unknown version.
#[must_use]
pub fn refused(path: &Path, why: &str) -> Error {
    Error::new(ErrorKind::StorageConnection, format!("{} {why}; nothing was changed", path.display()))
}
