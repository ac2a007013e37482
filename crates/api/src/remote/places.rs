//! Folders in requests to a server, which knows only absolute ones.

use std::path::Path;

use amplifier_session_core::model::Repository;
use amplifier_session_sync::RepositoryNames;
use serde_json::Value;

use crate::{
    ApiError, InvalidRequest,
    projects::{absolute, is_path},
    repositories::is_folder,
};

/// The fields of requests that name projects.
const PROJECTS: [&str; 2] = ["project", "projects"];

/// Makes the folders in a request absolute. A folder in place of a repository becomes the address of the repository that
/// it is in.
pub(super) async fn resolve(request: &mut Value, home: Option<&Path>) -> Result<(), ApiError> {
    for field in PROJECTS {
        match request.get_mut(field) {
            Some(Value::Array(projects)) => {
                projects.iter_mut().try_for_each(|project| resolve_project(project, home))?;
            }
            Some(project) => resolve_project(project, home)?,
            None => {}
        }
    }
    if let Some(Value::String(repo)) = request.get_mut("repo")
        && is_folder(repo)
    {
        *repo = repository_of(repo, home).await?;
    }
    Ok(())
}

fn resolve_project(project: &mut Value, home: Option<&Path>) -> Result<(), ApiError> {
    if let Value::String(typed) = project
        && is_path(typed)
    {
        *typed = absolute(typed, home)?.to_string_lossy().into_owned();
    }
    Ok(())
}

async fn repository_of(typed: &str, home: Option<&Path>) -> Result<String, ApiError> {
    let folder = absolute(typed, home)?;
    let RepositoryNames { names, is_git, .. } = RepositoryNames::around(folder.clone()).await?;
    if !is_git {
        let folder = folder.display().to_string();
        return Err(InvalidRequest::NoRepository { folder }.into());
    }
    Ok(Repository::most_telling(&names).to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn folders_become_absolute_and_names_stay() {
        let mut request =
            json!({"project": "~/shop", "projects": ["bakery", "/srv/./x"], "repo": "acme/app"});
        resolve(&mut request, Some(Path::new("/home/mira"))).await.unwrap();
        let expected =
            json!({"project": "/home/mira/shop", "projects": ["bakery", "/srv/x"], "repo": "acme/app"});
        assert_eq!(request, expected);
        let mut without = json!({"query": "a/b", "project": null});
        resolve(&mut without, None).await.unwrap();
        assert_eq!(without, json!({"query": "a/b", "project": null}));
    }

    #[tokio::test]
    async fn a_folder_without_a_repository_is_an_error() {
        let folder = no_folder();
        let mut request = json!({"repo": folder});
        let failed = resolve(&mut request, None).await.unwrap_err();
        assert!(matches!(failed, ApiError::Invalid(InvalidRequest::NoRepository { .. })), "{failed}");
    }

    /// A folder that does not exist is in no repository.
    fn no_folder() -> String {
        std::env::temp_dir().join("amplifier-sessions-no-such-folder/x").display().to_string()
    }
}
