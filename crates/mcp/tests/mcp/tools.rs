//! The five tools.

use serde_json::{Value, json};

use crate::{MemoryAccess, RawClient};

async fn client() -> RawClient {
    RawClient::initialized(MemoryAccess::with_sessions().await.server()).await
}

fn by_words(query: &str) -> Value {
    json!({"query": query, "mode": "full_text"})
}

#[tokio::test]
async fn a_search_shows_sessions_with_addresses() {
    let text = client().await.text("search", by_words("pool first")).await;
    assert!(
        text.starts_with("3 sessions, best first (full_text search)\n\n1. first-1 · 2026-04-01 10:02 · shop"),
        "{text}"
    );
    assert!(text.contains("first-1#0 user · 2026-04-01 10:00 · matches pool, first"), "{text}");
    assert!(text.contains("> why is the connection pool of first-1 exhausted"), "{text}");
}

#[tokio::test]
async fn a_search_goes_on_where_it_ended() {
    let mut client = client().await;
    let mut arguments = by_words("pool");
    arguments["limit"] = 2.into();
    let first = client.text("search", arguments.clone()).await;
    assert!(first.contains("more sessions: after: 2"), "{first}");
    arguments["after"] = "2".into();
    let second = client.text("search", arguments).await;
    assert!(second.contains("\n3. ") && !second.contains("more sessions"), "{second}");
    let sessions = ["first-1#", "second-1#", "third-1#"];
    for session in sessions {
        assert_ne!(first.contains(session), second.contains(session), "{session}: {first}{second}");
    }
}

#[tokio::test]
async fn a_search_narrows_and_says_what_finds_nothing() {
    let mut client = client().await;
    let mut arguments = by_words("pool");
    arguments["project"] = "bakery".into();
    let text = client.text("search", arguments.clone()).await;
    assert!(text.contains("third-1#0") && !text.contains("first-1#"), "{text}");
    arguments["not_session"] = "third".into();
    let text = client.text("search", arguments).await;
    assert!(text.contains("note: nothing matches"), "{text}");
    let mut arguments = by_words("grep");
    arguments["in"] = "tool_call".into();
    assert!(client.text("search", arguments.clone()).await.contains("tool call"));
    arguments["in"] = "user".into();
    assert!(client.text("search", arguments).await.contains("nothing matches"));
    let mut arguments = by_words("pool");
    (arguments["session"], arguments["limit"]) = ("first".into(), 2.into());
    let text = client.text("search", arguments.clone()).await;
    assert!(text.starts_with("2 messages, best first") && text.contains("more messages: after: 2"), "{text}");
    arguments["after"] = 2.into();
    let text = client.text("search", arguments).await;
    assert!(
        text.starts_with("2 messages") && !text.contains("after:") && !text.contains("first-1#0"),
        "{text}"
    );
    let turns = client.text("search", json!({"query": "pool", "mode": "full_text", "unit": "turn"})).await;
    assert!(
        turns.contains("turn 1") && turns.contains("answer first-1#3:\n> the connection pool"),
        "{turns}"
    );
}

#[tokio::test]
async fn reading_shows_the_messages_around_an_address() {
    let mut client = client().await;
    let text = client.text("read", json!({"address": "first#3", "before": "1"})).await;
    assert!(
        text.starts_with("first-1 · shop · 2026-04-01 10:00 to 2026-04-01 10:02 · 4 messages · "),
        "{text}"
    );
    assert!(text.contains("\n#2 tool · turn 1 · 2026-04-01 10:01\n> pool = 1"), "{text}");
    assert!(text.contains("> the connection pool of first-1") && !text.contains("Only one?"), "{text}");
    assert!(text.contains("2 messages before: read(address: \"first-1#2\", before: 10)"), "{text}");
    assert!(text.contains("note: left out: thinking"), "{text}");
    let text = client.text("read", json!({"address": "first", "thinking": "true", "tools": false})).await;
    assert!(text.contains("> thinking: Only one?") && !text.contains("pool = 1"), "{text}");
    assert!(text.contains("note: left out: tool calls"), "{text}");
}

