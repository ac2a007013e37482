//! Old names of commands.

use crate::support::{Home, SYNCED};

/// Old names with what they were called with, and what they do now.
const MOVED: [(&[&str], &[&str]); 13] = [
    (&["recent", "--since", "2020-01-01"], &["sessions", "--by", "project", "--since", "2020-01-01"]),
    (&["context", "38e6d1f5#4", "--before", "1"], &["show", "38e6d1f5#4", "--before", "1"]),
    (&["context", "38e6d1f5", "--message", "4"], &["show", "38e6d1f5#4", "--context"]),
    (&["turn", "38e6d1f5#4"], &["show", "38e6d1f5#4", "--turn"]),
    (&["turn", "38e6d1f5", "--turn", "2"], &["show", "38e6d1f5", "--turn", "2"]),
    (&["summaries", "import", "/missing"], &["import", "--summaries", "/missing"]),
    (&["prune", "--dry-run"], &["delete", "--superseded", "--dry-run"]),
    (&["gaps", "38e6d1f5"], &["verify", "--gaps", "38e6d1f5"]),
    (&["backfill", "--dry-run"], &["embeddings", "backfill", "--dry-run"]),
    (&["rebuild", "--dry-run"], &["embeddings", "rebuild", "--dry-run"]),
    (&["models", "list"], &["embeddings", "models", "list"]),
    (&["init", "--with-rls"], &["config", "init", "--with-rls"]),
    (&["prune", "--help"], &["delete", "--help"]),
];

#[test]
fn old_names_do_the_same_and_say_the_new_name() {
    for (old, new) in MOVED {
        same(&SYNCED, old, new);
        same(&SYNCED, &[&["--json"], old].concat(), &[&["--json"], new].concat());
    }
    let note = |old: &[&str]| SYNCED.run(old).stderr.lines().next().unwrap_or_default().to_owned();
    assert_eq!(note(&["turn", "38e6d1f5#4"]), "note: `turn` is now `show --turn`");
    assert_eq!(note(&["summaries", "import", "-"]), "note: `summaries import` is now `import --summaries`");
    assert_eq!(note(&["help", "models", "verify"]), "note: `models` is now `embeddings models`");
}

#[cfg(all(feature = "watch", target_os = "linux"))]
#[test]
fn old_names_of_watch_do_the_same() {
    let home = Home::without_vectors();
    same(&home, &["status"], &["watch", "status"]);
    let print = ["service", "install", "--print", "--poll", "5"];
    same(&home, &print, &[&["watch"], &print[..]].concat());
}

/// Both have the same result, and the old one has a note in addition.
#[track_caller]
fn same(home: &Home, old: &[&str], new: &[&str]) {
    let (old_ran, new_ran) = (home.run(old), home.run(new));
    assert_eq!(
        (old_ran.code, &old_ran.stdout),
        (new_ran.code, &new_ran.stdout),
        "{old:?}: {}",
        old_ran.stderr
    );
    let (note, rest) = old_ran.stderr.split_once('\n').unwrap();
    assert!(note.starts_with("note: `") && note.contains("` is now `"), "{old:?}: {note}");
    assert_eq!(rest, new_ran.stderr, "{old:?}");
}

#[cfg(feature = "watch")]
#[test]
fn options_of_watch_are_refused_before_its_subcommands() {
    let ran = SYNCED.run(&["watch", "--root", "/a", "status"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("'--root' cannot be used before `status`"), "{}", ran.stderr);
    assert_ne!(SYNCED.run(&["watch", "--json", "status"]).code, 2);
}
