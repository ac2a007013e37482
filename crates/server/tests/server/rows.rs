//! Sessions that other stores push and pull, with the client that the command line uses.

use std::sync::Arc;

use amplifier_session_api::{AccessRight, Reach};
use amplifier_session_client::HttpStore;
use amplifier_session_core::{
    Secret,
    storage::{RowOrigin, RowTarget},
};
use amplifier_session_server::ServerSettings;
use amplifier_session_testkit::{lines, prelude::*};

use crate::{Running, client::Reply, storage};

const LINES: &str = "application/jsonl";
const ALL: &[AccessRight] = &AccessRight::ALL;

/// The server as a store, with a token of this user.
fn server_of(server: &Running, user: &str, rights: &[AccessRight]) -> HttpStore {
    let token = server.token(user, Reach::Own, rights);
    HttpStore::new(format!("http://{}", server.address).parse().unwrap(), &Secret::new(&token), false)
        .unwrap()
}

fn empty() -> SessionStorage {
    SessionStorage::new(Arc::new(MemoryBackend::new()))
}

/// Stores a session of a user with this many turns.
async fn ingest(storage: &SessionStorage, user: &str, session: &str, turns: usize) -> IngestTarget {
    let target = target_of(user, "shop", session);
    let text = (0..turns).flat_map(|turn| {
        [lines::user(&format!("question {turn} of {session}")), lines::assistant(&format!("answer {turn}"))]
    });
    storage.ingestion().sync_transcript_lines(&target, whole(text.collect::<Vec<_>>())).await.unwrap();
    target
}

async fn push(from: &SessionStorage, to: &HttpStore) -> Result<PushReport> {
    from.exchange().push(to, &PushOptions::new(user("ana")), &|_| {}).await
}

/// The stream of a session.
pub(crate) async fn stream(from: &SessionStorage, target: &IngestTarget) -> Vec<u8> {
    let (mut encoder, mut bytes) = (RowEncoder::new().unwrap(), KeptBytes::default());
    let rows = SendRows::new(target.key.clone());
    from.exchange().send(&rows, &mut encoder, &mut bytes).await.unwrap();
    encoder.end(&mut bytes).await.unwrap();
    bytes.0
}

async fn post(server: &Running, path: &str, body: Vec<u8>) -> Reply {
    server.ana("POST", path).body(LINES, body).send().await
}

#[tokio::test]
async fn a_push_sends_everything_once_and_then_what_is_new() {
    let (server, laptop) = (Running::start().await, empty());
    let target = ingest(&laptop, "ana", "pushed-1", 50).await;
    ingest(&laptop, "ana", "pushed-2", 1).await;
    ingest(&laptop, "ben", "pushed-3", 1).await;
    let to = server_of(&server, "ana", ALL);
    let first = push(&laptop, &to).await.unwrap();
    assert_eq!((first.sessions, first.messages, first.failed.len()), (2, 102, 0), "{first:?}");
    let second = push(&laptop, &to).await.unwrap();
    assert_eq!((second.sessions, second.unchanged, second.bytes), (0, 2, 0), "{second:?}");
    ingest(&laptop, "ana", "pushed-1", 51).await;
    let third = push(&laptop, &to).await.unwrap();
    assert_eq!((third.sessions, third.messages), (1, 2));
    assert!(third.bytes < first.bytes / 5, "{third:?}");
    let stored = server.storage.backend().get_session(&target.key).await.unwrap().unwrap();
    assert_eq!(stored.session.message_count, 102);
    let read = server.get("/v1/sessions/pushed-1/messages?from=100&limit=1").await.ok();
    assert!(read.to_string().contains("question 50 of pushed-1"), "{read}");
    assert_eq!(server.get("/v1/sessions/pushed-3").await.status, 404);
}

#[tokio::test]
async fn a_pull_takes_the_sessions_of_the_token_once() {
    let (server, laptop) = (Running::start().await, empty());
    let from = server_of(&server, "ana", &[AccessRight::Read]);
    let options = PullOptions::new(user("ana"));
    let first = laptop.exchange().pull(&from, &options, &|_| {}).await.unwrap();
    assert_eq!((first.sessions, first.messages, first.failed.len()), (3, 6, 0), "{first:?}");
    let second = laptop.exchange().pull(&from, &options, &|_| {}).await.unwrap();
    assert_eq!((second.sessions, second.unchanged), (0, 3));
    ingest(&server.storage, "ana", "new-1", 30).await;
    let third = laptop.exchange().pull(&from, &options, &|_| {}).await.unwrap();
    assert_eq!((third.sessions, third.messages), (1, 60));
    assert_eq!(from.find_session("new").await.unwrap().as_str(), "new-1");
    assert_eq!(from.find_session("nothing").await.unwrap_err().kind(), ErrorKind::SessionNotFound);
}

