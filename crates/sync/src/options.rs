//! What to sync.

use std::path::PathBuf;

use amplifier_session_core::model::{HostId, Timestamp, UserId};

/// Which session folders to take in, and for whom.
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
    /// The folder that holds `projects/`.
    pub root: PathBuf,
    /// The owner of the sessions.
    pub user: UserId,
    /// The machine that they come from.
    pub host: HostId,
    /// Only sessions with a file that changed at this time or later.
    pub since: Option<Timestamp>,
    /// Globs; a session whose `<project>/<session>` one of them matches is left out. `*` matches `/` too.
    pub exclude: Vec<String>,
    /// Only so many sessions, those that changed last.
    pub newest: Option<usize>,
    /// Whether to say what would be done and do nothing.
    pub dry_run: bool,
    /// Whether to remove what a damaged file no longer holds, instead of keeping it.
    pub accept_removals: bool,
    /// Whether to take in sessions that were deleted from the store, instead of passing them over.
    pub include_deleted: bool,
}

impl SyncOptions {
    /// All sessions below `root`.
    #[must_use]
    pub fn new(root: impl Into<PathBuf>, user: UserId, host: HostId) -> Self {
        Self {
            root: root.into(),
            user,
            host,
            since: None,
            exclude: Vec::new(),
            newest: None,
            dry_run: false,
            accept_removals: false,
            include_deleted: false,
        }
    }

    /// Narrows to sessions that changed at `since` or later.
    #[must_use]
    pub fn with_since(mut self, since: Option<Timestamp>) -> Self {
        self.since = since;
        self
    }

    /// Leaves out sessions whose `<project>/<session>` one of the globs matches.
    #[must_use]
    pub fn with_exclude(mut self, globs: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.exclude = globs.into_iter().map(Into::into).collect();
        self
    }

    /// Narrows to the sessions that changed last.
    #[must_use]
    pub fn with_newest(mut self, newest: Option<usize>) -> Self {
        self.newest = newest;
        self
    }

    /// Sets whether to say what would be done and do nothing.
    #[must_use]
    pub fn with_dry_run(mut self, dry_run: bool) -> Self {
        self.dry_run = dry_run;
        self
    }

    /// Sets whether to remove what a damaged file no longer holds.
    #[must_use]
    pub fn with_accept_removals(mut self, accept_removals: bool) -> Self {
        self.accept_removals = accept_removals;
        self
    }

    /// Sets whether to take in sessions that were deleted from the store.
    #[must_use]
    pub fn with_include_deleted(mut self, include_deleted: bool) -> Self {
        self.include_deleted = include_deleted;
        self
    }
}
