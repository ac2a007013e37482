//! Sessions named by their repository. Needs `git`.

use std::{fs, path::Path, process::Command};

use serde_json::{Value, json};

use crate::{call::Ran, output::check, support::Home};

/// Writes a session that worked in `folder`.
fn write(home: &Home, slug: &str, session: &str, folder: &Path) {
    let written = home.write_session(slug, session, "{\"role\":\"user\",\"content\":\"knead the dough\"}\n");
    fs::write(written.join("metadata.json"), json!({"working_dir": folder}).to_string()).unwrap();
}

fn git(folder: &Path, arguments: &[&str]) {
    fs::create_dir_all(folder).unwrap();
    let mut git = Command::new("git");
    git.current_dir(folder).env("GIT_CONFIG_NOSYSTEM", "1").env("HOME", folder);
    assert!(git.args(arguments).status().unwrap().success(), "git {arguments:?}");
}

/// Two clones of a repository and another repository, each with a session, and a folder in no repository with one.
fn home() -> Home {
    let home = Home::new();
    let clones = [
        ("code/app", "https://ana:secret@github.com/acme/app.git"),
        ("tmp/again", "git@github.com:acme/app.git"),
        ("code/web", "git@github.com:acme/app-web.git"),
    ];
    for (n, (folder, address)) in clones.into_iter().enumerate() {
        let path = home.path().join(folder);
        git(&path, &["init", "--quiet"]);
        git(&path, &["remote", "add", "origin", address]);
        write(&home, &format!("-project-{n}"), &format!("session-{n}"), &path);
    }
    for folder in ["plain", "empty"] {
        fs::create_dir(home.path().join(folder)).unwrap();
    }
    write(&home, "-plain", "session-plain", &home.path().join("plain"));
    home.ok(&["sync", "--embedding", "none"]);
    home
}

fn ids(answer: &Value) -> Vec<&str> {
    let sessions = answer["sessions"].as_array().unwrap().iter();
    let mut ids: Vec<&str> = sessions.map(|one| one["session_id"].as_str().unwrap()).collect();
    ids.sort_unstable();
    ids
}

fn run_in(home: &Home, folder: &str, arguments: &[&str]) -> Ran {
    Ran::from(home.process(arguments).current_dir(home.path().join(folder)).output().unwrap())
}

#[test]
fn sessions_are_found_by_their_repository() {
    let home = home();
    let app = ["session-0", "session-1"];
    for name in ["github.com/acme/app", "acme/app", "app", "git@github.com:acme/app.git"] {
        assert_eq!(ids(&home.json(&["sessions", "--repo", name])), app, "{name}");
    }
    fs::create_dir(home.path().join("code/app/src")).unwrap();
    let folders =
        [("code/app", "."), ("code/app/src", "."), ("code", "app"), ("code", "./app"), ("tmp", "again")];
    for (at, typed) in folders {
        let here = run_in(&home, at, &["sessions", "--repo", typed, "--json"]);
        assert_eq!(ids(&here.json()), app, "{at} {typed} {}", here.stderr);
    }
    let plain = run_in(&home, "plain", &["sessions", "--repo", ".", "--json"]);
    assert_eq!(ids(&plain.json()), ["session-plain"], "{}", plain.stderr);
    assert_eq!(ids(&home.json(&["sessions", "--repo", "app", "--project", "-project-1"])), ["session-1"]);

    for query in [&["knead", "--repo", "acme/app"][..], &["knead repo:acme/app"], &["repo:acme/app"]] {
        let search = [&["search", "--mode", "full-text"], query].concat();
        assert_eq!(home.json(&search)["results"].as_array().map(Vec::len), Some(2), "{query:?}");
    }
    assert_eq!(home.json(&["stats", "--repo", "app"])["totals"]["sessions"], 2);
    let recent = home.json(&["sessions", "--by", "project", "--days", "36500", "--repo", "app"]);
    assert_eq!(recent["projects"].as_array().map(Vec::len), Some(2), "{recent}");
    assert_eq!(home.json(&["show", "session-0"])["session"]["repository"], "github.com/acme/app");
    let shown = home.ok(&["show", "session-plain"]);
    assert!(!home.ok(&["export", "--out", "-"]).contains("secret@"), "{shown}");

    let verified = home.json(&["verify", "--repo", "app"]);
    assert_eq!(verified["sessions"], 2, "{verified}");
    let copy = format!("sqlite:{}", home.path().join("copy.sqlite").display());
    home.ok(&["copy", "--to", &copy, "--repo", "acme/app"]);
    assert_eq!(ids(&home.json(&["--store", &copy, "sessions", "--repo", "app"])), app);
    home.ok(&["delete", "--repo", "acme/app-web", "--yes"]);
    assert_eq!(ids(&home.json(&["sessions"])), ["session-0", "session-1", "session-plain"]);
}

