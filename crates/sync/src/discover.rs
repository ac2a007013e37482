//! Finding session folders.

use std::{
    ffi::OsStr,
    fs, io,
    path::{Path, PathBuf},
};

use amplifier_session_core::{
    Error, ErrorKind, Result,
    model::{ProjectSlug, SessionId, Timestamp},
};

use crate::files::{SessionFiles, leads_nowhere};

/// The folder of one session.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionFolder {
    /// The project: the name of its folder.
    pub project: ProjectSlug,
    /// The session: the name of its folder.
    pub session: SessionId,
    /// The folder.
    pub path: PathBuf,
    /// The total size of the files that a sync reads.
    pub bytes: u64,
    /// The modification time of the newest of them.
    pub modified: Timestamp,
    pub(crate) files: SessionFiles,
}

/// The session folders below a root.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Discovery {
    /// Folders that can be read, newest first.
    pub sessions: Vec<SessionFolder>,
    /// Folders that can't be read.
    pub rejected: Vec<Rejected>,
}

/// A folder that can't be read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rejected {
    /// The name of the project's folder.
    pub project: String,
    /// The name of the session's folder; `None` for the whole project.
    pub session: Option<String>,
    /// The kind of reason.
    pub because: RejectedBecause,
    /// The reason in words.
    pub reason: String,
}

/// Why a folder is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RejectedBecause {
    /// Its name is not a valid id.
    InvalidName,
    /// It can't be read.
    Unreadable,
    /// It is a link to a folder outside the root.
    LeadsOutside,
    /// It is a link to something that does not exist, or to itself.
    LeadsNowhere,
}

/// Lists the folders `projects/*/sessions/*` in `root` that contain a session.
///
/// Folders without any file of a session are ignored. Links to folders of projects are followed if they lead out of
/// `projects`; a link into it would only show the same sessions again. A link to the folder of a session is not followed
/// if it leads out of `root`: it is rejected. So is a link that leads nowhere.
///
/// # Errors
///
/// `Validation` if `root` has no folder `projects`, `StorageIo` if it can't be read.
pub fn discover(root: &Path) -> Result<Discovery> {
    let projects = root.join("projects");
    let folders = subfolders(&projects, &projects).map_err(|error| unreadable_root(&projects, error))?;
    let mut found = Discovery::default();
    for (name, path) in folders {
        if leads_nowhere(&path) {
            found.reject_link(name, None, RejectedBecause::LeadsNowhere);
            continue;
        }
        // Another folder may have the same name as text.
        if path.file_name().is_some_and(|name| name.to_str().is_none()) {
            if path.join("sessions").is_dir() {
                found.reject_encoding(name, None);
            }
            continue;
        }
        match ProjectSlug::new(&name) {
            Ok(project) => found.add_project(&projects, &project, &path),
            Err(error) if path.join("sessions").is_dir() => found.reject_name(&name, None, &error),
            Err(_) => {}
        }
    }
    let order = |folder: &SessionFolder| (folder.modified, folder.path.clone());
    found.sessions.sort_by_cached_key(|folder| std::cmp::Reverse(order(folder)));
    Ok(found)
}

/// As [`discover`], for some sessions and projects. Leaves out those that do not exist, and everything if there is no
/// folder `projects`.
#[cfg(feature = "watch")]
pub(crate) fn discover_some(root: &Path, changed: &crate::changed::Changed) -> Discovery {
    let projects = root.join("projects");
    let mut found = Discovery::default();
    for name in &changed.projects {
        if let Some((project, path)) = found.project(&projects, name) {
            found.add_project(&projects, &project, &path);
        }
    }
    let is_listed = |(project, _): &&(String, String)| !changed.projects.contains(project);
    for (project_name, name) in changed.sessions.iter().filter(is_listed) {
        let Some((project, path)) = found.project(&projects, project_name) else { continue };
        let path = path.join("sessions").join(name);
        if is_folder(&projects, &path) {
            found.add_folder(&project, name.clone(), path);
        }
    }
    found
}

fn unreadable_root(projects: &Path, error: io::Error) -> Error {
    let error = match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
            Error::validation("root", "no folder `projects` in the root").with_source(error)
        }
        _ => Error::new(ErrorKind::StorageIo, format!("can't read the session folders: {error}"))
            .with_source(error),
    };
    error.with_operation("discover").with("path", projects.display())
}

