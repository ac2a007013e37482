//! Output of `embeddings models`.

use std::fs;

use amplifier_session_testkit::TinyModel;

use crate::{output::text, support::Home, terminal::Terminal};

#[test]
fn help() {
    text("help_models", &["embeddings", "models", "--help"]);
    text("help_models_install", &["embeddings", "models", "install", "--help"]);
}

#[test]
fn models() {
    let home = Home::new();
    let terminal = Terminal::new(&home);
    home.shows("models_none", &["embeddings", "models"]);
    Terminal::new(&home)
        .with_columns(60)
        .shows("models_terminal_narrow", &["embeddings", "models", "--color", "never"]);
    home.shows("models_verify_none", &["embeddings", "models", "verify"]);
    let source = home.path().join("downloads/tiny");
    TinyModel::default().write(&source).unwrap();
    let source = source.to_str().unwrap();
    home.shows("models_install", &["embeddings", "models", "install", "--from", source]);
    home.shows_json("models_install_json", &["embeddings", "models", "install", "E5-Mini", "--from", source]);
    home.shows("error_models_installed", &["embeddings", "models", "install", "--from", source]);
    home.shows("models_list", &["embeddings", "models", "list"]);
    terminal.shows("models_terminal", &["embeddings", "models", "--color", "never"]);
    home.shows_json("models_json", &["embeddings", "models"]);
    home.shows("models_verify", &["embeddings", "models", "verify"]);
    home.shows_json("models_verify_json", &["embeddings", "models", "verify", "tiny"]);

    let installed = home.path().join(".local/share/amplifier-sessions/models/tiny");
    fs::remove_file(installed.join("config.json")).unwrap();
    fs::write(installed.join("model.safetensors"), "half").unwrap();
    home.shows("models_verify_broken", &["embeddings", "models", "verify"]);
    terminal.shows(
        "models_verify_broken_terminal",
        &["embeddings", "models", "verify", "tiny", "--color", "never"],
    );
    terminal.shows("models_broken_terminal", &["embeddings", "models", "--color", "never"]);
}

#[test]
fn errors() {
    let home = Home::new();
    let empty = home.path().join("empty");
    fs::create_dir(&empty).unwrap();
    home.shows(
        "error_models_no_model",
        &["embeddings", "models", "install", "--from", empty.to_str().unwrap()],
    );
    home.shows(
        "error_models_name",
        &["embeddings", "models", "install", "../up", "--from", empty.to_str().unwrap()],
    );
    home.shows("error_models_unknown", &["embeddings", "models", "install", "gpt-2"]);
    home.shows("error_models_nothing", &["embeddings", "models", "install"]);
    home.shows("error_models_verify", &["embeddings", "models", "verify", "gpt-2"]);
}

/// What a model is used for.
#[test]
fn a_model_is_used_by_its_name_or_folder() {
    let home = Home::with_samples();
    let source = home.path().join("downloads/tiny");
    TinyModel::default().write(&source).unwrap();
    home.ok(&["embeddings", "models", "install", "--from", source.to_str().unwrap()]);
    let by_folder = format!("local:{}", source.display());
    home.ok(&["sync", "--embedding", "local:tiny"]);
    for name in ["local:tiny", "LOCAL", &by_folder] {
        let found = home.run(&["search", "idempotency key", "--mode", "semantic", "--embedding", name]);
        assert_eq!(found.code, if name == "LOCAL" { 2 } else { 0 }, "{}", found.stderr);
    }
    home.shows("error_local_unknown", &["search", "x", "--embedding", "local:none-such"]);
    home.shows("error_local_known", &["search", "x", "--embedding", "local:e5-small-v2"]);
    home.shows("error_local_folder", &["search", "x", "--embedding", "local:./none"]);
}
