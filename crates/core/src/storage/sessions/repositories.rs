//! Finds a repository by the address, or the end of one, that a person types.

use std::collections::BTreeSet;

use super::{super::store::SessionCatalog, find::PAGE};
use crate::{
    Error, ErrorField, Result, Scope,
    backend::SessionQuery,
    model::{Repository, Session},
    search::SessionFilter,
};

impl SessionCatalog<'_> {
    /// The repository with the address `name` in any form; or the only one whose last parts are `name` (`app`,
    /// `acme/app`); or the only one that contains `name`, ignoring case. `None` if `scope` has no such repository.
    ///
    /// # Errors
    ///
    /// `Validation` with the candidates if several match; errors of the backend.
    pub async fn find_repository(self, scope: &Scope, name: &str) -> Result<Option<Repository>> {
        let name = name.trim_end_matches(['/', '\\']);
        if name.is_empty() {
            return Ok(None);
        }
        let address = Repository::of_address(name);
        // Without a scheme, as it is stored and shown.
        let stored = || Repository::of_address(&format!("https://{name}"));
        for exact in [address.or_else(stored), Repository::new(name).ok()].into_iter().flatten() {
            if self.has_repository(scope, &exact).await? {
                return Ok(Some(exact));
            }
        }
        let part = name.to_lowercase();
        let mut found = self.repositories(scope).await?;
        found.retain(|repository| repository.as_str().to_lowercase().contains(&part));
        let named: BTreeSet<Repository> =
            found.iter().filter(|repository| repository.is_named(name)).cloned().collect();
        let mut found = if named.is_empty() { found } else { named };
        match found.len() {
            0 | 1 => Ok(found.pop_first()),
            _ => Err(Error::validation(ErrorField::Repository, several(name, &found))),
        }
    }

    async fn has_repository(self, scope: &Scope, repository: &Repository) -> Result<bool> {
        let filter = SessionFilter::default().with_repositories([repository.clone()]);
        let query = SessionQuery::new(scope.clone()).with_filter(filter).with_limit(1);
        Ok(!self.search_sessions(&query).await?.is_empty())
    }

    /// The repositories of all sessions in `scope`.
    async fn repositories(self, scope: &Scope) -> Result<BTreeSet<Repository>> {
        let mut found = BTreeSet::new();
        let query = SessionQuery::new(scope.clone()).with_limit(PAGE);
        let add =
            |page: Vec<Session>| found.extend(page.into_iter().filter_map(|session| session.repository));
        self.store.each_page(query, add).await?;
        Ok(found)
    }
}

fn several(name: &str, found: &BTreeSet<Repository>) -> String {
    const SHOWN: usize = 10;
    let shown: Vec<&str> = found.iter().take(SHOWN).map(Repository::as_str).collect();
    let more = if found.len() > SHOWN { ", …" } else { "" };
    format!("the repository name {name:?} is ambiguous: {}{more}", shown.join(", "))
}
