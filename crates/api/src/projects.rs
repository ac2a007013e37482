//! Finds the sessions of a project for a typed slug or folder.

use std::path::{Component, Path, PathBuf};

use amplifier_session_core::{
    Error, ErrorField, Scope,
    backend::SessionQuery,
    model::{ProjectSlug, Repository},
    search::SessionFilter,
    storage::{FolderProject, NamedProjects},
};

use crate::{
    Api, ApiError, CallerPlace, InvalidRequest, Notice, filter::RequestFilter, work_trees::ProjectUnion,
};

/// The number of sessions that are read at once.
const PAGE: usize = 1_000;

impl Api<'_> {
    /// The sessions of the project whose slug, part of a slug, or folder is `typed`. If no project matches, `typed` is
    /// taken as a slug, which finds nothing.
    ///
    /// # Errors
    ///
    /// `Validation` if several projects match; [`InvalidRequest::RelativeFolder`]; errors of the store.
    #[crate::compiled_here]
    pub async fn project(
        &self,
        scope: &Scope,
        typed: &str,
        notices: &mut Vec<Notice>,
    ) -> Result<SessionFilter, ApiError> {
        let slug = ProjectSlug::new(typed)?;
        if !is_path(typed) {
            let found = self.storage.sessions().find_project(scope, typed).await?;
            let is_folder = || matches!(self.place, CallerPlace::Here { .. }) && Path::new(typed).is_dir();
            if found.is_some() || !is_folder() {
                return Ok(SessionFilter::default().with_project(found.unwrap_or(slug)));
            }
        }
        Ok(self.project_of_folder(scope, typed, notices).await?.1)
    }

    /// The sessions of the projects whose slugs `typed` selects, as
    /// [`find_projects`](amplifier_session_core::storage::SessionCatalog::find_projects) reads it, or of the project of a
    /// folder. Unless `typed` is a whole slug or a pattern, other work trees of the repository of a single project belong
    /// to it. If no project matches, `typed` is taken as a slug, which finds nothing.
    ///
    /// # Errors
    ///
    /// [`InvalidRequest::RelativeFolder`]; errors of the store.
    #[crate::compiled_here]
    pub async fn named_projects(
        &self,
        scope: &Scope,
        typed: &str,
        notices: &mut Vec<Notice>,
    ) -> Result<SessionFilter, ApiError> {
        let slug = ProjectSlug::new(typed)?;
        let is_folder = || matches!(self.place, CallerPlace::Here { .. }) && Path::new(typed).is_dir();
        if is_path(typed) {
            return self.with_work_trees(scope, typed, notices).await;
        }
        let NamedProjects { slugs, is_whole, .. } =
            self.storage.sessions().find_projects(scope, typed).await?;
        if slugs.is_empty() && is_folder() {
            return self.with_work_trees(scope, typed, notices).await;
        }
        if slugs.len() > 1 {
            let projects = slugs.iter().cloned().collect();
            notices.push(Notice::SeveralProjects { typed: typed.to_owned(), projects });
            return Ok(SessionFilter::default().with_projects(slugs));
        }
        let filter = SessionFilter::default().with_project(slugs.into_iter().next().unwrap_or(slug));
        if is_whole {
            return Ok(filter);
        }
        self.named_with_work_trees(scope, filter, notices).await
    }

    /// The sessions of any of the projects that a request names, in its repository.
    pub(crate) async fn named_sessions(
        &self,
        scope: &Scope,
        filter: &RequestFilter,
        notices: &mut Vec<Notice>,
    ) -> Result<SessionFilter, ApiError> {
        let RequestFilter { project, projects, repo, .. } = filter;
        self.sessions_of_any(scope, project.iter().chain(projects), repo.as_deref(), notices).await
    }

    /// The sessions of any of the projects that are typed, if any are, in the repository that is typed, if one is. Each
    /// is read as by [`Self::named_projects`].
    ///
    /// # Errors
    ///
    /// As [`Self::named_projects`] and [`Self::repositories`].
    pub async fn sessions_of_any(
        &self,
        scope: &Scope,
        projects: impl IntoIterator<Item = &String>,
        repo: Option<&str>,
        notices: &mut Vec<Notice>,
    ) -> Result<SessionFilter, ApiError> {
        let projects: Vec<&String> = projects.into_iter().collect();
        let mut named: Option<ProjectUnion> = None;
        for typed in &projects {
            let found = self.named_projects(scope, typed, notices).await?;
            // Otherwise, nothing would say that one of several is mistyped.
            if projects.len() > 1 {
                self.remark_unknown(scope, &found, notices).await?;
            }
            named.get_or_insert_default().add(&found);
        }
        let sessions = named.map(ProjectUnion::filter).unwrap_or_default();
        self.within_repo(scope, sessions, repo).await
    }

    async fn within_repo(
        &self,
        scope: &Scope,
        sessions: SessionFilter,
        repo: Option<&str>,
    ) -> Result<SessionFilter, ApiError> {
        Ok(match repo {
            Some(typed) => sessions.with_repositories(self.repositories(scope, typed).await?),
            None => sessions,
        })
    }

    /// The sessions of a folder, or of the nearest folder above it that has some, with this folder.
    pub(crate) async fn project_of_folder(
        &self,
        scope: &Scope,
        typed: &str,
        notices: &mut Vec<Notice>,
    ) -> Result<(PathBuf, SessionFilter), ApiError> {
        let folder = self.typed_folder(typed)?;
        let home = match self.place {
            CallerPlace::Here { home } => home,
            CallerPlace::Elsewhere => None,
        };
        // The session may have been started in the folder or through a link to it.
        let resolved = match self.place {
            CallerPlace::Here { .. } => folder.canonicalize().unwrap_or_else(|_| folder.clone()),
            CallerPlace::Elsewhere => folder.clone(),
        };
        for folder in [&folder, &resolved] {
            for (above, ancestor) in folder.ancestors().enumerate() {
                // The project of the home folder itself is not that of the folders in it.
                let is_too_far = ancestor.parent().is_none() || home == Some(ancestor);
                if above > 0 && is_too_far {
                    break;
                }
                let sessions = self.storage.sessions();
                let found = sessions.project_of_folder(scope, &ancestor.to_string_lossy()).await?;
                if let Some(found) = found {
                    if above > 0 {
                        let (folder, project) = (folder.display().to_string(), found.slug.clone());
                        notices.push(Notice::ProjectOfFolderAbove { folder, project });
                    }
                    notices.extend(left_out(&found, ancestor));
                    return Ok((ancestor.to_owned(), found.sessions));
                }
            }
        }
        let sessions = self.of_no_session(scope, &resolved, notices).await?;
        Ok((resolved, sessions))
    }

    /// The absolute path of a typed folder.
    fn typed_folder(&self, typed: &str) -> Result<PathBuf, ApiError> {
        match self.place {
            CallerPlace::Here { home } => absolute(typed, home),
            CallerPlace::Elsewhere if Path::new(typed).is_absolute() => Ok(without_dots(Path::new(typed))),
            CallerPlace::Elsewhere => Err(InvalidRequest::RelativeFolder { folder: typed.to_owned() }.into()),
        }
    }

    /// The sessions of a folder without any: none, also if sessions of another folder have its slug.
    async fn of_no_session(
        &self,
        scope: &Scope,
        folder: &Path,
        notices: &mut Vec<Notice>,
    ) -> Result<SessionFilter, ApiError> {
        let slug = ProjectSlug::of_folder(&folder.to_string_lossy())?;
        let filter = SessionFilter::default().with_project(slug.clone());
        let query = SessionQuery::new(scope.clone()).with_filter(filter.clone()).with_limit(PAGE);
        let others = self.storage.sessions().all_sessions(query).await?;
        if !others.is_empty() {
            let folder = folder.display().to_string();
            notices.push(Notice::NoSessionInFolder { folder, project: slug });
        }
        Ok(others.iter().fold(filter, |filter, other| filter.excluding(other.key())))
    }

    /// Notices if the repository or the project of `filter` has no sessions: it may be mistyped.
    ///
    /// # Errors
    ///
    /// Errors of the store.
    #[crate::compiled_here]
    pub async fn unknown_names(
        &self,
        scope: &Scope,
        filter: &SessionFilter,
    ) -> Result<Vec<Notice>, ApiError> {
        let is_unknown = async |filter: SessionFilter| -> Result<bool, ApiError> {
            let query = SessionQuery::new(scope.clone()).with_filter(filter).with_limit(1);
            Ok(self.storage.sessions().search_sessions(&query).await?.is_empty())
        };
        let mut notices = Vec::new();
        if let Some(names) = &filter.repositories
            && is_unknown(SessionFilter::default().with_repositories(names.clone())).await?
        {
            let repository = Repository::most_telling(names).to_owned();
            notices.push(Notice::UnknownRepository { repository });
        }
        for project in filter.named_projects().into_iter().flatten() {
            if is_unknown(SessionFilter::default().with_project(project.clone())).await? {
                notices.push(Notice::UnknownProject { project: project.clone() });
            }
        }
        Ok(notices)
    }

    /// Adds [`Self::unknown_names`], each once.
    pub(crate) async fn remark_unknown(
        &self,
        scope: &Scope,
        filter: &SessionFilter,
        notices: &mut Vec<Notice>,
    ) -> Result<(), ApiError> {
        let mut unknown = self.unknown_names(scope, filter).await?;
        unknown.retain(|notice| !notices.contains(notice));
        notices.extend(unknown);
        Ok(())
    }

    /// The sessions of the only project that is typed, and of the repository, if they are: for changes, which must not
    /// reach further than meant.
    ///
    /// # Errors
    ///
    /// As [`Self::project`] and [`Self::repositories`].
    #[crate::compiled_here]
    pub async fn sessions_of(
        &self,
        scope: &Scope,
        project: Option<&str>,
        repo: Option<&str>,
        notices: &mut Vec<Notice>,
    ) -> Result<SessionFilter, ApiError> {
        let sessions = match project {
            Some(typed) => self.project(scope, typed, notices).await?,
            None => SessionFilter::default(),
        };
        self.within_repo(scope, sessions, repo).await
    }
}

/// A notice that other folders have the same project.
fn left_out(found: &FolderProject, folder: &Path) -> Option<Notice> {
    (!found.others.is_empty()).then(|| Notice::OtherFoldersLeftOut {
        project: found.slug.clone(),
        folder: folder.display().to_string(),
        others: found.others.iter().cloned().collect(),
    })
}

pub(crate) fn is_path(typed: &str) -> bool {
    matches!(typed, "." | ".." | "~") || typed.contains('/') || typed.contains(std::path::MAIN_SEPARATOR)
}

/// The absolute path of a folder on this machine, without `.` and `..`.
pub(crate) fn absolute(typed: &str, home: Option<&Path>) -> Result<PathBuf, ApiError> {
    let path = match (typed.strip_prefix('~'), home) {
        (Some(rest), Some(home)) if rest.is_empty() || rest.starts_with('/') => {
            home.join(rest.trim_start_matches('/'))
        }
        _ => std::path::absolute(typed).map_err(|error| {
            Error::validation(ErrorField::ProjectSlug, format!("{typed:?} is not a folder"))
                .with_source(error)
        })?,
    };
    Ok(without_dots(&path))
}

fn without_dots(path: &Path) -> PathBuf {
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
    whole
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
