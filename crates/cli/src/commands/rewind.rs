//! `rewind`: removes the last turns of a session from the store.

use std::path::PathBuf;

use amplifier_session_storage::{
    model::Session,
    storage::{RewindOptions, RewindReport},
    sync::source_folder,
};
use serde::Serialize;

use super::confirm::confirmed;
use crate::{
    app::{App, StoreReader},
    args::RewindArgs,
    failure::{Failure, Outcome, say},
    messages::SessionView,
    refresh,
    render::{
        deleted,
        ids::short,
        rewound::{self, What},
        text::one_line,
    },
};

/// The result as JSON.
#[derive(Serialize)]
struct RewindView {
    /// The session as it is now.
    session: SessionView,
    to_turn: u32,
    dry_run: bool,
    /// The last turn before the rewind.
    last_turn: Option<u32>,
    removed: RemovedView,
    /// The folder that it was read from, if known.
    folder: Option<String>,
}

/// The numbers of removed rows as JSON.
#[derive(Serialize)]
struct RemovedView {
    turns: u64,
    messages: u64,
    messages_with_vectors: u64,
    events: u64,
}

impl From<&RewindReport> for RemovedView {
    fn from(report: &RewindReport) -> Self {
        Self {
            turns: report.turns,
            messages: report.messages,
            messages_with_vectors: report.messages_with_vectors,
            events: report.events,
        }
    }
}

pub(super) async fn run(app: &mut App, args: RewindArgs) -> Result<Outcome, Failure> {
    let reader = if args.dry_run { app.own_reader().await? } else { app.editor(false).await? };
    refresh::before_reading(app, &reader, false).await;
    let session = reader.find_session(&args.session).await?;
    let options = RewindOptions::to_turn(args.to_turn).with_keep_events(args.keep_events);
    let plan = reader.storage.ingestion().rewind(&session.key(), &options.clone().with_dry_run(true)).await?;
    if plan.is_empty() || args.dry_run {
        return show(app, &reader, &args, session, &plan).await;
    }
    if !args.yes && !is_confirmed(app, &reader, &args, &session, &plan).await? {
        say("note", "nothing was removed");
        return Ok(Outcome::Done);
    }
    let report = reader.storage.ingestion().rewind(&session.key(), &options).await?;
    let now = reader.storage.sessions().get_session(&reader.scope, &session.session_id).await?;
    show(app, &reader, &args, now.unwrap_or(session), &report).await
}

/// Shows what would be removed, and asks for confirmation.
async fn is_confirmed(
    app: &App,
    reader: &StoreReader,
    args: &RewindArgs,
    session: &Session,
    plan: &RewindReport,
) -> Result<bool, Failure> {
    let removed = rewound::removed(plan);
    if !app.out.can_ask() {
        let message =
            format!("{removed} would be removed, but input is not a terminal to ask for confirmation");
        return Err(Failure::wrong_use(message, "pass --yes to rewind without asking, or --dry-run"));
    }
    let short_ids = reader.storage.sessions().short_ids(&reader.scope, [&session.session_id]).await?;
    let preview = deleted::preview(std::slice::from_ref(session), &short_ids, app.out.width);
    let question = format!("Remove {removed} {} from the store?", rewound::after(args.to_turn));
    Ok(confirmed(&preview, &question)?)
}

/// Prints what was or would be removed, and where the files are.
async fn show(
    app: &mut App,
    reader: &StoreReader,
    args: &RewindArgs,
    session: Session,
    report: &RewindReport,
) -> Result<Outcome, Failure> {
    let folder = folder(reader, &session).await;
    let what = match (report.is_empty(), args.dry_run) {
        (true, _) => What::Nothing,
        (false, true) => What::WouldRemove,
        (false, false) => What::Removed,
    };
    if app.out.is_json() {
        app.out.json(&RewindView {
            session: SessionView::from(&session),
            to_turn: args.to_turn,
            dry_run: args.dry_run,
            last_turn: report.last_turn,
            removed: report.into(),
            folder: folder.as_ref().map(|folder| folder.to_string_lossy().into_owned()),
        })?;
    } else {
        let short_ids = reader.storage.sessions().short_ids(&reader.scope, [&session.session_id]).await?;
        let id = short(&short_ids, &session.session_id);
        rewound::line(&mut app.out, what, &session, id, args.to_turn, report)?;
    }
    app.out.finish()?;
    // The folder of a session of another machine does not exist here.
    if let (What::Removed, Some(folder)) = (what, folder.filter(|folder| folder.is_dir())) {
        let folder = one_line(&folder.to_string_lossy());
        say(
            "note",
            &format!(
                "the files in {folder} are not changed; if they change, a sync stores everything in them again"
            ),
        );
    }
    Ok(Outcome::Done)
}

/// The folder that a session was read from. It is only for a note, so errors are ignored.
async fn folder(reader: &StoreReader, session: &Session) -> Option<PathBuf> {
    let stored = reader.storage.backend().get_session(&session.key()).await.ok()??;
    source_folder(&stored.sync_state?)
}
