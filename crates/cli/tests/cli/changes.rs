//! Editing, tagging, sharing and deleting, and their effect on searches.

use std::{
    fs,
    path::PathBuf,
    time::{Duration, SystemTime},
};

use serde_json::{Value, json};

use crate::support::Home;

const FLAKY: &str = "38e6d1f5-c290-4a7b-8f14-d6b93e0a5c72";
const OUTBOX: &str = "c1d84e7a-0b3f-4f62-8e9d-57a6b2f0e913";

fn session(home: &Home, id: &str) -> Value {
    home.json(&["show", id, "--limit", "1"])["session"].clone()
}

fn count(home: &Home) -> usize {
    home.json(&["sessions", "--limit", "500"])["sessions"].as_array().unwrap().len()
}

fn folder(home: &Home) -> PathBuf {
    home.amplifier().join("projects/-home-dana-storefront-web/sessions").join(FLAKY)
}

/// Changes the session's metadata file, with an older modification time.
fn rewrite_metadata(home: &Home, change: impl Fn(&mut Value), days_ago: u64) {
    let file = folder(home).join("metadata.json");
    let mut metadata: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    change(&mut metadata);
    fs::write(&file, metadata.to_string()).unwrap();
    let modified = SystemTime::now() - Duration::from_secs(days_ago * 24 * 3600);
    fs::File::options().write(true).open(&file).unwrap().set_modified(modified).unwrap();
}

#[test]
fn edits_survive_a_sync_until_they_are_reset() {
    let home = Home::without_vectors();
    home.ok(&["edit", "38e6", "--name", "Port clash", "--description", "One port, two runs"]);
    home.ok(&["tag", "38e6", "ports", "--remove", "ci"]);
    let rename = |metadata: &mut Value| {
        metadata["name"] = json!("Renamed by a machine");
        metadata["tags"] = json!(["machine"]);
        metadata["bundle"] = json!("bundle:new");
    };
    rewrite_metadata(&home, rename, 3);
    assert_eq!(home.json(&["sync", "--embedding", "none"])["sessions"]["changed"], 1);
    let kept = session(&home, FLAKY);
    assert_eq!((&kept["name"], &kept["description"]), (&json!("Port clash"), &json!("One port, two runs")));
    assert_eq!((&kept["tags"], &kept["bundle"]), (&json!(["tests", "ports"]), &json!("bundle:new")));
    assert_eq!(kept["edited"], json!(["name", "description", "tags"]));

    let reset = home.json(&["edit", "38e6", "--reset", "name,tags"])["session"].clone();
    assert_eq!((&reset["name"], &reset["tags"]), (&json!("Renamed by a machine"), &json!(["machine"])));
    assert_eq!(reset["edited"], json!(["description"]));
    rewrite_metadata(&home, |metadata| metadata["name"] = json!("Again"), 2);
    home.ok(&["sync", "--embedding", "none"]);
    assert_eq!(session(&home, FLAKY)["name"], "Again");
}

#[test]
fn a_cleared_title_is_the_first_prompt_again() {
    let home = Home::without_vectors();
    let cleared = home.json(&["edit", "38e6", "--clear", "name,tags"])["session"].clone();
    assert_eq!((&cleared["name"], &cleared["tags"]), (&json!(null), &json!([])));
    assert_eq!(cleared["title"], cleared["first_prompt"]);
}

#[test]
fn ambiguous_ids_delete_nothing() {
    let home = Home::without_vectors();
    for id in ["one-1", "one-2"] {
        home.write_session("p", id, "{\"role\":\"user\",\"content\":\"x\"}\n");
    }
    home.ok(&["sync", "--embedding", "none"]);
    let ran = home.run(&["delete", "38e6", "one", "--yes"]);
    assert_eq!((ran.code, count(&home)), (2, 14));
    assert!(ran.stderr.contains("one-1") && ran.stderr.contains("one-2"), "{}", ran.stderr);
}

