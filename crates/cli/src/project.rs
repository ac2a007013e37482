//! Finds the sessions of a project for a typed slug or folder.

use std::path::{Component, Path, PathBuf};

use amplifier_session_storage::{
    backend::SessionQuery, model::ProjectSlug, search::SessionFilter, storage::FolderProject,
};

use crate::{
    app::{App, StoreReader},
    failure::{Failure, say},
    render::text::{counted, one_line},
};

/// How many sessions are read at once.
const PAGE: usize = 1_000;

impl App {
    /// The sessions of the project whose slug, part of a slug, or folder is `typed`. If no project matches, `typed` is
    /// taken as a slug, which finds nothing. All sessions if nothing is typed.
    pub(crate) async fn project(
        &self,
        reader: &StoreReader,
        typed: Option<&str>,
    ) -> Result<SessionFilter, Failure> {
        let Some(typed) = typed else { return Ok(SessionFilter::default()) };
        let slug = ProjectSlug::new(typed)?;
        if !is_path(typed) {
            let found = reader.storage.sessions().find_project(&reader.scope, typed).await?;
            if found.is_some() || !Path::new(typed).is_dir() {
                return Ok(SessionFilter::default().with_project(found.unwrap_or(slug)));
            }
        }
        of_folder(self, reader, typed).await
    }
}

/// The sessions of a folder, or of the nearest folder above it that has some.
async fn of_folder(app: &App, reader: &StoreReader, typed: &str) -> Result<SessionFilter, Failure> {
    let folder = absolute(typed, app.home.as_deref())?;
    // The session may have been started in the folder or through a link to it.
    let resolved = folder.canonicalize().unwrap_or_else(|_| folder.clone());
    for folder in [&folder, &resolved] {
        for (above, ancestor) in folder.ancestors().enumerate() {
            // The project of the home folder itself is not that of the folders in it.
            let is_too_far = ancestor.parent().is_none() || app.home.as_deref() == Some(ancestor);
            if above > 0 && is_too_far {
                break;
            }
            let found = reader
                .storage
                .sessions()
                .project_of_folder(&reader.scope, &ancestor.to_string_lossy())
                .await?;
            if let Some(found) = found {
                if above > 0 {
                    say("note", &format!("{} is in the project {}", folder.display(), found.slug));
                }
                say_what_is_left_out(&found, ancestor);
                return Ok(found.sessions);
            }
        }
    }
    of_no_session(reader, &resolved).await
}

/// The sessions of a folder without any: none, also if sessions of another folder have its slug.
async fn of_no_session(reader: &StoreReader, folder: &Path) -> Result<SessionFilter, Failure> {
    let slug = ProjectSlug::of_folder(&folder.to_string_lossy())?;
    let filter = SessionFilter::default().with_project(slug.clone());
    let query = SessionQuery::new(reader.scope.clone()).with_filter(filter.clone()).with_limit(PAGE);
    let others = reader.storage.sessions().all_sessions(query).await?;
    if !others.is_empty() {
        say("warning", &format!("no session ran in {}; those of {slug} ran elsewhere", folder.display()));
    }
    Ok(others.iter().fold(filter, |filter, other| filter.excluding(other.key())))
}

/// Says that other folders have the same project.
fn say_what_is_left_out(found: &FolderProject, folder: &Path) {
    const SHOWN: usize = 3;
    let Some(first) = found.others.first() else { return };
    let others = match found.others.len() {
        count if count > SHOWN => counted(count as u64, "other folder"),
        1 => one_line(first),
        _ => found.others.iter().map(|other| one_line(other)).collect::<Vec<_>>().join(" and "),
    };
    let text = format!("sessions of the project {} that did not run in {}", found.slug, folder.display());
    say("note", &format!("{text} are left out: {others}"));
}

fn is_path(typed: &str) -> bool {
    matches!(typed, "." | ".." | "~") || typed.contains('/') || typed.contains(std::path::MAIN_SEPARATOR)
}

/// The absolute path, without `.` and `..`.
pub(crate) fn absolute(typed: &str, home: Option<&Path>) -> Result<PathBuf, Failure> {
    let path = match (typed.strip_prefix('~'), home) {
        (Some(rest), Some(home)) if rest.is_empty() || rest.starts_with('/') => {
            home.join(rest.trim_start_matches('/'))
        }
        _ => std::path::absolute(typed)?,
    };
    let mut whole = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                whole.pop();
            }
            Component::CurDir => {}
            component => whole.push(component),
        }
    }
    Ok(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_differ_from_slugs() {
        for path in [".", "..", "~", "~/x", "./x", "a/b", "/"] {
            assert!(is_path(path), "{path}");
        }
        for name in ["-home-mira-bakery", "bakery", "a.b", "~x"] {
            assert!(!is_path(name), "{name}");
        }
    }

    #[test]
    fn paths_become_absolute() {
        let whole = |typed| absolute(typed, Some(Path::new("/home/mira"))).unwrap();
        assert_eq!(whole("~"), Path::new("/home/mira"));
        assert_eq!(whole("~/bakery/../shop/."), Path::new("/home/mira/shop"));
        assert_eq!(whole("/a/./b/"), Path::new("/a/b"));
        assert_eq!(whole("."), std::env::current_dir().unwrap());
    }
}
