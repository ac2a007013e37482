use serde_json::json;

use super::*;

fn user(content: Value) -> Value {
    json!({"role": "user", "content": content})
}

fn prompt(line: &Value) -> Option<String> {
    first_prompt(line.as_object().unwrap())
}

/// The title of a session with these user texts.
fn title(texts: &[&str]) -> Option<String> {
    let mut finder = TitleFinder::default();
    texts.iter().for_each(|text| finder.observe(user(json!(text)).as_object().unwrap()));
    finder.found().map(str::to_owned)
}

#[test]
fn a_prompt_is_one_short_line() {
    assert_eq!(prompt(&user(json!("  Fix\n\tthe   tests "))).as_deref(), Some("Fix the tests"));
    assert_eq!(prompt(&user(json!("é".repeat(120)))), Some("é".repeat(120)));
    for text in ["é".repeat(100_000), "word ".repeat(1000)] {
        let prompt = prompt(&user(json!(text))).unwrap();
        assert!((119..=120).contains(&prompt.chars().count()) && prompt.ends_with('…'));
    }
    assert_eq!(prompt(&json!({"role": "assistant", "content": "Hello"})), None);
    assert_eq!(prompt(&json!({"content": "Hello"})), None);
    assert_eq!(prompt(&user(json!([{"type": "image"}]))), None);
}

#[test]
fn a_prompt_may_have_another_format_and_must_be_typed() {
    let of = |line: Value| prompt(&line);
    assert_eq!(of(json!({"role": "Human", "content": "Why?"})).as_deref(), Some("Why?"));
    assert_eq!(of(json!({"role": "user", "parts": [{"text": "Why?"}]})).as_deref(), Some("Why?"));
    let service = json!({"amplifier_input": {"kind": "service"}});
    assert_eq!(of(json!({"role": "user", "content": "Why?", "metadata": service})), None);
}

#[test]
fn inserted_texts_are_no_titles() {
    let reminder = "<system-reminder>\nbe careful\n</system-reminder>";
    for inserted in [
        reminder,
        "<system-reminder>never closed",
        "<local-command-caveat>Caveat: do not respond</local-command-caveat>",
        "<local-command-stdout>Bye!</local-command-stdout>\n<bash-stdout></bash-stdout>",
        "[Request interrupted by user for tool use]",
        "Base directory for this skill: /home/ana/skills/bread\n\n# Bread\n\nHow to bake.",
    ] {
        assert_eq!(title(&[inserted]), None, "{inserted}");
        assert_eq!(title(&[inserted, "Fix the tests"]).as_deref(), Some("Fix the tests"), "{inserted}");
    }
    assert_eq!(title(&[&format!("{reminder}\nWhy?")]).as_deref(), Some("Why?"));
    let blocks = json!([{"type": "text", "text": reminder}, {"type": "text", "text": "Why?"}]);
    assert_eq!(prompt(&user(blocks)).as_deref(), Some("Why?"));
    assert_eq!(
        title(&["[31mError[0m:  \u{1b}[1mno oven\u{1b}[0m \u{1b}[0m"]).as_deref(),
        Some("Error: no oven")
    );
    assert_eq!(title(&["<system-reminders> are what?"]).as_deref(), Some("<system-reminders> are what?"));
}

#[test]
fn the_digest_of_a_prompt_ignores_inserted_texts() {
    let prompt = prompt_digest(&json!("Fix  the\ntests")).unwrap();
    assert!(prompt < 1 << 48);
    let reminder = "<system-reminder>be careful</system-reminder>";
    for same in [
        json!("Fix the tests"),
        json!([{"type": "text", "text": reminder}, {"type": "text", "text": " Fix the tests "}, {"type": "image"}]),
        json!(["Fix the", "tests"]),
        json!(format!("{reminder}Fix the tests")),
        json!(format!("Fix the tests\n\n{reminder}")),
    ] {
        assert_eq!(prompt_digest(&same), Some(prompt), "{same}");
    }
    assert_ne!(prompt_digest(&json!("Fix the test")), Some(prompt));
    for nothing in [json!(" "), json!(reminder), json!(null), json!({"x": "y"}), json!([{"type": "image"}])] {
        assert_eq!(prompt_digest(&nothing), None, "{nothing}");
    }
}

#[test]
fn a_slash_command_is_a_prompt_with_its_arguments() {
    let plan = "<command-message>plan</command-message>\n<command-name>/plan</command-name>\n\
        <command-args>the new shelf</command-args>";
    assert_eq!(title(&[plan, "go on"]).as_deref(), Some("/plan the new shelf"));
    let clear = "<command-name>/clear</command-name>\n<command-message>clear</command-message>\n\
        <command-args></command-args>";
    assert_eq!(title(&[clear, "Fix the tests"]).as_deref(), Some("Fix the tests"));
    assert_eq!(title(&[clear]).as_deref(), Some("/clear"));
}

