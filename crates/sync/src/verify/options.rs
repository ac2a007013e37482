//! Options of a verification.

use std::{collections::BTreeSet, path::PathBuf};

use amplifier_session_core::{
    model::{HostId, ProjectSlug, Repository, Session, SessionId, SessionKey, UserId},
    search::SessionFilter,
};

use crate::options::SyncOptions;

/// What to verify, and for which user.
///
/// ```
/// use amplifier_session_core::model::{HostId, UserId};
/// use amplifier_session_sync::VerifyOptions;
///
/// let options = VerifyOptions::new(UserId::new("ana")?, HostId::new("laptop")?)
///     .with_root(Some("/home/ana/.amplifier".into()))
///     .with_repair(true);
/// # Ok::<(), amplifier_session_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct VerifyOptions {
    /// The owner of the sessions.
    pub user: UserId,
    /// This machine, for sessions that a repair reads.
    pub host: HostId,
    /// The folders that contain `projects/` or `state/workspaces/`. By default, there is no root, and the store is only
    /// compared with itself.
    pub roots: Vec<PathBuf>,
    /// The folder with captures that are not in the folders of their sessions.
    pub captures: Option<PathBuf>,
    /// Only these sessions. Default: all.
    pub sessions: Option<Vec<SessionId>>,
    /// Only sessions of one of these projects. Default: all.
    pub projects: Option<BTreeSet<ProjectSlug>>,
    /// Only sessions of one of these repositories. Default: all.
    pub repositories: Option<BTreeSet<Repository>>,
    /// Not these sessions. Default: none.
    pub without: BTreeSet<SessionKey>,
    /// Globs: leaves out folders whose `<project>/<session>` matches a glob, in addition to the globs of the last sync.
    pub exclude: Vec<String>,
    /// Whether to repair differences. Default: no.
    pub repair: bool,
}

impl VerifyOptions {
    /// All sessions of `user`, without files.
    #[must_use]
    pub fn new(user: UserId, host: HostId) -> Self {
        Self {
            user,
            host,
            roots: Vec::new(),
            captures: None,
            sessions: None,
            projects: None,
            repositories: None,
            without: BTreeSet::new(),
            exclude: Vec::new(),
            repair: false,
        }
    }

    /// Compares with the folders in a root.
    #[must_use]
    pub fn with_root(self, root: Option<PathBuf>) -> Self {
        self.with_roots(root)
    }

    /// Compares with the folders in these roots.
    #[must_use]
    pub fn with_roots(mut self, roots: impl IntoIterator<Item = PathBuf>) -> Self {
        self.roots = roots.into_iter().collect();
        self
    }

    /// Sets the folder with captures that are not in the folders of their sessions.
    #[must_use]
    pub fn with_captures(mut self, captures: Option<PathBuf>) -> Self {
        self.captures = captures;
        self
    }

    /// Whether a session is among those to verify, whatever its project.
    pub(super) fn includes(&self, session: &SessionId) -> bool {
        let is_left_out = || self.without.contains(&SessionKey::new(self.user.clone(), session.clone()));
        self.sessions.as_ref().is_none_or(|sessions| sessions.contains(session))
            && (self.without.is_empty() || !is_left_out())
    }

    /// Whether a stored session is of one of the projects and of one of the repositories to verify.
    pub(super) fn admits(&self, session: &Session) -> bool {
        let mut filter = SessionFilter::default();
        filter.projects.clone_from(&self.projects);
        filter.repositories.clone_from(&self.repositories);
        filter.admits(session)
    }

    /// Whether some sessions may be left out.
    pub(super) fn is_partial(&self) -> bool {
        self.sessions.is_some() || self.projects.is_some() || self.repositories.is_some()
    }

    /// The options of a sync of the same folders.
    pub(super) fn of_sync(&self) -> SyncOptions {
        SyncOptions::new("", self.user.clone(), self.host.clone())
            .with_roots(self.roots.clone())
            .with_captures(self.captures.clone())
    }

    /// Only these sessions.
    #[must_use]
    pub fn with_sessions(mut self, sessions: Option<Vec<SessionId>>) -> Self {
        self.sessions = sessions;
        self
    }

    /// Only sessions of one of these projects.
    #[must_use]
    pub fn with_projects(mut self, projects: Option<BTreeSet<ProjectSlug>>) -> Self {
        self.projects = projects;
        self
    }

    /// Only sessions of one of these repositories.
    #[must_use]
    pub fn with_repositories(mut self, repositories: Option<BTreeSet<Repository>>) -> Self {
        self.repositories = repositories;
        self
    }

    /// Leaves out these sessions.
    #[must_use]
    pub fn excluding(mut self, sessions: BTreeSet<SessionKey>) -> Self {
        self.without = sessions;
        self
    }

    /// Leaves out folders whose `<project>/<session>` matches a glob.
    #[must_use]
    pub fn with_exclude(mut self, globs: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.exclude = globs.into_iter().map(Into::into).collect();
        self
    }

    /// Sets whether to repair differences.
    #[must_use]
    pub fn with_repair(mut self, repair: bool) -> Self {
        self.repair = repair;
        self
    }
}
