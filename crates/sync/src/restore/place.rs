//! Moves the files of a session to their places.

use std::{
    fs::{self, File},
    io::{self, BufReader, Read},
    path::Path,
};

use super::{
    RestoreProblem,
    staging::{check_no_link, create_folders},
};
use crate::files::APPEND_PENDING;

/// The result of placing the files of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Placed {
    Written,
    /// All of them already existed.
    Unchanged,
}

/// Moves the files `names` from the folder `staged` to the folder `target`, which is in `root`.
pub(super) fn place(
    root: &Path,
    staged: &Path,
    names: &[&'static str],
    target: &Path,
    overwrite: bool,
) -> Result<Placed, RestoreProblem> {
    names.iter().try_for_each(|name| check_no_link(root, &target.join(name)))?;
    if let Some(parent) = target.parent() {
        create_folders(parent)?;
    }
    if target.symlink_metadata().is_err() && fs::rename(staged, target).is_ok() {
        // After a system crash, the folder exists with all files or not at all.
        target.parent().map_or(Ok(()), sync_folder)?;
        return Ok(Placed::Written);
    }
    add(staged, names, target, overwrite)
}

/// Adds the files to an existing folder.
fn add(
    staged: &Path,
    names: &[&'static str],
    target: &Path,
    overwrite: bool,
) -> Result<Placed, RestoreProblem> {
    let (mut missing, mut differing) = (Vec::new(), Vec::new());
    for name in names {
        match is_equal(&staged.join(name), &target.join(name))? {
            None => missing.push(*name),
            Some(false) => differing.push(*name),
            Some(true) => {}
        }
    }
    if !differing.is_empty() && !overwrite {
        let (exist, differ) = if differing.len() == 1 { ("exists", "differs") } else { ("exist", "differ") };
        let names = differing.join(" and ");
        return Err(RestoreProblem::Session(format!("{names} {exist} in {} and {differ}", target.display())));
    }
    if missing.is_empty() && differing.is_empty() {
        return Ok(Placed::Unchanged);
    }
    if target.join(APPEND_PENDING).exists() {
        let reason = format!("another program is writing to {}", target.display());
        return Err(RestoreProblem::Session(reason));
    }
    for name in missing {
        let (from, to) = (staged.join(name), target.join(name));
        to.parent().map_or(Ok(()), create_folders)?;
        // Unlike a rename, a link does not replace a file that another program has made there meanwhile.
        match fs::hard_link(&from, &to) {
            Ok(()) => fs::remove_file(&from)?,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(error.into()),
            Err(_) => fs::rename(&from, &to)?,
        }
    }
    for name in differing {
        fs::rename(staged.join(name), target.join(name))?;
    }
    sync_folder(target)?;
    Ok(Placed::Written)
}

/// Whether a file exists and has this content; `None` if it does not exist.
fn is_equal(staged: &Path, existing: &Path) -> io::Result<Option<bool>> {
    let found = match fs::metadata(existing) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        found => found?,
    };
    if !found.is_file() || found.len() != fs::metadata(staged)?.len() {
        return Ok(Some(false));
    }
    let open = |path| Ok::<_, io::Error>(BufReader::with_capacity(64 * 1024, File::open(path)?));
    let (mut left, mut right) = (open(staged)?, open(existing)?);
    let (mut a, mut b) = (vec![0; 64 * 1024], vec![0; 64 * 1024]);
    loop {
        let read = left.read(&mut a)?;
        if read == 0 {
            return Ok(Some(right.read(&mut b)? == 0));
        }
        let (Some(ours), Some(theirs)) = (a.get(..read), b.get_mut(..read)) else { return Ok(Some(false)) };
        match right.read_exact(theirs) {
            Ok(()) if ours == theirs => {}
            Ok(()) => return Ok(Some(false)),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(Some(false)),
            Err(error) => return Err(error),
        }
    }
}

/// Makes the names in a folder survive a system crash, if possible.
#[cfg(unix)]
fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

#[cfg(not(unix))]
fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
}
