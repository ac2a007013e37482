//! Output of the commands that read, for the samples.

use serde_json::{Value, json as value};

use crate::{
    output::{json, terminal, text},
    support::{Home, SYNCED},
    terminal::Terminal,
};

const CHARGED: &str = "7f3c9a52";
const FLAKY: &str = "38e6d1f5";

#[test]
fn sessions() {
    terminal("sessions_terminal", 100, &["sessions", "--limit", "6"]);
    terminal("sessions_terminal_narrow", 60, &["sessions", "--limit", "3", "--color", "never"]);
    text("sessions_with_words", &["sessions", "charged", "SATURDAY"]);
    text("sessions_with_tag", &["sessions", "--tag", "incident", "--tag", "webhooks"]);
    text("sessions_with_turns", &["sessions", "--min-turns", "4", "--max-turns", "4"]);
    text("sessions_of_bundle", &["sessions", "--bundle", "bundle:python-dev", "--limit", "2"]);
    text("sessions_of_unknown_bundle", &["sessions", "--bundle", "python-dev"]);
}

#[test]
fn trees() {
    terminal("sessions_tree_terminal", 120, &["sessions", "--tree"]);
    terminal(
        "sessions_tree_orphan_terminal",
        100,
        &["sessions", "--tree", "--since", "2026-11-11", "--until", "2026-11-11", "--color", "never"],
    );
    text("sessions_tree", &["sessions", "--tree", "--project", "-home-dana-payments-api"]);
    terminal(
        "sessions_tree_terminal_narrow",
        60,
        &["sessions", "--tree", "--limit", "8", "--color", "never"],
    );
    json("sessions_tree_json", &["sessions", "--tree", "--until", "2026-11-11", "--limit", "3"]);
}

#[test]
fn sorted() {
    for sort in ["cost", "messages", "duration"] {
        terminal(&format!("sessions_by_{sort}_terminal"), 80, &["sessions", "--sort", sort, "--limit", "5"]);
        text(&format!("sessions_by_{sort}"), &["sessions", "--sort", sort]);
        let by_project = ["sessions", "--by", "project", "--since", "2020-01-01", "--sort", sort];
        terminal(&format!("recent_by_{sort}_terminal"), 100, &by_project);
    }
    text("recent_by_cost", &["sessions", "--by", "project", "--since", "2020-01-01", "--sort", "cost"]);
    json("sessions_by_cost_json", &["sessions", "--sort", "cost", "--limit", "1"]);
    json("sessions_by_duration_json", &["sessions", "--sort", "duration", "--limit", "1"]);
    let by_project = ["sessions", "--by", "project", "--since", "2020-01-01", "--sort", "cost"];
    json("recent_by_cost_json", &[&by_project[..], &["--limit", "1"]].concat());
    text("error_sorted_tree", &["sessions", "--sort", "cost", "--tree"]);
}

#[test]
fn recent() {
    terminal("recent_terminal", 100, &["sessions", "--by", "project", "--since", "2020-01-01"]);
    terminal(
        "recent_terminal_narrow",
        60,
        &["sessions", "--by", "project", "--since", "2020-01-01", "--color", "never"],
    );
    text("recent", &["sessions", "--by", "project", "--since", "2020-01-01", "--limit", "1"]);
    text("recent_nothing", &["sessions", "--by", "project", "--since", "2100-01-01"]);
    let recent = |more: &[&str]| SYNCED.run(&[&["sessions", "--by", "project"], more].concat());
    let payments =
        recent(&["--since", "2020-01-01", "--project", "-home-dana-payments-api", "--min-turns", "1"]);
    assert!(
        payments.stdout.lines().all(|line| line.contains("\t-home-dana-payments-api\t")),
        "{}",
        payments.stdout
    );
    let until = recent(&["--until", "2026-11-12"]).stdout;
    assert!(until.contains("-home-dana-payments-api") && !until.contains("38e6d1f5"), "{until}");
    let nothing = recent(&["--until", "2020-01-01"]);
    assert_eq!((nothing.code, nothing.stdout.as_str()), (3, ""));
    json("recent_json", &["sessions", "--by", "project", "--since", "2020-01-01", "--limit", "1"]);
}

#[test]
fn show() {
    terminal("show_terminal", 80, &["show", FLAKY, "--from", "1", "--limit", "8"]);
    terminal("show_terminal_head", 60, &["show", CHARGED, "--limit", "1", "--color", "never"]);
    let quiet = ["show", CHARGED, "--no-thinking", "--no-tools", "--limit", "12", "--color", "never"];
    terminal("show_quiet_terminal", 100, &quiet);
    terminal(
        "show_code_terminal",
        70,
        &["show", "2b6e0d94", "--from", "3", "--limit", "5", "--color", "never"],
    );
    text("show_full", &["show", "2b6e0d94", "--from", "1", "--limit", "2", "--full"]);
    terminal("show_events_terminal", 100, &["show", CHARGED, "--events", "--limit", "3", "--full"]);
    terminal(
        "show_events_terminal_narrow",
        60,
        &["show", FLAKY, "--events", "--limit", "8", "--color", "never"],
    );
    text("show_event", &["show", "E4A07B31_evt_40"]);
}

