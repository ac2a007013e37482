//! Unusual arguments: odd words, commands of other programs, and invisible characters.

use crate::{
    support::{Home, SYNCED},
    terminal::Terminal,
};

/// An escape sequence, an 8-bit control character, zero width, a change of direction, TAG and a variation selector.
const HIDDEN: &str = "a\u{1b}[31mb\u{9b}c\u{200b}\u{200d}\u{202e}\u{2066}\u{e0041}\u{e0101}\u{fe0f}\u{feff}d";

fn is_clean(text: &str) -> bool {
    let allowed = |c: char| matches!(c, '\n' | '\t') || !c.is_control();
    text.chars().all(|c| {
        allowed(c) && !"\u{200b}\u{200d}\u{202e}\u{2066}\u{e0041}\u{e0101}\u{fe0f}\u{feff}".contains(c)
    })
}

#[test]
fn escape_sequences_in_arguments_do_not_reach_the_terminal() {
    for arguments in [
        &["search", HIDDEN, "--mode", "full-text"][..],
        &["search", "x", "--project", HIDDEN],
        &["search", "x", "--since", HIDDEN],
        &["search", "x", "--mode", HIDDEN],
        &["search", "x", HIDDEN, "--nothing\u{1b}[1m\u{200b}"],
        &["show", HIDDEN],
        &["show", "38e6d1f5", "--from", HIDDEN],
        &["--store", HIDDEN, "sessions"],
        &["--store", &format!("sqlite:/tmp/{HIDDEN}"), "sessions"],
        &["--embedding", HIDDEN, "search", "x"],
        &["tag", "ffffffff", "--remove", HIDDEN],
        &["events", "--after", HIDDEN],
        &["export", "--out", &format!("/missing/{HIDDEN}")],
        &["stats", "--plot", &format!("{HIDDEN}.png")],
        &["watch", "status", "--root", HIDDEN],
        &["watch", "service", "install", "--print", "--root", HIDDEN],
        &["--user", HIDDEN, "config"],
        &["verify", "--root", HIDDEN],
        &["import", HIDDEN],
        &["embeddings", "models", "verify", HIDDEN],
        &["backup", &format!("/missing/{HIDDEN}")],
        &["upgrade", HIDDEN, "--check"],
        &["import", "--summaries", HIDDEN],
        &["copy", "--to", &format!("sqlite:/proc/missing/{HIDDEN}")],
        &[HIDDEN],
    ] {
        let ran = Terminal::new(&SYNCED).run(&[arguments, &["--color", "never"]].concat());
        assert!(is_clean(&ran.stderr), "{arguments:?}: {:?}", ran.stderr);
        assert!(is_clean(&ran.stdout), "{arguments:?}: {:?}", ran.stdout);
        assert!(!ran.stderr.is_empty() || !ran.stdout.is_empty(), "{arguments:?}");
    }
}

#[test]
fn json_on_a_terminal_is_escaped_and_has_the_same_values() {
    let home = Home::new();
    let line = serde_json::json!({"role": "user", "content": HIDDEN});
    home.write_session("p", "s1", &format!("{line}\n"));
    home.ok(&["sync", "--embedding", "none"]);
    for arguments in [&["show", "s1", "--json"][..], &["sessions", "--json"]] {
        let (piped, shown) = (home.ok(arguments), Terminal::new(&home).run(arguments).stdout);
        assert!(!is_clean(&piped) && is_clean(&shown), "{shown:?}");
        let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(value(&shown), value(&piped));
    }
    let export = ["export", "--out", "-"];
    let (piped, shown) = (home.ok(&export), Terminal::new(&home).run(&export).stdout);
    assert!(piped.contains(HIDDEN.trim_start_matches("a\u{1b}[31m")) && is_clean(&shown), "{shown:?}");
    assert_eq!(shown.lines().count(), piped.lines().count());
    assert!(is_clean(&Terminal::new(&home).run(&["show", "s1", "--color", "never"]).stdout));
}

#[test]
fn a_mistyped_option_is_not_a_word() {
    let ran = SYNCED.run(&["search", "--limt", "3"]);
    assert_eq!(ran.code, 2);
    assert!(
        ran.stderr.starts_with("error: unknown option --limt; did you mean --limit?\nhint: "),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.trim_end().ends_with("search '--limt 3'"), "{}", ran.stderr);
}

#[test]
fn command_names_of_other_programs_get_a_hint() {
    for (typed, meant) in [
        ("find", "search"),
        ("grep", "search"),
        ("ls", "sessions"),
        ("list", "sessions"),
        ("history", "sessions --by project"),
        ("log", "events"),
        ("rm", "delete"),
        ("cat", "show"),
        ("serch", "search"),
        ("sesion", "sessions"),
        ("compl", "completions"),
        ("backf", "embeddings backfill"),
        ("purge", "delete --superseded"),
        ("version", "--version"),
    ] {
        let ran = SYNCED.run(&[typed, "x"]);
        assert_eq!(ran.code, 2);
        assert!(
            ran.stderr.starts_with(&format!("error: unknown command '{typed}'\nhint: ")),
            "{}",
            ran.stderr
        );
        assert!(
            ran.stderr.contains(&format!("did you mean `amplifier-sessions {meant}`?")),
            "{}",
            ran.stderr
        );
    }
    for (typed, hint) in [
        (&["embeddings", "models", "ls"][..], "embeddings models --help` lists the commands"),
        (&["embeddings", "models", "verfy"], "embeddings models verify`?"),
        // Similar to the name of a command, but not meant.
        (&["compact"], "--help` lists the commands"),
        (&["restart"], "--help` lists the commands"),
    ] {
        let ran = SYNCED.run(typed);
        assert_eq!(ran.code, 2, "{typed:?}");
        assert!(ran.stderr.trim_end().ends_with(hint), "{typed:?}: {}", ran.stderr);
    }
}

