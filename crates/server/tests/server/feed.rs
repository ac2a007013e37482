//! The feed of changes by long poll.

use amplifier_session_api::{AccessRight, Reach};
use amplifier_session_testkit::prelude::{Value, json};

use crate::{Running, live_client::LiveClient, storage};

async fn edit(server: &Running, session: &str, name: &str) {
    let path = format!("/v1/sessions/{session}");
    server.ana("PATCH", &path).json(&json!({"name": name})).send().await.ok();
}

fn cursor(page: &Value) -> &str {
    page["cursor"].as_str().unwrap()
}

#[tokio::test]
async fn changes_follow_a_cursor() {
    let server = Running::start().await;
    let begun = server.get("/v1/changes").await.ok();
    assert_eq!((&begun["changes"], &begun["reset"]), (&json!([]), &json!(false)));
    edit(&server, "first-1", "Pool").await;
    let page = server.get(&format!("/v1/changes?after={}", cursor(&begun))).await.ok();
    let changed = &page["changes"][0];
    assert_eq!((&changed["session_id"], &changed["removed"]), (&json!("first-1"), &json!(false)));
    assert_eq!(changed["session"]["title"], "Pool");
    let none = server.get(&format!("/v1/changes?after={}", cursor(&page))).await.ok();
    assert_eq!(none["changes"], json!([]));
}

#[tokio::test]
async fn a_request_waits_for_changes() {
    let server = Running::start().await;
    let begun = server.get("/v1/changes").await.ok();
    let path = format!("/v1/changes?wait=60&after={}", cursor(&begun));
    let (page, ()) = tokio::join!(server.get(&path), edit(&server, "first-1", "Pool"));
    assert_eq!(page.ok()["changes"][0]["session_id"], "first-1");
}

#[tokio::test]
async fn a_cursor_of_other_sessions_is_reset() {
    let server = Running::start().await;
    let begun = server.get("/v1/changes").await.ok();
    let path = format!("/v1/changes?scope=visible&wait=60&after={}", cursor(&begun));
    let page = server.ben(Reach::Visible, "GET", &path).send().await.ok();
    assert_eq!((&page["reset"], &page["changes"]), (&json!(true), &json!([])));
}

#[tokio::test]
async fn wrong_parameters_are_named() {
    let server = Running::start().await;
    for (path, field) in [
        ("/v1/changes?after=x", "after"),
        ("/v1/changes?wait=61", "wait"),
        ("/v1/changes?wait=long", "wait"),
        ("/v1/changes?limit=0", "limit"),
        ("/v1/changes?project=shop", "project"),
    ] {
        let reply = server.get(path).await;
        assert_eq!((reply.problem().0, reply.json()["field"].clone()), (400, json!(field)), "{path}");
    }
    let beyond = server.get("/v1/changes?scope=visible").await;
    assert_eq!(beyond.problem(), (403, "beyond_reach".to_owned()));
}

/// A waiting client would otherwise keep the server from ending.
#[tokio::test]
async fn a_request_that_waits_is_answered_when_the_server_stops() {
    let mut server = Running::start().await;
    let begun = server.get("/v1/changes").await.ok();
    let waiting = server.ana("GET", &format!("/v1/changes?wait=60&after={}", cursor(&begun)));
    let mut stream = tokio::net::TcpStream::connect(server.address).await.unwrap();
    tokio::io::AsyncWriteExt::write_all(&mut stream, &waiting.bytes()).await.unwrap();
    // A later answer shows that the server has read the request.
    server.get("/v1/me").await.ok();
    server.stop.take().unwrap().send(()).unwrap();
    let page = crate::client::Reply::read(&mut stream).await.ok();
    assert_eq!((&page["changes"], &page["cursor"]), (&json!([]), &begun["cursor"]));
    (&mut server.served).await.unwrap().unwrap();
}

/// The change comes after the revocation, so the token must not learn of it.
#[tokio::test]
async fn a_token_that_is_revoked_while_it_waits_gets_nothing() {
    let server = Running::start().await;
    let token = server.token("ben", Reach::All, &[AccessRight::Read]);
    let request = |path: &str| {
        let request = crate::client::Request::new(server.address, "GET", path);
        request.header("authorization", &format!("Bearer {token}"))
    };
    let begun = request("/v1/changes?scope=all").send().await.ok();
    server.file.revoke(token.split('_').nth(1).unwrap()).unwrap();
    // It is answered long before that.
    let path = format!("/v1/changes?scope=all&wait=60&after={}", cursor(&begun));
    let reply = request(&path).send().await;
    assert_eq!(reply.problem(), (401, "unauthenticated".to_owned()));
}

#[tokio::test]
async fn readers_who_wait_are_limited() {
    let few = |settings: &mut amplifier_session_server::ServerSettings| settings.limits.readers_of_token = 1;
    let server = Running::with(storage().await, few).await;
    let begun = server.get("/v1/changes").await.ok();
    let token = server.token("ana", Reach::Own, &AccessRight::ALL);
    let mut live = LiveClient::connect(&server, &token).await.unwrap();
    assert_eq!(live.subscribe(json!({"id": 1})).await["type"], "ready");
    let path = format!("/v1/changes?after={}", cursor(&begun));
    let waiting = server.get(&format!("{path}&wait=60")).await;
    assert_eq!(waiting.problem(), (429, "too_many_requests".to_owned()));
    assert_eq!(LiveClient::connect(&server, &token).await.err(), Some(429));
    // A request that does not wait takes no place, and other tokens have their own.
    server.get(&path).await.ok();
    let of_ben = server.token("ben", Reach::Own, &AccessRight::ALL);
    assert!(LiveClient::connect(&server, &of_ben).await.is_ok());
}
