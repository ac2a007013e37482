//! Sessions that other stores send and take.

use amplifier_session_api::operations::{
    read_rows::ReadRowsRequest,
    row_extents::RowExtentsRequest,
    write_rows::{WriteRowsRequest, WriteRowsResponse},
};

use super::*;

/// The stream of a session that this caller reads.
async fn read(
    storage: &SessionStorage,
    caller: &ApiCaller,
    request: &ReadRowsRequest,
) -> Result<Vec<u8>, ApiError> {
    let (now, mut bytes) = (now(), KeptBytes::default());
    api(storage, caller, &now).read_rows(request, &mut bytes).await?;
    Ok(bytes.0)
}

async fn write(
    storage: &SessionStorage,
    caller: &ApiCaller,
    request: &WriteRowsRequest,
    stream: &[u8],
) -> Result<WriteRowsResponse, ApiError> {
    let now = now();
    let mut writing = api(storage, caller, &now).write_rows(request).await?;
    for piece in stream.chunks(100) {
        writing.put(piece.to_vec()).await?;
    }
    writing.finish().await
}

fn writer() -> ApiCaller {
    ana_asks().with_rights([AccessRight::Write])
}

fn admin() -> ApiCaller {
    ana_asks().with_rights([AccessRight::Read, AccessRight::Write, AccessRight::Admin])
}

fn empty() -> SessionStorage {
    SessionStorage::new(Arc::new(MemoryBackend::new()))
}

async fn count(storage: &SessionStorage) -> usize {
    storage.backend().list_sessions(&SessionQuery::new(Scope::Everyone)).await.unwrap().len()
}

#[tokio::test]
async fn a_session_that_one_store_gives_is_taken_by_another() {
    let (from, to) = (storage().await, empty());
    let stream = read(&from, &ana_asks(), &ReadRowsRequest::new("first")).await.unwrap();
    let dry_run = WriteRowsRequest { dry_run: true, ..WriteRowsRequest::default() };
    let planned = write(&to, &writer(), &dry_run, &stream).await.unwrap();
    assert_eq!((count(&to).await, to.users().pinned_user().await.unwrap()), (0, None));
    let stored = write(&to, &writer(), &WriteRowsRequest::default(), &stream).await.unwrap();
    assert_eq!(planned, stored);
    let ReceiveResult::Stored { created: true, messages: 2, .. } = stored.sessions[0].result else {
        panic!("{stored:?}")
    };
    assert_eq!((count(&to).await, to.users().pinned_user().await.unwrap()), (1, Some(user("ana"))));
    let again = write(&to, &writer(), &WriteRowsRequest::default(), &stream).await.unwrap();
    assert_eq!(again.sessions[0].result, ReceiveResult::Unchanged);
    let json = serde_json::to_string(&stored).unwrap();
    assert_eq!(serde_json::from_str::<WriteRowsResponse>(&json).unwrap(), stored);
    assert!(json.contains(r#""session_id":"first-1","result":"stored","created":true"#), "{json}");
    let now = now();
    let request = RowExtentsRequest::new(from.exchange().store_id().await.unwrap());
    let page = api(&to, &writer(), &now).row_extents(&request).await.unwrap().response;
    assert!(page.sessions.len() == 1 && page.sessions[0].is_as_sent, "{page:?}");
    let json = serde_json::to_string(&page).unwrap();
    assert_eq!(serde_json::from_str::<ExtentPage>(&json).unwrap(), page);
}

#[tokio::test]
async fn rows_of_others_are_read_and_written_only_by_administrators() {
    let (from, to) = (storage().await, empty());
    from.sessions()
        .share_session(&target_of("ben", "shop", "fourth-1").key, &Sharing::public())
        .await
        .unwrap();
    let of_ben = ReadRowsRequest { user: Some(user("ben")), ..ReadRowsRequest::new("fourth-1") };
    let wide = ana_asks().with_reach(Reach::All);
    let refused = read(&from, &wide, &of_ben).await.unwrap_err();
    assert!(matches!(refused, ApiError::MissingRight(AccessRight::Admin)), "{refused}");
    let unknown = read(&from, &wide, &ReadRowsRequest::new("fourth-1")).await.unwrap_err();
    assert!(matches!(&unknown, ApiError::Storage(error) if error.kind() == ErrorKind::SessionNotFound));
    let stream = read(&from, &admin(), &of_ben).await.unwrap();
    let refused = write(&to, &writer(), &WriteRowsRequest::default(), &stream).await.unwrap();
    assert!(matches!(refused.sessions[0].result, ReceiveResult::Failed { .. }), "{refused:?}");
    assert_eq!(count(&to).await, 0);
    let for_ben = WriteRowsRequest { user: Some(user("ben")), ..WriteRowsRequest::default() };
    let refused = write(&to, &writer(), &for_ben, &stream).await.unwrap_err();
    assert!(matches!(refused, ApiError::MissingRight(AccessRight::Admin)), "{refused}");
    write(&to, &admin(), &for_ben, &stream).await.unwrap();
    let stored = to.backend().get_session(&target_of("ben", "shop", "fourth-1").key).await.unwrap().unwrap();
    assert_eq!(stored.session.visibility, Visibility::Private);
}

#[tokio::test]
async fn rows_need_the_rights_to_read_and_to_write() {
    let (storage, now) = (storage().await, now());
    let refused = read(&storage, &writer(), &ReadRowsRequest::new("first")).await.unwrap_err();
    assert!(matches!(refused, ApiError::MissingRight(AccessRight::Read)), "{refused}");
    let refused = write(&storage, &ana_asks(), &WriteRowsRequest::default(), b"").await.unwrap_err();
    assert!(matches!(refused, ApiError::MissingRight(AccessRight::Write)), "{refused}");
    let deleter = ana_asks().with_rights([AccessRight::Delete]);
    let request = RowExtentsRequest::new("x");
    assert!(api(&storage, &deleter, &now).row_extents(&request).await.is_err());
    for caller in [writer(), ana_asks()] {
        let page = api(&storage, &caller, &now).row_extents(&request).await.unwrap().response;
        assert_eq!(page.sessions.len(), 3);
        let few = RowExtentsRequest { limit: 2, ..request.clone() };
        let page = api(&storage, &caller, &now).row_extents(&few).await.unwrap().response;
        assert_eq!((page.sessions.len(), page.next.as_ref().map(SessionId::as_str)), (2, Some("second-1")));
    }
}
