//! `upgrade`: a store of what the Python library wrote.

use std::path::Path;

use amplifier_session_storage::{
    model::Timestamp,
    upgrade::{Outcome as Became, UpgradeOptions, upgrade},
};
use serde::Serialize;

use crate::{
    app::App,
    args::UpgradeArgs,
    failure::{Failure, Outcome, say},
    progress::RowBar,
    render::{text::counted, upgrade as render},
};

/// A file that needs no upgrade, as JSON.
#[derive(Serialize)]
struct Nothing<'a> {
    outcome: Became,
    file: &'a Path,
}

pub(super) async fn run(app: &mut App, args: UpgradeArgs) -> Result<Outcome, Failure> {
    if app.global.read_only && !args.check {
        let message = "an upgrade writes, and --read-only says that nothing is written";
        return Err(Failure::wrong_use(message, "`upgrade --check` tells what would be done"));
    }
    let url = app.existing_store()?;
    let options = UpgradeOptions::new(Timestamp::now()).with_check(args.check);
    let bar = RowBar::new();
    let shown = bar.clone();
    let upgraded = upgrade(&url, options, Box::new(move |progress| shown.advance(progress))).await;
    bar.clear();
    let upgraded = upgraded?;
    if app.out.is_json() {
        match upgraded.outcome {
            Became::UpToDate => app.out.json(&Nothing { outcome: upgraded.outcome, file: &upgraded.file })?,
            _ => app.out.json(&upgraded)?,
        }
    } else {
        let lines = render::summary(&upgraded, app.out.is_terminal());
        lines.iter().try_for_each(|line| app.out.line(line))?;
    }
    app.out.finish()?;
    for (what, count) in &upgraded.left_out {
        say("warning", &format!("left to the backup: {} {what}", counted(*count, "vector")));
    }
    if upgraded.unknown_roles > 0 {
        let messages = counted(upgraded.unknown_roles, "message");
        say("note", &format!("taken for the system's: {messages} whose role is not known"));
    }
    if upgraded.outcome == Became::WouldUpgrade {
        say("hint", &format!("`{} upgrade` does it", app.program()));
    }
    Ok(Outcome::Done)
}
