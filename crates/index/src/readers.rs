//! Gives searches priority: long work waits briefly while another handle, in any process, is searching.

use std::{
    fs::{self, File, TryLockError},
    path::{Path, PathBuf},
    sync::OnceLock,
    time::{Duration, Instant},
};

use crate::files::private_file;

/// The maximum wait before a piece of work: a stream of searches slows down a sync but does not stop it.
const LONGEST: Duration = Duration::from_millis(100);
/// How often it checks whether the searches are done.
const PAUSE: Duration = Duration::from_millis(2);

/// Handles with priority. Each holds a shared lock on one file, which is released when its process ends.
#[derive(Debug)]
pub(crate) struct Readers {
    path: PathBuf,
    /// The lock of this handle.
    own: OnceLock<Option<File>>,
}

impl Readers {
    pub(crate) fn new(dir: &Path) -> Self {
        Self { path: dir.join("readers"), own: OnceLock::new() }
    }

    /// Makes long work of other handles wait as long as this handle exists. Has no effect if the folder can't be
    /// written.
    pub(crate) fn prioritize(&self) {
        self.own.get_or_init(|| {
            let file = private_file().open(&self.path).ok()?;
            file.try_lock_shared().ok().map(|()| file)
        });
    }

    /// Waits while other handles are searching, but not for long.
    pub(crate) fn yield_to_searches(&self) {
        let begun = Instant::now();
        self.wait(|| begun.elapsed(), || std::thread::sleep(PAUSE));
    }

    /// Pauses while other handles are searching, until `waited` reaches [`LONGEST`]. Pauses must not be counted instead:
    /// on a busy machine, each one may take thirty times as long as it should.
    fn wait(&self, waited: impl Fn() -> Duration, mut pause: impl FnMut()) {
        while waited() < LONGEST && self.is_somebody_else() {
            pause();
        }
    }

    fn is_somebody_else(&self) -> bool {
        // A handle that searches and works must not wait for itself.
        let is_own = self.own.get().is_some_and(Option::is_some);
        // The check does not create the file: a folder without searches needs none.
        let Some(file) = fs::OpenOptions::new().read(true).open(&self.path).ok().filter(|_| !is_own) else {
            return false;
        };
        matches!(file.try_lock(), Err(TryLockError::WouldBlock))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;

    #[test]
    fn work_waits_only_for_searches_of_others() {
        let dir = tempfile::tempdir().unwrap();
        let (search, work) = (Readers::new(dir.path()), Readers::new(dir.path()));
        assert!(!work.is_somebody_else() && !search.path.exists());
        search.prioritize();
        assert!(work.is_somebody_else() && !search.is_somebody_else());
        let second = Readers::new(dir.path());
        second.prioritize();
        drop(search);
        assert!(work.is_somebody_else());
        // It does not wait forever.
        work.yield_to_searches();
        drop(second);
        assert!(!work.is_somebody_else());
    }

    #[test]
    fn late_pauses_do_not_make_the_wait_longer() {
        let dir = tempfile::tempdir().unwrap();
        let (search, work) = (Readers::new(dir.path()), Readers::new(dir.path()));
        search.prioritize();
        let waited = std::cell::Cell::new(Duration::ZERO);
        work.wait(|| waited.get(), || waited.set(waited.get() + 30 * PAUSE));
        assert_eq!(waited.get(), 60 * PAUSE);
    }

    #[test]
    fn nobody_waits_if_no_file_can_be_made() {
        let dir = tempfile::tempdir().unwrap();
        let missing = Readers::new(&dir.path().join("missing"));
        missing.prioritize();
        assert!(!Readers::new(&dir.path().join("missing")).is_somebody_else());
    }
}
