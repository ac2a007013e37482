//! Reads: parameters, cursors, versions and streams.

use amplifier_session_testkit::prelude::{Value, json};

use crate::Running;

#[tokio::test]
async fn sessions_messages_and_results_are_read() {
    let server = Running::start().await;
    let listed = server.get("/v1/sessions?project=shop").await.ok();
    assert_eq!(listed["sessions"].as_array().unwrap().len(), 2);
    assert_eq!(server.get("/v1/sessions/fir").await.ok()["session"]["session_id"], "first-1");
    assert_eq!(server.get("/v1/sessions/latest").await.ok()["session"]["session_id"], "third-1");
    let messages = server.get("/v1/sessions/first-1/messages?limit=1").await.ok();
    assert_eq!(messages["messages"][0]["message"]["role"], "user");
    assert_eq!(messages["has_more_after"], true);
    let context = server.get("/v1/sessions/first-1/messages/1?before=1").await.ok();
    assert_eq!((context["messages"].as_array().unwrap().len(), &context["sequence"]), (2, &json!(1)));
    let turn = server.get("/v1/sessions/first-1/turns/1").await.ok();
    assert_eq!(turn["turn"], 1);
    for path in
        ["/v1/search?q=pool+project:shop&mode=full_text", "/v1/search?q=pool&unit=turn&mode=full_text"]
    {
        let found = server.get(path).await.ok();
        assert!(!found["results"].as_array().unwrap().is_empty(), "{path}: {found}");
    }
    let by_post =
        server.ana("POST", "/v1/search").json(&json!({"q": "pool", "group": "session"})).send().await.ok();
    assert_eq!(by_post["groups"].as_array().unwrap().len(), 3);
    let grouped = server.get("/v1/search?q=pool&budget=400").await.ok();
    assert!(grouped["left_out"].as_u64().unwrap() > 0, "{grouped}");
}

#[tokio::test]
async fn every_get_answers_without_parameters() {
    let server = Running::start().await;
    for path in [
        "/v1/version",
        "/v1/projects",
        "/v1/projects/recent",
        "/v1/users",
        "/v1/tags",
        "/v1/gaps",
        "/v1/vectors",
        "/v1/status",
        "/v1/statistics",
        "/v1/events",
        "/v1/superseded",
        "/v1/superseded/events",
        "/v1/timeline?q=pool",
        "/v1/sessions/first-1/events",
        "/v1/sessions/first-1/statistics",
        "/v1/sessions/first-1/files",
        "/v1/sessions/first-1/vectors",
        "/v1/sessions/first-1/superseded",
        "/v1/sessions/first-1/turns/1/context",
    ] {
        let reply = server.get(path).await;
        assert_eq!(reply.status, 200, "{path}: {}", String::from_utf8_lossy(&reply.body));
        assert_eq!(reply.header("content-type"), Some("application/json"), "{path}");
        assert_eq!(reply.header("cache-control"), Some("private, no-cache"));
        assert!(reply.json().is_object());
    }
}

#[tokio::test]
async fn mistyped_parameters_are_named() {
    let server = Running::start().await;
    for (path, field) in [
        ("/v1/sessions?folder=shop", "folder"),
        ("/v1/sessions?limit=0", "limit"),
        ("/v1/sessions?limit=5000", "limit"),
        ("/v1/sessions?tz=Mars", "tz"),
        ("/v1/sessions/first-1/messages?from=x", "from"),
        ("/v1/sessions/first-1?id=second-1", "id"),
        ("/v1/search", "q"),
        ("/v1/search?q=pool&mode=x", "mode"),
        ("/v1/search?q=pool&budget=1", "budget"),
        ("/v1/me?x=1", "x"),
    ] {
        let reply = server.get(path).await;
        assert_eq!(reply.problem(), (400, "validation".to_owned()), "{path}");
        assert_eq!(reply.json()["field"], field, "{path}");
    }
    let reply = server.ana("POST", "/v1/search").json(&json!({"query": "pool"})).send().await;
    assert_eq!((reply.problem().0, reply.json()["field"].clone()), (400, json!("query")));
}

