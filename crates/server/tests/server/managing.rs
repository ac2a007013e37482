//! The whole store: imports, quotas, users, checks, metrics, and lines as they are stored.

use amplifier_session_api::{AccessRight, Reach};
use amplifier_session_server::{NewToken, StorageQuota};
use amplifier_session_testkit::prelude::*;

use crate::{Running, client::Request, storage};

const LINES: &str = "application/jsonl";

#[tokio::test]
async fn an_export_is_imported_again() {
    let server = Running::start().await;
    let archive = server.get("/v1/export").await.body;
    server.ana("POST", "/v1/sessions/delete").json(&json!({"all": true})).send().await.ok();
    let imported = server.ana("POST", "/v1/import").body(LINES, archive.clone()).send().await.ok();
    assert_eq!((&imported["sessions"], &imported["messages"]), (&json!(3), &json!(6)));
    // What exists is not replaced unless that is asked for, and a session of somebody else is refused.
    let again = server.ana("POST", "/v1/import").body(LINES, archive.clone()).send().await.ok();
    assert_eq!((&again["sessions"], again["refused"].as_array().unwrap().len()), (&json!(0), 3));
    let replaced = server.ana("POST", "/v1/import?replace").body(LINES, archive.clone()).send().await.ok();
    assert_eq!(replaced["replaced"], 3);
    let of_others = server.ben(Reach::All, "POST", "/v1/import").body(LINES, archive).send().await.ok();
    assert_eq!((&of_others["sessions"], of_others["refused"].as_array().unwrap().len()), (&json!(0), 3));
    let wrong = server.ana("POST", "/v1/import").body(LINES, "no archive").send().await;
    assert_eq!(wrong.problem(), (400, "validation".to_owned()));
}

#[tokio::test]
async fn who_has_stored_enough_reads_and_deletes() {
    let quota = StorageQuota { sessions: Some(3), rows: Some(7) };
    let server = Running::with(storage().await, |settings| settings.quota = quota).await;
    let put = async |path: &str| {
        let line = json!({"role": "user", "content": "one more"}).to_string();
        server.ana("PUT", path).body(LINES, line).send().await
    };
    let new = "/v1/sessions/new-1/transcript?project=shop&host=laptop";
    assert_eq!(put(new).await.problem(), (403, "quota_exceeded".to_owned()));
    assert_eq!(put(new).await.json()["stored"], json!({"sessions": 3, "rows": 6}));
    // A further line of a session that is stored is within the quota, until there are too many lines.
    put("/v1/sessions/first-1/transcript?from=2").await.ok();
    assert_eq!(put("/v1/sessions/first-1/transcript?from=3").await.problem().0, 403);
    let rows = server.ana("POST", "/v1/rows").body(LINES, "").send().await;
    assert_eq!(rows.problem(), (403, "quota_exceeded".to_owned()));
    server.get("/v1/sessions/first-1/messages").await.ok();
    server.ana("DELETE", "/v1/sessions/first-1").send().await.ok();
    put(new).await.ok();
}

#[tokio::test]
async fn a_token_has_its_own_quota() {
    let server = Running::with(storage().await, |settings| settings.quota.sessions = Some(3)).await;
    let quota = StorageQuota { sessions: Some(4), rows: None };
    let new = NewToken { quota, ..NewToken::new(user("ana")) };
    let token = server.file.create(&new, server.storage.now()).unwrap();
    let put = async |session: &str| {
        let path = format!("/v1/sessions/{session}/transcript?project=shop&host=laptop");
        let request = Request::new(server.address, "PUT", &path);
        let request = request.header("authorization", &format!("Bearer {}", token.text()));
        request.body(LINES, json!({"role": "user", "content": "x"}).to_string()).send().await.status
    };
    assert_eq!([put("new-1").await, put("new-2").await], [200, 403]);
}

