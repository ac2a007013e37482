//! `export` and `import`.

use std::fs;

use crate::support::{Home, SYNCED};

#[test]
fn sessions_can_be_moved_between_stores() {
    let home = Home::without_vectors();
    home.ok(&["edit", "38e6d1f5", "--name", "By hand"]);
    let at = |name: &str| home.path().join(name).display().to_string();
    home.shows("export", &["export", "--out", &at("a.jsonl")]);
    let other =
        if cfg!(feature = "duckdb-system") { "duckdb:~/other.duckdb" } else { "sqlite:~/other.sqlite" };
    let imported = home.run(&["import", &at("a.jsonl"), "--store", other, "--embedding", "none"]);
    assert_eq!(imported.code, 0, "{}", imported.stderr);
    assert_eq!(imported.stdout, "sessions  12\nmessages  192\nevents    731\n");
    home.ok(&["export", "--out", &at("b.jsonl"), "--store", other]);
    assert!(fs::read(at("a.jsonl")).unwrap() == fs::read(at("b.jsonl")).unwrap(), "the exports differ");
    for reading in
        [&["sessions"][..], &["show", "38e6d1f5", "--full"], &["events", "--limit", "500", "--full"]]
    {
        let (ours, theirs) = (home.ok(reading), home.ok(&[reading, &["--store", other]].concat()));
        assert!(ours == theirs, "{reading:?}");
    }
    // A sync does not change imported sessions.
    let synced = home.json(&["sync", "--embedding", "none", "--store", other]);
    assert_eq!(synced["sessions"]["unchanged"], 12);

    // Like a copy that was truncated between two sessions.
    let whole = fs::read_to_string(at("a.jsonl")).unwrap();
    let cut: String = whole.split_inclusive('\n').take_while(|line| !line.contains("\"complete\"")).collect();
    fs::write(at("cut.jsonl"), cut).unwrap();
    let broken =
        home.run(&["import", &at("cut.jsonl"), "--store", other, "--replace", "--embedding", "none"]);
    assert_eq!(broken.code, 1, "{}", broken.stdout);
    assert!(
        broken.stderr.contains("is cut short after 12 sessions: its last line is missing"),
        "{}",
        broken.stderr
    );
    home.ok(&["export", "--out", &at("d.jsonl"), "--project", "-home-dana-payments-api"]);

    let again = home.run(&["import", &at("a.jsonl"), "--embedding", "none", "--json"]);
    assert_eq!(again.code, 1);
    assert!(again.stderr.contains("12 sessions were not imported\nhint: --replace"), "{}", again.stderr);
    let replaced = home.json(&["import", &at("a.jsonl"), "--embedding", "none", "--replace"]);
    assert_eq!((&replaced["sessions"], &replaced["replaced"]), (&12.into(), &12.into()));
    home.ok(&["export", "--out", &at("c.jsonl")]);
    assert!(fs::read(at("a.jsonl")).unwrap() == fs::read(at("c.jsonl")).unwrap(), "the exports differ");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(fs::metadata(at("a.jsonl")).unwrap().permissions().mode() & 0o777, 0o600);
    }
}

#[test]
fn projects_are_chosen_as_in_a_search() {
    let home = Home::without_vectors();
    let exported = |projects: &[&str]| {
        let archive = home.path().join("a.jsonl").display().to_string();
        let chosen = projects.iter().flat_map(|project| ["--project", project]);
        let all: Vec<&str> = ["export", "--out", &archive].into_iter().chain(chosen).collect();
        home.run_json(&all)
    };
    for (projects, sessions) in [
        (&["-home-dana-payments-api"][..], 5),
        (&["-home-dana-payments-api", "storefront-web"], 8),
        (&["*-web", "orders-*"], 7),
        (&["dana"], 12),
    ] {
        assert_eq!(exported(projects).json()["sessions"], sessions, "{projects:?}");
    }
    let mistyped = exported(&["storefront-web", "storefront-app"]);
    assert!(mistyped.stderr.contains("storefront-app"), "{}", mistyped.stderr);
    let with = |command: &[&str]| {
        home.run_json(&[command, &["--project", "*-web", "--project", "*-api"]].concat()).json()
    };
    assert_eq!(with(&["copy", "--to", "sqlite:~/other.sqlite"])["sessions"], 8);
    assert_eq!(
        with(&["restore", "--to", &home.path().join("restored").display().to_string()])["sessions"],
        8
    );
    assert_eq!(with(&["verify"])["sessions"], 8);
    assert_eq!(with(&["secrets"])["searched"], 8);
    // Nobody deletes by a pattern, or by a part that several projects have.
    for project in ["*-web", "dana"] {
        home.run(&["delete", "--project", project, "--yes"]);
    }
    assert_eq!(home.json(&["sessions"])["sessions"].as_array().map(Vec::len), Some(12));
}

