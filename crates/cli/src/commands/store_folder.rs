//! Warns that deleting a folder would also delete the store in it.

use std::path::Path;

use crate::{app::App, failure::say};

/// A warning if the store is in a folder of Amplifier, and the setting that moves it.
pub(super) fn warning(app: &App) -> Option<(String, String)> {
    let url = app.store_url().ok()?;
    let file = std::path::absolute(url.file()?).ok()?;
    let root = app.config.roots().into_iter().find(|root| file.starts_with(root))?;
    let warning = format!(
        "the store is in {}: deleting that folder also deletes what is stored of sessions that are gone",
        root.display()
    );
    let config = app.config.file().unwrap_or(Path::new("config.toml")).display();
    let scheme = url.backend().scheme();
    let setting = format!("`store = \"{scheme}:PATH\"` in {config} puts it elsewhere");
    Some((warning, setting))
}

/// Prints the warning, for a store that was just created.
pub(super) fn say_warning(app: &App) {
    if let Some((warning, setting)) = warning(app) {
        say("note", &warning);
        say("hint", &setting);
    }
}
