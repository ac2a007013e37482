//! How a new store takes the place of an old file.
//!
//! A rename puts it there, in one step. Before it come the backup, which is the old file under another name, and the logs
//! beside the old file, which must not be there when the new one is: DuckDB and SQLite would take them for its own. From
//! the moment on in which something goes that the old file needs, a marker in the workshop says that the new store is
//! whole: whoever finds it goes on from there.

use std::{
    fs::{self, File, Metadata},
    io::{self, BufReader, Read},
    path::{Path, PathBuf},
    time::UNIX_EPOCH,
};

use amplifier_session_core::{Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};

use crate::{
    report::Upgrade,
    workshop::{Workshop, beside, failed},
};

/// The new store in the workshop. Its index lies beside it.
pub(crate) const STORE: &str = "store";
const INDEX: &str = ".index";
const MARKER: &str = "ready.json";

/// By what a file is known that nobody wrote to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Fingerprint {
    file: Print,
    /// Of each log, if it is there.
    logs: Vec<Option<Print>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Print {
    bytes: u64,
    modified_nanos: Option<u128>,
    inode: Option<u64>,
}

impl Print {
    fn of(metadata: &Metadata) -> Self {
        let modified = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        #[cfg(unix)]
        let inode = Some(std::os::unix::fs::MetadataExt::ino(metadata));
        #[cfg(not(unix))]
        let inode = None;
        Self { bytes: metadata.len(), modified_nanos: modified.map(|time| time.as_nanos()), inode }
    }
}

impl Fingerprint {
    /// That of a file, which is not opened: closing it again would give up locks of this process.
    pub(crate) fn of(file: &Path, logs: &[&str]) -> Result<Self> {
        let metadata = fs::metadata(file).map_err(|error| failed("look at", file, error))?;
        let log = |log: &&str| fs::metadata(beside(file, log)).ok().map(|metadata| Print::of(&metadata));
        Ok(Self { file: Print::of(&metadata), logs: logs.iter().map(log).collect() })
    }

    /// Whether a file that is `now` so is the same, but for logs that are gone.
    fn is_of(&self, now: &Self) -> bool {
        let mut logs = self.logs.iter().zip(&now.logs);
        self.file == now.file && logs.all(|(then, now)| now.is_none() || then == now)
    }
}

/// What the marker says.
#[derive(Debug, Serialize, Deserialize)]
struct Marker {
    fingerprint: Fingerprint,
    upgrade: Upgrade,
}

/// Puts the new store in the workshop into the place of the old file, which `fingerprint` is of.
pub(crate) fn replace(
    workshop: &mut Workshop,
    file: &Path,
    logs: &[&str],
    fingerprint: &Fingerprint,
    upgrade: Upgrade,
) -> Result<Upgrade> {
    let upgrade = prepare(workshop, file, logs, fingerprint, upgrade)?;
    finish(workshop, file, logs, upgrade)
}

/// Makes the backup, and says that the new store is whole.
fn prepare(
    workshop: &mut Workshop,
    file: &Path,
    logs: &[&str],
    fingerprint: &Fingerprint,
    mut upgrade: Upgrade,
) -> Result<Upgrade> {
    sync(&workshop.join(STORE))?;
    check_unchanged(file, logs, fingerprint)?;
    let backup = backup_path(file, logs, upgrade.generation);
    back_up(workshop, file, logs, &backup)?;
    // Where it had to be copied, that took its time.
    check_unchanged(file, logs, fingerprint)?;
    upgrade.backup = Some(backup);
    let marker = Marker { fingerprint: fingerprint.clone(), upgrade };
    let (path, written) = (workshop.join(MARKER), workshop.join("marker"));
    let json = serde_json::to_vec(&marker).map_err(|error| failed("write", &path, error.into()))?;
    fs::write(&written, json).map_err(|error| failed("write", &written, error))?;
    sync(&written)?;
    fs::rename(&written, &path).map_err(|error| failed("write", &path, error))?;
    sync_folder(&path);
    workshop.keep(true);
    Ok(marker.upgrade)
}

fn check_unchanged(file: &Path, logs: &[&str], fingerprint: &Fingerprint) -> Result<()> {
    if Fingerprint::of(file, logs)? == *fingerprint {
        return Ok(());
    }
    let message = format!("{} was changed by another program while it was upgraded", file.display());
    Err(Error::new(ErrorKind::Conflict, message).with_operation("upgrade").retryable())
}