/// Sessions from before the repository had an address are found by its folder.
#[test]
fn a_folder_also_means_the_earlier_names_of_its_repository() {
    let home = Home::new();
    let app = home.path().join("app");
    git(&app, &["init", "--quiet"]);
    write(&home, "-app", "before", &app);
    home.ok(&["sync", "--embedding", "none"]);
    git(&app, &["remote", "add", "origin", "git@github.com:acme/app.git"]);
    // A session whose files just changed would be read again.
    fs::remove_dir_all(home.amplifier().join("projects/-app/sessions/before")).unwrap();
    write(&home, "-app", "after", &app);
    home.ok(&["sync", "--embedding", "none"]);
    assert_eq!(
        ids(&run_in(&home, "app", &["sessions", "--repo", ".", "--json"]).json()),
        ["after", "before"]
    );
    assert_eq!(ids(&home.json(&["sessions", "--repo", "acme/app"])), ["after"]);
}

#[test]
fn a_repository_that_is_not_found_is_explained() {
    let home = home();
    let folder = home.path().canonicalize().unwrap();
    let cases: [(&str, &[&str]); 7] = [
        ("code", &["sessions", "--repo", "unknown"]),
        ("code", &["search", "knead", "--mode", "full-text", "--repo", "github.com/acme/unknown"]),
        ("code", &["sessions", "--repo", "acme"]),
        ("empty", &["sessions", "--repo", "."]),
        ("empty", &["delete", "--repo", "/", "--yes"]),
        ("code", &["search", "knead repo:app-web", "--mode", "full-text", "--repo", "acme/app"]),
        ("code", &["search", "knead repo:acme/app repo:acme/app-web", "--mode", "full-text"]),
    ];
    let mut shown = String::new();
    for (at, arguments) in cases {
        let ran = run_in(&home, at, arguments).all().replace(folder.to_str().unwrap(), "[HOME]");
        shown += &format!("$ {}\n{ran}\n", arguments.join(" "));
    }
    check("repositories_not_found", &home, &shown);
}

/// A folder also means the same folder in the other work trees, whether they exist, were removed, or are new.
#[test]
fn work_trees_of_a_repository_belong_together() {
    let home = Home::new();
    let code = home.path().canonicalize().unwrap().join("code");
    let app = code.join("app");
    git(&app, &["init", "--quiet"]);
    git(&app, &["remote", "add", "origin", "git@github.com:acme/app.git"]);
    let identity = ["-c", "user.name=ana", "-c", "user.email=ana@example.org"];
    git(&app, &[&identity[..], &["commit", "--quiet", "--allow-empty", "--message", "one"]].concat());
    for name in ["tree", "gone", "new"] {
        git(&app, &["worktree", "add", "--quiet", &format!("../{name}"), "-b", name]);
    }
    let clone = code.join("clone");
    git(&clone, &["init", "--quiet"]);
    git(&clone, &["remote", "add", "origin", "git@github.com:acme/app.git"]);
    for (id, folder) in
        [("s-app", "app"), ("s-tree", "tree"), ("s-gone", "gone"), ("s-clone", "clone"), ("s-web", "app/web")]
    {
        let folder = code.join(folder);
        fs::create_dir_all(&folder).unwrap();
        let slug = folder.to_str().unwrap().replace('/', "-");
        write(&home, &slug, id, &folder);
    }
    home.ok(&["sync", "--embedding", "none"]);
    git(&app, &["worktree", "remove", "--force", "../gone"]);
    let all = ["s-app", "s-gone", "s-tree"];
    let found = |folder: &str, project: &str| {
        let ran = run_in(&home, folder, &["sessions", "--json", "--project", project]);
        let found = ids(&ran.json()).join(" ");
        (found, ran.stderr)
    };
    for (folder, project) in [
        ("code/app", "."),
        ("code/tree", "."),
        ("code/new", "."),
        ("", "code/app"),
        ("", "code-tree"),
        ("", "-app"),
    ] {
        let (ids, stderr) = found(folder, project);
        assert_eq!(ids, all.join(" "), "{folder} {project}: {stderr}");
        assert!(stderr.contains("with the other work trees"), "{stderr}");
    }
    let slug = code.join("tree").to_str().unwrap().replace('/', "-");
    for (project, expected) in
        [("code/app/web", "s-web"), ("code/clone", "s-clone s-gone"), (slug.as_str(), "s-tree")]
    {
        assert_eq!(found("", project).0, expected, "{project}");
    }
    let deleted = run_in(&home, "code/app", &["delete", "--project", ".", "--dry-run", "--json"]);
    assert_eq!(deleted.json()["would_delete"].as_array().unwrap().len(), 1, "{}", deleted.stdout);
}