#[test]
fn an_import_says_what_had_been_deleted() {
    let home = Home::without_vectors();
    let archive = home.path().join("a.jsonl").display().to_string();
    home.ok(&["export", "--out", &archive]);
    home.ok(&["delete", "38e6d1f5", "--yes"]);
    let imported = home.run(&["import", &archive, "--embedding", "none"]);
    let note = "note: 1 imported session had been deleted from this store and is back: 38e6d1f5-";
    assert!(imported.stderr.contains(note), "{}", imported.stderr);
    let again = home.json(&["import", &archive, "--embedding", "none", "--replace"]);
    assert_eq!(again["were_deleted"], serde_json::json!([]));
    home.ok(&["delete", "--all", "--yes"]);
    let all = home.json(&["import", &archive, "--embedding", "none"]);
    assert_eq!(all["were_deleted"].as_array().map(Vec::len), Some(12));
    assert_eq!(all["were_deleted"][0]["user_id"], "dana");
}

#[test]
fn sessions_of_others_are_read_only_on_request() {
    let home = Home::without_vectors();
    let file = home.path().join("a.jsonl").display().to_string();
    let as_eve = ["--store", "sqlite:~/other.sqlite", "--user", "eve"];
    assert_eq!(home.run(&["export", "--out", &file, "--user", "eve"]).code, 3, "nothing of hers");
    assert!(!home.path().join("a.jsonl").exists());
    let one = home.json(&["export", "--out", &file, "--session", "38e6d1f5"]);
    assert_eq!(one["sessions"], 1);
    home.shows("import_of_others", &[&["import", &file], &as_eve[..]].concat());
    let taken = home.json(&[&["import", &file, "--scope", "all"], &as_eve[..]].concat());
    assert_eq!(taken["sessions"], 1);
}

#[test]
fn files_that_are_not_exports_are_reported() {
    let home = Home::new();
    let file = home.path().join("a.jsonl");
    let begin = r#"{"record":"archive","format":1,"writer":"x""#;
    fs::write(&file, format!("{begin},\"checksums\":true}}\n{{\"role\":\"user\"}}\n")).unwrap();
    home.shows("error_import_line", &["import", file.to_str().unwrap()]);
    fs::write(&file, format!("{begin}}}\n")).unwrap();
    home.shows("error_import_without_checksums", &["import", file.to_str().unwrap()]);
    home.shows("error_import_missing", &["import", "/missing/a.jsonl"]);
    let folder = home.path().join("sessions.parquet");
    fs::create_dir(&folder).unwrap();
    home.shows("error_import_folder", &["import", folder.to_str().unwrap()]);
    home.shows("error_export_parquet", &["export", "--out", "x.parquet"]);
    let nowhere = SYNCED.run(&["export", "--out", "/missing/a.jsonl"]);
    assert_eq!((nowhere.code, nowhere.stderr.contains("hint: ")), (1, true), "{}", nowhere.stderr);
}

#[test]
fn a_broken_line_costs_its_session() {
    let home = Home::without_vectors();
    let archive = home.path().join("a.jsonl");
    let name = archive.to_str().unwrap();
    home.ok(&["export", "--out", name]);
    let text = fs::read_to_string(&archive).unwrap();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let messages: Vec<usize> =
        (0..lines.len()).filter(|at| lines[*at].starts_with("{\"record\":\"message\"")).collect();
    // One letter in a line of one session, and the end of a line of another.
    let (first, last) = (messages[0], messages[messages.len() - 1]);
    lines[first] = lines[first].replacen("content", "cantent", 1);
    lines[last].truncate(40);
    fs::write(&archive, lines.join("\n")).unwrap();
    let other = ["--store", "sqlite:~/other.sqlite", "--embedding", "none"];
    home.shows("import_broken", &[&["import", name], &other[..]].concat());
    let again = home.run_json(&[&["import", name, "--replace"], &other[..]].concat());
    let report = again.json();
    assert_eq!((again.code, &report["sessions"], &report["replaced"]), (1, &10.into(), &10.into()));
    assert_eq!(report["broken"].as_array().unwrap().len(), 2);
}
