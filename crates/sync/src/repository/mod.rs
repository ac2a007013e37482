//! The repository that a session worked in.

mod config;
mod git;

use std::{
    cell::OnceCell,
    collections::{BTreeSet, HashMap},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use amplifier_session_core::{
    Result, blocking,
    model::{Repository, RepositoryKind},
};

use self::git::GitRepository;

/// The names of the repository that a folder is in. Sessions may be older than its address or its first commit.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RepositoryNames {
    /// The address, the first commit, and the root of the work tree, as far as there are any; or else the folder itself.
    pub names: BTreeSet<Repository>,
    /// Whether the folder is in a Git repository.
    pub is_git: bool,
}

impl RepositoryNames {
    /// The names of the repository that `folder` is in. Reads files, and may run `git`.
    ///
    /// # Errors
    ///
    /// `StorageIo` if reading panics.
    pub async fn around(folder: PathBuf) -> Result<Self> {
        blocking(move || {
            let FolderRepository { git, address, folder, .. } = FolderRepository::at(&folder);
            let first_commit = git.as_ref().and_then(GitRepository::first_commit);
            let names = [address, first_commit, folder].into_iter().flatten().collect();
            Self { names, is_git: git.is_some() }
        })
        .await
    }
}

/// The work trees of the repository that a folder is in.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkTrees {
    /// The names of the repository: its address, or else its first commit, and the root of its main work tree.
    pub names: BTreeSet<Repository>,
    /// The roots of its work trees.
    pub roots: BTreeSet<PathBuf>,
    /// The path of the folder within its own work tree.
    pub path: PathBuf,
}

impl WorkTrees {
    /// The work trees of the repository that `folder` is in; `None` if it is in none. Reads files, and may run `git` if
    /// the repository has no address.
    ///
    /// # Errors
    ///
    /// `StorageIo` if reading panics.
    pub async fn around(folder: PathBuf) -> Result<Option<Self>> {
        blocking(move || {
            let git = GitRepository::around(&folder)?;
            let root = folder.ancestors().find(|above| above.join(".git").exists())?;
            let path = folder.strip_prefix(root).ok()?.to_owned();
            let name = git.address().or_else(|| git.first_commit());
            let names = name.into_iter().chain(of_path(&git.root)).collect();
            let roots = git.work_trees().into_iter().chain([root.to_owned()]).collect();
            Some(Self { names, roots, path })
        })
        .await
    }

    /// Whether `folder` is the same folder in another work tree of this repository, as one of its sessions ran in it. A
    /// folder that is gone was in a work tree that was removed.
    #[must_use]
    pub fn has_counterpart(&self, folder: &Path) -> bool {
        let is_within = |root: &PathBuf| folder.strip_prefix(root).is_ok_and(|path| !is_of_work_trees(path));
        let is_gone = || !folder.exists() && !self.roots.iter().any(is_within);
        self.roots.iter().any(|root| root.join(&self.path) == folder)
            || folder.ends_with(&self.path) && is_gone()
    }
}

/// Whether a path within a work tree leads to another one, in a folder that programs make for them.
fn is_of_work_trees(path: &Path) -> bool {
    path.iter().any(|part| part == "worktrees" || part == ".worktrees")
}

/// The repositories of folders. Each folder is looked up once.
#[derive(Debug, Default)]
pub(crate) struct RepositoryCache(Arc<Mutex<HashMap<String, FolderRepository>>>);

impl RepositoryCache {
    /// The repository of a session that works in `folder`, and whose repository was `known` before.
    pub(crate) async fn of(&self, folder: String, known: Option<Repository>) -> Result<Option<Repository>> {
        let folders = Arc::clone(&self.0);
        blocking(move || {
            let mut folders = folders.lock().unwrap_or_else(PoisonError::into_inner);
            let found =
                folders.entry(folder).or_insert_with_key(|folder| FolderRepository::at(Path::new(folder)));
            found.repository(known)
        })
        .await
    }
}

/// The repository of a folder.
#[derive(Debug)]
struct FolderRepository {
    exists: bool,
    git: Option<GitRepository>,
    address: Option<Repository>,
    /// Looked up only if it is needed, because that starts a process.
    first_commit: OnceCell<Option<Repository>>,
    /// The root of the work tree, or else the folder.
    folder: Option<Repository>,
}

impl FolderRepository {
    fn at(folder: &Path) -> Self {
        // Other paths depend on where this program runs, or are of another system.
        let found = if folder.is_absolute() { folder.canonicalize().ok() } else { None };
        let exists = found.is_some();
        let folder = found.unwrap_or_else(|| folder.to_owned());
        let git = if folder.is_absolute() { GitRepository::around(&folder) } else { None };
        Self {
            exists,
            address: git.as_ref().and_then(GitRepository::address),
            first_commit: OnceCell::new(),
            folder: of_path(git.as_ref().map_or(&folder, |git| &git.root)),
            git,
        }
    }

    /// The repository found now, or the known one if it says more or the folder is gone.
    fn repository(&self, known: Option<Repository>) -> Option<Repository> {
        let kind = known.as_ref().map(Repository::kind);
        if kind.is_some() && !self.exists {
            return known;
        }
        let first_commit = || match kind {
            Some(RepositoryKind::FirstCommit) => None,
            _ => self.first_commit.get_or_init(|| self.git.as_ref()?.first_commit()).clone(),
        };
        let found = self.address.clone().or_else(first_commit).or_else(|| self.folder.clone());
        match (found, kind) {
            (Some(found), Some(kind)) if found.kind() < kind => known,
            (found, _) => found.or(known),
        }
    }
}

fn of_path(path: &Path) -> Option<Repository> {
    let path = path.to_string_lossy();
    // Windows resolves paths to this form.
    Repository::of_folder(path.strip_prefix(r"\\?\").unwrap_or(&path))
}