#[tokio::test]
async fn a_token_sends_only_sessions_of_its_user_and_needs_the_right() {
    let (server, laptop) = (Running::start().await, empty());
    let target = ingest(&laptop, "ben", "pushed-1", 1).await;
    ingest(&laptop, "ana", "pushed-2", 1).await;
    let error = push(&laptop, &server_of(&server, "ben", ALL)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Authentication);
    assert!(error.to_string().contains("the token is that of ben"), "{error}");
    let error = push(&laptop, &server_of(&server, "ana", &[AccessRight::Read])).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Authentication);
    assert!(error.to_string().contains("no right to write"), "{error}");
    // A client that says that sessions of ben are its own.
    let answer = post(&server, "/v1/rows", stream(&laptop, &target).await).await.ok();
    assert_eq!(answer["sessions"][0]["result"], "failed", "{answer}");
    assert!(server.storage.backend().get_session(&target.key).await.unwrap().is_none());
}

#[tokio::test]
async fn a_client_that_lies_about_its_lines_is_not_believed() {
    let (server, laptop) = (Running::start().await, empty());
    let target = ingest(&laptop, "ana", "pushed-1", 2).await;
    let honest = String::from_utf8(stream(&laptop, &target).await).unwrap();
    let forged = honest.replacen("question 1", "forgery! 1", 1);
    let answer = post(&server, "/v1/rows", forged.into_bytes()).await.ok();
    assert_eq!(answer["sessions"][0]["result"], "failed", "{answer}");
    let answer = post(&server, "/v1/rows?dry_run", honest.clone().into_bytes()).await.ok();
    assert_eq!(answer["sessions"][0]["messages"], 4);
    assert_eq!(server.get("/v1/sessions/pushed-1").await.status, 404);
    let answer = post(&server, "/v1/rows", honest.into_bytes()).await.ok();
    assert_eq!(
        (&answer["sessions"][0]["result"], &answer["sessions"][0]["created"]),
        (&json!("stored"), &json!(true))
    );
}

#[tokio::test]
async fn bodies_that_are_cut_off_or_too_large_store_only_what_is_complete() {
    let small = |settings: &mut ServerSettings| settings.limits.streamed_body = 1_000_000;
    let (server, laptop) = (Running::with(storage().await, small).await, empty());
    let targets = [ingest(&laptop, "ana", "pushed-1", 1).await, ingest(&laptop, "ana", "pushed-2", 1).await];
    let first = stream(&laptop, &targets[0]).await;
    let second = stream(&laptop, &targets[1]).await;
    // Without its last line, which ends the stream, and with a part of another frame.
    let end = first[..first.len() - 1].iter().rposition(|byte| *byte == b'\n').unwrap() + 1;
    let frames = [zstd::encode_all(&first[..end], 3).unwrap(), zstd::encode_all(&second[..], 3).unwrap()];
    let cut = [&frames[0][..], &frames[1][..frames[1].len() - 1]].concat();
    let sent =
        server.ana("POST", "/v1/rows").header("content-encoding", "zstd").body(LINES, cut).send().await;
    assert_eq!((sent.problem().0, &sent.json()["field"]), (400, &json!("body")));
    assert_eq!(server.get("/v1/sessions/pushed-1").await.status, 200);
    assert_eq!(server.get("/v1/sessions/pushed-2").await.status, 404);
    let bomb = zstd::encode_all(&vec![b'a'; 20_000_000][..], 3).unwrap();
    let sent =
        server.ana("POST", "/v1/rows").header("content-encoding", "zstd").body(LINES, bomb).send().await;
    assert_eq!(sent.problem(), (413, "too_large".to_owned()));
    for nothing in [&b""[..], b"\n", b"no stream\n", b"{\"record\":\"session\"}\n"] {
        assert_eq!(post(&server, "/v1/rows", nothing.to_vec()).await.problem().0, 400);
    }
}

#[tokio::test]
async fn a_body_that_does_not_go_on_ends() {
    use tokio::io::AsyncWriteExt as _;
    let hasty = |settings: &mut ServerSettings| settings.limits.piece = std::time::Duration::from_millis(50);
    let server = Running::with(storage().await, hasty).await;
    let bytes = server.ana("POST", "/v1/rows").body(LINES, vec![b' '; 100]).bytes();
    let mut connection = tokio::net::TcpStream::connect(server.address).await.unwrap();
    connection.write_all(&bytes[..bytes.len() - 1]).await.unwrap();
    let reply = Reply::read(&mut connection).await;
    assert_eq!(reply.problem(), (408, "body_timeout".to_owned()));
}

