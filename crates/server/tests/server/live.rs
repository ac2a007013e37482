//! Changes over a WebSocket.

use std::time::Duration;

use amplifier_session_api::{AccessRight, Reach};
use amplifier_session_server::ServerSettings;
use amplifier_session_testkit::prelude::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use crate::{
    Running,
    client::Request,
    live_client::{Ended, LiveClient},
    storage,
};

async fn live(server: &Running, user: &str, reach: Reach) -> LiveClient {
    let token = server.token(user, reach, &AccessRight::ALL);
    LiveClient::connect(server, &token).await.unwrap()
}

async fn edit(server: &Running, session: &str, name: &str) {
    let path = format!("/v1/sessions/{session}");
    server.ana("PATCH", &path).json(&json!({"name": name})).send().await.ok();
}

async fn share(server: &Running, session: &str, sharing: Value) {
    server.ana("PUT", &format!("/v1/sessions/{session}/sharing")).json(&sharing).send().await.ok();
}

/// A change with what it says about the session.
fn changed(frame: &Value) -> (&str, bool) {
    assert_eq!(frame["type"], "change", "{frame}");
    (frame["session"]["session_id"].as_str().unwrap(), frame["removed"].as_bool().unwrap())
}

#[tokio::test]
async fn a_change_is_announced_and_a_cursor_goes_on() {
    let server = Running::start().await;
    let mut client = live(&server, "ana", Reach::Own).await;
    let ready = client.subscribe(json!({"id": 1, "after": null})).await;
    assert_eq!((&ready["type"], &ready["id"]), (&json!("ready"), &json!(1)));
    edit(&server, "first-1", "Pool").await;
    let frame = client.next().await;
    assert_eq!((changed(&frame), &frame["id"]), (("first-1", false), &json!(1)));
    assert_eq!(frame["session"]["title"], "Pool");
    assert_eq!(
        (&frame["session"]["user_id"], &frame["session"]["project_slug"]),
        (&json!("ana"), &json!("shop"))
    );
    assert_eq!(
        (&frame["messages"], &frame["events"]),
        (&json!({"from": 0, "count": 2}), &json!({"from": 0, "count": 0}))
    );
    assert!(frame["version"].is_string() && frame["session"]["updated"].is_string(), "{frame}");
    drop(client);

    edit(&server, "second-1", "Pool too").await;
    let mut client = live(&server, "ana", Reach::Own).await;
    let ready = client.subscribe(json!({"id": 7, "after": frame["cursor"]})).await;
    assert_eq!(ready["cursor"], frame["cursor"]);
    assert_eq!(changed(&client.next().await), ("second-1", false));
}

#[tokio::test]
async fn subscriptions_choose_sessions_and_what_is_said_of_them() {
    let server = Running::start().await;
    let mut client = live(&server, "ana", Reach::Own).await;
    client.subscribe(json!({"id": 1, "project": "bakery"})).await;
    client.subscribe(json!({"id": 2, "session": "second-1", "of": ["messages"]})).await;
    for session in ["first-1", "second-1", "third-1"] {
        edit(&server, session, "Pool").await;
    }
    let mut frames = [client.next().await, client.next().await];
    frames.sort_by_key(|frame| frame["id"].as_u64());
    assert_eq!(frames.each_ref().map(|frame| changed(frame).0), ["third-1", "second-1"]);
    assert_eq!(frames[1]["session"], json!({"user_id": "ana", "session_id": "second-1"}));
    assert_eq!((&frames[1]["messages"], frames[1].get("events")), (&json!({"from": 0, "count": 2}), None));

    client.send(&json!({"type": "unsubscribe", "id": 1})).await;
    assert_eq!(client.next().await, json!({"type": "unsubscribed", "id": 1}));
    edit(&server, "third-1", "Oven").await;
    edit(&server, "second-1", "Pool again").await;
    assert_eq!(client.next().await["id"], 2);
    client.send(&json!({"type": "ping"})).await;
    assert_eq!(client.next().await, json!({"type": "pong"}));
}

#[tokio::test]
async fn who_may_not_see_a_session_any_more_learns_only_that_it_is_gone() {
    let server = Running::start().await;
    let mut client = live(&server, "ben", Reach::Visible).await;
    client.subscribe(json!({"id": 1, "scope": "visible"})).await;
    // Private sessions of others change unseen.
    edit(&server, "second-1", "Secret").await;
    share(&server, "first-1", json!({"visibility": "team", "team_ids": ["payments"]})).await;
    assert_eq!(changed(&client.next().await), ("first-1", false));
    share(&server, "first-1", json!({"visibility": "private"})).await;
    let mut gone = client.next().await;
    gone["cursor"].take();
    let expected = json!({
        "type": "change", "id": 1, "cursor": null, "removed": true,
        "session": {"user_id": "ana", "session_id": "first-1"},
    });
    assert_eq!(gone, expected);
    let beyond = client.subscribe(json!({"id": 2, "scope": "all"})).await;
    assert_eq!(
        (&beyond["type"], &beyond["id"], &beyond["kind"]),
        (&json!("error"), &json!(2), &json!("beyond_reach"))
    );
}

#[tokio::test]
async fn an_unknown_cursor_is_a_reset() {
    let server = Running::start().await;
    let begun = server.get("/v1/changes").await.ok();
    let mut client = live(&server, "ben", Reach::Visible).await;
    let asked = json!({"id": 1, "scope": "visible", "after": begun["cursor"]});
    assert_eq!(client.subscribe(asked).await["type"], "ready");
    let reset = client.next().await;
    assert_eq!((&reset["type"], &reset["id"]), (&json!("reset"), &json!(1)));
    assert_ne!(reset["cursor"], begun["cursor"]);
}

