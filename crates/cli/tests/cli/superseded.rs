//! Superseded lines: what files have lost is shown on request, and removed by `delete --superseded`.

use std::{fs, path::PathBuf};

use serde_json::{Value, json};

use crate::{output::check, support::Home, terminal::Terminal};

pub(crate) const FLAKY: &str = "38e6";
/// Words of the first prompt of the session.
const WORDS: &str = "flaky checkout test";

fn folder(home: &Home) -> PathBuf {
    let projects = home.amplifier().join("projects");
    let sessions = fs::read_dir(projects).unwrap().map(|entry| entry.unwrap().path().join("sessions"));
    let folders = sessions.flat_map(|sessions| fs::read_dir(sessions).unwrap());
    let mut folders = folders.map(|entry| entry.unwrap().path());
    folders.find(|folder| folder.file_name().unwrap().to_str().unwrap().starts_with(FLAKY)).unwrap()
}

/// Removes the first lines of a file.
fn behead(home: &Home, file: &str, lines: usize) {
    let file = folder(home).join(file);
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.split_inclusive('\n').skip(lines).collect::<String>()).unwrap();
}

/// A store with a session whose files have lost three messages and two events.
fn lossy() -> Home {
    lossy_with("none")
}

/// As [`lossy`], with vectors of this provider.
pub(crate) fn lossy_with(embedding: &str) -> Home {
    let home = Home::with_samples();
    home.ok(&["sync", "--embedding", embedding]);
    behead(&home, "transcript.jsonl", 3);
    behead(&home, "context-intelligence/events.jsonl", 2);
    let report = home.json(&["sync", "--embedding", embedding]);
    assert_eq!((&report["messages"]["superseded"], &report["events"]["superseded"]), (&json!(3), &json!(2)));
    home
}

fn results(found: &Value) -> Vec<u64> {
    let results = found["results"].as_array().unwrap();
    results.iter().map(|result| result["sequence"].as_u64().unwrap()).collect()
}

#[test]
fn superseded_lines_are_shown_only_on_request() {
    let home = lossy();
    let search = |more: &[&str]| home.run_json(&[&["search", WORDS, "--session", FLAKY], more].concat());
    assert!(results(&search(&["--superseded"]).json()).contains(&1));
    let found = search(&["--superseded"]).json()["results"][0].clone();
    assert_eq!((&found["superseded"], &found["reason"]), (&json!(true), &json!("head_lost")));
    let sequences = |shown: &Value, field: &str| -> Vec<u64> {
        let lines = shown[field].as_array().unwrap();
        lines.iter().map(|line| line["sequence"].as_u64().unwrap()).collect()
    };
    let shown = home.json(&["show", FLAKY, "--superseded"]);
    assert_eq!(sequences(&shown, "messages"), [0, 1, 2]);
    assert_eq!(shown["messages"][1]["message"]["role"], "user");
    assert_eq!(sequences(&home.json(&["show", FLAKY, "--superseded", "--events"]), "events"), [0, 1]);
    let events = home.json(&["events", "--superseded", "--session", FLAKY, "--full"]);
    assert_eq!(sequences(&events, "events"), [0, 1]);
    assert!(events["events"][0]["line"].is_object() && events["events"][0]["superseded"] == true);
    let sessions = home.json(&["sessions", "--superseded"]);
    let [session] = sessions["sessions"].as_array().unwrap().as_slice() else { panic!("{sessions}") };
    assert_eq!((&session["messages"], &session["events"]), (&json!(3), &json!(2)));
    assert_eq!(session["reasons"], json!(["compacted", "head_lost"]));
    let fields = home.ok(&["sessions", "--superseded"]);
    assert_eq!(fields.trim_end().split('\t').skip(3).take(2).collect::<Vec<_>>(), ["3", "2"]);

    let shown = Terminal::new(&home).run(&["sessions", "--superseded", "--color", "never"]).stdout;
    assert!(shown.contains("38e6d1f5  ") && !shown.contains("38e6d1f5-"), "{shown}");

    home.shows("show_superseded", &["show", FLAKY, "--superseded", "--max-chars", "200"]);
    Terminal::new(&home)
        .shows("show_superseded_terminal", &["show", FLAKY, "--superseded", "--color", "never"]);
    home.shows("show_superseded_none", &["show", "c1d84e7a", "--superseded"]);
    home.shows("search_superseded_none", &["search", "--superseded", "zeppelin"]);
    check("sessions_superseded_json", &home, &format!("{sessions:#}"));
}

#[test]
fn prune_removes_superseded_lines_and_nothing_else() {
    let home = lossy();
    let before = home.json(&["show", FLAKY, "--limit", "100"]);
    let terminal = |typed| Terminal::new(&home).with_typed(typed);
    home.shows("error_prune_pipe", &["delete", "--superseded"]);
    home.shows("prune_dry_run", &["delete", "--superseded", "--dry-run"]);
    terminal("n\n").shows("prune_no_terminal", &["delete", "--superseded", FLAKY, "--color", "never"]);
    let dry_run = Terminal::new(&home).run(&["delete", "--superseded", "--dry-run", "--color", "never"]);
    assert!(dry_run.stdout.starts_with("would remove  38e6d1f5"), "{}", dry_run.stdout);
    home.shows("prune_older", &["delete", "--superseded", "--older-than", "90d", "--yes"]);
    home.shows_json("prune_json", &["delete", "--superseded", FLAKY, "--yes"]);
    home.shows("prune_nothing", &["delete", "--superseded", "--yes"]);
    assert_eq!(home.run(&["sessions", "--superseded"]).code, 3);
    assert_eq!(home.json(&["show", FLAKY, "--limit", "100"]), before);
}

#[test]
fn archives_carry_superseded_lines() {
    let home = lossy();
    let archive = home.path().join("archive.jsonl");
    let archive = archive.to_str().unwrap();
    home.ok(&["export", "--out", archive]);
    let other = format!("sqlite:{}", home.path().join("other.sqlite").display());
    home.ok(&["--store", &other, "import", archive]);
    let shown = |store: &[&str]| home.json(&[store, &["show", FLAKY, "--superseded"]].concat());
    assert_eq!(shown(&["--store", &other]), shown(&[]));
}

#[test]
fn a_mirror_supersedes_nothing() {
    let home = Home::without_vectors();
    behead(&home, "transcript.jsonl", 3);
    let report = home.json(&["sync", "--mirror", "--embedding", "none"]);
    assert_eq!(report["messages"]["superseded"], 0);
    assert_eq!(home.run(&["sessions", "--superseded"]).code, 3);
}
