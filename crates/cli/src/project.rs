//! Finds the project for a typed slug or folder.

use std::path::{Component, Path, PathBuf};

use amplifier_session_storage::model::ProjectSlug;

use crate::{
    app::{App, Reader},
    failure::{Failure, say},
};

impl App {
    /// The project whose slug, part of a slug, or folder is `typed`. If no project matches, `typed` is taken as a slug,
    /// which finds nothing.
    pub(crate) async fn project(
        &self,
        reader: &Reader,
        typed: Option<&str>,
    ) -> Result<Option<ProjectSlug>, Failure> {
        let Some(typed) = typed else { return Ok(None) };
        let slug = ProjectSlug::new(typed)?;
        if !is_path(typed) {
            let found = reader.storage.find_project(&reader.scope, typed).await?;
            if found.is_some() || !Path::new(typed).is_dir() {
                return Ok(Some(found.unwrap_or(slug)));
            }
        }
        of_folder(self, reader, typed).await.map(Some)
    }
}

/// The project of a folder, or of the nearest folder above it that has one.
async fn of_folder(app: &App, reader: &Reader, typed: &str) -> Result<ProjectSlug, Failure> {
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
            let found = reader.storage.project_of_folder(&reader.scope, &ancestor.to_string_lossy()).await?;
            if let Some(slug) = found {
                if above > 0 {
                    say("note", &format!("{} is in the project {slug}", folder.display()));
                }
                return Ok(slug);
            }
        }
    }
    Ok(ProjectSlug::of_folder(&resolved.to_string_lossy())?)
}

fn is_path(typed: &str) -> bool {
    matches!(typed, "." | ".." | "~") || typed.contains('/') || typed.contains(std::path::MAIN_SEPARATOR)
}

/// The absolute path, without `.` and `..`.
fn absolute(typed: &str, home: Option<&Path>) -> Result<PathBuf, Failure> {
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
