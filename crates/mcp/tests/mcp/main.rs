//! The server on a store in memory: requests as clients write them, and the answers.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

mod budgets;
mod hostile;
mod own;
mod protocol;
mod tools;

use std::sync::Arc;

use amplifier_session_api::{ApiCaller, Notice};
use amplifier_session_core::content::Redaction;
use amplifier_session_mcp::{AccessError, OpenedSessions, SessionAccess, StoreUse, ToolServer, serve};
use amplifier_session_secrets::BuiltInRedactor;
use amplifier_session_testkit::{lines, prelude::*};
use async_trait::async_trait;
use jiff::Zoned;
use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, ReadHalf, WriteHalf, duplex, split,
};

/// Opens a store in memory, at a fixed time.
#[derive(Debug, Clone)]
pub(crate) struct MemoryAccess {
    pub(crate) storage: SessionStorage,
    pub(crate) now: Zoned,
    pub(crate) notices: Vec<Notice>,
}

impl MemoryAccess {
    /// A store without sessions.
    pub(crate) fn new() -> Self {
        let storage = SessionStorage::new(Arc::new(MemoryBackend::new()))
            .with_redactor(Redaction::Remote, Arc::new(BuiltInRedactor));
        let now = "2026-04-04T15:30:00+02:00[Europe/Zurich]".parse().unwrap();
        Self { storage, now, notices: Vec::new() }
    }

    /// A store with three sessions of ana.
    pub(crate) async fn with_sessions() -> Self {
        let access = Self::new();
        for (project, session) in [("shop", "first-1"), ("shop", "second-1"), ("bakery", "third-1")] {
            let text = vec![
                lines::user(&format!("why is the connection pool of {session} exhausted"))
                    .at("2026-04-01T08:00:00Z"),
                lines::tool_call("bash", json!({"command": format!("grep pool {session}.toml")}))
                    .at("2026-04-01T08:01:00Z"),
                lines::tool(&format!("pool = 1 # {session}")).at("2026-04-01T08:01:30Z"),
                lines::thinking("Only one?", &format!("the connection pool of {session} has one connection"))
                    .at("2026-04-01T08:02:00Z"),
            ];
            access.store(project, session, text).await;
        }
        access
    }

    /// Stores the transcript of a session of ana.
    pub(crate) async fn store(&self, project: &str, session: &str, text: Vec<Line>) {
        let target = target_of("ana", project, session);
        self.storage.ingestion().sync_transcript_lines(&target, whole(text)).await.unwrap();
    }

    pub(crate) fn server(&self) -> ToolServer {
        ToolServer::new(Arc::new(self.clone()))
    }
}

#[async_trait]
impl SessionAccess for MemoryAccess {
    async fn open(&self, _: StoreUse) -> Result<OpenedSessions, AccessError> {
        let opened =
            OpenedSessions::new(self.storage.clone(), ApiCaller::new(user("ana")), self.now.clone())?;
        Ok(opened.with_notices(self.notices.clone()))
    }
}

/// A client of a server in this process.
pub(crate) struct RawClient {
    write: WriteHalf<DuplexStream>,
    read: BufReader<ReadHalf<DuplexStream>>,
    served: tokio::task::JoinHandle<()>,
    next: u64,
}

impl RawClient {
    /// A client that has sent nothing yet.
    pub(crate) fn new(server: ToolServer) -> Self {
        let (mine, its) = duplex(1 << 20);
        let (input, output) = split(its);
        let served =
            tokio::spawn(async move { serve(server, Box::new(input), Box::new(output)).await.unwrap() });
        let (read, write) = split(mine);
        Self { write, read: BufReader::new(read), served, next: 100 }
    }

    /// A client that has begun a session as Codex does.
    pub(crate) async fn initialized(server: ToolServer) -> Self {
        let mut client = Self::new(server);
        client.send(INITIALIZE).await;
        client.receive().await;
        client.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
        client
    }

    pub(crate) async fn send(&mut self, line: &str) {
        self.write.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }

    pub(crate) async fn receive(&mut self) -> Value {
        let mut line = String::new();
        self.read.read_line(&mut line).await.unwrap();
        serde_json::from_str(&line).unwrap()
    }

    /// The result of a tool.
    pub(crate) async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.next += 1;
        let params = json!({"name": tool, "arguments": arguments});
        let request = json!({"jsonrpc": "2.0", "id": self.next, "method": "tools/call", "params": params});
        self.send(&request.to_string()).await;
        let answer = self.receive().await;
        assert_eq!(answer["id"], self.next, "{answer}");
        answer["result"].clone()
    }

    /// The text of a tool's answer.
    pub(crate) async fn text(&mut self, tool: &str, arguments: Value) -> String {
        let result = self.call(tool, arguments).await;
        assert_eq!(result["isError"], false, "{result}");
        assert_eq!(result["content"].as_array().unwrap().len(), 1);
        assert!(result.get("structuredContent").is_none(), "{result}");
        result["content"][0]["text"].as_str().unwrap().to_owned()
    }

    /// The text of a tool's error.
    pub(crate) async fn error(&mut self, tool: &str, arguments: Value) -> String {
        let result = self.call(tool, arguments).await;
        assert_eq!(result["isError"], true, "{result}");
        result["content"][0]["text"].as_str().unwrap().to_owned()
    }

    /// Closes the input, and waits for the end of the server.
    pub(crate) async fn end(mut self) {
        self.write.shutdown().await.unwrap();
        self.served.await.unwrap();
    }
}

/// The first request of Codex 0.165.
pub(crate) const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"elicitation":{}},"clientInfo":{"name":"codex-mcp-client","title":"Codex","version":"0.165.0"}}}"#;
