//! Ingesting lines into a store in memory.

use std::sync::Arc;

use amplifier_session_testkit::{lines, prelude::*};

use super::*;
use crate::{ApiCaller, CallerPlace};

fn storage() -> SessionStorage {
    SessionStorage::new(Arc::new(MemoryBackend::new()))
}

fn request(messages: SentLines) -> IngestRequest {
    IngestRequest {
        session_id: SessionId::new("first-1").unwrap(),
        project_slug: ProjectSlug::new("shop").unwrap(),
        host_id: HostId::new("laptop").unwrap(),
        source: None,
        working_dir: Some("/home/ana/shop".to_owned()),
        repository: None,
        metadata_files: Vec::new(),
        seen: None,
        messages: Some(messages),
        events: None,
        include_deleted: false,
    }
}

fn said(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| lines::user(text).raw().to_text().into_owned()).collect()
}

fn whole(texts: &[&str]) -> SentLines {
    SentLines { start: 0, whole: true, lines: said(texts) }
}

fn part(start: u32, texts: &[&str]) -> SentLines {
    SentLines { start, whole: false, lines: said(texts) }
}

async fn send(
    storage: &SessionStorage,
    name: &str,
    request: &IngestRequest,
) -> Result<IngestResponse, ApiError> {
    let caller = ApiCaller::new(user(name)).with_rights([AccessRight::Write]);
    let now = "2026-04-04T15:30:00+02:00[Europe/Zurich]".parse().unwrap();
    let api = Api { storage, caller: &caller, now: &now, place: CallerPlace::Elsewhere };
    api.ingest(request).await.map(|answer| answer.response)
}

async fn stored(storage: &SessionStorage, name: &str) -> Option<Session> {
    let key = SessionKey::new(user(name), SessionId::new("first-1").unwrap());
    storage.backend().get_session(&key).await.unwrap().map(|stored| stored.session)
}

