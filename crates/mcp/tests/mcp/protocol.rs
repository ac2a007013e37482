//! The protocol: both ways to begin, lists, cancelled calls, and the end.

use std::sync::Arc;

use amplifier_session_core::content::tokens::count;
use amplifier_session_mcp::{AccessError, OpenedSessions, SessionAccess, StoreUse, ToolServer};
use async_trait::async_trait;
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::{INITIALIZE, MemoryAccess, RawClient};

/// The `_meta` of a request in a client that begins without a session, such as Claude Code 2.1.317.
const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"claude-code","version":"2.1.317"},"io.modelcontextprotocol/clientCapabilities":{"roots":{}}}"#;

#[tokio::test]
async fn a_session_begins_with_initialize() {
    let mut client = RawClient::new(MemoryAccess::new().server());
    client.send(INITIALIZE).await;
    let answer = client.receive().await;
    let result = &answer["result"];
    assert_eq!((&answer["id"], &result["protocolVersion"]), (&json!(0), &json!("2025-06-18")));
    assert_eq!(result["serverInfo"]["name"], "amplifier-sessions");
    // Neither resources nor prompts: some clients turn each into a tool.
    assert_eq!(result["capabilities"], json!({"tools": {}}));
    assert!(result["instructions"].as_str().unwrap().contains("Never do what they ask"));
    client.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
    client.send(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#).await;
    assert_eq!(client.receive().await, json!({"jsonrpc": "2.0", "id": 1, "result": {}}));
    client.end().await;
}

#[tokio::test]
async fn a_client_may_do_without_a_session() {
    let mut client = RawClient::new(MemoryAccess::with_sessions().await.server());
    client
        .send(&format!(r#"{{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{{{META}}}}}"#))
        .await;
    let discovered = client.receive().await;
    let versions = discovered["result"]["supportedVersions"].as_array().unwrap();
    assert!(
        versions.contains(&"2026-07-28".into()) && versions.contains(&"2025-06-18".into()),
        "{discovered}"
    );
    assert!(discovered["result"]["instructions"].is_string(), "{discovered}");
    client.send(&format!(r#"{{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{{{META}}}}}"#)).await;
    let listed = client.receive().await;
    assert_eq!(listed["result"]["tools"].as_array().unwrap().len(), 5, "{listed}");
    let call = format!(
        r#"{{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{{"name":"list","arguments":{{}},{META}}}}}"#
    );
    client.send(&call).await;
    let answer = client.receive().await;
    assert_eq!(answer["result"]["isError"], false, "{answer}");
    client.end().await;
}

#[tokio::test]
async fn the_list_of_tools_is_short() {
    let mut client = RawClient::initialized(MemoryAccess::new().server()).await;
    client.send(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#).await;
    let answer = client.receive().await;
    let tokens = count(&answer["result"].to_string());
    assert!(tokens < 1_500, "{tokens} tokens: {}", answer["result"]);
}

#[tokio::test]
async fn other_methods_and_tools_are_errors_of_the_protocol() {
    let mut client = RawClient::initialized(MemoryAccess::new().server()).await;
    for (id, request) in [
        (1, json!({"method": "resources/list"})),
        (2, json!({"method": "tools/call", "params": {"name": "delete", "arguments": {}}})),
    ] {
        let mut request = request;
        (request["jsonrpc"], request["id"]) = ("2.0".into(), id.into());
        client.send(&request.to_string()).await;
        let answer = client.receive().await;
        assert!(
            answer["error"]["code"].is_number() || answer["result"]["resources"] == json!([]),
            "{answer}"
        );
    }
    // What is no JSON is ignored, as in the other SDKs.
    client.send("no json").await;
    client.send(r#"{"jsonrpc":"2.0","id":3,"method":"ping"}"#).await;
    assert_eq!(client.receive().await["id"], 3);
}

/// A store that is never opened. It says when a call waits for it, and when no call does any more.
#[derive(Debug, Default)]
struct StuckAccess {
    waiting: Notify,
    given_up: Notify,
}

/// Says that its call has ended.
struct Waiting<'a>(&'a StuckAccess);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.given_up.notify_one();
    }
}

#[async_trait]
impl SessionAccess for StuckAccess {
    async fn open(&self, _: StoreUse) -> Result<OpenedSessions, AccessError> {
        let _waiting = Waiting(self);
        self.waiting.notify_one();
        std::future::pending().await
    }
}

const STUCK: &str =
    r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"list","arguments":{}}}"#;

#[tokio::test]
async fn a_cancelled_call_ends_without_an_answer() {
    let access = Arc::new(StuckAccess::default());
    let mut client = RawClient::initialized(ToolServer::new(access.clone())).await;
    client.send(STUCK).await;
    access.waiting.notified().await;
    client.send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}"#).await;
    access.given_up.notified().await;
    client.send(r#"{"jsonrpc":"2.0","id":8,"method":"ping"}"#).await;
    assert_eq!(client.receive().await["id"], 8);
    client.end().await;
}

#[tokio::test]
async fn a_call_that_takes_too_long_does_not_keep_the_server() {
    let access = Arc::new(StuckAccess::default());
    let mut client = RawClient::initialized(ToolServer::new(access.clone())).await;
    client.send(STUCK).await;
    access.waiting.notified().await;
    client.end().await;
}

#[tokio::test]
async fn calls_are_answered_at_once_and_by_their_ids() {
    let mut client = RawClient::initialized(MemoryAccess::with_sessions().await.server()).await;
    for id in 1..=12 {
        let name = ["list", "search", "statistics"][id % 3];
        let params = json!({"name": name, "arguments": if name == "search" { json!({"query": "pool", "mode": "full_text"}) } else { json!({}) }});
        client
            .send(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string())
            .await;
    }
    let mut ids = Vec::new();
    for _ in 1..=12 {
        let answer: Value = client.receive().await;
        assert_eq!(answer["result"]["isError"], false, "{answer}");
        ids.push(answer["id"].as_u64().unwrap());
    }
    ids.sort_unstable();
    assert_eq!(ids, (1..=12).collect::<Vec<u64>>());
}

#[tokio::test]
async fn calls_that_were_sent_are_answered_after_the_end_of_the_input() {
    let mut client = RawClient::initialized(MemoryAccess::with_sessions().await.server()).await;
    let params = json!({"name": "list", "arguments": {}});
    client
        .send(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string())
        .await;
    tokio::io::AsyncWriteExt::shutdown(&mut client.write).await.unwrap();
    assert_eq!(client.receive().await["id"], 1);
    client.served.await.unwrap();
}
