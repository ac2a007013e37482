//! `doctor`.

use std::fs;

use serde_json::Value;

use crate::support::Home;

/// The checks of a run, as `name status`.
fn statuses(answer: &Value) -> Vec<String> {
    let checks = answer["checks"].as_array().unwrap().iter();
    checks
        .map(|check| format!("{} {}", check["name"].as_str().unwrap(), check["status"].as_str().unwrap()))
        .collect()
}

/// What a check says.
fn check<'a>(answer: &'a Value, name: &str) -> &'a Value {
    answer["checks"].as_array().unwrap().iter().find(|check| check["name"] == name).unwrap()
}

#[test]
fn a_sound_installation_passes() {
    let home = Home::with_samples();
    home.ok(&["sync"]);
    let answer = home.json(&["doctor"]);
    let names = [
        "configuration",
        "store",
        "schema",
        "index",
        "model",
        "permissions",
        "disk",
        "clock",
        "watch",
        "root",
    ];
    assert_eq!(statuses(&answer), names.map(|name| format!("{name} ok")), "{answer}");
    assert_eq!(answer["ok"], true);
    let text = home.ok(&["doctor"]);
    assert!(text.starts_with("ok\tconfiguration\tno file"), "{text}");
}

#[test]
fn a_store_in_the_folder_of_the_sessions_is_said_to_be_there() {
    let home = Home::with_samples();
    let synced = home.run(&["sync"]);
    assert!(synced.stderr.contains("deleting that folder") && synced.stderr.contains("hint: `store = "));
    assert!(synced.stdout.contains("\nstore     sqlite:"), "{}", synced.all());
    assert!(!home.run(&["sync"]).stderr.contains("deleting that folder"));
    let hint = check(&home.json(&["doctor"]), "store")["hint"].as_str().unwrap().to_owned();
    assert!(hint.contains("deleting that folder") && hint.contains("config.toml"), "{hint}");
    let elsewhere = ["--store", "sqlite:~/elsewhere/sessions.sqlite"];
    assert_eq!(home.run(&[&["sync"], &elsewhere[..]].concat()).stderr, "");
    assert!(check(&home.json(&[&["doctor"], &elsewhere[..]].concat()), "store")["hint"].is_null());
}

#[cfg(unix)]
#[test]
fn few_open_files_are_a_warning() {
    let home = Home::without_vectors();
    let program = home.process(&[]);
    let mut command = std::process::Command::new("/bin/sh");
    let script = "ulimit -n 100; exec \"$0\" doctor --json --embedding none";
    command.args(["-c", script]).arg(program.get_program()).env_clear();
    command.envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let answer = crate::call::Ran::from(command.output().unwrap()).json();
    let found = check(&answer, "open files");
    assert_eq!(found["status"], "warning", "{answer}");
    assert!(found["hint"].as_str().unwrap().contains("ulimit -n"), "{answer}");
}

#[test]
fn what_is_wrong_is_named_with_a_hint() {
    let home = Home::with_samples();
    home.shows("doctor_no_store", &["doctor"]);
    home.ok(&["sync"]);
    let file = home.amplifier().join("sessions.sqlite");
    fs::remove_dir_all(home.amplifier().join("sessions.sqlite.index")).unwrap();
    fs::rename(home.amplifier().join("projects"), home.amplifier().join("moved")).unwrap();
    #[cfg(unix)]
    fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o400)).unwrap();
    let ran = home.run_json(&["doctor", "--embedding", "openai"]);
    let answer = ran.json();
    assert_eq!((ran.code, &answer["ok"]), (1, &Value::from(false)), "{}", ran.all());
    assert_eq!(check(&answer, "index")["status"], "warning");
    assert_eq!(check(&answer, "root")["status"], "failed");
    assert_eq!(check(&answer, "model")["status"], "failed");
    assert_eq!(check(&answer, "credentials")["status"], "warning");
    for wrong in ["index", "root", "model", "credentials"] {
        assert!(check(&answer, wrong)["hint"].is_string(), "{answer}");
    }
}

#[test]
fn a_wrong_configuration_is_the_only_result() {
    let home = Home::with_samples();
    home.configure("stoer = \"sqlite:a.sqlite\"\n");
    home.shows("doctor_wrong_configuration", &["doctor"]);
    home.configure("embedding = \"none\"\n");
    home.ok(&["sync"]);
    let answer = home.json(&["doctor"]);
    assert!(check(&answer, "configuration")["text"].as_str().unwrap().ends_with("config.toml"), "{answer}");
}

#[cfg(unix)]
#[test]
fn files_that_others_can_read_are_reported() {
    use std::os::unix::fs::PermissionsExt as _;

    let home = Home::with_samples();
    home.ok(&["sync"]);
    let index = home.amplifier().join("sessions.sqlite.index");
    fs::set_permissions(&index, fs::Permissions::from_mode(0o755)).unwrap();
    let ran = home.run_json(&["doctor"]);
    let answer = ran.json();
    let found = check(&answer, "permissions");
    assert_eq!((ran.code, &found["status"]), (1, &Value::from("failed")), "{answer}");
    assert!(found["hint"].as_str().unwrap().contains("chmod -R go="), "{answer}");
}

#[test]
fn vectors_of_another_model_are_reported() {
    let home = Home::with_samples();
    home.ok(&["sync"]);
    let answer = home.json(&["doctor", "--embedding", "none"]);
    assert_eq!(check(&answer, "model")["status"], "ok");
    let store = home.amplifier().join("sessions.sqlite");
    let other = r#"{"model":"other","dimensions":3,"number":0}"#;
    let connection = rusqlite::Connection::open(store).unwrap();
    connection.execute("UPDATE schema_meta SET value = ?1 WHERE key = 'embedding_space'", [other]).unwrap();
    drop(connection);
    let ran = home.run_json(&["doctor"]);
    assert_eq!(ran.code, 1, "{}", ran.all());
    let answer = ran.json();
    assert!(check(&answer, "model")["hint"].as_str().unwrap().contains("rebuild"), "{answer}");
}

#[test]
fn a_session_from_the_future_is_a_warning() {
    let home = Home::with_samples();
    home.ok(&["sync"]);
    let connection = rusqlite::Connection::open(home.amplifier().join("sessions.sqlite")).unwrap();
    connection
        .execute("UPDATE sessions SET updated = '2999-01-01T00:00:00.000000Z' WHERE key = 1", [])
        .unwrap();
    drop(connection);
    let answer = home.json(&["doctor"]);
    assert_eq!(check(&answer, "times")["status"], "warning", "{answer}");
    // The clock of this machine is not the reason.
    assert_eq!(check(&answer, "clock")["status"], "ok", "{answer}");
    assert_eq!(answer["ok"], true, "{answer}");
}

#[cfg(feature = "duckdb-system")]
#[test]
fn other_stores_are_checked_too() {
    let home = Home::with_samples();
    home.ok(&["sync", "--embedding", "none", "--store", "duckdb:~/a.duckdb"]);
    let answer = home.json(&["doctor", "--store", "duckdb:~/a.duckdb", "--embedding", "none"]);
    assert_eq!(answer["ok"], true, "{answer}");
}