impl Discovery {
    fn add_project(&mut self, projects: &Path, project: &ProjectSlug, path: &Path) {
        let folders = match subfolders(projects, &path.join("sessions")) {
            Ok(folders) => folders,
            // The project has no sessions.
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                return;
            }
            Err(error) => return self.reject_unreadable(project, None, &error),
        };
        for (name, path) in folders {
            self.add_folder(project, name, path);
        }
    }

    fn add_folder(&mut self, project: &ProjectSlug, name: String, path: PathBuf) {
        if leads_nowhere(&path) {
            return self.reject_link(project.to_string(), Some(name), RejectedBecause::LeadsNowhere);
        }
        if path.is_symlink() && leads_outside(&path) {
            return self.reject_link(project.to_string(), Some(name), RejectedBecause::LeadsOutside);
        }
        match SessionFiles::find(&path) {
            // Another folder may have the same name as text.
            Ok(Some(_)) if path.file_name().is_some_and(|name| name.to_str().is_none()) => {
                self.reject_encoding(project.to_string(), Some(name));
            }
            Ok(Some(files)) => self.add_session(project, &name, path, files),
            Ok(None) => {}
            Err(error) => self.reject_unreadable(project, Some(name), &error),
        }
    }

    /// A project and its folder, if it exists and has a valid name.
    #[cfg(feature = "watch")]
    fn project(&mut self, projects: &Path, name: &str) -> Option<(ProjectSlug, PathBuf)> {
        let path = projects.join(name);
        match ProjectSlug::new(name) {
            Ok(project) => is_folder(projects, &path).then_some((project, path)),
            Err(error) => {
                if path.join("sessions").is_dir() {
                    self.reject_name(name, None, &error);
                }
                None
            }
        }
    }

    fn add_session(&mut self, project: &ProjectSlug, name: &str, path: PathBuf, files: SessionFiles) {
        let session = match SessionId::new(name) {
            Ok(session) => session,
            Err(error) => return self.reject_name(project.as_str(), Some(name), &error),
        };
        let bytes = files.all().map(|file| file.stamp.size).sum();
        let modified = files.modified().unwrap_or(Timestamp::from_micros(0));
        self.sessions.push(SessionFolder { project: project.clone(), session, path, bytes, modified, files });
    }

    fn reject_name(&mut self, project: &str, session: Option<&str>, error: &Error) {
        self.rejected.push(Rejected {
            project: project.to_owned(),
            session: session.map(str::to_owned),
            because: RejectedBecause::InvalidName,
            reason: format!("the folder name is not a valid id: {error}"),
        });
    }

    fn reject_encoding(&mut self, project: String, session: Option<String>) {
        self.rejected.push(Rejected {
            project,
            session,
            because: RejectedBecause::InvalidName,
            reason: "the folder name is not valid UTF-8".to_owned(),
        });
    }

    fn reject_link(&mut self, project: String, session: Option<String>, because: RejectedBecause) {
        let reason = match because {
            RejectedBecause::LeadsNowhere => "the link leads nowhere",
            _ => "the folder is a link that points outside the root; it is not followed",
        };
        self.rejected.push(Rejected { project, session, because, reason: reason.to_owned() });
    }

    fn reject_unreadable(&mut self, project: &ProjectSlug, session: Option<String>, error: &io::Error) {
        self.rejected.push(Rejected {
            project: project.to_string(),
            session,
            because: RejectedBecause::Unreadable,
            reason: format!("the folder can't be read: {error}"),
        });
    }
}

/// Names and paths of the folders in `path`, including links to folders unless they lead into `projects`, and links that
/// lead nowhere.
fn subfolders(projects: &Path, path: &Path) -> io::Result<Vec<(String, PathBuf)>> {
    let mut folders = Vec::new();
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        let is_listed = |path: &Path| leads_to_other_folder(projects, path) || leads_nowhere(path);
        if kind.is_dir() || (kind.is_symlink() && is_listed(&entry.path())) {
            folders.push((text(&entry.file_name()), entry.path()));
        }
    }
    Ok(folders)
}

/// Whether `path` is a folder that [`subfolders`] lists.
#[cfg(feature = "watch")]
fn is_folder(projects: &Path, path: &Path) -> bool {
    fs::symlink_metadata(path)
        .is_ok_and(|found| found.is_dir() || (found.is_symlink() && leads_to_other_folder(projects, path)))
        || leads_nowhere(path)
}

fn leads_to_other_folder(projects: &Path, link: &Path) -> bool {
    let resolved = fs::canonicalize(link).and_then(|target| Ok((target, fs::canonicalize(projects)?)));
    resolved.is_ok_and(|(target, projects)| {
        // The target of an upward link contains `projects` itself.
        target.is_dir() && !target.starts_with(&projects) && !projects.starts_with(&target)
    })
}

/// Whether the link `path` to the folder of a session leads to another place than the root of that session's project. A
/// project may itself be a link.
fn leads_outside(path: &Path) -> bool {
    // ROOT/projects/<project>/sessions/<session>
    let parents = [path.ancestors().nth(4), path.ancestors().nth(2)];
    let Ok(target) = fs::canonicalize(path) else { return false };
    let mut roots = parents.into_iter().flatten().filter_map(|parent| fs::canonicalize(parent).ok());
    !roots.any(|root| target.starts_with(root))
}

/// The name as text. If it is not UTF-8, it contains U+FFFD.
fn text(name: &OsStr) -> String {
    name.to_string_lossy().into_owned()
}
