//! Finds the repositories for a typed address or folder.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use amplifier_session_storage::{
    backend::SessionQuery, model::Repository, search::SessionFilter, sync::RepositoryNames,
};

use crate::{
    app::{App, StoreReader},
    failure::Failure,
    project::absolute,
};

impl App {
    /// The names of the repository that is typed: its address, a part of it, or a folder in it. If the store has no such
    /// repository, the typed address, which finds nothing.
    pub(crate) async fn repositories(
        &self,
        reader: &StoreReader,
        typed: &str,
    ) -> Result<BTreeSet<Repository>, Failure> {
        let address = Repository::of_address(typed).map_or_else(|| Repository::new(typed), Ok)?;
        if !is_folder(typed) {
            let found = reader.storage.sessions().find_repository(&reader.scope, typed).await?;
            if found.is_some() || !Path::new(typed).is_dir() {
                return Ok([found.unwrap_or(address)].into());
            }
        }
        around(self, reader, absolute(typed, self.home.as_deref())?).await
    }
}

/// The names of the repository that a folder is in, or the folder itself if sessions worked in it.
async fn around(app: &App, reader: &StoreReader, folder: PathBuf) -> Result<BTreeSet<Repository>, Failure> {
    let RepositoryNames { names, is_git, .. } = RepositoryNames::around(folder.clone()).await?;
    let of_folder = SessionFilter::default().with_repositories(names.clone());
    let query = SessionQuery::new(reader.scope.clone()).with_filter(of_folder).with_limit(1);
    if is_git || !reader.storage.sessions().search_sessions(&query).await?.is_empty() {
        return Ok(names);
    }
    let hint = format!(
        "name a repository, for example --repo github.com/acme/app; `{} show SESSION` shows that of a session",
        app.program()
    );
    Err(Failure::wrong_use(format!("{} is in no repository", folder.display()), hint))
}

/// Whether a folder is typed. Addresses have slashes too, but begin with a name.
fn is_folder(typed: &str) -> bool {
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
