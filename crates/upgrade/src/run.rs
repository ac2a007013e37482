//! The whole upgrade.

use std::path::{Path, PathBuf};

use amplifier_session_core::{Result, backend::Opening, blocking, model::Timestamp};
use tokio::runtime::Handle;

use crate::{
    old::OldFile,
    replacement::{self, FileReplacement},
    report::{OnProgress, Upgrade, UpgradeOutcome},
    target::TargetStore,
    transfer::Transfer,
};

/// Options for an upgrade.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct UpgradeOptions {
    /// Whether to only report what would be done. Default: no.
    pub check: bool,
    /// The time for rows without one.
    pub now: Timestamp,
}

impl UpgradeOptions {
    /// An upgrade at this time.
    #[must_use]
    pub fn new(now: Timestamp) -> Self {
        Self { check: false, now }
    }

    /// Sets whether to only report what would be done.
    #[must_use]
    pub fn with_check(mut self, check: bool) -> Self {
        self.check = check;
        self
    }
}

/// Opens a store, and creates it if it is missing. The arguments are the file for a store in a file, which may differ
/// from the one in [`NewStore`], and the length of the vectors that will be written.
pub type OpenStore = Box<dyn Fn(Option<PathBuf>, Option<usize>) -> Opening + Send>;

/// The store to which sessions are copied.
pub struct NewStore {
    /// Its name in reports.
    pub name: String,
    /// Its file, if it is in a file.
    pub file: Option<PathBuf>,
    /// Opens it.
    pub open: OpenStore,
}

impl std::fmt::Debug for NewStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NewStore").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Copies the sessions in `old`, a file of the Python library, to `store`. Skips sessions that the store has or that
/// were deleted from it.
///
/// If the store is to have the path of `old`, it is built beside it, as `<old>.upgrading`. When it is complete, `old`
/// is renamed to `<old>.python-backup`, and the store takes its name. Otherwise, `old` keeps its name. Its content
/// never changes.
///
/// To complete an interrupted upgrade, run it again: see [`is_interrupted`](crate::is_interrupted). A file that is a
/// store of this library is not changed.
///
/// # Errors
///
/// `StorageConnection` if `old` is neither of these, cannot be opened, or must be renamed while a program that may
/// write to it has it open; `Conflict` if another program changes it while it is read; `StorageIo` if it cannot be
/// read; errors of the store.
pub async fn upgrade(
    old: &Path,
    store: NewStore,
    options: UpgradeOptions,
    progress: OnProgress,
) -> Result<Upgrade> {
    let (old, runtime) = (old.to_owned(), Handle::current());
    blocking(move || UpgradeRun { store, runtime, options, progress }.run(&old)).await?
}

struct UpgradeRun {
    store: NewStore,
    runtime: Handle,
    options: UpgradeOptions,
    progress: OnProgress,
}

impl UpgradeRun {
    fn run(self, old: &Path) -> Result<Upgrade> {
        let old = replacement::resolved(old);
        let in_place = self.store.file.as_deref().is_some_and(|file| replacement::resolved(file) == old);
        match (in_place, self.options.check) {
            (true, false) => self.replace(&old),
            (true, true) if replacement::is_interrupted(&old) => {
                let backup = replacement::last_backup(&old).unwrap_or(old);
                self.copy(&backup)
            }
            _ => self.copy(&old),
        }
    }

    /// Copies the sessions of a file to the store, or only counts them.
    fn copy(self, old: &Path) -> Result<Upgrade> {
        let mut upgrade = Upgrade::nothing(old.to_owned(), self.store.name.clone());
        if let Some(old) = OldFile::open(old)? {
            let (check, file) = (self.options.check, self.store.file.clone());
            upgrade.outcome = if check { UpgradeOutcome::WouldUpgrade } else { UpgradeOutcome::Upgraded };
            if check && file.is_some_and(|file| replacement::resolved(&file) == old.path) {
                upgrade.backup = Some(replacement::next_backup(&old.path));
            }
            let file = self.store.file.clone();
            self.transfer(&old, file, false, &mut upgrade)?;
        }
        Ok(upgrade)
    }

    /// Replaces the file by the store.
    fn replace(self, old: &Path) -> Result<Upgrade> {
        let replacement = FileReplacement::begin(old)?;
        replacement.recover()?;
        let mut upgrade = Upgrade::nothing(old.to_owned(), self.store.name.clone());
        let Some(found) = OldFile::open(old)? else {
            // Another program created a store there before the new one was in place. The backup is copied to it.
            if let Some(backup) = replacement::last_backup(old).filter(|_| replacement.staged().exists()) {
                upgrade = self.copy(&backup)?;
            }
            replacement.clear()?;
            return Ok(upgrade);
        };
        replacement.clear()?;
        upgrade.outcome = UpgradeOutcome::Upgraded;
        if let Err(error) = self.transfer(&found, Some(replacement.staged()), true, &mut upgrade) {
            let _ = replacement.clear();
            return Err(error);
        }
        drop(found);
        upgrade.backup = Some(replacement.put()?);
        Ok(upgrade)
    }

    fn transfer(
        self,
        old: &OldFile,
        file: Option<PathBuf>,
        is_new: bool,
        upgrade: &mut Upgrade,
    ) -> Result<()> {
        upgrade.generation = Some(old.generation);
        let (open, runtime) = (self.store.open, self.runtime);
        let transfer = Transfer::new(old, self.options.now, self.progress, upgrade);
        let transferred = transfer.and_then(|transfer| {
            let target = if self.options.check {
                None
            } else {
                let backend = runtime.block_on(open(file, transfer.dimensions()))?;
                Some(TargetStore::new(backend, runtime.clone(), is_new)?)
            };
            transfer.run(target)
        });
        // If the file changed meanwhile, neither the rows nor the errors can be trusted.
        old.check_unchanged().and(transferred)
    }
}
