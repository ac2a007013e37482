//! Output of `models`.

use std::fs;

use amplifier_session_testkit::TinyModel;

use crate::{
    output::{check, text},
    support::{Home, Ran},
    terminal::Terminal,
};

fn pretty(ran: &Ran) -> String {
    let value: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    format!("exit code {}\n{value:#}\n--- stderr\n{}", ran.code, ran.stderr)
}

#[test]
fn help() {
    text("help_models", &["models", "--help"]);
    text("help_models_install", &["models", "install", "--help"]);
}

#[test]
fn models() {
    let home = Home::new();
    let pipe = |name: &str, arguments: &[&str]| check(name, &home, &home.run(arguments).all());
    let terminal = |name: &str, arguments: &[&str]| {
        check(name, &home, &Terminal::new(&home).run(arguments).all());
    };
    pipe("models_none", &["models"]);
    let narrow = Terminal::new(&home).with_columns(60);
    check("models_terminal_narrow", &home, &narrow.run(&["models", "--color", "never"]).all());
    pipe("models_verify_none", &["models", "verify"]);
    let source = home.path().join("downloads/tiny");
    TinyModel::default().write(&source).unwrap();
    let source = source.to_str().unwrap();
    pipe("models_install", &["models", "install", "--from", source]);
    check(
        "models_install_json",
        &home,
        &pretty(&home.run(&["models", "install", "E5-Mini", "--from", source, "--json"])),
    );
    pipe("error_models_installed", &["models", "install", "--from", source]);
    pipe("models_list", &["models", "list"]);
    terminal("models_terminal", &["models", "--color", "never"]);
    check("models_json", &home, &pretty(&home.run(&["models", "--json"])));
    pipe("models_verify", &["models", "verify"]);
    check("models_verify_json", &home, &pretty(&home.run(&["models", "verify", "tiny", "--json"])));

    let installed = home.path().join(".local/share/amplifier-sessions/models/tiny");
    fs::remove_file(installed.join("config.json")).unwrap();
    fs::write(installed.join("model.safetensors"), "half").unwrap();
    pipe("models_verify_broken", &["models", "verify"]);
    terminal("models_verify_broken_terminal", &["models", "verify", "tiny", "--color", "never"]);
    terminal("models_broken_terminal", &["models", "--color", "never"]);
}

#[test]
fn errors() {
    let home = Home::new();
    let pipe = |name: &str, arguments: &[&str]| check(name, &home, &home.run(arguments).all());
    let empty = home.path().join("empty");
    fs::create_dir(&empty).unwrap();
    pipe("error_models_no_model", &["models", "install", "--from", empty.to_str().unwrap()]);
    pipe("error_models_name", &["models", "install", "../up", "--from", empty.to_str().unwrap()]);
    pipe("error_models_unknown", &["models", "install", "gpt-2"]);
    pipe("error_models_nothing", &["models", "install"]);
    pipe("error_models_verify", &["models", "verify", "gpt-2"]);
}

/// What a model is used for.
#[test]
fn a_model_is_used_by_its_name_or_folder() {
    let home = Home::with_samples();
    let source = home.path().join("downloads/tiny");
    TinyModel::default().write(&source).unwrap();
    home.ok(&["models", "install", "--from", source.to_str().unwrap()]);
    let by_folder = format!("local:{}", source.display());
    home.ok(&["sync", "--embedding", "local:tiny"]);
    for name in ["local:tiny", "LOCAL", &by_folder] {
        let found = home.run(&["search", "idempotency key", "--mode", "semantic", "--embedding", name]);
        assert_eq!(found.code, if name == "LOCAL" { 2 } else { 0 }, "{}", found.stderr);
    }
    check("error_local_unknown", &home, &home.run(&["search", "x", "--embedding", "local:none-such"]).all());
    check("error_local_known", &home, &home.run(&["search", "x", "--embedding", "local:e5-small-v2"]).all());
    check("error_local_folder", &home, &home.run(&["search", "x", "--embedding", "local:./none"]).all());
}