#[tokio::test]
async fn a_push_to_a_server_that_dies_is_completed_by_the_next_one() {
    let mut server = Running::start().await;
    let laptop = empty();
    let target = ingest(&laptop, "ana", "pushed-1", 200).await;
    let whole = stream(&laptop, &target).await;
    let mut upload = server_of(&server, "ana", ALL).upload(false).await.unwrap();
    upload.put(whole[..whole.len() / 2].to_vec()).await.unwrap();
    server.stop.take().unwrap().send(()).unwrap();
    server.stop_now.take().unwrap().send(()).unwrap();
    (&mut server.served).await.unwrap().unwrap();
    let error = upload.finish().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StorageConnection, "{error:?}");
    let error = push(&laptop, &server_of(&server, "ana", ALL)).await.unwrap_err();
    assert!(error.to_string().contains(&server.address.to_string()), "{error}");
    let again = Running::with(server.storage.clone(), |_| {}).await;
    let report = push(&laptop, &server_of(&again, "ana", ALL)).await.unwrap();
    assert!(report.failed.is_empty() && report.sessions == 1, "{report:?}");
    let stored = server.storage.backend().get_session(&target.key).await.unwrap().unwrap();
    assert_eq!(stored.session.message_count, 400);
}

#[tokio::test]
async fn programs_more_than_one_release_apart_are_told_both_versions() {
    let server = Running::start().await;
    let with = async |version: &str| {
        server.ana("GET", "/v1/rows/extents").header("x-amplifier-sessions-version", version).send().await
    };
    let own = with(env!("CARGO_PKG_VERSION")).await;
    assert_eq!(own.header("x-amplifier-sessions-version"), Some(env!("CARGO_PKG_VERSION")));
    assert_eq!(own.ok()["sessions"].as_array().unwrap().len(), 3);
    let other = with("99.0.0").await;
    assert_eq!(other.problem(), (400, "unsupported_version".to_owned()));
    let detail = other.json()["detail"].as_str().unwrap().to_owned();
    assert!(detail.contains("99.0.0") && detail.contains(env!("CARGO_PKG_VERSION")), "{detail}");
    // Nobody without a token learns the version.
    let reply = crate::client::Request::new(server.address, "GET", "/v1/rows/extents").send().await;
    assert!(reply.status == 401 && reply.header("x-amplifier-sessions-version").is_none());
}

#[tokio::test]
async fn extents_come_in_pages_and_rows_after_those_that_the_client_has() {
    let (server, laptop) = (Running::start().await, empty());
    let first = server.get("/v1/rows/extents?limit=2").await.ok();
    assert_eq!((first["sessions"].as_array().unwrap().len(), &first["next"]), (2, &json!("second-1")));
    let second = server.get("/v1/rows/extents?limit=2&after=second-1").await.ok();
    assert_eq!((&second["sessions"][0]["session_id"], &second["next"]), (&json!("third-1"), &json!(null)));
    let some = server.get("/v1/rows/extents?session=third-1&session=nothing").await.ok();
    assert_eq!(some["sessions"].as_array().unwrap().len(), 1);
    let wrong = server.get("/v1/rows/first-1?after_message=1&digest=x").await;
    assert_eq!((wrong.problem().0, &wrong.json()["field"]), (400, &json!("digest")));
    assert_eq!(server.get("/v1/rows/fourth-1").await.problem(), (404, "session_not_found".to_owned()));
    // A digest of other rows gets all rows.
    let whole = server.get(&format!("/v1/rows/first-1?after_message=1&digest={}", "0".repeat(64))).await;
    assert_eq!(String::from_utf8(whole.body).unwrap().matches("\"record\":\"message\"").count(), 2);
    let to = server_of(&server, "ana", ALL);
    let query = ExtentQuery::new(user("ana"), laptop.exchange().store_id().await.unwrap());
    let named = query.clone().with_sessions(Some(vec![SessionId::new("first-1").unwrap()]));
    assert_eq!(RowOrigin::extents(&to, &named).await.unwrap().sessions.len(), 1);
    let none = RowTarget::extents(&to, &query.with_sessions(Some(Vec::new()))).await.unwrap();
    assert!(none.sessions.is_empty() && none.next.is_none());
}
