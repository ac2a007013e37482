//! Finds the repositories for a typed address or folder.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use amplifier_session_core::{Scope, backend::SessionQuery, model::Repository, search::SessionFilter};
use amplifier_session_sync::RepositoryNames;

use crate::{Api, ApiError, CallerPlace, InvalidRequest, projects::absolute};

impl Api<'_> {
    /// The names of the repository that is typed: its address, a part of it, or a folder in it. If the store has no
    /// such repository, the typed address, which finds nothing.
    ///
    /// # Errors
    ///
    /// `Validation` if several repositories match; [`InvalidRequest::NoRepository`];
    /// [`InvalidRequest::RelativeFolder`]; errors of the store.
    #[crate::compiled_here]
    pub async fn repositories(&self, scope: &Scope, typed: &str) -> Result<BTreeSet<Repository>, ApiError> {
        let address = Repository::of_address(typed).map_or_else(|| Repository::new(typed), Ok)?;
        if !is_folder(typed) {
            let found = self.storage.sessions().find_repository(scope, typed).await?;
            let is_folder = || matches!(self.place, CallerPlace::Here { .. }) && Path::new(typed).is_dir();
            if found.is_some() || !is_folder() {
                return Ok([found.unwrap_or(address)].into());
            }
        }
        match (self.place, Repository::of_folder(typed)) {
            (CallerPlace::Here { home }, _) => self.around(scope, absolute(typed, home)?).await,
            (CallerPlace::Elsewhere, Some(folder)) => Ok([folder].into()),
            (CallerPlace::Elsewhere, None) => {
                Err(InvalidRequest::RelativeFolder { folder: typed.to_owned() }.into())
            }
        }
    }

    /// The names of the repository that a folder is in, or the folder itself if sessions worked in it.
    async fn around(&self, scope: &Scope, folder: PathBuf) -> Result<BTreeSet<Repository>, ApiError> {
        let RepositoryNames { names, is_git, .. } = RepositoryNames::around(folder.clone()).await?;
        let of_folder = SessionFilter::default().with_repositories(names.clone());
        let query = SessionQuery::new(scope.clone()).with_filter(of_folder).with_limit(1);
        if is_git || !self.storage.sessions().search_sessions(&query).await?.is_empty() {
            return Ok(names);
        }
        Err(InvalidRequest::NoRepository { folder: folder.display().to_string() }.into())
    }
}

/// Whether a folder is typed. Addresses have slashes too, but begin with a name.
pub(crate) fn is_folder(typed: &str) -> bool {
    let first = typed.split(['/', '\\']).next().unwrap_or_default();
    matches!(first, "" | "." | ".." | "~") || Path::new(typed).is_absolute()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_differ_from_addresses() {
        for folder in [".", "..", "~", "~/x", "./x", "../x", "/", "/srv/app"] {
            assert!(is_folder(folder), "{folder}");
        }
        for address in ["app", "acme/app", "github.com/acme/app", "git@github.com:acme/app", ".x", "~x"] {
            assert!(!is_folder(address), "{address}");
        }
    }
}
