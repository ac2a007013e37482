//! The folder in which the files of sessions are written before they are moved to their places.

use std::{
    fs::{self, DirBuilder, File},
    io,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

use tempfile::TempDir;

use crate::roots::projects_folders;

/// The beginning of its name. It has no folder `sessions`, so a sync does not treat it as a project.
const PREFIX: &str = ".restoring-";

/// A hidden folder in `projects`, so that its content can be renamed into the folders of sessions. It is removed when it
/// is dropped.
#[derive(Debug)]
pub(super) struct Staging {
    folder: TempDir,
    /// Locks the folder, so that other processes don't mistake it for the leftover of a killed process.
    _lock: Option<File>,
    number: AtomicU64,
}

impl Staging {
    /// Creates a staging folder in `root`, and `root` itself if necessary. Removes staging folders that killed
    /// processes left.
    pub(super) fn begin(root: &Path) -> io::Result<Self> {
        let found = projects_folders(root).into_iter().next();
        let projects = found.map_or_else(|| root.join("projects"), |folder| folder.path);
        check_no_link(root, &projects)?;
        create_folders(&projects)?;
        remove_left(&projects);
        let mut builder = tempfile::Builder::new();
        builder.prefix(PREFIX);
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
        let folder = builder.tempdir_in(&projects)?;
        let lock = lock(folder.path());
        Ok(Self { folder, _lock: lock, number: AtomicU64::new(0) })
    }

    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Creates a new folder in it.
    pub(super) fn next(&self) -> io::Result<PathBuf> {
        let number = self.number.fetch_add(1, Ordering::Relaxed);
        let path = self.path().join(number.to_string());
        create_folders(&path)?;
        Ok(path)
    }
}

/// Fails if `path`, or a folder between `root` and it, is a link: it may lead anywhere.
pub(super) fn check_no_link(root: &Path, path: &Path) -> io::Result<()> {
    let mut current = root.to_owned();
    for part in path.strip_prefix(root).unwrap_or(path).components() {
        current.push(part);
        if current.is_symlink() {
            return Err(io::Error::other(format!("{} is a link, which is not followed", current.display())));
        }
    }
    Ok(())
}

/// Creates a folder and the folders above it; only their owner may enter the new ones.
pub(super) fn create_folders(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Removes staging folders that no process has locked. If folders can't be locked on this system, keeps them.
fn remove_left(projects: &Path) {
    for entry in fs::read_dir(projects).into_iter().flatten().flatten() {
        let path = entry.path();
        let is_staging = entry.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes())
            && entry.file_type().is_ok_and(|kind| kind.is_dir())
            // A project may have any name.
            && !path.join("sessions").exists();
        if is_staging && let Some(_lock) = lock(&path) {
            let _ = fs::remove_dir_all(&path);
        }
    }
}

/// Locks a folder; `None` if another process has locked it, or if that is not possible.
fn lock(folder: &Path) -> Option<File> {
    let file = File::open(folder).ok()?;
    file.try_lock().ok()?;
    Some(file)
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn only_folders_of_killed_processes_are_removed() {
        let root = tempfile::tempdir().unwrap();
        let projects = root.path().join("projects");
        let running = Staging::begin(root.path()).unwrap();
        let killed = Staging::begin(root.path()).unwrap().folder.keep();
        fs::write(killed.join("transcript.jsonl"), "text").unwrap();
        let project = projects.join(".restoring-tests");
        fs::create_dir_all(project.join("sessions")).unwrap();
        let next = Staging::begin(root.path()).unwrap();
        assert!(running.path().exists() && project.exists() && !killed.exists());
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(next.path()), mode(&next.next().unwrap()), mode(&projects)), (0o700, 0o700, 0o700));
        drop((running, next));
        assert_eq!(fs::read_dir(&projects).unwrap().count(), 1);
    }
}