#[tokio::test]
async fn wrong_frames_are_errors() {
    let server = Running::start().await;
    let mut client = live(&server, "ana", Reach::Own).await;
    for frame in [json!([]), json!({"type": "delete", "id": 1}), json!({"type": "subscribe"})] {
        client.send(&frame).await;
        let error = client.next().await;
        assert_eq!(
            (&error["type"], &error["id"], &error["field"]),
            (&json!("error"), &json!(null), &json!("frame"))
        );
    }
    let wrong = client.subscribe(json!({"id": 1, "after": "x"})).await;
    assert_eq!(
        (&wrong["type"], &wrong["id"], &wrong["field"]),
        (&json!("error"), &json!(1), &json!("after"))
    );
    assert_eq!(client.subscribe(json!({"id": 1})).await["type"], "ready");
    let twice = client.subscribe(json!({"id": 1})).await;
    assert_eq!((&twice["type"], &twice["field"]), (&json!("error"), &json!("id")));
    client.send(&json!({"type": "unsubscribe", "id": 9})).await;
    assert_eq!(client.next().await["field"], "id");
    client.send_message(Message::binary(vec![0; 8])).await.unwrap();
    assert_eq!(client.end().await, Ended::Closed(1003));
    let mut client = live(&server, "ana", Reach::Own).await;
    let _ = client.send_message(Message::text("x".repeat(100_000))).await;
    // What it had not read yet may break the connection before its reason arrives.
    assert!(matches!(client.end().await, Ended::Closed(1009) | Ended::Broken));
}

#[tokio::test]
async fn what_is_no_websocket_is_told_so() {
    let server = Running::start().await;
    let reply = server.get("/v1/live").await;
    assert_eq!(reply.problem(), (426, "upgrade_required".to_owned()));
    assert_eq!(reply.header("upgrade"), Some("websocket"));
    let without = Request::new(server.address, "GET", "/v1/live").send().await;
    assert_eq!(without.status, 401);
    assert_eq!(LiveClient::connect(&server, "ams_x").await.err(), Some(401));
}

/// Browsers send WebSockets to other sites, too.
#[tokio::test]
async fn pages_of_other_sites_are_refused() {
    let server = Running::start().await;
    let reply = server.ana("GET", "/v1/live").header("origin", "http://evil.example.com").send().await;
    assert_eq!(reply.problem(), (403, "foreign_host".to_owned()));
}

#[tokio::test]
async fn subscriptions_and_frames_are_limited() {
    let few = |settings: &mut ServerSettings| {
        settings.limits.subscriptions = 2;
        settings.limits.requests = 1;
        settings.limits.request_burst = 20;
    };
    let server = Running::with(storage().await, few).await;
    let mut client = live(&server, "ana", Reach::Own).await;
    for id in 1..=2 {
        assert_eq!(client.subscribe(json!({"id": id})).await["type"], "ready");
    }
    let third = client.subscribe(json!({"id": 3})).await;
    assert_eq!((&third["type"], &third["kind"]), (&json!("error"), &json!("too_many_requests")));
    client.send(&json!({"type": "unsubscribe", "id": 1})).await;
    client.next().await;
    assert_eq!(client.subscribe(json!({"id": 3})).await["type"], "ready");
    for _ in 0..100 {
        // It may have been closed already.
        let _ = client.send_message(Message::text(r#"{"type":"ping"}"#)).await;
    }
    assert!(matches!(client.end().await, Ended::Closed(1008) | Ended::Broken));
}

#[tokio::test]
async fn a_revoked_token_ends_its_connections() {
    let server = Running::start().await;
    let mut client = live(&server, "ana", Reach::Own).await;
    assert_eq!(client.subscribe(json!({"id": 1})).await["type"], "ready");
    let token = server.token("ana", Reach::Own, &AccessRight::ALL);
    server.file.revoke(token.split('_').nth(1).unwrap()).unwrap();
    assert_eq!(client.end().await, Ended::Closed(4401));
}

#[tokio::test]
async fn connections_end_when_the_server_stops() {
    let mut server = Running::start().await;
    let mut clients = Vec::new();
    for _ in 0..3 {
        let mut client = live(&server, "ana", Reach::Own).await;
        client.subscribe(json!({"id": 1})).await;
        clients.push(client);
    }
    server.stop.take().unwrap().send(()).unwrap();
    for client in &mut clients {
        assert_eq!(client.end().await, Ended::Closed(1001));
    }
    (&mut server.served).await.unwrap().unwrap();
}

/// A client that never reads keeps neither memory nor its place.
#[tokio::test]
async fn a_client_that_does_not_read_is_closed() {
    let soon = |settings: &mut ServerSettings| {
        settings.limits.stalled_reader = Duration::from_millis(200);
        (settings.limits.requests, settings.limits.request_burst) = (1_000_000, 1_000_000);
    };
    let server = Running::with(storage().await, soon).await;
    let mut client = live(&server, "ana", Reach::Own).await;
    // Each is answered by an error of about the same length, until nothing more fits between both.
    let frame = json!({"type": "x".repeat(15_000)}).to_string();
    while client.send_message(Message::text(frame.clone())).await.is_ok() {}
    server.get("/v1/me").await.ok();
}
