//! Readiness, shutdown, the audit log, and tokens that end.

use std::time::Duration;

use amplifier_session_api::{AccessRight, Reach};
use amplifier_session_server::ServerSettings;
use amplifier_session_testkit::prelude::Value;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use crate::{Running, client::Request, storage};

#[tokio::test]
async fn health_needs_no_token() {
    let server = Running::start().await;
    for (path, text) in [("/healthz", "ok\n"), ("/readyz", "ready\n")] {
        let reply = Request::new(server.address, "GET", path).send().await;
        assert_eq!((reply.status, String::from_utf8(reply.body).unwrap()), (200, text.to_owned()));
    }
}

/// A request whose body has not come yet.
async fn unfinished(server: &Running) -> TcpStream {
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let bytes = server.ana("POST", "/v1/search").body("application/json", r#"{"q":"pool"}"#).bytes();
    stream.write_all(&bytes[..bytes.len() - 1]).await.unwrap();
    stream
}

#[tokio::test]
async fn requests_finish_before_the_server_ends() {
    let mut server = Running::start().await;
    let mut stream = unfinished(&server).await;
    // A later answer shows that the server has read the beginning.
    server.get("/v1/me").await.ok();
    server.stop.take().unwrap().send(()).unwrap();
    stream.write_all(b"}").await.unwrap();
    let mut read = Vec::new();
    stream.read_to_end(&mut read).await.unwrap();
    assert!(read.starts_with(b"HTTP/1.1 200 OK"), "{}", String::from_utf8_lossy(&read));
    (&mut server.served).await.unwrap().unwrap();
    assert!(TcpStream::connect(server.address).await.is_err());
}

#[tokio::test]
async fn requests_that_do_not_finish_are_cut_after_a_while_or_at_once() {
    let short = |settings: &mut ServerSettings| settings.limits.shutdown = Duration::from_millis(100);
    let mut server = Running::with(storage().await, short).await;
    let mut stream = unfinished(&server).await;
    server.get("/v1/me").await.ok();
    server.stop.take().unwrap().send(()).unwrap();
    (&mut server.served).await.unwrap().unwrap();
    assert_eq!(stream.read(&mut [0; 16]).await.unwrap_or(0), 0);

    let long = |settings: &mut ServerSettings| settings.limits.shutdown = Duration::from_secs(3_600);
    let mut server = Running::with(storage().await, long).await;
    let _stream = unfinished(&server).await;
    server.get("/v1/me").await.ok();
    server.stop.take().unwrap().send(()).unwrap();
    server.stop_now.take().unwrap().send(()).unwrap();
    (&mut server.served).await.unwrap().unwrap();
}

#[tokio::test]
async fn the_audit_log_says_who_asked_and_not_for_what() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let log = |settings: &mut ServerSettings| settings.audit_log = Some(path.clone());
    let server = Running::with(storage().await, log).await;
    server.get("/v1/search?q=topsecret").await.ok();
    server.get("/v1/sessions/fourth-1").await;
    Request::new(server.address, "GET", "/v1/me").send().await;
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(
        !text.contains("topsecret") && !text.contains(&server.token("ana", Reach::Own, &AccessRight::ALL))
    );
    let entries: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(entries.len(), 3);
    assert_eq!((&entries[0]["route"], &entries[0]["user"]), (&Value::from("search"), &Value::from("ana")));
    assert_eq!(
        (&entries[1]["session"], &entries[1]["status"]),
        (&Value::from("fourth-1"), &Value::from(404))
    );
    assert_eq!((&entries[2]["token"], &entries[2]["status"]), (&Value::Null, &Value::from(401)));
}

#[tokio::test]
async fn the_rate_of_a_token_is_limited() {
    let few = |settings: &mut ServerSettings| {
        settings.limits.requests = 1;
        settings.limits.request_burst = 2;
    };
    let server = Running::with(storage().await, few).await;
    assert_eq!([server.get("/v1/me").await.status, server.get("/v1/me").await.status], [200, 200]);
    let mut refused = server.get("/v1/me").await;
    // The machine may have been busy for a second.
    for _ in 0..50 {
        if refused.status == 429 {
            break;
        }
        refused = server.get("/v1/me").await;
    }
    assert_eq!(refused.problem(), (429, "too_many_requests".to_owned()));
    assert!(refused.header("retry-after").is_some());
    assert_eq!(server.ben(Reach::Own, "GET", "/v1/me").send().await.status, 200);
    let _ = (&server.file, &server.storage);
}
