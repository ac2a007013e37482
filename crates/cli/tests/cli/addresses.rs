//! Addresses of sessions, messages and projects on the command line.

use std::fs;

use crate::{
    call::Ran,
    support::{Home, SYNCED},
};

const FLAKY: &str = "38e6d1f5-c290-4a7b-8f14-d6b93e0a5c72";

fn shown(arguments: &[&str]) -> Vec<u64> {
    let shown = SYNCED.json(arguments);
    let messages = shown["messages"].as_array().unwrap().iter();
    messages.map(|message| message["sequence"].as_u64().unwrap()).collect()
}

#[test]
fn addresses_in_search_results_find_the_message() {
    let found = SYNCED.json(&["search", "charged twice", "--limit", "3"]);
    for result in found["results"].as_array().unwrap() {
        let address = result["address"].as_str().unwrap();
        let message = &SYNCED.json(&["show", address])["messages"][0];
        assert_eq!(message["sequence"], result["sequence"], "{address}");
        assert_eq!(message["address"], result["address"]);
        assert!(message["id"].as_str().unwrap().starts_with(result["session_id"].as_str().unwrap()));
        let sessions = SYNCED.json(&["sessions", "--limit", "100"]);
        let of = |session: &&serde_json::Value| session["session_id"] == result["session_id"];
        let session = sessions["sessions"].as_array().unwrap().iter().find(of).unwrap();
        assert_eq!(session["title"], result["title"]);
    }
    let line = SYNCED.ok(&["search", "charged twice", "--limit", "1"]);
    assert_eq!(line.trim_end().rsplit('\t').next().unwrap(), found["results"][0]["address"]);
}

#[test]
fn a_message_has_several_addresses() {
    let upper = FLAKY.to_uppercase();
    for address in [
        format!("{FLAKY}#2"),
        "38e6d1f5#2".to_owned(),
        "38E6D1F5#2".to_owned(),
        format!("{upper}#2"),
        format!("{FLAKY}_msg_2"),
        format!("{upper}_MSG_2"),
    ] {
        assert_eq!(shown(&["show", &address]), [2], "{address}");
        assert_eq!(shown(&["show", &address, "--limit", "2"]), [2, 3], "{address}");
        assert_eq!(
            shown(&["show", "--context", &address, "--before", "1", "--after", "0"]),
            [1, 2],
            "{address}"
        );
        assert_eq!(SYNCED.json(&["tag", &address])["session"]["session_id"], FLAKY, "{address}");
    }
    assert_eq!(SYNCED.json(&["show", &upper])["session"]["session_id"], FLAKY);
    assert_eq!(SYNCED.run(&["show", "38e6d1f5#999"]).code, 3);
    assert_eq!(SYNCED.run(&["show", "--context", "38e6d1f5#999"]).code, 3);
    for wrong in [
        &["show", "38e6d1f5#x"][..],
        &["show", "38e6d1f5#2", "--from", "1"],
        &["show", "38e6d1f5#2", "--events"],
        &["show", "--context", "38e6d1f5"],
        &["show", "--context", "38e6d1f5#2", "--turn", "1"],
    ] {
        let ran = SYNCED.run(wrong);
        assert_eq!(ran.code, 2, "{wrong:?}: {}", ran.stderr);
        assert!(ran.stderr.contains("\nhint: "), "{wrong:?}: {}", ran.stderr);
    }
}

#[test]
fn latest_is_the_newest_session() {
    let newest = &SYNCED.json(&["sessions", "--limit", "1"])["sessions"][0];
    assert_eq!(SYNCED.json(&["show", "latest"])["session"]["session_id"], newest["session_id"]);
    assert_eq!(shown(&["show", "LATEST#0"]), [0]);
    let found = SYNCED.json(&["search", "the", "--mode", "full-text", "--session", "latest"]);
    for result in found["results"].as_array().unwrap() {
        assert_eq!(result["session_id"], newest["session_id"]);
    }
}

#[test]
fn commands_accept_message_addresses_as_sessions() {
    let home = Home::without_vectors();
    assert_eq!(home.json(&["edit", "38e6d1f5#2", "--name", "x"])["session"]["name"], "x");
    assert!(home.ok(&["events", "--session", "38E6D1F5#2", "--limit", "1"]).contains(FLAKY));
    let deleted = home.json(&["delete", "38e6d1f5#2", "--yes"]);
    assert_eq!(deleted["deleted"][0]["session_id"], FLAKY);
    assert_eq!(home.run(&["show", FLAKY]).code, 1);
}

/// A store with sessions of three folders in the home folder.
fn projects() -> Home {
    let home = Home::new();
    for (folder, id) in [("bakery", "s1"), ("bakery/ovens", "s2"), ("shop", "s3")] {
        let folder = home.path().canonicalize().unwrap().join(folder);
        fs::create_dir_all(&folder).unwrap();
        let slug = folder.to_str().unwrap().replace('/', "-");
        home.write_session(&slug, id, "{\"role\":\"user\",\"content\":\"hello\"}\n");
    }
    home.ok(&["sync", "--embedding", "none"]);
    home
}

#[test]
fn projects_are_found_by_slug_part_of_slug_or_folder() {
    let home = projects();
    let found = |folder: &str, project: &str| {
        let mut command = home.process(&["sessions", "--project", project]);
        let ran = Ran::from(command.current_dir(home.path().join(folder)).output().unwrap());
        let ids =
            ran.stdout.lines().map(|line| line.split('\t').next().unwrap()).collect::<Vec<_>>().join(" ");
        (ran.code, ids, ran.stderr)
    };
    let absolute = home.path().join("shop");
    let slug = home.path().canonicalize().unwrap().join("bakery").to_str().unwrap().replace('/', "-");
    for (folder, project, id) in [
        ("", slug.as_str(), "s1"),
        ("", "ovens", "s2"),
        ("", "SHOP", "s3"),
        ("shop", ".", "s3"),
        ("bakery/ovens", "..", "s1"),
        ("shop", "../bakery/ovens", "s2"),
        ("", "./bakery", "s1"),
        ("", "~/shop", "s3"),
        ("", absolute.to_str().unwrap(), "s3"),
    ] {
        let (code, ids, stderr) = found(folder, project);
        assert_eq!((code, ids.as_str()), (0, id), "{folder} {project}: {stderr}");
    }
    fs::create_dir_all(home.path().join("shop/deep/down")).unwrap();
    let (_, ids, stderr) = found("shop/deep/down", ".");
    assert!(ids == "s3" && stderr.contains("is in the project"), "{ids} {stderr}");
    let (code, _, stderr) = found("", "bakery-");
    assert_eq!(code, 0, "only one slug matches: {stderr}");
    let (code, ids, stderr) = found("", "baker");
    assert!(code == 0 && (ids == "s1 s2" || ids == "s2 s1"), "{code} {ids}");
    assert!(stderr.contains("baker selects 2 projects") && stderr.contains("-bakery-ovens"), "{stderr}");
    let several = home.json(&["sessions", "-p", "~/shop", "--project", "*-ovens"]);
    assert_eq!(several["sessions"].as_array().unwrap().len(), 2, "{several}");
    let refused = home.run(&["delete", "--project", "baker", "--dry-run"]);
    assert!(refused.code == 2 && refused.stderr.contains("is ambiguous"), "{}", refused.stderr);
    let refused = home.run(&["delete", "--project", "baker*", "--dry-run"]);
    assert!(refused.stderr.contains("no session matches"), "{}", refused.stderr);
    let (code, _, stderr) = found("", "brewery");
    assert!(code == 3 && stderr.contains("the store has no project \"brewery\""), "{code} {stderr}");
}