#[test]
fn deleted_sessions_are_not_found_and_others_stay() {
    let home = Home::with_samples();
    home.ok(&["sync"]);
    let anywhere = |words: &str, mode: &str| -> Vec<String> {
        let found = home.run_json(&["search", words, "--mode", mode, "--limit", "100"]).json();
        let ids = found["results"].as_array().unwrap().iter();
        ids.map(|result| result["session_id"].as_str().unwrap().to_owned()).collect()
    };
    assert!(anywhere("flaky checkout test", "full-text").contains(&FLAKY.to_owned()));
    let deleted = home.json(&["delete", "38e6", "--yes"]);
    assert_eq!((&deleted["deleted"][0]["session_id"], &deleted["failed"]), (&json!(FLAKY), &json!([])));
    for mode in ["full-text", "semantic", "hybrid"] {
        assert!(!anywhere("flaky checkout test", mode).contains(&FLAKY.to_owned()), "{mode}");
    }
    let others = home.json(&["search", "two workers taking the same row", "--session", OUTBOX]);
    assert!(!others["results"].as_array().unwrap().is_empty());
    assert_eq!((home.run(&["show", FLAKY]).code, count(&home)), (1, 11));
    assert!(folder(&home).join("transcript.jsonl").exists());

    assert!(deleted["deleted"][0]["folder"].as_str().unwrap().ends_with(FLAKY));
    let passed = home.json(&["sync"]);
    assert_eq!((&passed["sessions"]["deleted"], count(&home)), (&json!(1), 11), "it is remembered");
    home.ok(&["sync", "--include-deleted"]);
    assert_eq!(count(&home), 12, "as the hint says");
    assert!(anywhere("flaky checkout test", "semantic").contains(&FLAKY.to_owned()));
}

#[test]
fn removed_turns_are_not_found_and_stay_away_until_the_files_change() {
    let home = Home::with_samples();
    home.ok(&["sync"]);
    // `search` refreshes the store from the files.
    let found = |words: &str, mode: &str| -> Vec<u64> {
        let found = home.run_json(&["search", words, "--session", FLAKY, "--mode", mode, "--limit", "100"]);
        let results = found.json()["results"].as_array().unwrap().clone();
        results.iter().map(|result| result["sequence"].as_u64().unwrap()).collect()
    };
    let shown = || home.json(&["show", FLAKY, "--limit", "100"]);
    let before = shown();
    let messages = before["messages"].as_array().unwrap();
    let kept =
        messages.iter().filter(|message| message["turn"].as_u64().is_none_or(|turn| turn <= 1)).count();
    let planned = home.json(&["rewind", FLAKY, "--to-turn", "1", "--dry-run"]);
    assert_eq!((shown(), &planned["dry_run"]), (before.clone(), &json!(true)));
    let rewound = home.json(&["rewind", FLAKY, "--to-turn", "1", "--yes"]);
    assert_eq!((&rewound["removed"], &rewound["session"]["turn_count"]), (&planned["removed"], &json!(1)));
    assert_eq!(rewound["removed"]["messages"], messages.len() - kept);
    assert!(rewound["removed"]["messages_with_vectors"].as_u64() > Some(0));
    for round in 0..2 {
        for mode in ["full-text", "semantic", "hybrid"] {
            let found = found("flaky checkout test", mode);
            assert!(
                !found.is_empty() && found.iter().all(|sequence| *sequence < kept as u64),
                "{round} {mode}"
            );
        }
        assert_eq!(shown()["messages"].as_array().unwrap().len(), kept, "{round}");
        assert_eq!(home.json(&["sync"])["sessions"]["unchanged"], 12, "{round}");
    }

    let transcript = folder(&home).join("transcript.jsonl");
    let mut lines = fs::read_to_string(&transcript).unwrap();
    lines.push_str("{\"role\":\"user\",\"content\":\"One more question\"}\n");
    fs::write(&transcript, lines).unwrap();
    assert_eq!(found("One more question", "full-text").first(), Some(&(messages.len() as u64)));
    assert_eq!(shown()["messages"].as_array().unwrap().len(), messages.len() + 1, "everything in the file");
}