#[tokio::test]
async fn a_session_is_read_from_both_ends() {
    let mut client = client().await;
    let end = client.text("read", json!({"address": "second", "from": "end", "budget": 150})).await;
    assert!(end.contains("\n#3 assistant") && !end.contains("#0 user"), "{end}");
    let from = client.text("read", json!({"address": "second", "from": 1, "after": 0})).await;
    assert!(from.contains("\n#1 assistant") && from.contains("→ bash grep pool"), "{from}");
    assert!(from.contains("2 messages after: read(address: \"second-1\", from: 2)"), "{from}");
    let turn = client.text("read", json!({"address": "second", "turn": 1})).await;
    assert!(turn.contains("\n#0 user") && turn.contains("\n#3 assistant"), "{turn}");
}

#[tokio::test]
async fn lists_events_and_statistics_are_lines() {
    let mut client = client().await;
    let list = client.text("list", json!({"project": "shop", "limit": 1})).await;
    let next = list.lines().find_map(|line| line.strip_prefix("more sessions: after: ")).unwrap();
    let next: String = serde_json::from_str(next).unwrap();
    assert!(list.contains(" · shop · 4 messages · \""), "{list}");
    let rest = client.text("list", json!({"project": "shop", "after": next})).await;
    assert_eq!(rest.lines().count(), 1, "{rest}");
    let events = client.text("events", json!({})).await;
    assert_eq!(events, "note: nothing matches\n");
    let statistics = client.text("statistics", json!({"by": "project"})).await;
    assert!(statistics.starts_with("3 sessions, 12 messages, 3 turns, 0 events\n"), "{statistics}");
    assert!(statistics.contains("\nprojects:\nshop: 2 sessions, 8 messages"), "{statistics}");
}

#[tokio::test]
async fn json_is_the_same_as_text_and_as_structure() {
    let mut client = client().await;
    for (tool, arguments) in [
        ("search", json!({"query": "pool", "mode": "full_text"})),
        ("read", json!({"address": "first#1"})),
        ("list", json!({})),
        ("events", json!({})),
        ("statistics", json!({})),
    ] {
        let mut arguments = arguments;
        arguments["format"] = "json".into();
        let result = client.call(tool, arguments).await;
        let text: Value = serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
        assert_eq!(text, result["structuredContent"], "{tool}");
        assert!(text["notices"].is_array(), "{tool}: {text}");
    }
}

#[tokio::test]
async fn mistakes_name_their_parameter() {
    let mut client = client().await;
    for (tool, arguments, beginning) in [
        ("search", json!({}), "error: query: is required"),
        (
            "search",
            json!({"query": "x", "scope": "all"}),
            "error: scope: unknown parameter; known are `query`",
        ),
        ("search", json!({"query": "x", "limit": "ten"}), "error: limit: must be a number"),
        (
            "search",
            json!({"query": "x", "since": "someday"}),
            "error: since or until: \"someday\" is not a date",
        ),
        ("search", json!({"query": "x", "in": "pictures"}), "error: in: "),
        (
            "search",
            json!({"query": "x", "session": "nowhere"}),
            "error: session: no session matches \"nowhere\"",
        ),
        ("read", json!({"address": "nowhere#1"}), "error: address: no session matches"),
        ("read", json!({"address": "first#99"}), "error: address: no message 99"),
        ("read", json!({"address": "first#1", "from": "end"}), "error: address: it names a message"),
        ("read", json!({"address": "first", "budget": 3}), "error: budget: 3 is too small"),
        ("list", json!({"after": "x"}), "error: after: \"x\" is no place to go on from"),
        ("list", json!({"limit": 0}), "error: limit: must be at least 1"),
        ("events", json!({"level": "loud"}), "error: level: unknown variant"),
        ("statistics", json!({"by": "colour"}), "error: by: unknown variant"),
    ] {
        let error = client.error(tool, arguments).await;
        assert!(error.starts_with(beginning), "{error}");
        assert!(error.len() < 2_000);
    }
}
