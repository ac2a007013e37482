//! Limits that keep one token from taking what others need.

use std::time::Duration;

use amplifier_session_api::{
    AccessRight, Reach,
    lines::LinesRequest,
    operations::{events::EventsRequest, messages::MessagesRequest, session_events::SessionEventsRequest},
    remote::{AnyApi, RemoteApi, SkippedSessions},
};
use amplifier_session_client::HttpStore;
use amplifier_session_core::Secret;
use amplifier_session_server::ServerSettings;
use amplifier_session_testkit::{lines, prelude::*};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};

use crate::{Running, client::Reply, storage};

const LINES: &str = "application/jsonl";

/// A session `long-1` of ana with 40 messages and 40 events of 2 KB.
async fn long_session() -> SessionStorage {
    let storage = storage().await;
    let target = target_of("ana", "shop", "long-1");
    let text = |at: usize| format!("message {at} {}", "x".repeat(2_000));
    let messages = (0..40).map(|at| lines::user(&text(at))).collect::<Vec<_>>();
    storage.ingestion().sync_transcript_lines(&target, whole(messages)).await.unwrap();
    storage.ingestion().sync_event_lines(&target, SyncLines::starting_at(0, events(40))).await.unwrap();
    storage
}

/// Lines of an event log of 2 KB.
fn events(count: u32) -> Vec<RawJson> {
    let line = |at: u32| {
        let ts = format!("2026-01-05T08:00:{at:02}.000Z");
        json!({"event": "tool:pre", "timestamp": ts, "data": {"at": at, "x": "x".repeat(2_000)}}).to_string()
    };
    (0..count).map(|at| RawJson::from(line(at).as_str())).collect()
}

fn small_answers(settings: &mut ServerSettings) {
    (settings.limits.page, settings.limits.answer) = (20_000, 60_000);
}

#[tokio::test]
async fn pages_of_long_lines_end_earlier_and_say_so() {
    let server = Running::with(long_session().await, small_answers).await;
    for (path, list) in [
        ("/v1/sessions/long-1/messages?limit=1000", "messages"),
        ("/v1/sessions/long-1/events?limit=1000&full", "events"),
    ] {
        let first = server.get(path).await.ok();
        let count = first[list].as_array().unwrap().len();
        assert!((5..20).contains(&count) && first["has_more_after"] == true, "{path}: {count}");
        // Clients go on with the next number.
        let next = server.get(&format!("{path}&from={count}")).await.ok();
        assert_eq!(next[list][0]["sequence"], count);
    }
    let found = server.get("/v1/events?session=long-1&limit=1000&full").await.ok();
    let count = found["events"].as_array().unwrap().len();
    assert!((5..20).contains(&count) && found["has_more"] == true, "{count}");
    let after = found["next"].as_str().unwrap();
    let rest = server.get(&format!("/v1/events?session=long-1&limit=1000&full&after={after}")).await.ok();
    assert_eq!(rest["events"][0]["sequence"], 39 - count);
    // Without lines, all of them fit.
    let short = server.get("/v1/sessions/long-1/events?limit=1000").await.ok();
    assert_eq!(short["events"].as_array().unwrap().len(), 40);
}

#[tokio::test]
async fn an_answer_without_pages_is_refused_if_it_is_too_large() {
    let server = Running::with(long_session().await, small_answers).await;
    let around = server.get("/v1/sessions/long-1/messages/20?before=20&after=20").await;
    assert_eq!(around.problem(), (413, "answer_too_large".to_owned()));
    assert!(around.json()["detail"].as_str().unwrap().contains("ask for less"));
    server.get("/v1/sessions/long-1/messages/20?before=5&after=5").await.ok();
}

#[tokio::test]
async fn programs_of_this_project_read_all_pages() {
    let server = Running::with(long_session().await, small_answers).await;
    let token = Secret::new(&server.token("ana", Reach::Own, &AccessRight::ALL));
    let store = HttpStore::new(format!("http://{}", server.address).parse().unwrap(), &token, false).unwrap();
    let (now, skipped) =
        ("2026-03-29T03:30:00+02:00[Europe/Berlin]".parse().unwrap(), SkippedSessions::default());
    let api =
        AnyApi::There(RemoteApi { server: &store, now: &now, home: None, skipped: &skipped, masked: false });
    let lines = |from, limit| LinesRequest {
        scope: Reach::Own,
        session: "long".to_owned(),
        from,
        limit: Some(limit),
        range: true,
    };
    let messages = async |from, limit| {
        let request = MessagesRequest { lines: lines(from, limit), vectors: false, short_ids: false };
        api.list(&request).await.unwrap().response
    };
    let all = messages(None, 1_000_000).await;
    assert!(all.messages.iter().map(|message| message.sequence).eq(0..40) && !all.has_more_after);
    let some = messages(Some(3), 30).await;
    assert!(some.messages.iter().map(|message| message.sequence).eq(3..33) && some.has_more_after);
    assert_eq!(some.range.map(|range| (range.from, range.next)), Some((3, 33)));
    let request = SessionEventsRequest { lines: lines(None, 1_000_000), full: true };
    let events = api.list(&request).await.unwrap().response.events;
    assert!(events.iter().map(|event| event.event.sequence).eq(0..40));
    let request =
        EventsRequest { limit: 35, full: true, session: Some("long".to_owned()), ..Default::default() };
    let mut found = api.read_events(&request).await.unwrap().response;
    let mut sequences = Vec::new();
    while let Some(event) = found.next().await.unwrap() {
        sequences.push(event.event.sequence);
    }
    assert!(sequences.into_iter().eq((5..40).rev()) && found.end().has_more);
}