/// What was told of a new store that is whole, and only has to be put into its place: its process was killed.
pub(crate) fn waiting(file: &Path, logs: &[&str]) -> Option<Upgrade> {
    let folder = Workshop::folder_of(file);
    let marker: Marker = serde_json::from_slice(&fs::read(folder.join(MARKER)).ok()?).ok()?;
    let is_of = marker.fingerprint.is_of(&Fingerprint::of(file, logs).ok()?);
    (is_of && folder.join(STORE).exists()).then_some(marker.upgrade)
}

/// Puts a new store that is whole into the place of the old file.
pub(crate) fn finish(
    workshop: &mut Workshop,
    file: &Path,
    logs: &[&str],
    upgrade: Upgrade,
) -> Result<Upgrade> {
    workshop.keep(true);
    let store = workshop.join(STORE);
    own(&store)?;
    for log in logs {
        remove_file(&beside(file, log))?;
    }
    if let Err(error) = fs::rename(&store, file) {
        // A file that is mounted by itself can't be replaced: it stays as it was, with its logs.
        put_back(file, logs, upgrade.backup.as_deref())?;
        workshop.keep(false);
        return Err(failed("replace", file, error));
    }
    sync_folder(file);
    workshop.keep(false);
    // An index that can't be put there is built again.
    let index = beside(file, INDEX);
    let _ = fs::remove_dir_all(&index);
    let _ = fs::rename(beside(&store, INDEX), index);
    Ok(upgrade)
}

/// Puts the logs of the old file beside it again.
fn put_back(file: &Path, logs: &[&str], backup: Option<&Path>) -> Result<()> {
    for log in logs {
        let Some(kept) = backup.map(|backup| beside(backup, log)).filter(|kept| kept.exists()) else {
            continue;
        };
        let log = beside(file, log);
        let put = fs::hard_link(&kept, &log).or_else(|_| fs::copy(&kept, &log).map(drop));
        put.map_err(|error| failed("write", &log, error))?;
    }
    Ok(())
}

/// Where the old file is kept: a name that nothing else has, or the same file already.
pub(crate) fn backup_path(file: &Path, logs: &[&str], generation: Option<u32>) -> PathBuf {
    let first = beside(file, &format!(".v{}-backup", generation.unwrap_or(0)));
    let is_free = |backup: &Path| {
        let is_free_or_same = |suffix: &str| {
            let (from, to) = (beside(file, suffix), beside(backup, suffix));
            !to.exists() || is_same(&from, &to).unwrap_or(false)
        };
        is_free_or_same("") && logs.iter().all(|log| is_free_or_same(log))
    };
    let mut others = (2u32..).map(|n| beside(&first, &format!("-{n}")));
    let free = if is_free(&first) { None } else { others.find(|backup| is_free(backup)) };
    free.unwrap_or(first)
}

/// Keeps the old file with its logs under the name of the backup, without reading it where the file system can.
fn back_up(workshop: &Workshop, file: &Path, logs: &[&str], backup: &Path) -> Result<()> {
    for suffix in std::iter::once(&"").chain(logs) {
        let (from, to) = (beside(file, suffix), beside(backup, suffix));
        if !from.exists() || to.exists() {
            continue;
        }
        if fs::hard_link(&from, &to).is_err() {
            let copy = workshop.join("backup");
            let copied = fs::copy(&from, &copy).map_err(|error| failed("copy", &from, error));
            copied.and_then(|_| sync(&copy))?;
            fs::rename(&copy, &to).map_err(|error| failed("write", &to, error))?;
        }
        own(&to)?;
    }
    sync_folder(backup);
    Ok(())
}

/// Whether two files are one, or hold the same.
fn is_same(a: &Path, b: &Path) -> io::Result<bool> {
    let (of_a, of_b) = (fs::metadata(a)?, fs::metadata(b)?);
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        if (of_a.dev(), of_a.ino()) == (of_b.dev(), of_b.ino()) {
            return Ok(true);
        }
    }
    if of_a.len() != of_b.len() {
        return Ok(false);
    }
    let (mut a, mut b) = (BufReader::new(File::open(a)?), BufReader::new(File::open(b)?));
    let (mut from_a, mut from_b) = (vec![0; 1 << 16], vec![0; 1 << 16]);
    let mut left = of_a.len();
    while left > 0 {
        let next = from_a.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let (Some(from_a), Some(from_b)) = (from_a.get_mut(..next), from_b.get_mut(..next)) else { break };
        a.read_exact(from_a)?;
        b.read_exact(from_b)?;
        if from_a != from_b {
            return Ok(false);
        }
        left -= next as u64;
    }
    Ok(true)
}

