//! Finds a project by the name or folder that a person types.

use std::collections::BTreeSet;

use super::{SessionStorage, find::PAGE};
use crate::{
    Error, Result, Scope,
    backend::SessionQuery,
    model::{ProjectSlug, Session},
    search::SessionFilter,
};

impl SessionStorage {
    /// The project with the slug `name`, or with `name` as a unique part of its slug, ignoring case. `None` if `scope`
    /// has no such project.
    ///
    /// # Errors
    ///
    /// `Validation` with the candidates if several match; errors of the backend.
    pub async fn find_project(&self, scope: &Scope, name: &str) -> Result<Option<ProjectSlug>> {
        let Ok(slug) = ProjectSlug::new(name) else { return Ok(None) };
        let filter = SessionFilter::default().with_project(slug.clone());
        let exact = SessionQuery::new(scope.clone()).with_filter(filter).with_limit(1);
        if !self.search_sessions(&exact).await?.is_empty() {
            return Ok(Some(slug));
        }
        let part = name.to_lowercase();
        let mut found = self.project_slugs(scope).await?;
        found.retain(|slug| slug.as_str().to_lowercase().contains(&part));
        match found.len() {
            0 | 1 => Ok(found.pop_first()),
            _ => Err(Error::validation("project_slug", several(name, &found))),
        }
    }

    /// The slugs of all projects with sessions in `scope`.
    async fn project_slugs(&self, scope: &Scope) -> Result<BTreeSet<ProjectSlug>> {
        let mut slugs = BTreeSet::new();
        let query = SessionQuery::new(scope.clone()).with_limit(PAGE);
        let add = |page: Vec<Session>| slugs.extend(page.into_iter().map(|session| session.project_slug));
        self.each_page(query, add).await?;
        Ok(slugs)
    }

    /// The project of `folder`, an absolute path: the one with the folder's slug, unless its sessions ran elsewhere and
    /// another project has sessions that ran in the folder. `None` if there is neither.
    ///
    /// # Errors
    ///
    /// Errors of the backend.
    pub async fn project_of_folder(&self, scope: &Scope, folder: &str) -> Result<Option<ProjectSlug>> {
        let ran_there = |session: &Session| {
            session.working_dir.as_deref().is_some_and(|dir| trimmed(dir) == trimmed(folder))
        };
        let mut of_slug = None;
        if let Ok(slug) = ProjectSlug::of_folder(folder) {
            let filter = SessionFilter::default().with_project(slug.clone());
            let query = SessionQuery::new(scope.clone()).with_filter(filter).with_limit(PAGE);
            let sessions = self.search_sessions(&query).await?;
            if sessions.iter().any(|session| session.working_dir.is_none() || ran_there(session)) {
                return Ok(Some(slug));
            }
            of_slug = Some(slug).filter(|_| !sessions.is_empty());
        }
        let mut found = None;
        let look = |page: Vec<Session>| {
            if found.is_none() {
                found = page.into_iter().find(ran_there).map(|session| session.project_slug);
            }
        };
        self.each_page(SessionQuery::new(scope.clone()).with_limit(PAGE), look).await?;
        Ok(found.or(of_slug))
    }
}

/// A path without a trailing separator.
fn trimmed(path: &str) -> &str {
    path.trim_end_matches(['/', '\\'])
}

fn several(name: &str, found: &BTreeSet<ProjectSlug>) -> String {
    const SHOWN: usize = 10;
    let shown: Vec<&str> = found.iter().take(SHOWN).map(ProjectSlug::as_str).collect();
    let more = if found.len() > SHOWN { ", …" } else { "" };
    format!("the project name {name:?} is ambiguous: {}{more}", shown.join(", "))
}
