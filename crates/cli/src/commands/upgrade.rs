//! `upgrade`: copies a database of the Python library into a store.

use std::path::{Path, PathBuf};

use amplifier_session_storage::{
    StoreUrl,
    model::Timestamp,
    upgrade::{UpgradeOptions, UpgradeOutcome, UpgradeProgress, is_interrupted, upgrade},
};
use serde::Serialize;

use crate::{
    app::App,
    args::UpgradeArgs,
    failure::{Failure, Outcome, say},
    progress::Bar,
    render::{text::counted, upgrade as render},
};

/// A file that needs no upgrade, as JSON.
#[derive(Serialize)]
struct Nothing<'a> {
    outcome: UpgradeOutcome,
    file: &'a Path,
}

pub(super) async fn run(app: &mut App, args: UpgradeArgs) -> Result<Outcome, Failure> {
    if app.global.read_only && !args.check {
        let message = "an upgrade writes, and --read-only forbids writing";
        return Err(Failure::wrong_use(message, "`upgrade --check` reports what would be done"));
    }
    let url = app.store_url()?;
    let old = old_file(app, &url, args.old)?;
    let options = UpgradeOptions::new(Timestamp::now()).with_check(args.check);
    let bar = Bar::new(0, "upgrading {wide_bar} {pos}/{len} rows, {eta} left");
    let on_progress = Box::new(move |progress: UpgradeProgress| bar.set(progress.done, progress.total));
    let upgraded = upgrade(&old, &url, &app.config, options, on_progress).await?;
    if app.out.is_json() {
        match upgraded.outcome {
            UpgradeOutcome::UpToDate => {
                app.out.json(&Nothing { outcome: upgraded.outcome, file: &upgraded.file })?
            }
            _ => app.out.json(&upgraded)?,
        }
    } else {
        let lines = render::summary(&upgraded, app.out.is_terminal());
        app.out.lines(&lines)?;
    }
    app.out.finish()?;
    for (what, count) in &upgraded.left_out {
        say("warning", &format!("not copied: {} {what}", counted(*count, "vector")));
    }
    if upgraded.unknown_roles > 0 {
        let messages = counted(upgraded.unknown_roles, "message");
        say("note", &format!("stored as system messages: {messages} with an unknown role"));
    }
    if upgraded.outcome == UpgradeOutcome::WouldUpgrade {
        say("hint", "run the same command without --check to upgrade");
    }
    Ok(Outcome::Done)
}

/// The named file, or the file of the store.
fn old_file(app: &App, url: &StoreUrl, named: Option<PathBuf>) -> Result<PathBuf, Failure> {
    match (named, url.file()) {
        (Some(old), _) => Ok(old),
        (None, Some(file)) => {
            if !is_interrupted(file) {
                app.check_existence()?;
            }
            Ok(file.to_owned())
        }
        (None, None) => {
            let hint = format!("pass the file to upgrade: `{} upgrade OLD`", app.program());
            Err(Failure::wrong_use("the store is not a file that could be upgraded", hint))
        }
    }
}