#[test]
fn a_title_is_the_first_prompt_that_says_something() {
    let plan = "Implement the following plan:\n\n# Bake\tfaster\n\n## Context\n\nOvens are cold.";
    assert_eq!(title(&[plan]).as_deref(), Some("Bake faster"));
    assert_eq!(prompt(&user(json!(plan))).unwrap().get(..29), Some("Implement the following plan:"));
    assert_eq!(title(&["hi", "/clear", "Fix the tests", "Bake"]).as_deref(), Some("Fix the tests"));
    assert_eq!(title(&["hi", "thanks"]).as_deref(), Some("hi"));
    assert_eq!(title(&["/exit", "hi"]).as_deref(), Some("hi"));
    let blocks =
        json!([{"type": "text", "text": "Implement this plan:"}, {"type": "text", "text": "# Bake"}]);
    let mut finder = TitleFinder::default();
    finder.observe(user(blocks).as_object().unwrap());
    assert_eq!(finder.found(), Some("Bake"));
}

#[test]
fn the_text_of_a_slash_command_is_no_title() {
    let review = "<command-message>review</command-message>\n<command-name>/review</command-name>";
    let text = "You are an expert code reviewer. Follow these steps:";
    assert_eq!(title(&[review, text, "thanks"]).as_deref(), Some("/review"));
    assert_eq!(title(&[review, text, "Fix the tests"]).as_deref(), Some("Fix the tests"));
    assert_eq!(title(&["/review", text]).as_deref(), Some("/review"));
    let (mut finder, answer) = (TitleFinder::default(), json!({"role": "assistant", "content": "Yes?"}));
    for line in [user(json!(review)), answer, user(json!("Fix the tests"))] {
        finder.observe(line.as_object().unwrap());
    }
    assert_eq!(finder.found(), Some("Fix the tests"));
}

#[test]
fn without_a_prompt_the_title_is_the_first_line_of_a_summary_without_a_subject() {
    for summary in [
        "that ran out of context. The summary below covers it.\n\n# Summary\n\n1. **Ovens** were measured.\n2. More",
        "that ran out of context. The conversation is summarized below:\n* Ovens were measured.",
        "that ran out of context. Ovens were measured.\nMore",
    ] {
        let summary = format!("{CONTINUATION} {summary}");
        assert_eq!(title(&[&summary]).as_deref(), Some("Ovens were measured."), "{summary}");
        assert_eq!(title(&[&summary, "go on"]).as_deref(), Some("Ovens were measured."));
        assert_eq!(title(&[&summary, "Bake bread"]).as_deref(), Some("Bake bread"));
        let clear = "<command-name>/clear</command-name>";
        assert_eq!(title(&[&summary, clear]).as_deref(), Some("Ovens were measured."));
    }
}

#[test]
fn the_title_is_the_subject_of_a_summary_or_the_next_prompt() {
    let begin = format!("{CONTINUATION} that ran out of context. The summary below covers it.\n\n");
    let request = "Analysis:\nLet me go through it:\n\n1. Something else\n\nSummary:\n\
        1. Primary Request and Intent:\n   - **Primary Request**: Build a bread scale\n2. Files:\n";
    let title = |summary: &str| title(&[&format!("{begin}{summary}"), "go on"]);
    assert_eq!(title(request).as_deref(), Some("Primary Request: Build a bread scale"));
    let one_line = "Summary:\n1. **Primary Request and Intent**: Build a bread scale.\n2. Files";
    assert_eq!(title(one_line).as_deref(), Some("Build a bread scale."));
    assert_eq!(title("Summary: Build a scale\nMore").as_deref(), Some("Build a scale"));
    let analysis = "Analysis:\nLet me analyze the conversation:\n\n1. The user wants a scale.\n";
    assert_eq!(title(analysis).as_deref(), Some("The user wants a scale."));
    for named in [
        "<summary>\nBuild a scale\n</summary>",
        "<summary>Build a scale</summary>",
        "# Summary\n\n## Goal\n\nBuild a scale\n\n## State",
        "Some words.\n\n**Task**: Build a scale\n",
    ] {
        assert_eq!(title(named).as_deref(), Some("Build a scale"), "{named}");
    }
    assert_eq!(title("").as_deref(), Some("go on"));
    assert!(is_continuation(user(json!(begin)).as_object().unwrap()));
    assert!(!is_continuation(user(json!("This session")).as_object().unwrap()));
}
