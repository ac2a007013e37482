//! Shell completion.

use std::process::Command;

use crate::{
    call::Ran,
    support::{Home, SYNCED},
};

const PROGRAM: &str = env!("CARGO_BIN_EXE_amplifier-sessions");

/// The candidates of Bash for the typed words, the last of which is incomplete.
fn bash(home: &Home, words: &[&str]) -> Vec<String> {
    let script = r#"source <("$1" completions bash); COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); "$FUNCTION"
        printf '%s\n' "${COMPREPLY[@]}""#;
    let mut command = home.process(&[]);
    let environment: Vec<_> =
        command.get_envs().map(|(key, value)| (key.to_owned(), value.map(ToOwned::to_owned))).collect();
    command = Command::new("bash");
    command
        .args(["-c", script, "bash", PROGRAM])
        .args(words)
        .env_clear()
        .env("FUNCTION", "_amplifier_sessions");
    command.envs(environment.into_iter().filter_map(|(key, value)| Some((key, value?))));
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    let ran = Ran::from(command.output().unwrap());
    assert_eq!(ran.stderr, "", "{words:?}");
    ran.stdout.lines().map(str::to_owned).filter(|line| !line.is_empty()).collect()
}

#[test]
fn bash_completes_commands_options_and_values() {
    let offered = |words: &[&str]| bash(&SYNCED, words);
    assert_eq!(offered(&["sess"]), ["sessions"]);
    assert_eq!(offered(&["sessions", "--tr"]), ["--tree"]);
    assert_eq!(offered(&["search", "x", "--mode", "s"]), ["semantic"]);
    assert_eq!(offered(&["search", "x", "--mode", "=", "s"]), ["semantic"]);
    assert_eq!(offered(&["sessions", "--since", "la"]), [r"last\ week", r"last\ month"]);
    assert_eq!(offered(&["sessions", "--since", r"last\ w"]), [r"last\ week"]);
    assert!(offered(&["stats", ""]).contains(&"--by".to_owned()));
}

#[test]
fn bash_completes_values_from_the_store() {
    let offered = |words: &[&str]| bash(&SYNCED, words);
    assert_eq!(offered(&["show", "38e6"]), ["38e6d1f5-c290-4a7b-8f14-d6b93e0a5c72"]);
    assert!(offered(&["show", ""]).len() > 10);
    assert_eq!(offered(&["delete", "38e6", "7f3c"]), ["7f3c9a52-6d1e-4b8f-9a07-c2e54d81b3f6"]);
    assert!(
        offered(&["sessions", "--project", "-home-dana-pay"]).contains(&"-home-dana-payments-api".to_owned())
    );
    assert_eq!(offered(&["sessions", "--tag", "inci"]), ["incident"]);
    assert!(!offered(&["events", "--model", ""]).is_empty());
    assert_eq!(offered(&["--user", "da"]), ["dana"]);
    assert!(offered(&["--embedding", "lo"]).contains(&"local".to_owned()));
}

#[test]
fn completion_reads_the_given_store_and_creates_none() {
    let home = Home::new();
    let store = SYNCED.amplifier().join("sessions.sqlite");
    let store = store.to_str().unwrap();
    // Bash splits words at colons.
    let named = ["--store", "sqlite", ":", store, "--user", "dana", "show", "38e6"];
    assert_eq!(bash(&home, &named), ["38e6d1f5-c290-4a7b-8f14-d6b93e0a5c72"]);
    let options = |offered: Vec<String>| offered.iter().all(|word| word.starts_with("--"));
    assert!(options(bash(&home, &["show", ""])));
    assert!(options(bash(&home, &["--store", "mysql", ":", "x", "show", ""])));
    assert!(!home.amplifier().exists());
}

#[test]
fn other_shells_get_descriptions_of_candidates() {
    let asked = |shell: &str, words: &[&str]| {
        let call = SYNCED.call(&[&["--", "amplifier-sessions"], words].concat());
        let ran = call.env("_AMPLIFIER_SESSIONS_COMPLETE", shell).run();
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
        ran.stdout
    };
    assert!(asked("zsh", &["show", "38e6"]).starts_with("38e6d1f5-c290-4a7b-8f14-d6b93e0a5c72\t"));
    assert!(asked("fish", &["sess"]).starts_with("sessions\tList sessions"));
    assert_eq!(asked("elvish", &["sess"]), "sessions\n");
    assert_eq!(asked("powershell", &["export", "--out", ":empty"]), ":files\n");
}

#[test]
fn every_shell_has_a_script_that_asks_the_program() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        assert!(SYNCED.ok(&["completions", shell]).contains("_AMPLIFIER_SESSIONS_COMPLETE"), "{shell}");
    }
}