#[test]
fn words_that_cannot_be_erased_are_reported_and_erased_by_the_next_write() {
    let home = Home::without_vectors();
    let lock = home.path().join(".amplifier/sessions.sqlite.index/lock");
    fs::remove_file(&lock).unwrap();
    fs::create_dir(&lock).unwrap();
    let ran = home.run_json(&["delete", "38e6", "--yes"]);
    let printed = ran.json();
    assert_eq!((ran.code, &printed["deleted"][0]["session_id"]), (1, &json!(FLAKY)));
    let left = &printed["remains"][0];
    assert!(left["file"].as_str().unwrap().ends_with("sessions.sqlite.index"), "{printed}");
    assert!(ran.stderr.contains("the session is deleted, but its words are still in "), "{}", ran.stderr);
    assert_eq!(count(&home), 11);
    fs::remove_dir(&lock).unwrap();
    home.ok(&["tag", OUTBOX, "x"]);
    let store = rusqlite::Connection::open(home.path().join(".amplifier/sessions.sqlite")).unwrap();
    let left = "SELECT count(*) FROM schema_meta WHERE key LIKE 'to_erase%' AND value <> ''";
    assert_eq!(store.query_row(left, [], |row| row.get::<_, i64>(0)), Ok(0));
}

#[test]
fn all_sessions_of_one_user_are_deleted_and_no_others() {
    let home = Home::without_vectors();
    let root = home.path().join("eve");
    let session = root.join("projects/p/sessions/of-eve");
    fs::create_dir_all(&session).unwrap();
    fs::write(session.join("transcript.jsonl"), "{\"role\":\"user\",\"content\":\"x\"}\n").unwrap();
    home.ok(&["sync", "--embedding", "none", "--user", "eve", "--root", root.to_str().unwrap()]);
    // Nothing found is exit code 3.
    let of_eve =
        || home.run_json(&["sessions", "--user", "eve"]).json()["sessions"].as_array().unwrap().len();
    assert_eq!((count(&home), of_eve()), (12, 1));
    let deleted = home.json(&["delete", "--all", "--scope", "all", "--user", "eve", "--yes"]);
    assert_eq!(deleted["deleted"].as_array().unwrap().len(), 1);
    assert_eq!((count(&home), of_eve()), (12, 0));
}

#[test]
fn shared_sessions_are_visible_only_to_their_audience() {
    let home = Home::without_vectors();
    let seen = |reader: &[&str]| {
        home.run(&[&["show", "38e6", "--limit", "1", "--scope", "visible"], reader].concat()).code == 0
    };
    let share = |with: &[&str]| home.ok(&[&["share", "38e6"], with].concat());
    assert!(!seen(&["--user", "eve", "--team", "web"]));
    share(&["--team", "web"]);
    assert!(seen(&["--user", "eve", "--team", "web"]) && !seen(&["--user", "eve", "--team", "other"]));
    share(&["--org", "acme"]);
    assert!(seen(&["--user", "eve", "--org", "acme"]) && !seen(&["--user", "eve", "--team", "web"]));
    share(&["--public"]);
    assert!(seen(&["--user", "eve"]));
    let search = ["search", "flaky checkout test", "--mode", "full-text"];
    let found = home.json(&[&search[..], &["--user", "eve", "--scope", "visible"]].concat());
    assert_eq!(found["results"][0]["session_id"], FLAKY);
    let statistics = home.json(&["stats", "--user", "eve", "--scope", "visible"]);
    assert_eq!(
        (&statistics["totals"]["sessions"], &statistics["vectors"]["owing_messages"]),
        (&json!(1), &json!(null))
    );
    share(&["--private"]);
    assert!(!seen(&["--user", "eve", "--team", "web", "--org", "acme"]));
    assert_eq!(home.run(&["stats", "--user", "eve", "--scope", "visible"]).code, 3);
}

#[test]
fn sharing_ignores_teams_and_organisation_from_the_environment() {
    let home = Home::without_vectors();
    let share = |with: &[&str]| -> Value {
        let call = home.call(&[&["share", "38e6", "--json"], with].concat());
        let call = call.env("AMPLIFIER_SESSIONS_TEAMS", "web,payments").env("AMPLIFIER_SESSIONS_ORG", "acme");
        call.run().json()["session"].clone()
    };
    let team = share(&["--team", "web"]);
    assert_eq!(
        (&team["visibility"], &team["team_ids"], &team["org_id"]),
        (&json!("team"), &json!(["web"]), &json!(null))
    );
    let org = share(&["--org", "other"]);
    assert_eq!(
        (&org["visibility"], &org["team_ids"], &org["org_id"]),
        (&json!("org"), &json!([]), &json!("other"))
    );
    assert_eq!(share(&["--public"])["visibility"], "public");
    assert_eq!(share(&["--private"])["visibility"], "private");
    assert_eq!(home.run(&["--team", "web", "share", "38e6", "--public"]).code, 2);
}
