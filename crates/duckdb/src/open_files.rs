//! One database per file and process.
//!
//! DuckDB locks a file against other processes, but not against a second database of the same process, which would
//! overwrite the first; and closing any handle to the file releases the lock. So all handles of a process share one
//! database.

use std::{
    any::Any,
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak},
};

use amplifier_session_core::Result;

type OpenDatabase = dyn Any + Send + Sync;

static OPEN: Mutex<BTreeMap<PathBuf, Weak<OpenDatabase>>> = Mutex::new(BTreeMap::new());
static CLOSED: Condvar = Condvar::new();

/// Marks a file as open until it is dropped. Must be dropped after everything that keeps the file open.
#[derive(Debug)]
pub(crate) struct OpenMark(PathBuf);

impl Drop for OpenMark {
    fn drop(&mut self) {
        open_files().remove(&self.0);
        CLOSED.notify_all();
    }
}

/// Returns the database of the file, opening it with `open` if it is not open.
pub(crate) fn shared<T: Send + Sync + 'static>(
    path: &Path,
    open: impl FnOnce(OpenMark) -> Result<T>,
) -> Result<Arc<T>> {
    let path = whole(path);
    let mut files = open_files();
    loop {
        match files.get(&path).map(Weak::upgrade) {
            None => break,
            Some(Some(open)) => match open.downcast() {
                Ok(open) => return Ok(open),
                Err(_) => break,
            },
            // The database is being closed, which takes until its last rows are in the file.
            Some(None) => files = CLOSED.wait(files).unwrap_or_else(PoisonError::into_inner),
        }
    }
    // Reserved while it is opened, so that other openers wait.
    files.insert(path.clone(), Weak::<T>::new());
    drop(files);
    let opened = Arc::new(open(OpenMark(path.clone()))?);
    let known: Arc<OpenDatabase> = Arc::clone(&opened) as Arc<OpenDatabase>;
    open_files().insert(path, Arc::downgrade(&known));
    CLOSED.notify_all();
    Ok(opened)
}

fn open_files() -> MutexGuard<'static, BTreeMap<PathBuf, Weak<OpenDatabase>>> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The canonical path of a file, even if the file or its folder does not exist yet.
fn whole(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    match (path.canonicalize(), path.parent(), path.file_name()) {
        (Ok(path), ..) => path,
        (Err(_), Some(folder), Some(name)) => whole(folder).join(name),
        _ => path,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;

    #[cfg(unix)]
    #[test]
    fn a_file_has_one_path_before_and_after_it_is_created() {
        let folder = tempfile::tempdir().unwrap();
        let there = folder.path().canonicalize().unwrap().join("there");
        std::fs::create_dir(&there).unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&there, &link).unwrap();
        let file = link.join("new/sessions.duckdb");
        let before = whole(&file);
        std::fs::create_dir(there.join("new")).unwrap();
        std::fs::write(&file, "").unwrap();
        assert_eq!((before, whole(&file)), (there.join("new/sessions.duckdb"), file.canonicalize().unwrap()));
    }
}