#[tokio::test]
async fn an_operation_has_at_most_ten_thousand_items() {
    let server = Running::with(storage().await, |_| {}).await;
    let target = target_of("ana", "shop", "many-1");
    let line = |at: u32| {
        RawJson::from(format!(r#"{{"event":"a:b","ts":"2026-01-05T08:00:00Z","n":{at}}}"#).as_str())
    };
    let log = SyncLines::starting_at(0, (0..10_050).map(line).collect());
    server.storage.ingestion().sync_event_lines(&target, log).await.unwrap();
    let call = json!({
        "now": "2026-03-29T03:30:00+02:00[Europe/Berlin]", "request": {"session": "many-1", "limit": 1_000_000},
    });
    let answer = server.ana("POST", "/v1/operations/session_events").json(&call).send().await.ok();
    assert_eq!(answer["response"]["events"].as_array().unwrap().len(), 10_000);
    assert_eq!(answer["response"]["has_more_after"], true);
}

/// A connection with a request of which the last byte is not sent.
async fn unfinished(server: &Running, method: &str, path: &str, content_type: &str) -> TcpStream {
    let bytes = server.ana(method, path).body(content_type, vec![b' '; 100]).bytes();
    let mut connection = TcpStream::connect(server.address).await.unwrap();
    connection.write_all(&bytes[..bytes.len() - 1]).await.unwrap();
    connection
}

#[tokio::test]
async fn bodies_of_one_token_leave_places_for_others() {
    let server = Running::start().await;
    let path = "/v1/sessions/first-1/transcript?from=2";
    let line = json!({"role": "user", "content": "one more"}).to_string();
    for (method, path, content_type) in [("PUT", path, LINES), ("POST", "/v1/rows", LINES)] {
        let mut slow = Vec::new();
        for _ in 0..6 {
            slow.push(unfinished(&server, method, path, content_type).await);
        }
        let of_ben = "/v1/sessions/fourth-1/transcript?from=2";
        let request = server.ben(Reach::Own, "PUT", of_ben).body(LINES, line.clone());
        request.send().await.ok();
        assert_eq!(server.ben(Reach::Own, "POST", "/v1/rows").body(LINES, "").send().await.status, 400);
        // Whoever waits for their own places gets one as soon as it is free.
        slow.truncate(2);
        drop(slow);
        server
            .ana("PUT", "/v1/sessions/second-1/transcript?from=2")
            .body(LINES, line.clone())
            .send()
            .await
            .ok();
    }
}

#[tokio::test]
async fn a_body_that_trickles_is_ended() {
    let hasty = |settings: &mut ServerSettings| settings.limits.piece = Duration::from_millis(200);
    let server = Running::with(storage().await, hasty).await;
    for (method, path) in [("POST", "/v1/rows"), ("PUT", "/v1/sessions/first-1/transcript?from=2")] {
        let bytes = server.ana(method, path).body(LINES, vec![b' '; 1_000_000]).bytes();
        let (head, body) = bytes.split_at(bytes.len() - 1_000_000);
        let (mut reading, mut writing) = TcpStream::connect(server.address).await.unwrap().into_split();
        writing.write_all(head).await.unwrap();
        let body = body.to_vec();
        // Each byte comes in time, but all of them never would.
        let trickle = tokio::spawn(async move {
            for byte in body {
                if writing.write_all(&[byte]).await.is_err() {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        });
        let mut answer = vec![0; 12];
        reading.read_exact(&mut answer).await.unwrap();
        assert_eq!(String::from_utf8_lossy(&answer), "HTTP/1.1 408", "{path}");
        trickle.abort();
    }
}

/// A connection that does not read its answer, of which it has the first byte.
async fn unread(server: &Running, path: &str) -> TcpStream {
    let mut connection = TcpStream::connect(server.address).await.unwrap();
    connection.write_all(&server.ana("GET", path).bytes()).await.unwrap();
    connection.read_exact(&mut [0; 1]).await.unwrap();
    connection
}

/// A session `huge-1` of ana, which is larger than the buffers of a connection.
async fn huge_session() -> SessionStorage {
    let storage = storage().await;
    let target = target_of("ana", "shop", "huge-1");
    let large: Vec<_> = (0..30).map(|_| lines::user(&"x".repeat(1 << 20))).collect();
    storage.ingestion().sync_transcript_lines(&target, whole(large)).await.unwrap();
    storage
}

#[tokio::test]
async fn exports_of_one_token_leave_places() {
    let server = Running::with(huge_session().await, |_| {}).await;
    let path = "/v1/sessions/huge-1/export";
    let _unread = [unread(&server, path).await, unread(&server, path).await];
    let third = server.get(path).await;
    assert_eq!((third.problem().0, third.header("retry-after").is_some()), (429, true));
    let of_ben = server.ben(Reach::Own, "GET", "/v1/sessions/fourth-1/export").send().await;
    assert_eq!(of_ben.status, 200);
}

#[tokio::test]
async fn answers_that_nobody_reads_give_their_places_back() {
    let hasty = |settings: &mut ServerSettings| {
        settings.limits.piece = Duration::from_millis(100);
        settings.limits.exports_of_token = 1;
        // One large answer.
        settings.limits.answers_of_token = settings.limits.answer;
        (settings.limits.answers, settings.limits.page) = (settings.limits.answer, settings.limits.answer);
    };
    let server = Running::with(huge_session().await, hasty).await;
    for path in ["/v1/sessions/huge-1/export", "/v1/sessions/huge-1/messages"] {
        // Their connections stay open.
        let _unread = [unread(&server, path).await, unread(&server, path).await, unread(&server, path).await];
        let free = async { while server.get(path).await.status != 200 {} };
        timeout(Duration::from_secs(60), free).await.unwrap();
    }
}

#[tokio::test]
async fn events_have_a_rate_and_a_size_of_their_own() {
    let few = |settings: &mut ServerSettings| {
        (settings.limits.requests, settings.limits.request_burst) = (1, 3);
        settings.limits.event_body = 10_000;
    };
    let server = Running::with(storage().await, few).await;
    let post = async |at: u32, text: String| {
        let ts = format!("2026-01-05T08:00:{at:02}.000Z");
        let data = json!({"session_id": "s1", "timestamp": ts, "text": text});
        let body = json!({"event": "tool:pre", "workspace": "-srv-shop", "data": data});
        server.ana("POST", "/events").json(&body).send().await
    };
    for at in 0..20 {
        assert_eq!(post(at, String::new()).await.status, 202);
    }
    assert_eq!(post(30, "x".repeat(10_000)).await.problem(), (413, "too_large".to_owned()));
    // They have used up nothing that other requests need.
    server.get("/v1/me").await.ok();
}

#[tokio::test]
async fn an_event_is_compared_with_large_ones_of_its_time() {
    let server = Running::start().await;
    let data = |at: u32| {
        let ts = "2026-01-05T08:00:00.000Z";
        json!({"session_id": "s1", "timestamp": ts, "at": at, "x": "x".repeat(3_000_000)})
    };
    let post = async |at: u32| -> Reply {
        let body = json!({"event": "tool:pre", "workspace": "-srv-shop", "data": data(at)});
        server.ana("POST", "/events").json(&body).send().await
    };
    for at in 0..4 {
        assert_eq!(post(at).await.json()["status"], "queued");
    }
    for at in 0..4 {
        assert_eq!(post(at).await.json()["status"], "duplicate");
    }
}

#[tokio::test]
async fn superseded_lines_count_for_the_quota() {
    let rows = |settings: &mut ServerSettings| settings.quota.rows = Some(10);
    let server = Running::with(storage().await, rows).await;
    let put = async |text: String| {
        let line = json!({"role": "user", "content": text}).to_string();
        let path = "/v1/sessions/first-1/transcript?from=0&whole";
        server.ana("PUT", path).body(LINES, line).send().await
    };
    let mut refused = None;
    for at in 0..10 {
        let reply = put(format!("line {at}")).await;
        if reply.status != 200 {
            refused = Some((at, reply.problem()));
            break;
        }
    }
    let (at, problem) = refused.unwrap();
    assert!(at < 8 && problem == (403, "quota_exceeded".to_owned()), "{at} {problem:?}");
    server.ana("POST", "/v1/superseded/delete").json(&json!({})).send().await.ok();
    put("once more".to_owned()).await.ok();
}
