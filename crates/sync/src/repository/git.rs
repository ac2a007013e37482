//! The Git repository that a folder is in.
//!
//! Its files are read directly, so that no program has to be installed, the owner of the folder does not matter, and a
//! lookup takes less than a millisecond. Only the first commit, which is in compressed and packed files, is left to `git`.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use amplifier_session_core::model::Repository;

use super::config;

/// The remote that a clone has.
const ORIGIN: &str = "origin";

/// A Git repository.
#[derive(Debug)]
pub(super) struct GitRepository {
    /// The root of the main work tree, or the folder of a repository without one.
    pub(super) root: PathBuf,
    /// The folder that all work trees share; `None` if `.git` is damaged.
    shared: Option<PathBuf>,
}

impl GitRepository {
    /// The repository that a folder is in. If the folder is gone, the one that it would be in.
    pub(super) fn around(folder: &Path) -> Option<Self> {
        folder.ancestors().find_map(|folder| {
            let git = folder.join(".git");
            if git.symlink_metadata().is_ok() {
                return Some(Self::of_work_tree(folder, git));
            }
            is_git_folder(folder).then(|| Self { root: folder.to_owned(), shared: Some(folder.to_owned()) })
        })
    }

    /// The repository with the work tree `root`, whose `.git` is a folder or a file that names one.
    fn of_work_tree(root: &Path, git: PathBuf) -> Self {
        let named = fs::read_to_string(&git).ok();
        let named = named.as_deref().and_then(|text| text.strip_prefix("gitdir:"));
        let own = named.map_or(git, |path| root.join(path.trim()));
        let root = root.to_owned();
        if !is_git_folder(&own) {
            return Self { root, shared: None };
        }
        // Linked work trees name the folder that they share; other repositories have no such file.
        let Ok(named) = fs::read_to_string(own.join("commondir")) else {
            return Self { root, shared: Some(own) };
        };
        let Ok(shared) = own.join(named.trim()).canonicalize() else { return Self { root, shared: None } };
        let main = if shared.ends_with(".git") { shared.parent() } else { None };
        Self { root: main.unwrap_or(&shared).to_owned(), shared: Some(shared) }
    }

    /// The roots of the main work tree and of the linked ones that exist.
    pub(super) fn work_trees(&self) -> Vec<PathBuf> {
        let Some(shared) = &self.shared else { return Vec::new() };
        let main = shared.ends_with(".git").then(|| self.root.clone());
        let linked = fs::read_dir(shared.join("worktrees")).into_iter().flatten().flatten();
        // Each names the file `.git` in its root.
        let linked = linked.filter_map(|entry| {
            let file = fs::read_to_string(entry.path().join("gitdir")).ok()?;
            Some(Path::new(file.trim()).parent()?.to_owned())
        });
        main.into_iter().chain(linked.filter(|root| root.is_dir())).collect()
    }

    /// The address of `origin`, or else of the first remote that has one.
    pub(super) fn address(&self) -> Option<Repository> {
        let config = fs::read(self.shared.as_ref()?.join("config")).ok()?;
        let mut remotes = config::remotes(&String::from_utf8_lossy(&config));
        remotes.sort_by_key(|(name, _)| name != ORIGIN);
        remotes.iter().find_map(|(_, address)| Repository::of_address(address))
    }

    /// The first commit of the branch in the main work tree. `None` without `git`, without a commit, and for a shallow
    /// clone, which does not have its first commit.
    pub(super) fn first_commit(&self) -> Option<Repository> {
        let shared = self.shared.as_ref().filter(|shared| !shared.join("shallow").exists())?;
        let printed = first_commit(shared).output().ok()?;
        let printed = String::from_utf8(printed.stdout).ok()?;
        Repository::of_first_commit(printed.lines().next()?)
    }
}

/// The command that prints the first commit of a repository. It reads only that repository: a named folder is read whoever
/// owns it, and no hook, prompt, server or setting of the user has part in it.
fn first_commit(shared: &Path) -> Command {
    let mut git = Command::new("git");
    // They are set in a hook, and name another repository.
    let inherited = env::vars_os().map(|(name, _)| name);
    inherited.filter(|name| name.to_string_lossy().starts_with("GIT_")).for_each(|name| {
        git.env_remove(name);
    });
    let nowhere = if cfg!(windows) { "NUL" } else { "/dev/null" };
    git.env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", nowhere)
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("GIT_NO_LAZY_FETCH", "1")
        .env("GIT_ALLOW_PROTOCOL", "none")
        .env("GIT_NO_REPLACE_OBJECTS", "1")
        .arg("--git-dir")
        .arg(shared)
        .args(["rev-list", "--first-parent", "--max-parents=0", "HEAD", "--"])
        .stdin(Stdio::null())
        .stderr(Stdio::null());
    git
}

/// Whether a folder has the files of a repository, or of a linked work tree.
fn is_git_folder(folder: &Path) -> bool {
    folder.join("HEAD").symlink_metadata().is_ok()
        && (folder.join("objects").is_dir() || folder.join("commondir").is_file())
}
