//! Projects named by their folders.

use std::{fs, path::Path};

use crate::{call::Ran, support::Home};

/// Writes a session that ran in `folder`, if one is given, or is a sub-agent of `parent`.
fn write(home: &Home, slug: &str, session: &str, folder: Option<&Path>, parent: Option<&str>) {
    let transcript = "{\"role\":\"user\",\"content\":\"knead the dough\"}\n";
    let written = home.write_session(slug, session, transcript);
    let metadata = serde_json::json!({"working_dir": folder, "parent_id": parent});
    fs::write(written.join("metadata.json"), metadata.to_string()).unwrap();
}

fn ids(answer: &serde_json::Value) -> Vec<&str> {
    let mut ids: Vec<&str> = answer["sessions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["session_id"].as_str().unwrap())
        .collect();
    ids.sort_unstable();
    ids
}

/// `/my-app` and `/my/app` have the same slug.
#[test]
fn folders_with_the_same_slug_are_told_apart() {
    let home = Home::new();
    let (dashed, deep) = (home.path().join("my-app"), home.path().join("my/app"));
    fs::create_dir_all(deep.join("src")).unwrap();
    fs::create_dir(&dashed).unwrap();
    let slug = dashed.to_str().unwrap().replace('/', "-");
    write(&home, &slug, "of-dashed", Some(&dashed), None);
    write(&home, &slug, "of-deep", Some(&deep), None);
    write(&home, &slug, "agent", None, Some("of-deep"));
    home.ok(&["sync", "--embedding", "none"]);
    let [dashed, deep] = [&dashed, &deep].map(|folder| folder.to_str().unwrap());

    assert_eq!(ids(&home.json(&["sessions", "--project", dashed])), ["of-dashed"]);
    assert_eq!(ids(&home.json(&["sessions", "--project", &slug])).len(), 3);
    let below = Path::new(deep).join("src");
    let mut command = home.process(&["sessions", "--project", ".", "--json"]);
    let here = Ran::from(command.current_dir(below).output().unwrap());
    assert_eq!(ids(&here.json()), ["agent", "of-deep"], "{}", here.stderr);
    assert!(here.stderr.contains(&format!("are left out: {dashed}\n")), "{}", here.stderr);
    let search = home.json(&["search", "knead", "--mode", "full-text", "--project", dashed]);
    assert_eq!(search["results"].as_array().map(Vec::len), Some(1));
    assert_eq!(home.json(&["stats", "--project", deep])["totals"]["sessions"], 2);

    let both = home.run(&["delete", "--project", &slug, "--dry-run"]);
    assert!(both.stderr.contains(&format!("ran in {dashed} and {deep}\n")), "{}", both.stderr);
    home.ok(&["delete", "--project", dashed, "--yes"]);
    assert_eq!(ids(&home.json(&["sessions"])), ["agent", "of-deep"]);
    let again = home.run(&["delete", "--project", dashed, "--yes"]);
    assert_eq!(again.code, 0, "{}", again.stderr);
    assert!(again.stderr.contains("no session ran in"), "{}", again.stderr);
    assert_eq!(ids(&home.json(&["sessions"])), ["agent", "of-deep"]);
}

/// macOS writes the names of folders decomposed.
#[test]
fn a_folder_with_an_accent_is_found_in_both_forms() {
    let home = Home::new();
    let (composed, decomposed) = ("caf\u{e9}", "cafe\u{301}");
    let folder = home.path().join(decomposed);
    let slug = folder.to_str().unwrap().replace('/', "-");
    write(&home, &slug, "one", Some(&folder), None);
    home.ok(&["sync", "--embedding", "none"]);
    home.ok(&["tag", "one", decomposed]);
    for name in [composed, decomposed] {
        let path = home.path().join(name);
        for project in [name, path.to_str().unwrap()] {
            assert_eq!(ids(&home.json(&["sessions", "--project", project])), ["one"], "{project:?}");
        }
        assert_eq!(ids(&home.json(&["sessions", "--tag", name])), ["one"], "{name:?}");
    }
    assert_eq!(home.json(&["sync", "--embedding", "none"])["sessions"]["unchanged"], 1);
    let verified = home.run(&["verify"]);
    assert_eq!(verified.code, 0, "{}", verified.all());
    home.ok(&["tag", "one", "--remove", composed]);
    assert_eq!(home.run(&["sessions", "--tag", decomposed]).code, 3);
}
