//! Configuration: the file, the environment and the command line.

use std::fs;

use crate::{call::Call, output::check, support::Home, terminal::Terminal};

const FILE: &str = "\
store = 'sqlite:~/kept.sqlite'
redact = 'off'

[openai]
api_key = 'sk-made-up'
model = 'nomic-embed-text'
dimensions = 768
";

/// A home folder whose configuration file contains `text`.
fn home(text: &str) -> Home {
    let home = Home::new();
    home.configure(text);
    home
}

fn with_variables(home: &Home, arguments: &[&str]) -> Call {
    let call = home.call(arguments);
    call.env("OPENAI_EMBEDDING_DIMENSIONS", "512").env("AZURE_OPENAI_API_KEY", "made-up-too")
}

#[test]
fn config() {
    let home = home(FILE);
    home.shows("help_config", &["config", "--help"]);
    let arguments = ["config", "show", "--user", "ana"];
    check("config_show", &home, &with_variables(&home, &arguments).run().all());
    Terminal::new(&home).shows("config_show_terminal", &["config"]);
    let json = with_variables(&home, &["config", "show", "--json", "--user", "ana"]).run().json();
    check("config_show_json", &home, &format!("{json:#}"));
}

#[test]
fn no_output_contains_a_key() {
    let home = home(FILE);
    for arguments in [
        &["config", "show", "-vv"][..],
        &["config", "show", "--json"],
        &["sessions", "-vv"],
        &["user", "--json"],
    ] {
        // A process has one log.
        let all = with_variables(&home, arguments).run_process().all();
        assert!(!all.contains("made-up"), "{all}");
    }
}

#[test]
fn mistakes_in_the_file_are_reported_with_their_line() {
    let home = home("store = 'sqlite:x'\n[openai]\nmodle = 'x'\n");
    home.shows("error_config_unknown_setting", &["sessions"]);
    home.shows("error_config_missing", &["config", "--config", "missing.toml"]);
}

#[test]
fn the_file_selects_the_store_and_the_command_line_overrides_it() {
    let home = home("store = 'sqlite:~/kept.sqlite'\nuser = 'ana'\nembedding = 'none'\n");
    let missing = home.run(&["sessions"]);
    assert_eq!(missing.code, 1);
    assert!(missing.stderr.contains("kept.sqlite"), "{}", missing.stderr);
    // Hints do not repeat options that are in the file.
    assert!(missing.stderr.contains("sync`"), "{}", missing.stderr);
    assert!(!missing.stderr.contains("--store"), "{}", missing.stderr);
    assert_eq!(home.json(&["user"])["user_id"], "ana");
    assert_eq!(home.json(&["user", "--user", "bob"])["user_id"], "bob");
    let other = home.run(&["sessions", "--store", "sqlite:~/other.sqlite"]);
    assert!(other.stderr.contains("--store sqlite:~/other.sqlite"), "{}", other.stderr);
}

#[test]
fn the_configuration_option_may_follow_the_command() {
    let home = home("user = 'ana'\n");
    let other = home.path().join("other.toml");
    fs::write(&other, "user = 'bob'\n").unwrap();
    let named = home.json(&["user", "--config", other.to_str().unwrap()]);
    assert_eq!(named["user_id"], "bob");
    let by_variable = home.call(&["user", "--json"]).env("AMPLIFIER_SESSIONS_CONFIG", &other).run();
    assert_eq!(by_variable.json()["user_id"], "bob");
}
