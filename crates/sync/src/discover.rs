//! Finding session folders.

use std::{
    ffi::OsStr,
    fs,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    io,
    path::{Path, PathBuf},
};

use amplifier_session_core::{
    Error, ErrorField, ErrorKind, Result,
    model::{ProjectSlug, SessionId, SessionSource, Timestamp},
};

use crate::{
    files::{Places, SessionFiles, leads_nowhere},
    roots::{ProjectsFolder, projects_folders},
};

/// The folder of one session.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionFolder {
    /// The project: the name of its folder.
    pub project: ProjectSlug,
    /// The session: the name of its folder.
    pub session: SessionId,
    /// The program that writes it.
    pub source: SessionSource,
    /// The folder.
    pub path: PathBuf,
    /// The total size of the files that a sync reads.
    pub bytes: u64,
    /// The modification time of the newest of them.
    pub modified: Timestamp,
    pub(crate) files: SessionFiles,
    /// The root that it is in.
    pub(crate) root: PathBuf,
    /// The folder that contains the session's capture, if captures are not in the folders of their sessions.
    capture: Option<PathBuf>,
    /// A number that changes with everything that decides what a sync reads: where the session is, which files it has,
    /// and their stamps.
    pub(crate) fingerprint: u64,
}

impl SessionFolder {
    /// Where the session's files are.
    pub(crate) fn places(&self) -> Places {
        Places { folder: self.path.clone(), capture: self.capture.clone() }
    }

    /// The name of the project's folder on disk, where accents may be decomposed.
    pub(crate) fn project_folder(&self) -> String {
        project_folder(&self.path).unwrap_or(self.project.as_str()).to_owned()
    }

    /// The path of a file, given its path within the session folder.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.places().file(name)
    }
}

/// The session folders below a root.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Discovery {
    /// Folders that can be read, newest first.
    pub sessions: Vec<SessionFolder>,
    /// Folders that can't be read.
    pub rejected: Vec<Rejected>,
    /// The fingerprints of folders that were left out because they are known.
    pub(crate) known: Vec<u64>,
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

/// Lists the folders `projects/*/sessions/*` and `state/workspaces/*/sessions/*` in `root` that contain a session. `root`
/// may also be the folder `state`.
///
/// Folders without any file of a session are ignored. Links to folders of projects are followed if they lead out of
/// `projects`; a link into it would only show the same sessions again. A link to the folder of a session is not followed
/// if it leads out of `root`: it is rejected. So is a link that leads nowhere.
///
/// # Errors
///
/// `Validation` if `root` has none of these folders, `StorageIo` if they can't be read.
pub fn discover(root: &Path) -> Result<Discovery> {
    discover_in(&FolderSearch { roots: vec![root.to_owned()], ..FolderSearch::default() })
}

/// Where to look for sessions.
#[derive(Debug, Clone, Default)]
pub(crate) struct FolderSearch {
    pub(crate) roots: Vec<PathBuf>,
    /// The folder with captures that are not in the folders of their sessions.
    pub(crate) captures: Option<PathBuf>,
    /// The fingerprints of folders to leave out, in ascending order.
    pub(crate) known: Vec<u64>,
}

impl FolderSearch {
    /// The folder that contains the capture of the session in `folder`, if captures are not in the folders of their sessions.
    fn capture(&self, projects: &ProjectsFolder, folder: &Path) -> Option<PathBuf> {
        let captures = self.captures.as_ref().filter(|captures| **captures != projects.path)?;
        Some(captures.join(folder.strip_prefix(&projects.path).ok()?))
    }
}

/// As [`discover`], in several roots.
pub(crate) fn discover_in(search: &FolderSearch) -> Result<Discovery> {
    let mut found = Discovery::default();
    for root in &search.roots {
        let folders = projects_folders(root);
        if folders.is_empty() {
            return Err(unreadable_root(root));
        }
        for projects in &folders {
            found.add_projects(search, projects)?;
        }
    }
    let order = |folder: &SessionFolder| (folder.modified, folder.path.clone());
    found.sessions.sort_by_cached_key(|folder| std::cmp::Reverse(order(folder)));
    Ok(found)
}

/// As [`discover_in`], for some sessions and projects. Leaves out those that do not exist, and roots without projects.
#[cfg(feature = "watch")]
pub(crate) fn discover_some(search: &FolderSearch, changed: &crate::changed::Changed) -> Discovery {
    let mut found = Discovery::default();
    for projects in search.roots.iter().flat_map(|root| projects_folders(root)) {
        for name in &changed.projects {
            if let Some((project, path)) = found.project(&projects.path, name) {
                found.add_project(search, &projects, &project, &path);
            }
        }
        let is_listed = |(project, _): &&(String, String)| !changed.projects.contains(project);
        for (project_name, name) in changed.sessions.iter().filter(is_listed) {
            let Some((project, path)) = found.project(&projects.path, project_name) else { continue };
            let path = path.join("sessions").join(name);
            if is_folder(&projects.path, &path) {
                let folder = Subfolder { name: name.clone(), is_link: path.is_symlink(), path };
                found.add_folder(search, &projects, &project, folder);
            }
        }
    }
    found
}

/// Why a root has no folder with projects.
fn unreadable_root(root: &Path) -> Error {
    let projects = root.join("projects");
    let error = fs::read_dir(&projects).err().unwrap_or_else(|| io::ErrorKind::NotFound.into());
    unreadable(&projects, error)
}

