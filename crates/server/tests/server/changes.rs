//! Changes, deletions, and lines that producers send.

use amplifier_session_testkit::prelude::json;

use crate::{Running, client::Reply};

const LINES: &str = "application/jsonl";

#[tokio::test]
async fn sessions_are_edited_tagged_and_deleted() {
    let server = Running::start().await;
    let edited = server.ana("PATCH", "/v1/sessions/first-1").json(&json!({"name": "Pool"})).send().await.ok();
    assert_eq!(edited["session"]["title"], "Pool");
    server.ana("POST", "/v1/sessions/first-1/tags").json(&json!({"add": ["incident"]})).send().await.ok();
    assert_eq!(server.get("/v1/tags").await.ok()["tags"], json!([{"tag": "incident", "sessions": 1}]));
    let removed =
        server.ana("POST", "/v1/sessions/first-1/tags").json(&json!({"remove": ["x"]})).send().await.ok();
    assert_eq!(removed["remarks"], json!([{"notice": "tag_not_found", "tag": "x"}]));
    let wrong = server.ana("PATCH", "/v1/sessions/first-1").json(&json!({"nme": "Pool"})).send().await;
    assert_eq!((wrong.problem().0, wrong.json()["field"].clone()), (400, json!("nme")));
    let dry = server
        .ana("POST", "/v1/sessions/delete")
        .json(&json!({"project": "shop", "dry_run": true}))
        .send()
        .await
        .ok();
    assert_eq!(dry["would_delete"].as_array().unwrap().len(), 2);
    assert_eq!(server.get("/v1/sessions").await.ok()["sessions"].as_array().unwrap().len(), 3);
    let deleted = server.ana("DELETE", "/v1/sessions/third-1").send().await.ok();
    assert_eq!(deleted["deleted"][0]["session_id"], "third-1");
    let deleted =
        server.ana("POST", "/v1/sessions/delete").json(&json!({"project": "shop"})).send().await.ok();
    assert_eq!(deleted["deleted"].as_array().unwrap().len(), 2);
    assert_eq!(server.get("/v1/sessions").await.ok()["sessions"], json!([]));
}

/// What is meant as a preview must not delete.
#[tokio::test]
async fn a_preview_of_another_type_is_no_change() {
    let server = Running::start().await;
    for dry_run in [json!("true"), json!(1), json!({}), json!([])] {
        for (path, body) in [
            ("/v1/sessions/delete", json!({"all": true, "dry_run": dry_run})),
            ("/v1/superseded/delete", json!({"dry_run": dry_run})),
            ("/v1/sessions/first-1/secrets/purge", json!({"dry_run": dry_run})),
        ] {
            let refused = server.ana("POST", path).json(&body).send().await;
            assert_eq!(
                (refused.problem().0, refused.json()["field"].clone()),
                (400, json!("dry_run")),
                "{body}"
            );
        }
    }
    assert_eq!(server.get("/v1/sessions").await.ok()["sessions"].as_array().unwrap().len(), 3);
}

#[tokio::test]
async fn a_session_is_rewound() {
    let server = Running::start().await;
    let rewind = async |body| server.ana("POST", "/v1/sessions/first-1/rewind").json(&body).send().await;
    let dry = rewind(json!({"to_turn": 0, "dry_run": true})).await.ok();
    assert_eq!((&dry["dry_run"], &dry["removed"]["messages"]), (&json!(true), &json!(2)));
    let none = json!({"turns": 0, "messages": 0, "messages_with_vectors": 0, "events": 0});
    assert_eq!(rewind(json!({"to_turn": 0, "at_most": none})).await.problem().0, 409);
    assert_eq!(rewind(json!({"to_turn": 0})).await.ok()["session"]["message_count"], 0);
}

