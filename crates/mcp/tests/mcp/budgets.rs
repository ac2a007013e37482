//! Answers within a budget.

use amplifier_session_core::content::tokens::count;
use amplifier_session_testkit::lines;
use serde_json::json;

use crate::{MemoryAccess, RawClient};

/// A store with a session of long messages, and with many sessions.
async fn large() -> RawClient {
    let access = MemoryAccess::new();
    let text = (0..300).map(|n| lines::user(&format!("needle {n} {}", "some words ".repeat(200)))).collect();
    access.store("shop", "long-1", text).await;
    for n in 0..60 {
        let text = vec![lines::user(&format!("needle number {n} {}", "further words ".repeat(60)))];
        access.store("shop", &format!("{n:04x}-many"), text).await;
    }
    // Many characters are few tokens.
    access.store("shop", "wide-1", vec![lines::user(&format!("gap{}end", " ".repeat(300_000)))]).await;
    RawClient::initialized(access.server()).await
}

#[tokio::test]
async fn answers_fit_and_say_what_does_not() {
    let mut client = large().await;
    let usual = client.text("read", json!({"address": "long"})).await;
    assert!(count(&usual) <= 2_000, "{}", count(&usual));
    assert!(usual.contains("after: read(address: \"long-1\", from: "), "{usual}");
    for budget in [300, 2_000, 12_000, 1_000_000] {
        for (tool, arguments) in [
            ("search", json!({"query": "needle", "mode": "full_text", "limit": 50})),
            ("read", json!({"address": "long", "from": "end"})),
            ("read", json!({"address": "long#7", "before": 100, "after": 100})),
            ("list", json!({"limit": 400})),
        ] {
            for format in ["text", "json"] {
                let mut arguments = arguments.clone();
                (arguments["budget"], arguments["format"]) = (budget.into(), format.into());
                let result = client.call(tool, arguments).await;
                let text = result["content"][0]["text"].as_str().unwrap();
                assert!(count(text) <= 12_000.min(budget), "{tool} {format}: {}", count(text));
                assert!(text.chars().count() < 48_000, "{tool}: {}", text.chars().count());
            }
        }
    }
}

#[tokio::test]
async fn characters_are_limited_too() {
    let mut client = large().await;
    let text = client.text("read", json!({"address": "wide#0", "budget": 12_000})).await;
    assert!(text.chars().count() < 48_000, "{}", text.chars().count());
}

#[tokio::test]
async fn a_message_that_does_not_fit_is_cut_at_its_end() {
    let mut client = large().await;
    let text =
        client.text("read", json!({"address": "long#7", "before": 0, "after": 0, "budget": 200})).await;
    assert!(text.contains("> needle 7 some words") && text.contains("more characters"), "{text}");
}
