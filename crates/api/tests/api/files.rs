//! The files of a session.

use amplifier_session_api::operations::files::{FilesRequest, FilesResponse};
use amplifier_session_core::content::FileUse;

use super::*;

async fn storage_with_files() -> SessionStorage {
    let storage = storage().await;
    let call = |tool: &str, path: &str| lines::tool_call(tool, json!({"path": path}));
    let text = vec![call("read_file", "a.rs"), call("edit_file", "a.rs"), call("write_file", "b.rs")];
    let target = target_of("ana", "shop", "files-1");
    storage.ingestion().sync_transcript_lines(&target, whole(text)).await.unwrap();
    storage
}

fn listed(response: &FilesResponse) -> Vec<(FileUse, &str, &str)> {
    response.files.iter().map(|file| (file.used, file.path.as_str(), file.first.as_str())).collect()
}

#[tokio::test]
async fn files_are_listed_up_to_a_limit() {
    let (storage, caller, now) = (storage_with_files().await, ana_asks(), now());
    let api = api(&storage, &caller, &now);
    let request = FilesRequest { session: "files".to_owned(), ..FilesRequest::default() };
    assert_written_and_read(&request);
    let ApiAnswer { response, notices } = api.files(&request).await.unwrap();
    let all = [
        (FileUse::Changed, "a.rs", "files-1#1"),
        (FileUse::Changed, "b.rs", "files-1#2"),
        (FileUse::Read, "a.rs", "files-1#0"),
    ];
    assert_eq!((listed(&response), response.has_more, notices.len()), (all.to_vec(), false, 0));
    assert_written_and_read(&response);
    let response = api.files(&FilesRequest { limit: 1, ..request.clone() }).await.unwrap().response;
    assert_eq!((listed(&response), response.has_more), (all[..1].to_vec(), true));
    let response = api.files(&FilesRequest { changed: true, ..request }).await.unwrap().response;
    assert_eq!(listed(&response), all[..2]);
}

#[tokio::test]
async fn a_session_without_files_gets_a_notice() {
    let (storage, caller, now) = (storage().await, ana_asks(), now());
    let request = FilesRequest { session: "first".to_owned(), changed: true, ..FilesRequest::default() };
    let ApiAnswer { response, notices } = api(&storage, &caller, &now).files(&request).await.unwrap();
    assert!(response.files.is_empty());
    assert_eq!(notices, [Notice::NothingFound { what: FoundKind::ChangedFile, nearest: None }]);
}

#[tokio::test]
async fn files_of_others_are_out_of_reach() {
    let (storage, caller, now) = (storage().await, ana_asks(), now());
    let api = api(&storage, &caller, &now);
    let request = FilesRequest { session: "fourth".to_owned(), ..FilesRequest::default() };
    let refused = api.files(&request).await.unwrap_err();
    assert!(matches!(refused, ApiError::Storage(ref error) if error.kind() == ErrorKind::SessionNotFound));
    let refused = api.files(&FilesRequest { scope: Reach::All, ..request }).await.unwrap_err();
    assert!(matches!(refused, ApiError::BeyondReach { .. }), "{refused}");
}
