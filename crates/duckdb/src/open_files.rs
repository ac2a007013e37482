//! One database a file and process.
//!
//! DuckDB locks a file against other processes, but not against a second database of the same process, which would
//! write over the first; and closing any handle to the file gives up the lock. So all handles of a process share one.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak},
};

use amplifier_session_core::Result;

use crate::backend::Inner;

static OPEN: Mutex<BTreeMap<PathBuf, Weak<Inner>>> = Mutex::new(BTreeMap::new());
static CLOSED: Condvar = Condvar::new();

/// Stands for a file that is open, until it is dropped: the last that is dropped of what keeps the file open.
#[derive(Debug)]
pub(crate) struct OpenFile(PathBuf);

impl Drop for OpenFile {
    fn drop(&mut self) {
        open_files().remove(&self.0);
        CLOSED.notify_all();
    }
}

/// The database of the file, which `open` opens if it is not open.
pub(crate) fn shared(path: &Path, open: impl FnOnce(OpenFile) -> Result<Inner>) -> Result<Arc<Inner>> {
    let path = whole(path);
    let mut files = open_files();
    loop {
        match files.get(&path).map(Weak::upgrade) {
            None => break,
            Some(Some(inner)) => return Ok(inner),
            // It is being closed, which takes until its last rows are in the file.
            Some(None) => files = CLOSED.wait(files).unwrap_or_else(PoisonError::into_inner),
        }
    }
    // Taken, but not there yet: who asks for it meanwhile waits.
    files.insert(path.clone(), Weak::new());
    drop(files);
    let inner = Arc::new(open(OpenFile(path.clone()))?);
    open_files().insert(path, Arc::downgrade(&inner));
    CLOSED.notify_all();
    Ok(inner)
}

fn open_files() -> MutexGuard<'static, BTreeMap<PathBuf, Weak<Inner>>> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The path by which a file is known, also one that does not exist yet.
fn whole(path: &Path) -> PathBuf {
    if let Ok(path) = path.canonicalize() {
        return path;
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match (folder.canonicalize(), path.file_name()) {
        (Ok(folder), Some(name)) => folder.join(name),
        _ => std::path::absolute(path).unwrap_or_else(|_| path.to_owned()),
    }
}