fn remove_file(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed("remove", path, error)),
        _ => Ok(()),
    }
}

/// Makes a file its owner's alone.
fn own(path: &Path) -> Result<()> {
    #[cfg(unix)]
    fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o600))
        .map_err(|error| failed("set the permissions of", path, error))?;
    #[cfg(not(unix))]
    let _ = path;
    Ok(())
}

/// Waits until a file is on the disk.
fn sync(path: &Path) -> Result<()> {
    let file = File::options().read(true).write(true).open(path);
    file.and_then(|file| file.sync_all()).map_err(|error| failed("write", path, error))
}

/// Waits until the names in the folder of a file are on the disk, where the system can.
fn sync_folder(path: &Path) {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let _ = File::open(folder).and_then(|folder| folder.sync_all());
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOGS: [&str; 1] = [".wal"];

    /// A folder with an old file and its log, and a new store in the workshop that is whole.
    fn killed_before_the_end(old: &Path) -> Upgrade {
        fs::write(old, "old").unwrap();
        fs::write(beside(old, ".wal"), "log").unwrap();
        let mut workshop = Workshop::enter(old).unwrap();
        fs::write(workshop.join(STORE), "new").unwrap();
        let fingerprint = Fingerprint::of(old, &LOGS).unwrap();
        let upgrade = prepare(&mut workshop, old, &LOGS, &fingerprint, Upgrade::nothing(old)).unwrap();
        workshop.keep(true);
        upgrade
    }

    #[test]
    fn what_was_killed_before_the_end_is_ended() {
        for log_is_gone in [false, true] {
            let folder = tempfile::tempdir().unwrap();
            let old = folder.path().join("old");
            let upgrade = killed_before_the_end(&old);
            if log_is_gone {
                fs::remove_file(beside(&old, ".wal")).unwrap();
            }
            assert_eq!(waiting(&old, &LOGS), Some(upgrade.clone()));
            let mut workshop = Workshop::enter(&old).unwrap();
            finish(&mut workshop, &old, &LOGS, upgrade.clone()).unwrap();
            drop(workshop);
            let backup = upgrade.backup.unwrap();
            let read = |path: &Path| fs::read_to_string(path).unwrap();
            assert_eq!([read(&old), read(&backup), read(&beside(&backup, ".wal"))], ["new", "old", "log"]);
            assert!(!beside(&old, ".wal").exists() && !Workshop::folder_of(&old).exists());
            assert_eq!(waiting(&old, &LOGS), None);
        }
    }

    #[test]
    fn a_file_that_can_not_be_replaced_stays_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let old = folder.path().join("old");
        let upgrade = killed_before_the_end(&old);
        let mut workshop = Workshop::enter(&old).unwrap();
        // No folder takes the place of a file.
        fs::remove_file(workshop.join(STORE)).unwrap();
        fs::create_dir(workshop.join(STORE)).unwrap();
        let error = finish(&mut workshop, &old, &LOGS, upgrade).unwrap_err();
        assert!(error.to_string().contains("can't replace"), "{error}");
        drop(workshop);
        let read = |path: &Path| fs::read_to_string(path).unwrap();
        assert_eq!([read(&old), read(&beside(&old, ".wal"))], ["old", "log"]);
        assert!(!Workshop::folder_of(&old).exists());
    }

    #[test]
    fn a_file_that_was_written_to_since_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let old = folder.path().join("old");
        killed_before_the_end(&old);
        fs::write(&old, "older").unwrap();
        assert_eq!(waiting(&old, &LOGS), None);
        killed_before_the_end(&old);
        fs::write(beside(&old, ".wal"), "more of it").unwrap();
        assert_eq!(waiting(&old, &LOGS), None);

        let mut workshop = Workshop::enter(&old).unwrap();
        let fingerprint = Fingerprint::of(&old, &LOGS).unwrap();
        fs::write(&old, "old, and more").unwrap();
        let error = replace(&mut workshop, &old, &LOGS, &fingerprint, Upgrade::nothing(&old)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict);
    }

    #[test]
    fn one_process_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let old = folder.path().join("old");
        let workshop = Workshop::enter(&old).unwrap();
        assert!(Workshop::enter(&old).unwrap_err().to_string().contains("another process is upgrading"));
        drop(workshop);
        assert!(!Workshop::folder_of(&old).exists());
    }
}
