//! What an agent would find only because it has just searched.

use amplifier_session_testkit::{lines, prelude::*};
use serde_json::json;

use crate::{MemoryAccess, RawClient};

fn by_words(query: &str) -> Value {
    json!({"query": query, "mode": "full_text"})
}

#[tokio::test]
async fn the_current_session_and_its_parent_are_left_out_and_that_is_said() {
    let access = MemoryAccess::with_sessions().await;
    let mut session =
        access.storage.sessions().find_session(&Scope::from(user("ana")), "second").await.unwrap();
    session.session_id = SessionId::new("0000-2_explorer").unwrap();
    session.parent_id = Some(SessionId::new("second-1").unwrap());
    access.storage.ingestion().create_session(session).await.unwrap();
    access.store("shop", "0000-2_explorer", vec![lines::user("the pool of the explorer")]).await;
    let server = access.server().with_current_session(Some("0000-2_explorer".to_owned()));
    let mut client = RawClient::initialized(server).await;
    let text = client.text("search", by_words("pool")).await;
    assert!(
        text.contains("note: left out: this session, 0000-2_explorer, and its parent second-1"),
        "{text}"
    );
    assert!(
        text.contains("first-1#") && !text.contains("second-1#") && !text.contains("explorer#"),
        "{text}"
    );
    // Who asks for it gets it.
    let mut arguments = by_words("pool");
    arguments["session"] = "0000-2_explorer".into();
    let text = client.text("search", arguments).await;
    assert!(
        text.starts_with("1 message, best first") && text.contains("> the pool of the explorer"),
        "{text}"
    );
}

#[tokio::test]
async fn calls_of_these_tools_are_left_out_for_two_minutes() {
    let mut access = MemoryAccess::with_sessions().await;
    // Equal texts would be one result.
    let text = |at: &str, tool: &str| {
        vec![
            lines::tool_call(tool, json!({"query": format!("carousel {at}")})).at(at),
            lines::tool(&format!("found a carousel with {tool} at {at}")).at(at),
        ]
    };
    access.store("shop", "fresh-1", text("2026-04-04T13:29:00Z", "mcp__sessions__search")).await;
    access.store("shop", "stale-1", text("2026-04-04T13:20:00Z", "mcp__sessions__search")).await;
    access.store("shop", "other-1", text("2026-04-04T13:29:00Z", "web_search")).await;
    access.notices.clear();
    let mut client = RawClient::initialized(access.server()).await;
    let text = client.text("search", by_words("carousel")).await;
    assert!(text.contains("stale-1#0") && text.contains("other-1#1") && !text.contains("fresh-1#"), "{text}");
    assert!(text.contains("note: left out: 2 messages of the last two minutes"), "{text}");
}