#[tokio::test]
async fn a_change_needs_the_version_that_it_names() {
    let server = Running::start().await;
    let tag = server.get("/v1/sessions/first-1").await.header("etag").unwrap().to_owned();
    let edit = async |tag: &str, name: &str| {
        let request = server.ana("PATCH", "/v1/sessions/first-1").header("if-match", tag);
        request.json(&json!({"name": name})).send().await
    };
    assert_eq!(edit(&tag, "one").await.status, 200);
    assert_eq!(edit(&tag, "two").await.problem(), (412, "changed".to_owned()));
    assert_eq!(server.get("/v1/sessions/first-1").await.ok()["session"]["name"], "one");
    assert_eq!(edit("*", "three").await.status, 200);
    let delete = server.ana("DELETE", "/v1/sessions/first-1").header("if-match", &tag).send().await;
    assert_eq!(delete.status, 412);
}

async fn put(server: &Running, path: &str, body: &[u8]) -> Reply {
    server.ana("PUT", path).body(LINES, body).send().await
}

#[tokio::test]
async fn lines_of_a_session_are_stored_as_they_are() {
    let server = Running::start().await;
    let line = br#"{"role":"user","content": "a  new\u00e9 question"}"#;
    let new = "/v1/sessions/sent-1/transcript?project=shop&host=laptop";
    let stored = put(&server, new, &[line, &b"\n"[..]].concat()).await.ok();
    assert_eq!((&stored["created"], &stored["messages"]["stored"]), (&json!(true), &json!(1)));
    let again = put(&server, new, line).await.ok();
    assert_eq!((&again["created"], &again["messages"]["written"]), (&json!(false), &json!(0)));
    let more =
        put(&server, "/v1/sessions/sent-1/transcript?from=1", br#"{"role":"assistant","content":"yes"}"#)
            .await
            .ok();
    assert_eq!(more["messages"]["stored"], 2);
    let read = server.get("/v1/sessions/sent-1/messages?limit=1").await;
    assert!(read.body.windows(line.len()).any(|window| window == line), "{read:?}");
    let events = put(
        &server,
        "/v1/sessions/sent-1/events",
        br#"{"event":"session:start","ts":"2026-01-01T00:00:00Z"}"#,
    )
    .await
    .ok();
    assert_eq!(events["events"]["stored"], 1);
    let metadata =
        server.ana("PUT", "/v1/sessions/sent-1/metadata").json(&json!({"name": "Sent"})).send().await.ok();
    assert_eq!(metadata["created"], false);
    assert_eq!(server.get("/v1/sessions/sent-1").await.ok()["session"]["title"], "Sent");
}

#[tokio::test]
async fn lines_that_can_not_be_stored_are_refused() {
    let server = Running::start().await;
    let line = br#"{"role":"user","content":"x"}"#;
    let late = put(&server, "/v1/sessions/first-1/transcript?from=7", line).await;
    assert_eq!(late.problem(), (409, "begins_late".to_owned()));
    assert_eq!(late.json()["stored"], 2);
    let new = put(&server, "/v1/sessions/new-1/transcript", line).await;
    assert_eq!((new.problem().0, new.json()["field"].clone()), (400, json!("project")));
    let bytes = put(&server, "/v1/sessions/first-1/transcript?from=2", b"\xff\xfe").await;
    assert_eq!((bytes.problem().0, bytes.json()["field"].clone()), (400, json!("body")));
    let broken = put(&server, "/v1/sessions/first-1/transcript?from=2", b"{\"role\":").await.ok();
    assert_eq!(broken["skipped"].as_array().unwrap().len(), 1);
    let text =
        server.ana("PUT", "/v1/sessions/first-1/transcript").body("text/plain", &line[..]).send().await;
    assert_eq!(text.problem(), (415, "unsupported_type".to_owned()));
    // A session of another user with the same id is not touched.
    let own = put(&server, "/v1/sessions/fourth-1/transcript?project=shop&host=laptop", line).await.ok();
    assert_eq!(own["created"], true);
    let of_ben =
        server.ben(amplifier_session_api::Reach::Own, "GET", "/v1/sessions/fourth-1").send().await.ok();
    assert_eq!(of_ben["session"]["message_count"], 2);
}