#[tokio::test]
async fn a_new_session_is_stored() {
    let storage = storage();
    let file = SentFile { name: "metadata.json".to_owned(), text: r#"{"name":"Cart"}"#.to_owned() };
    let events = SentLines {
        lines: vec![lines::logger_event("llm:request").raw().to_text().into_owned()],
        ..SentLines::default()
    };
    let new = IngestRequest {
        metadata_files: vec![file],
        events: Some(events),
        ..request(whole(&["the cart is empty", "thanks"]))
    };
    let json = serde_json::to_string(&new).unwrap();
    assert_eq!(serde_json::from_str::<IngestRequest>(&json).unwrap(), new);
    let response = send(&storage, "ana", &new).await.unwrap();
    assert!(response.created && response.skipped.is_empty(), "{response:?}");
    assert_eq!((response.messages.written, response.messages.stored), (2, 2));
    assert_eq!((response.events.written, response.events.stored), (1, 1));
    let session = stored(&storage, "ana").await.unwrap();
    assert_eq!((session.name.as_deref(), session.host_id.as_str()), (Some("Cart"), "laptop"));
    assert_eq!(session.working_dir.as_deref(), Some("/home/ana/shop"));
    assert_eq!(session.repository.as_ref().map(Repository::as_str), Some("/home/ana/shop"));
    let again = send(&storage, "ana", &new).await.unwrap();
    let IngestResponse { created, messages, events, .. } = again;
    assert_eq!((created, messages.written, events.written), (false, 0, 0));
}

#[tokio::test]
async fn lines_are_appended_after_the_stored_ones() {
    let storage = storage();
    let first = send(&storage, "ana", &request(part(0, &["one", "two"]))).await.unwrap();
    let next = request(part(first.messages.stored, &["three"]));
    for written in [1, 0] {
        let response = send(&storage, "ana", &next).await.unwrap();
        assert_eq!((response.messages.written, response.messages.stored), (written, 3));
    }
    let gap = send(&storage, "ana", &request(part(4, &["five"]))).await.unwrap_err();
    let ApiError::Storage(error) = gap else { panic!("{gap}") };
    assert_eq!(error.field(), Some(ErrorField::StartSequence));
}

#[tokio::test]
async fn lines_that_the_file_has_lost_are_kept_as_superseded() {
    let storage = storage();
    send(&storage, "ana", &request(whole(&["one", "two", "three"]))).await.unwrap();
    let edited = send(&storage, "ana", &request(part(1, &["2"]))).await.unwrap();
    assert_eq!((edited.messages.superseded, edited.messages.stored), (1, 3));
    let shorter = send(&storage, "ana", &request(whole(&["one"]))).await.unwrap();
    let IngestedLines { removed, superseded, stored, .. } = shorter.messages;
    assert_eq!((removed, superseded, stored), (2, 2, 1));
}

#[tokio::test]
async fn a_broken_line_is_skipped_and_named() {
    let storage = storage();
    let mut lines = whole(&["one", "two"]);
    lines.lines.insert(1, r#"{"role":"#.to_owned());
    let response = send(&storage, "ana", &request(lines)).await.unwrap();
    let [skipped] = response.skipped.as_slice() else { panic!("{response:?}") };
    assert_eq!((skipped.kind, skipped.position), (LineKind::Message, 1));
    assert_eq!(response.messages.stored, 2);
}

#[tokio::test]
async fn a_session_id_of_another_user_is_another_session() {
    let storage = storage();
    send(&storage, "ana", &request(whole(&["one", "two"]))).await.unwrap();
    let before = stored(&storage, "ana").await;
    let response = send(&storage, "ben", &request(whole(&["mine"]))).await.unwrap();
    assert!(response.created);
    assert_eq!(stored(&storage, "ana").await, before);
    assert_eq!(stored(&storage, "ben").await.unwrap().message_count, 1);
    assert_eq!(storage.users().pinned_user().await.unwrap(), Some(user("ana")));
}

#[tokio::test]
async fn a_deleted_session_is_stored_only_on_request() {
    let storage = storage();
    let mut sent = request(whole(&["one"]));
    send(&storage, "ana", &sent).await.unwrap();
    let key = stored(&storage, "ana").await.unwrap().key();
    storage.sessions().delete_sessions(&[key]).await;
    let response = send(&storage, "ana", &sent).await.unwrap();
    assert!(response.deleted && stored(&storage, "ana").await.is_none());
    sent.include_deleted = true;
    assert!(send(&storage, "ana", &sent).await.unwrap().created);
}

#[tokio::test]
async fn a_working_folder_is_kept_until_another_one_is_sent() {
    let storage = storage();
    let folder = async |working_dir: Option<&str>, metadata: Option<&str>| {
        let file = |text: &str| SentFile { name: "metadata.json".to_owned(), text: text.to_owned() };
        let sent = IngestRequest {
            working_dir: working_dir.map(str::to_owned),
            metadata_files: metadata.map(file).into_iter().collect(),
            ..request(whole(&["one"]))
        };
        send(&storage, "ana", &sent).await.unwrap();
        stored(&storage, "ana").await.unwrap().working_dir.unwrap()
    };
    assert_eq!(folder(Some("/a"), None).await, "/a");
    assert_eq!(folder(None, Some(r#"{"name":"Cart"}"#)).await, "/a");
    assert_eq!(folder(Some("/b"), None).await, "/b");
    assert_eq!(folder(Some("/b"), Some(r#"{"working_dir":"/c"}"#)).await, "/c");
    assert_eq!(folder(Some("/b"), None).await, "/c");
}

#[tokio::test]
async fn a_relative_folder_and_an_unlikely_time_are_refused() {
    let storage = storage();
    let working_dir = Some("shop".to_owned());
    let relative = IngestRequest { working_dir, ..request(whole(&["one"])) };
    let refused = send(&storage, "ana", &relative).await.unwrap_err();
    assert!(matches!(refused, ApiError::Invalid(InvalidRequest::RelativeFolder { .. })), "{refused}");
    let seen = Some(Timestamp::from_micros(0));
    let refused = send(&storage, "ana", &IngestRequest { seen, ..request(whole(&["one"])) }).await;
    let Err(ApiError::Storage(error)) = refused else { panic!("{refused:?}") };
    assert_eq!(error.field(), Some(ErrorField::Seen));
    assert!(stored(&storage, "ana").await.is_none());
}

#[tokio::test]
async fn lines_are_stored_even_if_their_vectors_can_not_be_made() {
    let flaky = Arc::new(FlakyBackend::new(Arc::new(MemoryBackend::new())));
    let storage = SessionStorage::new(flaky.clone()).with_embedding(Some(Arc::new(FakeEmbedding::new())));
    flaky.break_operation(Operation::MessagesPendingVectors, ErrorKind::StorageIo);
    let caller = ApiCaller::new(user("ana")).with_rights([AccessRight::Write]);
    let now = "2026-04-04T15:30:00+02:00[Europe/Zurich]".parse().unwrap();
    let api = Api { storage: &storage, caller: &caller, now: &now, place: CallerPlace::Elsewhere };
    let answer = api.ingest(&request(whole(&["one"]))).await.unwrap();
    assert_eq!(answer.response.messages.stored, 1);
    assert!(matches!(answer.notices[..], [Notice::VectorsNotMade { .. }]), "{:?}", answer.notices);
}

#[tokio::test]
async fn ingest_needs_the_right_to_write() {
    let storage = storage();
    let caller = ApiCaller::new(user("ana"));
    let now = "2026-04-04T15:30:00+02:00[Europe/Zurich]".parse().unwrap();
    let api = Api { storage: &storage, caller: &caller, now: &now, place: CallerPlace::Elsewhere };
    let refused = api.ingest(&request(whole(&["one"]))).await.unwrap_err();
    assert!(matches!(refused, ApiError::MissingRight(AccessRight::Write)), "{refused}");
    assert!(stored(&storage, "ana").await.is_none());
}
