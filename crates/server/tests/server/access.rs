//! Who may read and change what.

use amplifier_session_api::{AccessRight, Reach};
use amplifier_session_testkit::{lines, prelude::*};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use crate::{
    Running, SECRET,
    client::{Reply, Request},
    live_client::{Ended, LiveClient},
};

const READ: &[AccessRight] = &[AccessRight::Read];

#[tokio::test]
async fn without_a_valid_token_nothing_is_read() {
    let server = Running::start().await;
    let token = server.token("ana", Reach::Own, READ);
    let wrong = token.replace('a', "b");
    for path in ["/v1/me", "/v1/sessions", "/v1/sessions/first-1", "/v1/nothing", "/nothing"] {
        let none = Request::new(server.address, "GET", path).send().await;
        assert_eq!(none.problem(), (401, "unauthenticated".to_owned()), "{path}");
        assert_eq!(none.header("www-authenticate"), Some(r#"Bearer realm="amplifier-sessions""#));
    }
    let request = Request::new(server.address, "GET", "/v1/me");
    let reply = request.header("authorization", &format!("Bearer {wrong}")).send().await;
    assert_eq!(reply.problem().0, 401);
    assert!(reply.header("www-authenticate").unwrap().contains("invalid_token"));
    // A token in an address would be in logs.
    let reply = Request::new(server.address, "GET", &format!("/v1/me?token={token}")).send().await;
    assert_eq!(reply.status, 401);
}

/// Revoking a token ends requests that are still running, such as slow downloads and uploads.
#[tokio::test]
async fn a_revoked_token_ends_what_has_begun() {
    let server = Running::start().await;
    let long = vec![lines::user(&"x".repeat(1 << 20)); 24];
    let target = target_of("ana", "shop", "long-1");
    server.storage.ingestion().sync_transcript_lines(&target, whole(long)).await.unwrap();
    let token = server.token("ana", Reach::Own, &AccessRight::ALL);
    let mut live = LiveClient::connect(&server, &token).await.unwrap();
    let mut begun = Vec::new();
    for (method, path) in [
        ("GET", "/v1/sessions/long-1/export"),
        ("POST", "/v1/rows"),
        ("PUT", "/v1/sessions/first-1/transcript?from=2"),
    ] {
        let request = server.ana(method, path).body("application/jsonl", "{}\n").bytes();
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        // The bodies come later.
        let sent = if method == "GET" { request.len() } else { request.len() - 3 };
        stream.write_all(&request[..sent]).await.unwrap();
        begun.push(stream);
    }
    begun[0].readable().await.unwrap();
    server.file.revoke(token.split('_').nth(1).unwrap()).unwrap();
    assert_eq!(live.end().await, Ended::Closed(4401));
    let mut read = Vec::new();
    let _ = begun[0].read_to_end(&mut read).await;
    assert!(read.starts_with(b"HTTP/1.1 200 OK"), "{}", String::from_utf8_lossy(&read[..100]));
    assert!(read.len() < 24 << 20 && !read.ends_with(b"\r\n0\r\n\r\n"), "{} bytes", read.len());
    for stream in &mut begun[1..] {
        stream.write_all(b"{}\n").await.unwrap();
        assert_eq!(Reply::read(stream).await.problem(), (401, "unauthenticated".to_owned()));
    }
}

#[tokio::test]
async fn a_path_that_is_no_text_is_a_problem() {
    let server = Running::start().await;
    assert_eq!(server.get("/v1/sessions/%ff").await.problem(), (400, "validation".to_owned()));
    let without = Request::new(server.address, "GET", "/v1/sessions/%ff").send().await;
    assert_eq!(without.problem(), (401, "unauthenticated".to_owned()));
}

#[tokio::test]
async fn too_many_failed_attempts_are_refused_and_valid_tokens_are_not() {
    let server = Running::start().await;
    for _ in 0..10 {
        assert_eq!(Request::new(server.address, "GET", "/v1/me").send().await.status, 401);
    }
    let reply = Request::new(server.address, "GET", "/v1/me").send().await;
    assert_eq!(reply.problem(), (429, "too_many_requests".to_owned()));
    assert!(reply.header("retry-after").is_some());
    assert_eq!(server.get("/v1/me").await.status, 200);
}

#[tokio::test]
async fn sessions_of_others_and_of_nobody_are_the_same() {
    let server = Running::start().await;
    for suffix in ["", "/messages", "/messages/0", "/turns/1", "/events", "/statistics", "/files", "/export"]
    {
        let bodies = ["fourth-1", "nobody-1", "fourth"].map(|id| format!("/v1/sessions/{id}{suffix}"));
        let mut seen = Vec::new();
        for path in bodies {
            let reply = server.get(&path).await;
            assert_eq!(reply.problem(), (404, "session_not_found".to_owned()), "{path}");
            let mut problem = reply.json();
            problem["instance"].take();
            seen.push(problem);
        }
        assert!(seen[0] == seen[1] && seen[1] == seen[2], "{suffix}: {seen:?}");
    }
}

/// Two users share a session with the same id, and one of them has another one.
#[tokio::test]
async fn an_owner_picks_one_of_several_sessions_with_the_same_id() {
    let server = Running::start().await;
    for (user, session, sharing) in [
        ("ben", "same-1", Sharing::public()),
        ("carl", "same-1", Sharing::public()),
        ("dora", "same-1", Sharing::private()),
        ("carl", "own-1", Sharing::private()),
    ] {
        let target = target_of(user, "shop", session);
        let text = vec![lines::user(&format!("a question of {user}")), lines::assistant("an answer")];
        server.storage.ingestion().sync_transcript_lines(&target, whole(text)).await.unwrap();
        server.storage.sessions().share_session(&target.key, &sharing).await.unwrap();
    }
    let visible = server.token("ana", Reach::Visible, READ);
    let all = server.token("ana", Reach::All, READ);
    let get = async |token: &str, path: &str| {
        let request = Request::new(server.address, "GET", &format!("/v1/sessions/{path}"));
        request.header("authorization", &format!("Bearer {token}")).send().await
    };
    let ambiguous = get(&visible, "same-1?scope=visible").await;
    assert_eq!(ambiguous.problem(), (400, "validation".to_owned()));
    let detail = ambiguous.json()["detail"].as_str().unwrap().to_owned();
    for (owner, is_named) in [("ben", true), ("carl", true), ("dora", false)] {
        assert_eq!(detail.contains(&format!("same-1 of {owner}")), is_named, "{detail}");
    }
    for path in ["same-1?user=ben", "same-1/messages?user=ben&scope=visible", "same/turns/1?user=ben"] {
        let text = get(&visible, path).await.ok().to_string();
        assert!(text.contains("ben") && !text.contains("carl"), "{path}: {text}");
    }
    assert!(get(&all, "same-1/messages?user=dora").await.ok().to_string().contains("a question of dora"));
    // An owner whom the caller may not see looks like one who does not exist.
    for path in ["same-1?user=dora", "own-1?user=carl", "same-1?user=eve", "same-1?user=ben&scope=own"] {
        assert_eq!(get(&visible, path).await.problem(), (404, "session_not_found".to_owned()), "{path}");
    }
    assert_eq!(get(&visible, "same-1?user=ben&scope=all").await.status, 403);
    assert_eq!(get(&visible, "first-1?user=ana").await.status, 200);
    let own = server.token("ana", Reach::Own, READ);
    assert_eq!(get(&own, "same-1?user=ben").await.problem().0, 404);
    assert_eq!(get(&own, "same-1?user=").await.json()["field"], "user");
}

/// Whatever the store keeps, and whoever else may read the session.
#[tokio::test]
async fn only_the_owner_reads_secrets() {
    let server = Running::start().await;
    let target = target_of("ana", "shop", "shared-1");
    let text =
        vec![lines::user(&format!("the key is {SECRET}")), lines::assistant(&format!("{SECRET} works"))];
    server.storage.ingestion().sync_transcript_lines(&target, whole(text)).await.unwrap();
    let failed = lines::hook_event("tool:error").data(json!({"error": format!("denied: {SECRET}")})).raw();
    server.storage.ingestion().sync_event_lines(&target, SyncLines::whole(vec![failed])).await.unwrap();
    server.storage.sessions().share_session(&target.key, &Sharing::public()).await.unwrap();
    for path in [
        "/v1/sessions/shared-1",
        "/v1/sessions/shared-1/messages",
        "/v1/sessions/shared-1/messages/0",
        "/v1/sessions/shared-1/turns/1",
        "/v1/sessions/shared-1/events",
        "/v1/sessions/shared-1/events/0",
        "/v1/sessions",
        "/v1/search?q=key&full=true",
        "/v1/search?q=key&unit=turn",
        "/v1/events",
    ] {
        let scoped = format!("{path}{}scope=visible", if path.contains('?') { '&' } else { '?' });
        let masked = server.ben(Reach::Visible, "GET", &scoped).send().await.ok().to_string();
        assert!(!masked.contains(SECRET) && masked.contains("*******"), "{path}: {masked}");
        let own = server.get(path).await.ok().to_string();
        assert!(own.contains(SECRET), "{path}: {own}");
    }
}

#[tokio::test]
async fn a_token_reads_as_far_as_it_reaches() {
    let server = Running::start().await;
    let read = async |reach: Reach, path: &str| server.ben(reach, "GET", path).send().await;
    let count = |reply: &crate::client::Reply| reply.ok()["sessions"].as_array().unwrap().len();
    assert_eq!(count(&read(Reach::Own, "/v1/sessions").await), 1);
    assert_eq!(count(&read(Reach::All, "/v1/sessions").await), 1);
    assert_eq!(count(&read(Reach::All, "/v1/sessions?scope=all").await), 4);
    assert_eq!(count(&read(Reach::Visible, "/v1/sessions?scope=visible").await), 1);
    for (reach, scope) in [(Reach::Own, "visible"), (Reach::Own, "all"), (Reach::Visible, "all")] {
        let reply = read(reach, &format!("/v1/sessions?scope={scope}")).await;
        assert_eq!(reply.problem(), (403, "beyond_reach".to_owned()));
        assert_eq!(reply.json()["field"], "scope");
    }
    let share = server.ana("PUT", "/v1/sessions/first-1/sharing");
    share.json(&json!({"visibility": "team", "team_ids": ["payments"]})).send().await.ok();
    assert_eq!(count(&read(Reach::Visible, "/v1/sessions?scope=visible").await), 2);
    assert_eq!(read(Reach::Visible, "/v1/sessions/first-1?scope=visible").await.status, 200);
    assert_eq!(read(Reach::Visible, "/v1/sessions/second-1?scope=visible").await.status, 404);
    // With the next request, it is private again.
    server
        .ana("PUT", "/v1/sessions/first-1/sharing")
        .json(&json!({"visibility": "private"}))
        .send()
        .await
        .ok();
    assert_eq!(read(Reach::Visible, "/v1/sessions/first-1?scope=visible").await.status, 404);
}

#[tokio::test]
async fn changes_need_their_right_and_reach_only_own_sessions() {
    let server = Running::start().await;
    let token = server.token("ana", Reach::All, READ);
    let changes = [
        ("PATCH", "/v1/sessions/first-1", json!({"name": "x"})),
        ("PUT", "/v1/sessions/first-1/sharing", json!({"visibility": "public"})),
        ("POST", "/v1/sessions/first-1/tags", json!({"add": ["x"]})),
        ("POST", "/v1/sessions/first-1/rewind", json!({"to_turn": 0})),
        ("POST", "/v1/sessions/delete", json!({"all": true})),
        ("DELETE", "/v1/sessions/first-1", json!(null)),
    ];
    for (method, path, body) in &changes {
        let request = |token: &str| {
            let request = Request::new(server.address, method, path);
            let request = request.header("authorization", &format!("Bearer {token}"));
            if body.is_null() { request } else { request.json(body) }
        };
        assert_eq!(request(&token).send().await.problem(), (403, "missing_right".to_owned()), "{path}");
        if path.contains("first-1") {
            let of_ben = server.token("ben", Reach::All, &AccessRight::ALL);
            assert_eq!(request(&of_ben).send().await.problem().0, 404, "{path}");
        }
    }
    assert_eq!(server.get("/v1/sessions").await.ok()["sessions"].as_array().unwrap().len(), 3);
    assert_eq!(server.get("/v1/sessions/first-1").await.ok()["session"]["visibility"], "private");
}

#[tokio::test]
async fn me_says_what_the_token_may_do() {
    let server = Running::start().await;
    let me = server.ben(Reach::Visible, "GET", "/v1/me").send().await.ok();
    assert_eq!(
        (&me["user_id"], &me["reach"], &me["teams"]),
        (&json!("ben"), &json!("visible"), &json!(["payments"]))
    );
    assert_eq!(me["rights"], json!(["read", "write", "delete", "admin"]));
}