/// A session with a tool call of each kind, and results in several formats. Returns the lines.
fn with_tool_calls(home: &Home) -> Vec<String> {
    let call = |tool: &str, input: Value| value!({"role": "assistant", "content": [{"type": "tool_use", "id": tool, "name": tool, "input": input}]});
    let result = |tool: &str, content: Value| value!({"role": "tool", "name": tool, "tool_call_id": tool, "content": content});
    let command = "cat > notes.txt <<'END'\n\tone   two \n\n  three\nEND\nprintf '\u{1b}[1m'";
    let (old, new) = ("def f():\n    x  = 1\n    return x\n", "def f():\n    x = 1\n\n    return x\n");
    let lines = [
        value!({"role": "user", "content": "Write   it down.  \n\n    code   here"}),
        call("bash", value!({"command": command, "description": "Write notes", "timeout": 5000})),
        result(
            "bash",
            value!({"success": true, "output": {"stdout": "done   here\n", "returncode": 0}, "seconds": 2}),
        ),
        call(
            "Edit",
            value!({"file_path": "app/a.py", "old_string": old, "new_string": new, "replace_all": false}),
        ),
        result("Edit", value!([{"type": "text", "text": "Changed:\n  1 line"}])),
        call(
            "MultiEdit",
            value!({"file_path": "app/b.py", "edits": [{"old_string": "a", "new_string": "b"},
            {"old_string": "c\n", "new_string": "", "replace_all": true}]}),
        ),
        result("MultiEdit", value!("\"two\\nlines\"")),
        call("write_file", value!({"path": "docs/plan.md", "content": "# Plan\n\n-  first\n-  second\n"})),
        call(
            "apply_patch",
            value!({"input": "*** Begin Patch\n*** Update File: a.py\n@@\n-x\n+y\n z\n*** End Patch"}),
        ),
        value!({"role": "assistant", "content": "Both.", "tool_calls": [
            {"id": "1", "function": {"name": "shell", "arguments": "{\"command\": [\"git\", \"commit\", \"-m\", \"It's done\"]}"}},
            {"id": "2", "function": {"name": "bash", "arguments": "{\"command\": \"git push\\n\"}"}},
            {"id": "3", "function": {"name": "delegate", "arguments": "{\"agent\": \"explorer\", \"instruction\": \"Look.\\n\\nThen   say.\", \"of\": {\"depth\": 2, \"names\": [\"a\"]}}"}}]}),
    ];
    let lines: Vec<String> = (0..)
        .zip(lines)
        .map(|(second, mut line): (u32, Value)| {
            line["ts"] = format!("2026-01-05T08:00:{second:02}Z").into();
            line.to_string()
        })
        .collect();
    home.write_session("p", "s1", &format!("{}\n", lines.join("\n")));
    home.ok(&["sync", "--embedding", "none"]);
    lines
}

#[test]
fn tool_calls() {
    let home = Home::new();
    with_tool_calls(&home);
    home.shows("show_tool_calls", &["show", "s1"]);
    home.shows("show_tool_calls_full", &["show", "s1", "--full"]);
    Terminal::new(&home).with_columns(60).shows("show_tool_calls_terminal", &["show", "s1", "--full"]);
    home.shows("show_tool_call_cut", &["show", "s1#1", "--max-chars", "40"]);
}

#[test]
fn commands_and_lines_can_be_printed_alone() {
    let home = Home::new();
    let lines = with_tool_calls(&home);
    home.shows("show_command", &["show", "s1#1", "--command"]);
    home.shows("show_commands", &["show", "latest#9", "--command"]);
    home.shows("show_no_command", &["show", "s1#3", "--command"]);
    home.shows("show_command_beyond_end", &["show", "s1#10", "--command"]);
    let terminal = Terminal::new(&home);
    terminal.shows("show_command_terminal", &["show", "s1#1", "--command"]);
    for (at, line) in lines.iter().enumerate() {
        assert_eq!(home.ok(&["show", &format!("s1#{at}"), "--raw"]), format!("{line}\n"));
    }
    text("show_raw_event", &["show", "E4A07B31_evt_40", "--raw"]);
    text("error_raw_session", &["show", CHARGED, "--raw"]);
    text("error_raw_full", &["show", "7f3c9a52#4", "--raw", "--full"]);
    text("error_raw_command", &["show", "7f3c9a52#4", "--raw", "--command"]);
    text("error_command_json", &["show", "7f3c9a52#4", "--command", "--json"]);
    text("error_command_event", &["show", "E4A07B31_evt_40", "--command"]);
}