#[test]
fn usage_errors_have_hints_that_help() {
    for (typed, error, hint) in [
        (&["help", "show", "files"][..], "`show` has no subcommands", "show --help`"),
        (&["show", "38e6d1f5#4", "--context", "2"], "unexpected argument '2'", "--before 2 --after 2"),
        (&["show", "38e6d1f5#4", "--before", "x"], "must be a number, 0 or greater", "--help"),
        (&["show", "38e6d1f5", "--context"], "a message or a turn is required", "--turn 2 --context`"),
        (&["show", "38e6d1f5", "--turn", "2", "--full"], "--full", "add --context"),
        (&["sessions", "--days", "3"], "--days needs --by project", "use --since 3d"),
        (
            &["delete"],
            "sessions to delete are required",
            "--project, --repo, --older-than, --all or --superseded",
        ),
        (&["summaries", "list"], "unknown command 'summaries'", "import --summaries`?"),
        (
            &["embeddings", "--session", "38e6d1f5", "backfill"],
            "--session must come after the subcommand",
            "embeddings backfill --session 38e6d1f5`",
        ),
    ] {
        let ran = SYNCED.run(typed);
        assert_eq!(ran.code, 2, "{typed:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(error) && ran.stderr.contains(hint), "{typed:?}: {}", ran.stderr);
    }
    let status = SYNCED.run(&["embeddings", "status", "--session", "38e6d1f5"]);
    assert_eq!(status.stdout, SYNCED.run(&["embeddings", "--session", "38e6d1f5"]).stdout);
}

#[test]
fn the_latest_session_of_a_user_without_sessions_is_not_that_of_an_empty_store() {
    for command in ["show", "files"] {
        let ran = SYNCED.run(&["--user", "eve", command, "latest"]);
        assert_eq!(ran.code, 1, "{}", ran.stderr);
        let expected =
            "error: eve has no sessions in this store\nhint: others do: pass --user dana, or --scope all";
        assert!(ran.stderr.contains(expected), "{}", ran.stderr);
    }
}

#[test]
fn the_source_of_the_user_is_that_of_the_setting() {
    assert!(SYNCED.ok(&["user", "--user", "eve"]).contains("source\t--user\n"));
}

#[test]
fn a_project_that_verify_does_not_know_is_a_warning() {
    let ran = SYNCED.run(&["verify", "--no-disk", "--project", "brewery"]);
    assert!(ran.stderr.contains("warning: the store has no project \"brewery\""), "{}", ran.stderr);
}

#[test]
fn a_hyphen_writes_to_stdout_and_notes_go_to_stderr() {
    let lines = SYNCED.ok(&["export", "--out", "-"]);
    let record = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap()["record"].clone();
    assert_eq!(record(lines.lines().next().unwrap()), "archive");
    assert_eq!(record(lines.lines().last().unwrap()), "complete");
    let ran = SYNCED.run(&["export", "--out", "-", "--json", "--session", "38e6d1f5"]);
    assert!(
        ran.stdout.lines().all(|line| record(line).is_string()) && ran.stderr.starts_with("note: 1 session")
    );
    assert!(SYNCED.ok(&["stats", "--plot", "-"]).starts_with("<svg"));
}

#[test]
fn pictures_are_svg() {
    let ran = SYNCED.run(&["stats", "--plot", "days.png"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""));
    assert!(
        ran.stderr.contains("as SVG, not PNG") && ran.stderr.contains("--plot days.svg"),
        "{}",
        ran.stderr
    );
    assert_eq!(SYNCED.run(&["stats", "--plot", "days.jpeg"]).code, 2);
}

#[test]
fn help_lists_what_this_build_can_run() {
    let help = SYNCED.ok(&["help"]);
    assert_eq!(help.contains("\n  sql "), cfg!(feature = "duckdb-system"));
    assert!(help.contains("--read-only") && help.contains("--allow-http"));
    let help = SYNCED.ok(&["help", "embeddings", "models"]);
    assert_eq!(help.contains("\n  install "), cfg!(feature = "local-transformer"));
}

#[test]
#[cfg(not(feature = "local-transformer"))]
fn a_build_without_models_says_so() {
    for arguments in [
        &["embeddings", "models", "install", "e5-small-v2"][..],
        &["search", "x", "--embedding", "local:e5-small-v2"],
    ] {
        let ran = SYNCED.run(arguments);
        assert_eq!(ran.code, 2, "{arguments:?}: {}", ran.stderr);
        assert!(ran.stderr.contains("local-transformer"), "{arguments:?}: {}", ran.stderr);
    }
}

#[test]
fn without_own_sessions_a_hint_names_other_users() {
    let ran = |user: &str| SYNCED.run(&["sessions", "--user", user]);
    let eve = ran("eve");
    assert_eq!(eve.code, 3);
    assert!(
        eve.stderr.contains("others do, for example dana; `")
            && eve.stderr.contains("sessions --scope all` lists"),
        "{}",
        eve.stderr
    );
    assert!(!eve.stderr.contains("--user"), "{}", eve.stderr);
    assert!(!ran("dana").stderr.contains("others do"));
}
