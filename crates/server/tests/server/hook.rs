//! Events that the hook of context intelligence posts, and the logs that come later.

use std::sync::Arc;

use amplifier_session_api::{AccessRight, Reach};
use amplifier_session_client::HttpStore;
use amplifier_session_core::Secret;
use amplifier_session_testkit::prelude::*;

use crate::{Running, client::Reply};

/// The data of an event of a session.
fn data(second: u32) -> Value {
    let ts = format!("2026-01-05T08:00:{second:02}.000Z");
    json!({"session_id": "s1", "timestamp": ts, "tool_name": "bash", "é": [1, 2.5]})
}

async fn post(server: &Running, event: &str, data: &Value) -> Reply {
    let body = json!({
        "event": event, "workspace": "-srv-shop", "working_dir": "/srv/shop",
        "idempotency_key": format!("key of {event}"), "data": data,
    });
    server.ana("POST", "/events").json(&body).send().await
}

/// The line that the hook writes to its log: in ASCII, and its members in its order.
fn logged(event: &str, data: &Value) -> String {
    let (event, timestamp) = (json!(event), &data["timestamp"]);
    let data = data.to_string().replace('é', "\\u00e9");
    format!(r#"{{"event": {event}, "timestamp": {timestamp}, "workspace": "-srv-shop", "data": {data}}}"#)
}

/// A store with these lines as the log of the session, which pushes to the server.
async fn push(laptop: &SessionStorage, server: &Running, log: &[String]) -> PushReport {
    let target = target_of("ana", "-srv-shop", "s1");
    let lines = SyncLines::starting_at(0, log.iter().map(|line| RawJson::from(line.as_str())).collect());
    laptop.ingestion().sync_event_lines(&target, lines).await.unwrap();
    let token = server.token("ana", Reach::Own, &AccessRight::ALL);
    let address = format!("http://{}", server.address).parse().unwrap();
    let to = HttpStore::new(address, &Secret::new(&token), false).unwrap();
    laptop.exchange().push(&to, &PushOptions::new(user("ana")), &|_| {}).await.unwrap()
}

fn laptop() -> SessionStorage {
    SessionStorage::new(Arc::new(MemoryBackend::new()))
}

/// The lines of the events that the server has.
async fn events(server: &Running) -> Vec<String> {
    let answer = server.get("/v1/sessions/s1/events?full&limit=1000").await.ok();
    let events = answer["events"].as_array().unwrap();
    events.iter().map(|event| event["event_type"].as_str().unwrap().to_owned()).collect()
}

async fn superseded(server: &Running) -> usize {
    let answer = server.get("/v1/superseded/events?session=s1").await.ok();
    answer["events"].as_array().unwrap().len()
}

#[tokio::test]
async fn an_event_is_accepted_once_and_belongs_to_the_user_of_the_token() {
    let server = Running::start().await;
    let first = post(&server, "session:start", &data(1)).await;
    assert_eq!((first.status, first.json()), (202, json!({"status": "queued", "session_id": "s1"})));
    let again = post(&server, "session:start", &data(1)).await;
    assert_eq!((again.status, again.json()), (202, json!({"status": "duplicate", "session_id": "s1"})));
    post(&server, "tool:pre", &data(2)).await;
    assert_eq!(events(&server).await, ["session:start", "tool:pre"]);
    let session = server.get("/v1/sessions/s1").await.ok();
    assert_eq!(session["session"]["project_slug"], "-srv-shop");
    let none = post(&server, "tool:pre", &json!({"timestamp": "2026-01-05T08:00:00Z"})).await;
    assert_eq!((none.status, none.json()), (202, json!({"status": "skipped", "session_id": null})));
    assert_eq!(post(&server, "", &data(3)).await.problem().0, 400);
    assert_eq!(post(&server, "tool:pre", &json!({"session_id": "s1"})).await.problem().0, 400);
    let blobs = server.get("/blobs/s1").await.ok();
    assert_eq!(blobs, json!({"session_id": "s1", "blobs": []}));
    assert_eq!(server.get("/blobs/fourth-1").await.status, 404);
    assert_eq!(server.get("/version").await.ok(), json!({"version": env!("CARGO_PKG_VERSION")}));
    assert_eq!(server.get("/status").await.ok(), json!({"status": "ok"}));
}

#[tokio::test]
async fn the_line_of_the_log_replaces_the_posted_one() {
    let (server, laptop) = (Running::start().await, laptop());
    let names = ["session:start", "tool:pre", "tool:post", "session:end"];
    let log: Vec<String> = names.iter().zip(1..).map(|(name, at)| logged(name, &data(at))).collect();
    // The second one got lost, and the last one is ahead of the log.
    for at in [0, 2, 3] {
        post(&server, names[at], &data(at as u32 + 1)).await;
    }
    let report = push(&laptop, &server, &log[..3]).await;
    assert_eq!((report.sessions, report.failed.len()), (1, 0), "{report:?}");
    assert_eq!(events(&server).await, names);
    assert_eq!(post(&server, names[1], &data(2)).await.json()["status"], "duplicate");
    assert_eq!(post(&server, names[3], &data(4)).await.json()["status"], "duplicate");
    let report = push(&laptop, &server, &log).await;
    assert_eq!((report.sessions, report.failed.len()), (1, 0), "{report:?}");
    assert_eq!(events(&server).await, names);
    assert_eq!(superseded(&server).await, 0);
    assert_eq!(push(&laptop, &server, &log).await.sessions, 0);
    assert_eq!(post(&server, names[0], &data(1)).await.json()["status"], "duplicate");
    assert_eq!(events(&server).await, names);
}

#[tokio::test]
async fn the_log_of_another_program_has_the_same_events() {
    let (server, laptop) = (Running::start().await, laptop());
    for (name, at) in [("session:start", 1), ("tool:pre", 2), ("tool:post", 3)] {
        post(&server, name, &data(at)).await;
    }
    let line = |name: &str, at: u32| {
        let ts = format!("2026-01-05T08:00:{at:02}.120Z");
        json!({"ts": ts, "lvl": "INFO", "event": name, "session_id": "s1", "data": {"x": at}}).to_string()
    };
    push(&laptop, &server, &[line("session:start", 1), line("tool:pre", 2)]).await;
    assert_eq!(events(&server).await, ["session:start", "tool:pre", "tool:post"]);
    assert_eq!(post(&server, "tool:pre", &data(2)).await.json()["status"], "duplicate");
    push(&laptop, &server, &[line("session:start", 1), line("tool:pre", 2), line("tool:post", 3)]).await;
    assert_eq!(events(&server).await, ["session:start", "tool:pre", "tool:post"]);
    assert_eq!(superseded(&server).await, 0);
}

#[tokio::test]
async fn a_sync_of_the_log_replaces_what_was_posted() {
    let server = Running::start().await;
    let target = target_of("ana", "-srv-shop", "s1");
    for at in [1, 3] {
        post(&server, "tool:pre", &data(at)).await;
    }
    let log: Vec<RawJson> = (1..4).map(|at| RawJson::from(logged("tool:pre", &data(at)).as_str())).collect();
    server.storage.ingestion().sync_event_lines(&target, SyncLines::starting_at(0, log)).await.unwrap();
    assert_eq!((events(&server).await.len(), superseded(&server).await), (3, 0));
    assert_eq!(post(&server, "tool:pre", &data(2)).await.json()["status"], "duplicate");
    assert_eq!(post(&server, "tool:pre", &data(4)).await.json()["status"], "queued");
    assert_eq!(events(&server).await.len(), 4);
}

#[tokio::test]
async fn posted_events_that_the_log_lacks_are_kept() {
    let server = Running::start().await;
    for at in 1..4 {
        post(&server, "tool:pre", &data(at)).await;
    }
    let log = logged("session:start", &data(9)).into_bytes();
    let put = server.ana("PUT", "/v1/sessions/s1/events?from=0&whole");
    put.body("application/jsonl", log).send().await.ok();
    assert_eq!(events(&server).await, ["session:start", "tool:pre", "tool:pre", "tool:pre"]);
    assert_eq!(superseded(&server).await, 0);
    // The log has the second one, and one of its lines is broken.
    let (first, second) = (logged("session:start", &data(9)), logged("tool:pre", &data(2)));
    let half = logged("tool:pre", &data(1)).split_off(20);
    let log = [first, half, second].join("\n").into_bytes();
    let put = server.ana("PUT", "/v1/sessions/s1/events?from=0&whole");
    put.body("application/jsonl", log).send().await.ok();
    assert_eq!((events(&server).await.len(), superseded(&server).await), (4, 0));
    for at in 1..4 {
        assert_eq!(post(&server, "tool:pre", &data(at)).await.json()["status"], "duplicate");
    }
}

/// Events of the same name that follow each other within half a second, before and after their log came.
#[tokio::test]
async fn new_events_are_not_those_of_the_log_before() {
    let (server, laptop) = (Running::start().await, laptop());
    let data = |at: u32| {
        let ts = format!("2026-01-05T08:00:00.{:03}+00:00", at * 50);
        json!({"session_id": "s1", "timestamp": ts, "n": at, "size": 1e22, "text": "é"})
    };
    let log: Vec<String> = (0..8).map(|at| logged("tool:pre", &data(at)).replace("1e22", "1e+22")).collect();
    push(&laptop, &server, &log[..3]).await;
    for at in 3..8 {
        assert_eq!(post(&server, "tool:pre", &data(at)).await.json()["status"], "queued");
    }
    for at in 0..8 {
        assert_eq!(post(&server, "tool:pre", &data(at)).await.json()["status"], "duplicate");
    }
    push(&laptop, &server, &log).await;
    assert_eq!((events(&server).await.len(), superseded(&server).await), (8, 0));
}

#[tokio::test]
async fn the_machine_replaces_the_unknown_host() {
    let (server, laptop) = (Running::start().await, laptop());
    let session = async || {
        let session = server.get("/v1/sessions/s1").await.ok();
        ["host_id", "project_slug"].map(|field| session["session"][field].as_str().unwrap().to_owned())
    };
    post(&server, "tool:pre", &data(9)).await;
    assert_eq!(session().await, ["unknown", "-srv-shop"]);
    // The log is behind.
    push(&laptop, &server, &[logged("session:start", &data(1))]).await;
    assert_eq!(session().await, ["laptop", "-srv-shop"]);
    post(&server, "tool:post", &data(10)).await;
    assert_eq!(session().await, ["laptop", "-srv-shop"]);
    assert_eq!(events(&server).await, ["session:start", "tool:pre", "tool:post"]);
}
