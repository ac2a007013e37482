//! The Model Context Protocol over HTTP.

use amplifier_session_api::{AccessRight, Reach};
use amplifier_session_server::ServerSettings;
use amplifier_session_testkit::prelude::{Value, json};

use crate::{
    Running, SECRET,
    client::{Reply, Request},
    storage,
};

const ACCEPT: &str = "application/json, text/event-stream";

async fn post(request: Request, message: &Value) -> Reply {
    request.header("accept", ACCEPT).json(message).send().await
}

fn message(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
}

fn call(tool: &str, arguments: Value) -> Value {
    message("tools/call", json!({"name": tool, "arguments": arguments}))
}

/// The text of the answer of a tool.
fn text(reply: &Reply) -> String {
    let answer = reply.ok();
    answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
}

#[tokio::test]
async fn a_client_begins_and_lists_the_tools() {
    let server = Running::start().await;
    let client = json!({"name": "codex-mcp-client", "version": "0.165.0"});
    let begin = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
    let reply = post(server.ana("POST", "/mcp"), &message("initialize", begin)).await;
    assert_eq!(reply.header("content-type"), Some("application/json"));
    // A session that its client never ends would stay in memory.
    assert_eq!(reply.header("mcp-session-id"), None);
    let result = &reply.ok()["result"];
    assert_eq!(result["serverInfo"]["name"], "amplifier-sessions");
    assert_eq!(result["protocolVersion"], "2025-06-18");
    let begun = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(post(server.ana("POST", "/mcp"), &begun).await.status, 202);
    let listed = post(server.ana("POST", "/mcp"), &message("tools/list", json!({}))).await.ok();
    let names: Vec<&str> = listed["result"]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["search", "read", "list", "events", "statistics"]);
}

#[tokio::test]
async fn a_client_may_begin_with_a_call() {
    let server = Running::start().await;
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "claude-code", "version": "2.1.317"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({"name": "list", "arguments": {}, "_meta": meta});
    let request = server.ana("POST", "/mcp").header("mcp-protocol-version", "2026-07-28");
    let request = request.header("mcp-method", "tools/call").header("mcp-name", "list");
    let reply = post(request, &message("tools/call", params)).await;
    assert!(text(&reply).contains("first-1"), "{reply:?}");
}

#[tokio::test]
async fn the_token_says_whose_sessions_are_read() {
    let server = Running::start().await;
    let of_ana = text(&post(server.ana("POST", "/mcp"), &call("list", json!({}))).await);
    assert!(of_ana.contains("first-1") && !of_ana.contains("fourth-1"), "{of_ana}");
    let of_ben = text(&post(server.ben(Reach::All, "POST", "/mcp"), &call("list", json!({}))).await);
    assert!(of_ben.contains("fourth-1") && !of_ben.contains("first-1"), "{of_ben}");
    let all = call("list", json!({"scope": "all"}));
    let of_all = text(&post(server.ben(Reach::All, "POST", "/mcp"), &all).await);
    assert!(of_all.contains("fourth-1") && of_all.contains("first-1"), "{of_all}");
    let beyond = text(&post(server.ben(Reach::Visible, "POST", "/mcp"), &all).await);
    assert_eq!(beyond, "error: scope: must be one of own, visible");
    let unknown = text(&post(server.ana("POST", "/mcp"), &all).await);
    assert!(unknown.starts_with("error: scope: unknown parameter"), "{unknown}");
}

#[tokio::test]
async fn agents_see_no_secrets() {
    let server = Running::start().await;
    let line = json!({"role": "user", "content": format!("the key is {SECRET}")}).to_string();
    let path = "/v1/sessions/first-1/transcript?from=2";
    server.ana("PUT", path).body("application/jsonl", line).send().await.ok();
    let read = text(&post(server.ana("POST", "/mcp"), &call("read", json!({"address": "first-1#2"}))).await);
    assert!(read.contains("the key is ****") && !read.contains(SECRET), "{read}");
}

#[tokio::test]
async fn the_session_of_the_agent_is_left_out() {
    let server = Running::start().await;
    let search = call("search", json!({"query": "pool", "mode": "full_text"}));
    let request = server.ana("POST", "/mcp").header("amplifier-session", "first-1");
    let found = text(&post(request, &search).await);
    assert!(found.contains("left out: this session, first-1") && !found.contains("first-1#"), "{found}");
    assert!(found.contains("second-1#"), "{found}");
}

#[tokio::test]
async fn other_requests_are_refused() {
    let small = |settings: &mut ServerSettings| settings.limits.agent_body = 1_000;
    let server = Running::with(storage().await, small).await;
    let list = message("tools/list", json!({}));
    let without = post(Request::new(server.address, "POST", "/mcp"), &list).await;
    assert_eq!(without.problem().0, 401);
    for name in ["host", "origin"] {
        let foreign = server.ana("POST", "/mcp").header(name, "http://evil.example.com");
        assert_eq!(post(foreign, &list).await.problem(), (403, "foreign_host".to_owned()), "{name}");
    }
    for method in ["GET", "DELETE"] {
        let reply = server.ana(method, "/mcp").header("accept", ACCEPT).send().await;
        assert_eq!(reply.problem(), (405, "method_not_allowed".to_owned()), "{method}");
    }
    let large = call("search", json!({"query": "x".repeat(1_000)}));
    assert_eq!(post(server.ana("POST", "/mcp"), &large).await.problem().0, 413);
    let form = server.ana("POST", "/mcp").header("accept", ACCEPT).body("text/plain", list.to_string());
    assert_eq!(form.send().await.problem().0, 415);
    assert_eq!(server.ana("POST", "/mcp").json(&list).send().await.problem(), (406, "protocol".to_owned()));
    let broken = server.ana("POST", "/mcp").header("accept", ACCEPT).body("application/json", "{");
    assert!((400..500).contains(&broken.send().await.status));
    let token = server.token("ana", Reach::Own, &[AccessRight::Read]);
    let reads =
        Request::new(server.address, "POST", "/mcp").header("authorization", &format!("Bearer {token}"));
    post(reads, &list).await.ok();
}
