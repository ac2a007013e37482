//! The options of a sync.

use std::path::{Path, PathBuf};

use amplifier_session_core::model::{HostId, Timestamp, UserId};

use crate::discover::FolderSearch;

/// Which session folders to read, and for whom.
///
/// ```
/// use amplifier_session_core::model::{HostId, UserId};
/// use amplifier_session_sync::SyncOptions;
///
/// let options = SyncOptions::new("/home/ana/.amplifier", UserId::new("ana")?, HostId::new("laptop")?)
///     .with_newest(Some(200))
///     .with_exclude(["scratch/*"]);
/// # Ok::<(), amplifier_session_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct SyncOptions {
    /// The folders that contain `projects/`, or `state/workspaces/` as Amplifier's agent writes it.
    pub roots: Vec<PathBuf>,
    /// The folder with captures that are not in the folders of their sessions:
    /// `<project>/sessions/<session>/context-intelligence`.
    pub captures: Option<PathBuf>,
    /// The owner of the sessions.
    pub user: UserId,
    /// The machine where they were recorded.
    pub host: HostId,
    /// Only sessions with a file that changed at this time or later.
    pub since: Option<Timestamp>,
    /// Globs: a session is left out if a glob matches its `<project>/<session>`. `*` also matches `/`.
    pub exclude: Vec<String>,
    /// Only this many sessions, the most recently changed ones.
    pub newest: Option<usize>,
    /// Whether to only report what would be done.
    pub dry_run: bool,
    /// Whether to remove rows that a damaged file no longer contains, instead of keeping them in their place. Their lines
    /// are superseded.
    pub accept_removals: bool,
    /// Whether to make the sessions equal to their files: rows that a file no longer contains are removed, and nothing is
    /// superseded. Includes `accept_removals`.
    pub mirror: bool,
    /// Whether to read sessions that were deleted from the store, instead of skipping them.
    pub include_deleted: bool,
    /// Whether to read all files from their beginning, and compare all lines with the store.
    pub verify: bool,
}

impl SyncOptions {
    /// All sessions in `root`.
    #[must_use]
    pub fn new(root: impl Into<PathBuf>, user: UserId, host: HostId) -> Self {
        Self {
            roots: vec![root.into()],
            captures: None,
            user,
            host,
            since: None,
            exclude: Vec::new(),
            newest: None,
            dry_run: false,
            accept_removals: false,
            mirror: false,
            include_deleted: false,
            verify: false,
        }
    }

    /// All sessions in these roots. They are compared with each other: a session may be in several.
    #[must_use]
    pub fn with_roots(mut self, roots: impl IntoIterator<Item = impl Into<PathBuf>>) -> Self {
        self.roots = roots.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the folder with captures that are not in the folders of their sessions.
    #[must_use]
    pub fn with_captures(mut self, captures: Option<PathBuf>) -> Self {
        self.captures = captures;
        self
    }

    /// The only root, for a watcher or a status.
    pub(crate) fn first_root(&self) -> &Path {
        self.roots.first().map_or(Path::new(""), PathBuf::as_path)
    }

    /// Where to look for sessions.
    pub(crate) fn search(&self) -> FolderSearch {
        FolderSearch { roots: self.roots.clone(), captures: self.captures.clone(), known: Vec::new() }
    }

    /// Only sessions that changed at `since` or later.
    #[must_use]
    pub fn with_since(mut self, since: Option<Timestamp>) -> Self {
        self.since = since;
        self
    }

    /// Leaves out sessions whose `<project>/<session>` matches a glob.
    #[must_use]
    pub fn with_exclude(mut self, globs: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.exclude = globs.into_iter().map(Into::into).collect();
        self
    }

    /// Only the most recently changed sessions.
    #[must_use]
    pub fn with_newest(mut self, newest: Option<usize>) -> Self {
        self.newest = newest;
        self
    }

    /// Sets whether to only report what would be done.
    #[must_use]
    pub fn with_dry_run(mut self, dry_run: bool) -> Self {
        self.dry_run = dry_run;
        self
    }

    /// Sets whether to remove rows that a damaged file no longer contains.
    #[must_use]
    pub fn with_accept_removals(mut self, accept_removals: bool) -> Self {
        self.accept_removals = accept_removals;
        self
    }

    /// Sets whether to make the sessions equal to their files.
    #[must_use]
    pub fn with_mirror(mut self, mirror: bool) -> Self {
        self.mirror = mirror;
        self
    }

    /// Whether rows that a damaged file no longer contains are removed.
    pub(crate) fn accepts_removals(&self) -> bool {
        self.accept_removals || self.mirror
    }

    /// Sets whether to read sessions that were deleted from the store.
    #[must_use]
    pub fn with_include_deleted(mut self, include_deleted: bool) -> Self {
        self.include_deleted = include_deleted;
        self
    }

    /// Sets whether to read all files from their beginning, and compare all lines with the store.
    #[must_use]
    pub fn with_verify(mut self, verify: bool) -> Self {
        self.verify = verify;
        self
    }
}