/// Code is found with its lines, the ends of its arguments are visible, and colours do not reach the reader.
#[test]
fn snippets_of_code() {
    let home = Home::new();
    let command = "cd app\n\ncargo test --all -- \\\n    --nocapture";
    let output = "\u{1b}[31merror\u{1b}[0m: [1mtest failed[0m\n    expected:  1\n    found:     2\n\n\
        <system-reminder>\nBe careful with tests.\n</system-reminder>\n";
    let lines = [
        value!({"role": "user", "content": "Why does the\npipeline fail?"}),
        value!({"role": "assistant", "content": [
            {"type": "tool_use", "id": "1", "name": "bash", "input": {"command": command, "description": "Run the tests"}}]}),
        value!({"role": "tool", "name": "bash", "tool_call_id": "1", "content": output}),
    ];
    let lines = lines.map(|mut line| {
        line["ts"] = "2026-01-05T08:00:00Z".into();
        line.to_string()
    });
    home.write_session("p", "s1", &format!("{}\n", lines.join("\n")));
    home.ok(&["sync", "--embedding", "none"]);
    let search = |words| ["search", words, "--mode", "full-text"];
    for (name, words) in [("call", "nocapture"), ("output", "expected failed"), ("prose", "pipeline")] {
        let name = format!("search_code_{name}");
        home.shows(&name, &search(words));
        Terminal::new(&home).shows(&format!("{name}_terminal"), &search(words));
    }
    home.shows("show_coloured_output", &["show", "s1#2"]);
    let found = home.json(&search("nocapture"));
    let snippet = found["results"][0]["snippet"].as_str().unwrap();
    assert_eq!(snippet, "bash: cd app\ncargo test --all -- \\\n    --nocapture\n· Run the tests");
    let highlight = &found["results"][0]["highlights"][0];
    let characters = snippet.chars().skip(highlight[0].as_u64().unwrap() as usize);
    let length = highlight[1].as_u64().unwrap() - highlight[0].as_u64().unwrap();
    assert_eq!(characters.take(length as usize).collect::<String>(), "nocapture");
}

#[test]
fn skipped_lines_are_reported() {
    let home = Home::new();
    let line = r#"{"role":"user","content":"x","timestamp":"2026-01-05T08:00:00Z"}"#;
    home.write_session("p", "s1", &format!("{line}\nbroken\n{{}}\n"));
    home.ok(&["sync", "--embedding", "none"]);
    Terminal::new(&home).shows("show_skipped_terminal", &["show", "s1"]);
    home.shows("show_skipped", &["show", "s1"]);
}

#[test]
fn written_roles_are_shown() {
    let home = Home::new();
    let lines = [
        r#"{"role":"Human","content":"Where does the pelican nest?","ts":"2026-01-05T08:00:00Z"}"#,
        r#"{"role":"model","parts":[{"thought":true,"text":"I ask."},{"functionCall":{"name":"zoo","args":{"query":"pelican"}}}],"ts":"2026-01-05T08:00:01Z"}"#,
        r#"{"role":"function","name":"zoo","parts":[{"functionResponse":{"name":"zoo","response":{"output":"On an island."}}}],"ts":"2026-01-05T08:00:02Z"}"#,
        r#"{"role":"assistant","content":[{"type":"output_text","text":"On an island."}],"reasoning_content":"So it does.","ts":"2026-01-05T08:00:03Z"}"#,
    ];
    home.write_session("p", "s1", &format!("{}\n", lines.join("\n")));
    home.ok(&["sync", "--embedding", "none"]);
    home.shows("show_written_roles", &["show", "s1"]);
    home.shows_json("show_written_roles_json", &["show", "s1", "--limit", "1"]);
    home.shows("search_written_roles", &["search", "pelican", "--role", "human", "--mode", "full-text"]);
}

#[test]
fn search() {
    let question = ["search", "why were customers charged twice", "--limit", "2"];
    terminal("search_terminal", 80, &question);
    terminal("search_terminal_narrow", 60, &[&question[..], &["--color", "never"]].concat());
    text(
        "search_with_tag",
        &["search", "idempotency", "--mode", "full-text", "--tag", "incident", "--limit", "1"],
    );
}

#[test]
fn events() {
    terminal("events_terminal", 120, &["events", "--limit", "8"]);
    terminal("events_errors_terminal", 100, &["events", "--level", "error"]);
    let errors = ["events", "--level", "error", "--color", "never"];
    terminal("events_errors_terminal_medium", 80, &errors);
    terminal("events_errors_terminal_narrow", 60, &errors);
    terminal("events_terminal_narrow", 60, &["events", "--limit", "12", "--color", "never"]);
    terminal(
        "events_full_terminal",
        100,
        &["events", "--type", "tool:error", "--limit", "1", "--full", "--color", "never"],
    );
    text("events", &["events", "--category", "llm", "--session", CHARGED, "--limit", "3"]);
    text("events_of_tool", &["events", "--tool", "delegate", "--type", "tool:post"]);
    text("events_full", &["events", "--error-type", "CommandFailed", "--limit", "1", "--full"]);
    text("events_of_text", &["events", "--text", "JOIN keys"]);
    text("events_nothing", &["events", "--type", "llm", "--model", "gpt-5"]);
    json("events_json", &["events", "--level", "error", "--limit", "1", "--full"]);
}
