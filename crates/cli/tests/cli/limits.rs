//! Limits of output: `--max-chars` and `--budget`.

use amplifier_session_storage::content::tokens::count;

use crate::{
    call::Ran,
    support::{Home, SYNCED},
    terminal::Terminal,
};

/// A store with a session of three messages, of which the second has 10,000 characters.
fn long() -> Home {
    let home = Home::new();
    let words = "dough rises slowly ".repeat(600);
    let lines = [
        serde_json::json!({"role": "user", "content": "Why does it rise?"}),
        serde_json::json!({"role": "assistant", "content": [
            {"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": words.get(..10_000)}]}),
        serde_json::json!({"role": "user", "content": "Thanks."}),
    ];
    home.write_session("p", "s1", &lines.map(|line| format!("{line}\n")).concat());
    home.ok(&["sync", "--embedding", "none"]);
    home
}

#[test]
fn in_a_pipe_messages_are_cut_at_4000_characters_by_default() {
    let home = long();
    let message =
        |arguments: &[&str]| home.json(&[&["show", "s1#1"], arguments].concat())["messages"][0].clone();
    let cut = message(&[]);
    assert_eq!(cut["truncated"], serde_json::json!({"shown": 3_999, "of": 10_003}));
    assert_eq!(cut["message"]["content"][0]["thinking"], "Hm.");
    assert!(cut["message"]["content"][1]["text"].as_str().unwrap().ends_with('…'));
    assert_eq!(message(&["--max-chars", "100"])["truncated"]["shown"], 99);
    let whole = message(&["--max-chars", "0"]);
    assert!(whole.get("truncated").is_none());
    assert_eq!(whole["message"]["content"][1]["text"].as_str().unwrap().len(), 10_000);
    let text = home.ok(&["show", "s1"]);
    assert!(
        text.len() < 5_500 && text.contains("… 6,003 more characters of 10,003 (--max-chars 0)"),
        "{text}"
    );
    assert!(home.ok(&["show", "--context", "s1#1"]).contains("… 6,003 more characters"));
    assert!(Terminal::new(&home).run(&["show", "s1"]).stdout.len() > 10_000);
}

#[test]
fn search_cuts_whole_messages_too() {
    let home = long();
    let search = ["search", "dough rises", "--full", "--embedding", "none", "--limit", "1"];
    let result = home.json(&search)["results"][0].clone();
    assert_eq!(result["truncated"], serde_json::json!({"shown": 3_999, "of": 10_003}));
    assert!(home.ok(&search).contains("… 6,003 more characters of 10,003"));
    let whole = home.json(&[&search[..], &["--max-chars", "0"]].concat());
    assert!(whole["results"][0].get("truncated").is_none());
}

/// The output for a budget. Checks that it stays within.
fn within(home: &Home, budget: usize, arguments: &[&str]) -> Ran {
    let ran = home.run(&[arguments, &["--budget", &budget.to_string()]].concat());
    assert_eq!(ran.code, 0, "{arguments:?}: {}", ran.stderr);
    assert!(count(&ran.stdout) <= budget, "{arguments:?}: {} tokens for {budget}", count(&ran.stdout));
    ran
}

#[test]
fn output_stays_within_its_budget() {
    for budget in [600, 1_500, 100_000] {
        for arguments in [
            &["show", "38e6d1f5", "--full"][..],
            &["show", "38e6d1f5", "--json"],
            &["show", "--context", "38e6d1f5#4", "--json"],
            &["show", "--context", "38e6d1f5", "--turn", "1"],
            &["search", "charged twice", "--json"],
            &["search", "charged twice", "--full"],
        ] {
            within(&SYNCED, budget, arguments);
        }
    }
}

#[test]
fn omitted_items_are_counted() {
    let home = long();
    let ran = within(&home, 1_000, &["show", "s1", "--max-chars", "0", "--json"]);
    let shown = ran.json();
    assert_eq!((&shown["left_out"], shown["messages"].as_array().unwrap().len()), (&1.into(), 2));
    assert_eq!(shown["messages"][1]["truncated"]["of"], 10_003, "{shown}");
    assert_eq!(shown["has_more_after"], true);
    assert!(ran.stderr.contains("2 of 3 messages fit into 1,000 tokens, the last one cut"), "{}", ran.stderr);
    let found = SYNCED.json(&["search", "charged twice", "--budget", "1000"]);
    let (left_out, results) = (found["left_out"].as_u64().unwrap(), found["results"].as_array().unwrap());
    assert_eq!(left_out + results.len() as u64, 10);
    assert!(left_out > 0 && !results.is_empty());
    let whole = SYNCED.json(&["search", "charged twice"]);
    assert!(whole.get("left_out").is_none());
}

#[test]
fn context_keeps_the_requested_message() {
    let shown = within(&SYNCED, 900, &["show", "--context", "38e6d1f5#4", "--json"]).json();
    let messages = shown["messages"].as_array().unwrap();
    assert!(messages.iter().any(|message| message["sequence"] == 4), "{shown}");
}

#[test]
fn a_budget_that_is_too_small_is_an_error() {
    let ran = SYNCED.run(&["show", "38e6d1f5", "--json", "--budget", "10"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""));
    assert!(ran.stderr.contains("hint: pass --budget "), "{}", ran.stderr);
}

#[test]
fn a_small_budget_cuts_the_first_result_of_a_search() {
    let found = SYNCED.run(&["search", "charged", "--mode", "full-text", "--budget", "100"]);
    assert_eq!(found.code, 0, "{}", found.stderr);
    assert!(!found.stdout.is_empty() && !found.stderr.contains("0 of"), "{}", found.all());
}
