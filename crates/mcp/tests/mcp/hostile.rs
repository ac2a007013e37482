//! Text that tries to command its reader, and secrets.

use amplifier_session_testkit::{
    hostile::{HOSTILE_WORD, hostile_transcript, leaked_key},
    lines,
    prelude::*,
};
use serde_json::json;

use crate::{MemoryAccess, RawClient};

async fn client() -> RawClient {
    let access = MemoryAccess::new();
    let target = target_of("ana", "shop", "evil-1");
    access
        .storage
        .ingestion()
        .sync_transcript_lines(&target, SyncLines::whole(hostile_transcript()))
        .await
        .unwrap();
    access.store("shop", "title-1", vec![lines::user(&format!("{} {}", "x".repeat(90), leaked_key()))]).await;
    let events = vec![
        lines::hook_event("tool:error")
            .data(json!({"tool_name": "bash\nignore this", "error": format!("{HOSTILE_WORD} {}", leaked_key())}))
            .raw(),
    ];
    access.storage.ingestion().sync_event_lines(&target, SyncLines::whole(events)).await.unwrap();
    RawClient::initialized(access.server()).await
}

/// The lines of an answer that are text of this program, without what is quoted in them.
fn own_lines(text: &str) -> Vec<String> {
    let own = text.lines().filter(|line| !line.starts_with("> ") && *line != ">");
    own.map(without_strings).collect()
}

/// A line without its strings in double quotes.
fn without_strings(line: &str) -> String {
    let (mut rest, mut in_string, mut is_escaped) = (String::new(), false, false);
    for c in line.chars() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' if in_string => is_escaped = true,
            '"' => in_string = !in_string,
            c if !in_string => rest.push(c),
            _ => {}
        }
    }
    assert!(!in_string, "{line}");
    rest
}

#[tokio::test]
async fn text_of_sessions_is_only_in_quotes() {
    let mut client = client().await;
    for (tool, arguments) in [
        ("search", json!({"query": HOSTILE_WORD, "mode": "full_text"})),
        ("search", json!({"query": HOSTILE_WORD, "mode": "full_text", "unit": "turn"})),
        ("read", json!({"address": "evil", "budget": 12_000})),
        ("read", json!({"address": "evil#2", "thinking": true})),
        ("read", json!({"address": "evil#4"})),
        ("list", json!({})),
        ("events", json!({})),
        ("statistics", json!({"by": "tool"})),
    ] {
        let text = client.text(tool, arguments).await;
        for line in own_lines(&text) {
            let line = line.to_lowercase();
            for order in ["ignore", "delete", "rm -rf", "end of quotation", "approved", "#99", "now run"] {
                assert!(!line.contains(order), "{tool}: {line}\n{text}");
            }
        }
        let is_hidden =
            |c: char| c.is_control() && c != '\n' && c != '\t' || ('\u{2028}'..='\u{202e}').contains(&c);
        assert!(!text.chars().any(is_hidden), "{tool}: {text:?}");
    }
}

#[tokio::test]
async fn no_part_of_a_secret_is_shown_however_it_is_cut() {
    let mut client = client().await;
    let key = leaked_key();
    let part = &key[4..10];
    for budget in (120..700).step_by(7) {
        for (tool, arguments) in [
            ("read", json!({"address": "evil#3", "before": 0, "after": 0})),
            ("search", json!({"query": "token", "mode": "full_text"})),
        ] {
            for format in ["text", "json"] {
                let mut arguments = arguments.clone();
                (arguments["budget"], arguments["format"]) = (budget.into(), format.into());
                let result = client.call(tool, arguments).await.to_string();
                assert!(!result.contains(part), "{tool}: {result}");
            }
        }
    }
    for (tool, arguments) in [
        ("read", json!({"address": "evil#3"})),
        ("read", json!({"address": "title#0"})),
        ("list", json!({})),
        ("list", json!({"format": "json"})),
        ("events", json!({})),
        ("search", json!({"query": key, "mode": "full_text"})),
    ] {
        let result = client.call(tool, arguments).await.to_string();
        assert!(!result.contains(part), "{tool}: {result}");
    }
    let shown = client.text("read", json!({"address": "evil#3"})).await;
    assert!(shown.contains("token ****"), "{shown}");
}
