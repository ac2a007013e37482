//! The whole of an upgrade.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use amplifier_session_core::{Error, ErrorKind, Result, blocking, model::Timestamp};
use tokio::runtime::Handle;

use crate::{
    Driver, FileCopy, Found, OnProgress, Outcome, Purpose, Upgrade,
    place::{self, Fingerprint, STORE},
    transfer::Transfer,
    workshop::{Workshop, beside},
    writing::Target,
};

/// What can be chosen of an upgrade.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct UpgradeOptions {
    /// Whether nothing is changed, and only told what would be. Default: no.
    pub check: bool,
    /// The time for what names none.
    pub now: Timestamp,
}

impl UpgradeOptions {
    /// An upgrade at this time.
    #[must_use]
    pub fn new(now: Timestamp) -> Self {
        Self { check: false, now }
    }

    /// Sets whether nothing is changed.
    #[must_use]
    pub fn with_check(mut self, check: bool) -> Self {
        self.check = check;
        self
    }
}

/// Makes a store of this library of a file that the Python library wrote.
///
/// The new store is built beside the file and takes its place when it is whole; the old file stays as a backup. A process
/// that is killed leaves the old file or the new one, and the next call goes on. A file that is a store of this library
/// is left alone.
///
/// # Errors
///
/// `StorageConnection` when the file is neither, is in use by another process or can't be opened; `StorageIo` when it
/// can't be read or the new one not written; `Conflict` when somebody wrote to the file meanwhile. The old file is as it
/// was then.
pub async fn upgrade(
    driver: Arc<dyn Driver>,
    file: &Path,
    options: UpgradeOptions,
    progress: OnProgress,
) -> Result<Upgrade> {
    let (file, runtime) = (file.to_owned(), Handle::current());
    blocking(move || Run { driver: driver.as_ref(), runtime, options, progress }.run(&file)).await?
}

/// What is to be done with a file.
enum Work {
    /// It is a store already.
    None,
    /// A process was killed when the new store was whole: it has to be put in its place.
    LastStep(Box<Upgrade>),
    /// It is the Python library's.
    All { generation: u32 },
}

struct Run<'a> {
    driver: &'a dyn Driver,
    runtime: Handle,
    options: UpgradeOptions,
    progress: OnProgress,
}

impl Run<'_> {
    fn run(self, file: &Path) -> Result<Upgrade> {
        // Behind a link it is the file that is replaced.
        let file = fs::canonicalize(file).map_err(|source| {
            let message = format!("there is no store at {}: {source}", file.display());
            Error::new(ErrorKind::StorageConnection, message).with_source(source)
        })?;
        let found = self.find(&file)?;
        match found {
            Work::None => {
                if !self.options.check {
                    Workshop::remove_left(&file);
                    FileCopy::remove_left(&file);
                }
                Ok(Upgrade::nothing(&file))
            }
            Work::All { generation } if self.options.check => self.check(&file, generation),
            Work::LastStep(upgrade) if self.options.check => {
                Ok(Upgrade { outcome: Outcome::WouldUpgrade, ..*upgrade })
            }
            Work::All { .. } | Work::LastStep(_) => self.replace(&file),
        }
    }

    /// What is to be done with a file.
    fn find(&self, file: &Path) -> Result<Work> {
        // Without its last step the file may lack what was in its log.
        if let Some(upgrade) = place::waiting(file, self.driver.logs()) {
            return Ok(Work::LastStep(Box::new(upgrade)));
        }
        match self.driver.look(file)? {
            Found::Other(error) => Err(error),
            Found::Ours => Ok(Work::None),
            Found::Python { generation } => Ok(Work::All { generation }),
        }
    }

    fn replace(self, file: &Path) -> Result<Upgrade> {
        let mut workshop = Workshop::enter(file)?;
        FileCopy::remove_left(file);
        // Another process may have been in it, and be done.
        match self.find(file)? {
            Work::None => Ok(Upgrade::nothing(file)),
            Work::LastStep(upgrade) => place::finish(&mut workshop, file, self.driver.logs(), *upgrade),
            Work::All { generation } => self.upgrade(workshop, file, generation),
        }
    }

    fn check(self, file: &Path, generation: u32) -> Result<Upgrade> {
        let database = self.driver.open_old(file, Purpose::Look)?;
        let mut transfer = Transfer::new(database.as_ref(), None, self.options.now, self.progress)?;
        transfer.run()?;
        let mut upgrade = transfer.told(file, generation, Outcome::WouldUpgrade);
        upgrade.backup = Some(place::backup_path(file, self.driver.logs(), Some(generation)));
        Ok(upgrade)
    }

    fn upgrade(self, mut workshop: Workshop, file: &Path, generation: u32) -> Result<Upgrade> {
        let logs = self.driver.logs();
        workshop.clear()?;
        // Held until the new store is in its place: nobody writes to the old one meanwhile.
        let database = self.driver.open_old(file, Purpose::Replace)?;
        let fingerprint = Fingerprint::of(file, logs)?;
        let store = workshop.join(STORE);
        let backend = self.runtime.block_on(self.driver.open_new(&store))?;
        let target = Target::new(backend, self.runtime.clone());
        let mut transfer =
            Transfer::new(database.as_ref(), Some(target.clone()), self.options.now, self.progress)?;
        transfer.run()?;
        let upgrade = transfer.told(file, generation, Outcome::Upgraded);
        drop(transfer);
        target.close()?;
        check_closed(&store, logs)?;
        place::replace(&mut workshop, file, logs, &fingerprint, upgrade)
    }
}

/// Rows that are not in the file yet would be lost with its log.
fn check_closed(store: &Path, logs: &[&str]) -> Result<()> {
    let left: Option<PathBuf> = logs
        .iter()
        .map(|log| beside(store, log))
        .find(|log| fs::metadata(log).is_ok_and(|metadata| metadata.len() > 0));
    match left {
        Some(_) => {
            let message =
                "the rows of the new store could not be moved into its file, as when the disk is full";
            Err(Error::new(ErrorKind::StorageIo, message)
                .with_operation("upgrade")
                .with("file", store.display()))
        }
        None => Ok(()),
    }
}