#[tokio::test]
async fn unknown_paths_and_methods_have_problems_too() {
    let server = Running::start().await;
    assert_eq!(server.get("/v1/nothing").await.problem(), (404, "no_such_route".to_owned()));
    let reply = server.ana("DELETE", "/v1/sessions").send().await;
    assert_eq!(reply.problem(), (405, "method_not_allowed".to_owned()));
}

#[tokio::test]
async fn a_list_goes_on_after_its_cursor() {
    let server = Running::start().await;
    let ids = |page: &Value| -> Vec<String> {
        let sessions = page["sessions"].as_array().unwrap();
        sessions.iter().map(|session| session["session_id"].as_str().unwrap().to_owned()).collect()
    };
    let first = server.get("/v1/sessions?limit=2").await.ok();
    let next = first["next"].as_str().unwrap();
    assert_eq!(first["has_more"], true);
    let second = server.get(&format!("/v1/sessions?limit=5&after={next}")).await.ok();
    let mut all = [ids(&first), ids(&second)].concat();
    all.sort();
    assert_eq!(all, ["first-1", "second-1", "third-1"]);
    for path in [
        format!("/v1/sessions?project=shop&after={next}"),
        format!("/v1/events?after={next}"),
        format!("/v1/sessions?after={}x", &next[..next.len() - 1]),
        "/v1/sessions?after=x".to_owned(),
    ] {
        let reply = server.get(&path).await;
        assert_eq!((reply.problem().0, reply.json()["field"].clone()), (400, json!("after")), "{path}");
    }
    let of_ben = server.ben(amplifier_session_api::Reach::Own, "GET", &format!("/v1/sessions?after={next}"));
    assert_eq!(of_ben.send().await.status, 400);
}

#[tokio::test]
async fn what_has_not_changed_is_not_sent_again() {
    let server = Running::start().await;
    let path = "/v1/sessions/first-1";
    let tag = server.get(path).await.header("etag").unwrap().to_owned();
    let again = async || server.ana("GET", path).header("if-none-match", &tag).send().await;
    let same = again().await;
    assert_eq!((same.status, same.body.len(), same.header("etag")), (304, 0, Some(&*tag)));
    server.ana("POST", "/v1/sessions/first-1/tags").json(&json!({"add": ["x"]})).send().await.ok();
    assert_eq!(again().await.status, 200);
    for list in ["/v1/sessions", "/v1/search?q=pool"] {
        assert_eq!(server.get(list).await.header("etag"), None, "{list}");
    }
}

#[tokio::test]
async fn what_only_owners_may_read_has_no_scope() {
    let server = Running::start().await;
    let all = async |path: &str| server.ben(amplifier_session_api::Reach::All, "GET", path).send().await;
    for path in [
        "/v1/export?scope=all",
        "/v1/sessions/first-1/export?scope=all",
        "/v1/sessions/first-1/superseded?scope=all",
        "/v1/sessions/first-1/secrets?scope=all",
        "/v1/superseded?scope=all",
        "/v1/superseded/events?scope=all",
        "/v1/secrets?scope=all",
        "/v1/search?q=pool&unit=superseded&scope=all",
    ] {
        let reply = all(path).await;
        assert_eq!((reply.problem().0, reply.json()["field"].clone()), (400, json!("scope")), "{path}");
    }
    assert_eq!(all("/v1/sessions/first-1/superseded").await.status, 404);
    assert_eq!(all("/v1/sessions/first-1/export").await.status, 404);
}

#[tokio::test]
async fn an_export_is_a_stream_of_lines() {
    let server = Running::start().await;
    let reply = server.get("/v1/export?project=shop").await;
    assert_eq!((reply.status, reply.header("content-type")), (200, Some("application/jsonl")));
    assert_eq!(reply.header("transfer-encoding"), Some("chunked"));
    let text = String::from_utf8(reply.body).unwrap();
    assert!(text.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()), "{text}");
    assert!(text.contains("second-1") && !text.contains("third-1") && !text.contains("fourth-1"));
}
