//! Roots: folders with the sessions of a program.

use std::path::{Path, PathBuf};

use amplifier_session_core::model::SessionSource;

/// The folders in a root that may contain projects, and the programs that write them.
const FOLDERS: [(&str, SessionSource); 3] = [
    ("projects", SessionSource::Amplifier),
    ("state/workspaces", SessionSource::AmplifierAgent),
    // The root is the folder `state`.
    ("workspaces", SessionSource::AmplifierAgent),
];

/// A folder with projects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProjectsFolder {
    pub(crate) root: PathBuf,
    pub(crate) path: PathBuf,
    /// The program that writes it.
    pub(crate) source: SessionSource,
}

/// Whether a folder contains projects with sessions: `projects`, as Amplifier writes it, or `state/workspaces`, as its
/// agent does.
#[must_use]
pub fn is_root(folder: &Path) -> bool {
    !projects_folders(folder).is_empty()
}

/// The root of a session folder: `<root>/projects/<project>/sessions/<session>`, or with `state/workspaces`.
#[must_use]
pub fn root_of(session_folder: &Path) -> Option<&Path> {
    let projects = session_folder.ancestors().nth(3)?;
    let named = FOLDERS.iter().find(|(name, _)| projects.ends_with(name));
    projects.ancestors().nth(named.map_or(1, |(name, _)| Path::new(name).components().count()))
}

/// The folders with projects in a root. At most one for each program.
pub(crate) fn projects_folders(root: &Path) -> Vec<ProjectsFolder> {
    let mut found: Vec<ProjectsFolder> = Vec::new();
    for (name, source) in FOLDERS {
        let path = root.join(name);
        if path.is_dir() && found.iter().all(|other| other.source != source) {
            found.push(ProjectsFolder { root: root.to_owned(), path, source });
        }
    }
    found
}

/// The folder for projects of a program in a root, whether it exists or not.
pub(crate) fn projects_of(root: &Path, source: SessionSource) -> PathBuf {
    let found = projects_folders(root).into_iter().find(|folder| folder.source == source);
    let usual = || FOLDERS.into_iter().find(|(_, of)| *of == source).map_or("projects", |(name, _)| name);
    found.map_or_else(|| root.join(usual()), |folder| folder.path)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_root_has_the_folders_of_one_program_or_of_both() {
        let home = tempfile::tempdir().unwrap();
        let found = |root: &str| {
            let root = home.path().join(root);
            let folders = projects_folders(&root);
            let names = folders.iter().map(|folder| {
                format!("{} {}", folder.path.strip_prefix(&root).unwrap().display(), folder.source)
            });
            names.collect::<Vec<_>>().join(", ")
        };
        for folder in ["a/projects", "b/state/workspaces", "b/workspaces", "c/projects", "c/workspaces"] {
            fs::create_dir_all(home.path().join(folder)).unwrap();
        }
        fs::write(home.path().join("projects"), "a file").unwrap();
        assert_eq!(found("a"), "projects amplifier");
        assert_eq!(found("b"), "state/workspaces amplifier-agent");
        assert_eq!(found("b/state"), "workspaces amplifier-agent");
        assert_eq!(found("c"), "projects amplifier, workspaces amplifier-agent");
        assert_eq!((found("."), found("missing")), (String::new(), String::new()));
        assert!(is_root(&home.path().join("a")) && !is_root(home.path()));
    }

    #[test]
    fn the_root_of_a_session_is_above_its_projects() {
        let root = |folder| root_of(Path::new(folder)).map(|root| root.display().to_string());
        for folder in
            ["/a/projects/p/sessions/s", "/a/state/workspaces/p/sessions/s", "/a/workspaces/p/sessions/s"]
        {
            assert_eq!(root(folder).as_deref(), Some("/a"), "{folder}");
        }
        assert_eq!(root("s"), None);
    }

    #[test]
    fn sessions_are_written_where_their_program_looks_for_them() {
        let home = tempfile::tempdir().unwrap();
        let of = |source| projects_of(home.path(), source).strip_prefix(home.path()).unwrap().to_owned();
        let (own, agent) = (SessionSource::Amplifier, SessionSource::AmplifierAgent);
        assert_eq!((of(own), of(agent)), ("projects".into(), "state/workspaces".into()));
        fs::create_dir(home.path().join("workspaces")).unwrap();
        assert_eq!((of(own), of(agent)), ("projects".into(), "workspaces".into()));
    }
}
