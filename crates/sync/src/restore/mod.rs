//! Writes stored sessions back as session folders.

mod content;
mod place;
mod report;
mod staging;

use std::{
    collections::HashSet,
    io,
    path::{Component, Path, PathBuf},
};

use amplifier_session_core::{
    Error, ErrorKind, Result, Scope, SessionStorage,
    backend::{SessionQuery, StoredSession},
    model::{Session, SessionKey},
    search::SessionFilter,
    text::{composed, counted},
};

use self::{content::Content, place::Placed, staging::Staging};
use crate::{
    discover::project_folder, progress::NoProgress, roots::projects_of, run::affects_all,
    state::source_folder,
};

pub use report::{DifferingFile, DiffersBecause, NotRestored, RestoreReport};

/// Number of sessions listed at a time.
const SESSIONS: usize = 100;
/// How often to retry a session that changes while it is read.
const ATTEMPTS: usize = 3;

/// Which sessions to write, and where.
///
/// ```
/// use amplifier_session_core::{Scope, model::UserId};
/// use amplifier_session_sync::RestoreOptions;
///
/// let own = Scope::from(UserId::new("ana")?);
/// let options = RestoreOptions::new("/home/ana/.amplifier", own).with_overwrite(true);
/// # Ok::<(), amplifier_session_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct RestoreOptions {
    /// The folder that contains or gets `projects/`, and `state/workspaces/` for sessions of Amplifier's agent. It is
    /// created if it does not exist.
    pub to: PathBuf,
    /// The scope of the sessions.
    pub scope: Scope,
    /// Only matching sessions. Default: all.
    pub filter: SessionFilter,
    /// Only these sessions. Default: all.
    pub sessions: Option<Vec<SessionKey>>,
    /// Whether to replace files that exist and differ. Default: no; their session is not restored.
    pub overwrite: bool,
}

impl RestoreOptions {
    /// Writes all sessions in `scope` to `to`.
    #[must_use]
    pub fn new(to: impl Into<PathBuf>, scope: Scope) -> Self {
        Self { to: to.into(), scope, filter: SessionFilter::default(), sessions: None, overwrite: false }
    }

    /// Only matching sessions.
    #[must_use]
    pub fn with_filter(mut self, filter: SessionFilter) -> Self {
        self.filter = filter;
        self
    }

    /// Only these sessions.
    #[must_use]
    pub fn with_sessions(mut self, sessions: Option<Vec<SessionKey>>) -> Self {
        self.sessions = sessions;
        self
    }

    /// Sets whether to replace files that exist and differ.
    #[must_use]
    pub fn with_overwrite(mut self, overwrite: bool) -> Self {
        self.overwrite = overwrite;
        self
    }
}

/// Receives the progress of a restore.
pub trait RestoreProgress: Send + Sync {
    /// Called with the number of sessions to restore.
    fn begin(&self, _sessions: u64) {}

    /// Called with the folder for incomplete files. It is removed at the end. If the process is killed, the next
    /// restore to the same folder removes it.
    fn staging(&self, _folder: &Path) {}

    /// Called when a session was processed.
    fn session(&self, _session: &SessionKey) {}
}

impl RestoreProgress for NoProgress {}

/// Writes sessions as folders `projects/<project>/sessions/<session>`, and those of Amplifier's agent in
/// `state/workspaces`, in their state when they were synced.
///
/// Each line of a transcript or event log is checked against its stored digest. Lines end with a newline. If a restored
/// file can't be equal to the synced one, [`RestoreReport::differing`] gives the reason. A new session folder appears
/// with all of its files. In an existing one, equal files are left alone, and missing files are added. Existing files
/// that differ are replaced only on request; otherwise, the session fails, and the others are restored. Only a few
/// lines are in memory. Links in the folder are not followed.
///
/// # Errors
///
/// `StorageIo` if nothing can be written to the folder; errors of the store that affect all sessions.
pub async fn restore(
    storage: &SessionStorage,
    options: &RestoreOptions,
    progress: &dyn RestoreProgress,
) -> Result<RestoreReport> {
    let keys = keys(storage, options).await?;
    let mut report = RestoreReport::default();
    if keys.is_empty() {
        return Ok(report);
    }
    progress.begin(keys.len() as u64);
    let staging = Staging::begin(&options.to).map_err(|error| cannot_write(&options.to, &error))?;
    progress.staging(staging.path());
    let mut restore = Restore { storage, options, staging: &staging, taken: HashSet::new() };
    for key in &keys {
        match restore.session(key, &mut report).await {
            Ok(()) => {}
            Err(RestoreProblem::Session(reason)) => report.fail(key, reason),
            Err(RestoreProblem::Store(error)) if affects_all(&error) => {
                let done = format_args!("{} of {}", report.sessions, counted(keys.len() as u64, "session"));
                return Err(error.with_operation("restore").with("restored", done));
            }
            Err(RestoreProblem::Store(error)) => report.fail(key, error.to_string()),
        }
        progress.session(key);
    }
    Ok(report)
}

