//! `search --unit turn`: finds turns.

use amplifier_session_storage::search::{SearchOptions, TurnResults};

use super::{names::names_of, search_notes::say_nothing_found};
use crate::{
    app::{App, StoreReader},
    args::SearchArgs,
    failure::{Failure, Outcome, damaged_sessions_note, report_damage, say},
    render::turn::{self as render, TurnsView},
};

/// Rejects options of `search` that apply only to messages.
pub(super) fn check(args: &SearchArgs) -> Result<(), Failure> {
    let given = [
        (args.group.is_some(), "--group"),
        (args.explain, "--explain"),
        (args.full, "--full"),
        (args.superseded, "--superseded"),
        (args.limits.budget.is_some(), "--budget"),
    ];
    match given.into_iter().find(|(is_given, _)| *is_given) {
        Some((_, option)) => {
            let message = format!("{option} applies to messages, and can't be used with --unit turn");
            Err(Failure::wrong_use(message, format!("omit {option}; `turn ADDRESS` shows a turn in full")))
        }
        None => Ok(()),
    }
}

pub(super) async fn run(
    app: &mut App,
    reader: &StoreReader,
    options: &SearchOptions,
    args: &SearchArgs,
) -> Result<Outcome, Failure> {
    let mut found: TurnResults = reader.storage.search().search_turns(&reader.scope, options).await?;
    for notice in &found.notices {
        say("note", notice);
    }
    let keys = found.results.iter().map(render::key_of).collect();
    let names = names_of(&reader.storage, &reader.scope, keys).await?;
    // On stderr, this is printed at the end of every command.
    found.notices.extend(damaged_sessions_note(&reader.storage.sessions().damaged_sessions()));
    if app.out.is_json() {
        app.out.json(&TurnsView::new(&found, &names))?;
    } else if app.out.is_terminal() {
        render::blocks(&mut app.out, &found.results, &names, reader.names_owners(), &app.now)?;
    } else {
        render::lines(&mut app.out, &found.results, &names, reader.names_owners(), &app.now)?;
    }
    app.out.finish()?;
    if found.results.is_empty() && found.damaged.is_empty() {
        say_nothing_found(app, reader, options, &args.query, "no turn matches").await?;
    }
    report_damage(&found.damaged)?;
    Ok(Outcome::found(!found.results.is_empty()))
}
