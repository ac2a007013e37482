//! Work trees of a repository belong together: a folder also means the same folder in the other work trees.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use amplifier_session_core::{
    Scope,
    backend::SessionQuery,
    model::{ProjectSlug, SessionKey},
    search::SessionFilter,
};
use amplifier_session_sync::WorkTrees;

use crate::{Api, ApiError, CallerPlace, Notice};

/// The number of sessions that are read at once.
const PAGE: usize = 1_000;

impl Api<'_> {
    /// The sessions of a typed folder and of the same folder in the other work trees of its repository.
    pub(crate) async fn with_work_trees(
        &self,
        scope: &Scope,
        typed: &str,
        notices: &mut Vec<Notice>,
    ) -> Result<SessionFilter, ApiError> {
        let (mut own_notices, mut of_others) = (Vec::new(), Vec::new());
        let (folder, own) = self.project_of_folder(scope, typed, &mut own_notices).await?;
        let found = self.other_work_trees(scope, &folder, &own, &mut of_others).await?;
        // A new work tree has no sessions of its own.
        own_notices.retain(|notice| found.is_none() || !matches!(notice, Notice::NoSessionInFolder { .. }));
        notices.extend(own_notices);
        notices.extend(of_others);
        Ok(found.unwrap_or(own))
    }

    /// The sessions of the only project that a name selects, with those of the other work trees of its folder.
    pub(crate) async fn named_with_work_trees(
        &self,
        scope: &Scope,
        project: SessionFilter,
        notices: &mut Vec<Notice>,
    ) -> Result<SessionFilter, ApiError> {
        let query = SessionQuery::new(scope.clone()).with_filter(project.clone()).with_limit(PAGE);
        let sessions = self.storage.sessions().search_sessions(&query).await?;
        let folder = sessions.into_iter().find_map(|session| {
            let is_own = |folder: &String| {
                ProjectSlug::of_folder(folder).is_ok_and(|slug| slug == session.project_slug)
            };
            session.working_dir.clone().filter(is_own)
        });
        let Some(folder) = folder else { return Ok(project) };
        Ok(self.other_work_trees(scope, Path::new(&folder), &project, notices).await?.unwrap_or(project))
    }

    /// The sessions of `own`, and of the same folder in other work trees; `None` if these have none. Only a caller on this
    /// machine has work trees here.
    async fn other_work_trees(
        &self,
        scope: &Scope,
        folder: &Path,
        own: &SessionFilter,
        notices: &mut Vec<Notice>,
    ) -> Result<Option<SessionFilter>, ApiError> {
        if !matches!(self.place, CallerPlace::Here { .. }) {
            return Ok(None);
        }
        let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        let Some(trees) = WorkTrees::around(folder.clone()).await? else { return Ok(None) };
        let of_repository = SessionFilter::default().with_repositories(trees.names.clone());
        let query = SessionQuery::new(scope.clone()).with_filter(of_repository).with_limit(PAGE);
        let sessions = self.storage.sessions().all_sessions(query).await?;
        let folders: BTreeSet<String> = sessions
            .into_iter()
            .filter_map(|session| session.working_dir)
            .filter(|other| Path::new(other) != folder && trees.has_counterpart(Path::new(other)))
            .collect();
        let mut union = ProjectUnion::default();
        for other in folders {
            if let Some(found) = self.storage.sessions().project_of_folder(scope, &other).await? {
                union.add(&found.sessions);
            }
        }
        let known = own.named_projects().unwrap_or_default();
        let others: Vec<ProjectSlug> = union.0.keys().filter(|slug| !known.contains(slug)).cloned().collect();
        if others.is_empty() {
            return Ok(None);
        }
        union.add(own);
        notices.push(Notice::OtherWorkTrees { folder: folder.display().to_string(), projects: others });
        Ok(Some(union.filter()))
    }
}

/// The sessions of any of several projects: the slugs, each with the sessions of it that are left out.
#[derive(Debug, Default)]
pub(crate) struct ProjectUnion(BTreeMap<ProjectSlug, BTreeSet<SessionKey>>);

impl ProjectUnion {
    /// Adds the sessions of projects. Only what all filters of a project leave out is left out of it.
    pub(crate) fn add(&mut self, filter: &SessionFilter) {
        for project in filter.named_projects().into_iter().flatten() {
            let left_out = self.0.entry(project.clone()).or_insert_with(|| filter.without.clone());
            left_out.retain(|session| filter.without.contains(session));
        }
    }

    pub(crate) fn filter(self) -> SessionFilter {
        let without: Vec<SessionKey> = self.0.values().flatten().cloned().collect();
        let mut slugs = self.0.into_keys();
        let filter = match (slugs.len(), slugs.next()) {
            (1, Some(only)) => SessionFilter::default().with_project(only),
            (_, first) => SessionFilter::default().with_projects(first.into_iter().chain(slugs)),
        };
        without.into_iter().fold(filter, SessionFilter::excluding)
    }
}

#[cfg(test)]
mod tests {
    use amplifier_session_core::model::SessionId;
    use amplifier_session_testkit::user;

    use super::*;

    #[test]
    fn a_union_leaves_out_what_every_filter_of_a_project_leaves_out() {
        let slug = |name: &str| ProjectSlug::new(name).unwrap();
        let key = |id: &str| SessionKey::new(user("ana"), SessionId::new(id).unwrap());
        let shop = || SessionFilter::default().with_project(slug("shop"));
        let mut union = ProjectUnion::default();
        union.add(&shop().excluding(key("a")).excluding(key("b")));
        assert_eq!(union.0[&slug("shop")].len(), 2);
        union.add(&shop().excluding(key("b")));
        union.add(&SessionFilter::default().with_project(slug("blog")).excluding(key("c")));
        let expected = SessionFilter::default()
            .with_projects([slug("blog"), slug("shop")])
            .excluding(key("b"))
            .excluding(key("c"));
        assert_eq!(union.filter(), expected);
        let mut union = ProjectUnion::default();
        union.add(&shop().excluding(key("a")));
        union.add(&shop());
        assert_eq!(union.filter(), shop());
    }
}