#[tokio::test]
async fn an_administrator_renames_users_and_checks_the_store() {
    let server = Running::start().await;
    let all = |method, path| server.ben(Reach::All, method, path);
    let renamed =
        all("POST", "/v1/users/rename").json(&json!({"old": "ana", "new": "ana@example.com"})).send().await;
    assert_eq!(renamed.ok(), json!({"old": "ana", "new": "ana@example.com", "sessions": 3}));
    let found = all("GET", "/v1/check").send().await.ok();
    assert_eq!(found["findings"][0]["finding"], "writable");
    let reader = server.token("ben", Reach::All, &[AccessRight::Read]);
    for (method, path) in [("POST", "/v1/users/rename"), ("GET", "/v1/check"), ("GET", "/metrics")] {
        let request = Request::new(server.address, method, path);
        let reply = request.header("authorization", &format!("Bearer {reader}")).send().await;
        assert_eq!(reply.problem(), (403, "missing_right".to_owned()), "{path}");
    }
}

#[tokio::test]
async fn metrics_are_for_administrators_and_for_this_machine() {
    let own_address = |settings: &mut amplifier_session_server::ServerSettings| {
        settings.metrics = Some("127.0.0.1:0".parse().unwrap());
    };
    let server = Running::with(storage().await, own_address).await;
    server.get("/v1/me").await.ok();
    let text = |reply: crate::client::Reply| {
        assert!(reply.header("content-type").unwrap().starts_with("application/openmetrics-text"));
        String::from_utf8(reply.body).unwrap()
    };
    let with_token = text(server.get("/metrics").await);
    let address = server.metrics.unwrap();
    let without = text(Request::new(address, "GET", "/metrics").send().await);
    for read in [&with_token, &without] {
        let counted = r#"amplifier_sessions_server_requests_total{route="me",status="200"} 1"#;
        assert!(read.contains(counted) && read.contains("amplifier_sessions_server_store_up 1"), "{read}");
        // Neither users nor sessions.
        assert!(!read.contains("ana") && !read.contains("first-1"), "{read}");
    }
    // Nothing else is there, and pages of other sites can't read it.
    assert_eq!(Request::new(address, "GET", "/v1/me").send().await.status, 404);
    let foreign = Request::new(address, "GET", "/metrics").header("host", "example.com").send().await;
    assert_eq!(foreign.status, 403);
}

#[tokio::test]
async fn findings_are_ignored_and_vectors_need_a_model() {
    let server = Running::start().await;
    let path = "/v1/sessions/first-1/secrets/ignore";
    let ignored = server.ana("POST", path).json(&json!({})).send().await.ok();
    assert_eq!(ignored["ignored"], 0);
    let vectors = server.ana("POST", "/v1/vectors").json(&json!({"session": "first-1"})).send().await;
    assert_eq!(vectors.problem(), (501, "unsupported".to_owned()));
}

#[tokio::test]
async fn a_line_of_an_event_is_read_as_it_is() {
    let server = Running::start().await;
    let line = r#"{"event":"session:start",  "ts":"2026-01-01T00:00:00Z","n":1.10}"#;
    server.ana("PUT", "/v1/sessions/first-1/events").body(LINES, line).send().await.ok();
    let read = server.get("/v1/sessions/first-1/events/0?line=true").await;
    assert_eq!((read.status, String::from_utf8(read.body.clone()).unwrap()), (200, line.to_owned()));
    assert_eq!(read.header("content-type"), Some("application/octet-stream"));
    assert!(read.header("content-disposition").unwrap().starts_with("attachment"));
    let none = server.get("/v1/sessions/first-1/events/9?line=true").await;
    assert_eq!(none.problem(), (404, "no_line".to_owned()));
}

#[tokio::test]
async fn statistics_have_the_breakdowns_that_are_asked_for() {
    let server = Running::start().await;
    let some = server.get("/v1/statistics?by=project,day").await.ok();
    assert_eq!(some["projects"].as_array().unwrap().len(), 2);
    assert_eq!((&some["weeks"], &some["totals"]["sessions"]), (&json!([]), &json!(3)));
    let all = server.get("/v1/sessions/first-1/statistics").await.ok();
    assert!(!all["weeks"].as_array().unwrap().is_empty());
    assert_eq!(server.get("/v1/statistics?by=mood").await.problem().0, 400);
}