fn unreadable(projects: &Path, error: io::Error) -> Error {
    let error = match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
            Error::validation(ErrorField::Root, "no folder `projects` in the root").with_source(error)
        }
        _ => Error::new(ErrorKind::StorageIo, format!("can't read the session folders: {error}"))
            .with_source(error),
    };
    error.with_operation("discover").with("path", projects.display())
}

impl Discovery {
    fn add_projects(&mut self, search: &FolderSearch, projects: &ProjectsFolder) -> Result<()> {
        let folders = subfolders(&projects.path, &projects.path);
        for Subfolder { name, path, is_link } in folders.map_err(|error| unreadable(&projects.path, error))? {
            if is_link && leads_nowhere(&path) {
                self.reject_link(name, None, RejectedBecause::LeadsNowhere);
                continue;
            }
            // Another folder may have the same name as text.
            if path.file_name().is_some_and(|name| name.to_str().is_none()) {
                if path.join("sessions").is_dir() {
                    self.reject_encoding(name, None);
                }
                continue;
            }
            match ProjectSlug::new(&name) {
                Ok(project) => self.add_project(search, projects, &project, &path),
                Err(error) if path.join("sessions").is_dir() => self.reject_name(&name, None, &error),
                Err(_) => {}
            }
        }
        Ok(())
    }

    fn add_project(
        &mut self,
        search: &FolderSearch,
        projects: &ProjectsFolder,
        project: &ProjectSlug,
        path: &Path,
    ) {
        let folders = match subfolders(&projects.path, &path.join("sessions")) {
            Ok(folders) => folders,
            // The project has no sessions.
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                return;
            }
            Err(error) => return self.reject_unreadable(project, None, &error),
        };
        for folder in folders {
            self.add_folder(search, projects, project, folder);
        }
    }

    fn add_folder(
        &mut self,
        search: &FolderSearch,
        projects: &ProjectsFolder,
        project: &ProjectSlug,
        Subfolder { name, path, is_link }: Subfolder,
    ) {
        if is_link && leads_nowhere(&path) {
            return self.reject_link(project.to_string(), Some(name), RejectedBecause::LeadsNowhere);
        }
        if is_link && leads_outside(&projects.root, &path) {
            return self.reject_link(project.to_string(), Some(name), RejectedBecause::LeadsOutside);
        }
        let places = Places { capture: search.capture(projects, &path), folder: path };
        let path = &places.folder;
        match SessionFiles::find(&places) {
            // Another folder may have the same name as text.
            Ok(Some(_)) if path.file_name().is_some_and(|name| name.to_str().is_none()) => {
                self.reject_encoding(project.to_string(), Some(name));
            }
            Ok(Some(files)) => self.add_session(search, projects, project, &name, places, files),
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

    fn add_session(
        &mut self,
        search: &FolderSearch,
        projects: &ProjectsFolder,
        project: &ProjectSlug,
        name: &str,
        Places { folder: path, capture }: Places,
        files: SessionFiles,
    ) {
        // A watcher looks at thousands of folders, of which few have changed: the others need no further work.
        let mut hasher = DefaultHasher::new();
        (&path, &capture, project, projects.source, &files).hash(&mut hasher);
        let fingerprint = hasher.finish();
        if search.known.binary_search(&fingerprint).is_ok() {
            self.known.push(fingerprint);
            return;
        }
        let session = match SessionId::new(name) {
            Ok(session) => session,
            Err(error) => return self.reject_name(project.as_str(), Some(name), &error),
        };
        self.sessions.push(SessionFolder {
            project: project.clone(),
            session,
            source: projects.source,
            path,
            bytes: files.all().map(|file| file.stamp.size).sum(),
            modified: files.modified().unwrap_or(Timestamp::from_micros(0)),
            files,
            root: projects.root.clone(),
            capture,
            fingerprint,
        });
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

/// The name of the project's folder that contains the folder of a session.
pub(crate) fn project_folder(session: &Path) -> Option<&str> {
    session.ancestors().nth(2)?.file_name()?.to_str()
}

/// A folder in a folder.
struct Subfolder {
    name: String,
    path: PathBuf,
    is_link: bool,
}

/// The folders in `path`, including links to folders unless they lead into `projects`, and links that lead nowhere.
fn subfolders(projects: &Path, path: &Path) -> io::Result<Vec<Subfolder>> {
    let mut folders = Vec::new();
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        let is_listed = |path: &Path| leads_to_other_folder(projects, path) || leads_nowhere(path);
        if kind.is_dir() || (kind.is_symlink() && is_listed(&entry.path())) {
            let name = text(&entry.file_name());
            folders.push(Subfolder { name, path: entry.path(), is_link: kind.is_symlink() });
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

/// Whether the link `path` to the folder of a session leads to another place than the root or that session's project. A
/// project may itself be a link.
fn leads_outside(root: &Path, path: &Path) -> bool {
    // ROOT/projects/<project>/sessions/<session>
    let parents = [Some(root), path.ancestors().nth(2)];
    let Ok(target) = fs::canonicalize(path) else { return false };
    let mut roots = parents.into_iter().flatten().filter_map(|parent| fs::canonicalize(parent).ok());
    !roots.any(|root| target.starts_with(root))
}

/// The name as text. If it is not UTF-8, it contains U+FFFD.
fn text(name: &OsStr) -> String {
    name.to_string_lossy().into_owned()
}