/// The sessions to restore.
async fn keys(storage: &SessionStorage, options: &RestoreOptions) -> Result<Vec<SessionKey>> {
    let mut query =
        SessionQuery::new(options.scope.clone()).with_filter(options.filter.clone()).with_limit(SESSIONS);
    query.keys = options.sessions.clone();
    Ok(storage.sessions().all_sessions(query).await?.iter().map(Session::key).collect())
}

fn cannot_write(folder: &Path, error: &io::Error) -> Error {
    let message = format!("can't write to {}: {error}", folder.display());
    Error::new(ErrorKind::StorageIo, message).with_operation("restore")
}

/// Why a session could not be restored.
#[derive(Debug)]
enum RestoreProblem {
    /// The session, or its folder.
    Session(String),
    /// The store.
    Store(Error),
}

impl From<Error> for RestoreProblem {
    fn from(error: Error) -> Self {
        Self::Store(error)
    }
}

impl From<io::Error> for RestoreProblem {
    fn from(error: io::Error) -> Self {
        Self::Session(format!("its files can't be written: {error}"))
    }
}

/// A restore that is running.
struct Restore<'a> {
    storage: &'a SessionStorage,
    options: &'a RestoreOptions,
    staging: &'a Staging,
    /// The folders of the sessions so far: several users may have a session with the same id in the same project.
    taken: HashSet<PathBuf>,
}

impl Restore<'_> {
    async fn session(&mut self, key: &SessionKey, report: &mut RestoreReport) -> Result<(), RestoreProblem> {
        for _ in 0..ATTEMPTS {
            // It was deleted after it was listed.
            let Some(stored) = self.stored(key).await? else { return Ok(()) };
            let target = self.target(&stored)?;
            let content = Content::write(self.storage, &stored, self.staging.next()?).await?;
            if self.stored(key).await?.is_some_and(|after| after.version == stored.version) {
                let placed = content.place(&self.options.to, &target, self.options.overwrite)?;
                self.taken.insert(target);
                content.add_to(report, placed == Placed::Unchanged);
                return Ok(());
            }
        }
        Err(RestoreProblem::Session("it changes faster than it can be read".to_owned()))
    }

    async fn stored(&self, key: &SessionKey) -> Result<Option<StoredSession>, RestoreProblem> {
        Ok(self.storage.backend().get_session(key).await?)
    }

    /// The folder of a session. Its names come from the store, and must not lead elsewhere.
    fn target(&self, stored: &StoredSession) -> Result<PathBuf, RestoreProblem> {
        let session = &stored.session;
        let folder = stored.sync_state.as_ref().and_then(source_folder);
        // The folder that was read may have accents in another form.
        let read = folder.as_deref().and_then(project_folder);
        let project = read
            .filter(|name| composed(name) == session.project_slug.as_str())
            .unwrap_or(session.project_slug.as_str());
        let id = session.session_id.as_str();
        for name in [project, id] {
            if !is_file_name(name) {
                return Err(RestoreProblem::Session(format!("{name:?} can't be the name of a folder")));
            }
        }
        let projects = projects_of(&self.options.to, session.source);
        let target = projects.join(project).join("sessions").join(id);
        if self.taken.contains(&target) {
            let reason = "another user's session with the same id and project was restored there";
            return Err(RestoreProblem::Session(reason.to_owned()));
        }
        Ok(target)
    }
}

/// Whether a name can be a file or folder in the current folder.
fn is_file_name(name: &str) -> bool {
    let mut components = Path::new(name).components();
    let only = (components.next(), components.next());
    matches!(only, (Some(Component::Normal(found)), None) if found == name)
}

#[cfg(test)]
mod tests {
    use super::is_file_name;

    #[test]
    fn names_that_lead_elsewhere_are_not_used() {
        for name in ["..", ".", "", "/", "/etc", "a/b", "../a", "a/..", "a/", "./a", "//a"] {
            assert!(!is_file_name(name), "{name:?}");
        }
        for name in ["-home-ana-shop", "...", ".a", "a b", "7f3c9a52", "~"] {
            assert!(is_file_name(name), "{name:?}");
        }
    }
}
