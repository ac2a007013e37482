//! `delete --superseded`: removes superseded lines.

use amplifier_session_storage::{
    model::SessionId,
    storage::{PruneOptions, PruneReport, SupersededSession},
};
use serde::Serialize;

use super::confirm::confirmed;
use crate::{
    app::{App, StoreReader},
    args::DeleteArgs,
    dates::{self, PeriodEnd},
    failure::{Failure, Outcome, say},
    problems::with_causes,
    render::{
        superseded::{self, amount},
        text::one_line,
    },
};

/// The result as JSON.
#[derive(Serialize)]
struct PruneView<'a> {
    pruned: &'a [SupersededSession],
    /// The files that still contain removed lines.
    remains: Vec<String>,
    /// In a dry run, the sessions whose lines would be removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    would_prune: Option<&'a [SupersededSession]>,
    messages: u64,
    events: u64,
    bytes: u64,
}

impl<'a> PruneView<'a> {
    fn new(report: &'a PruneReport, dry_run: bool) -> Self {
        let sessions = report.sessions.as_slice();
        Self {
            pruned: if dry_run { &[] } else { sessions },
            remains: report.remains.iter().map(|of| of.file.to_string_lossy().into_owned()).collect(),
            would_prune: dry_run.then_some(sessions),
            messages: report.messages,
            events: report.events,
            bytes: report.bytes,
        }
    }
}

pub(super) async fn run(app: &mut App, args: DeleteArgs) -> Result<Outcome, Failure> {
    let until =
        args.older_than.as_deref().map(|age| dates::parse(age, PeriodEnd::Since, &app.now)).transpose()?;
    let reader = if args.dry_run { app.own_reader().await? } else { app.editor(false).await? };
    let sessions = found(&reader, &args.sessions).await?;
    let project = app.project(&reader, args.project.as_deref()).await?;
    let project = args.repo.within(app, &reader, project).await?;
    let options = PruneOptions::default().with_sessions(sessions).with_filter(project).with_until(until);
    let user = app.who()?.0.user_id;
    // Without --dry-run, this is what the user confirms.
    let planned =
        reader.storage.superseded().prune_superseded(&user, &options.clone().with_dry_run(true)).await?;
    if args.dry_run || planned.sessions.is_empty() {
        show(app, &planned, args.dry_run)?;
        if planned.sessions.is_empty() {
            say("note", "no superseded line matches");
        } else {
            say("note", &format!("dry run: {} would be removed", total(&planned)));
        }
        return Ok(Outcome::Done);
    }
    if !args.yes && !is_confirmed(app, &planned)? {
        say("note", "nothing was removed");
        return Ok(Outcome::Done);
    }
    let pruned = reader.storage.superseded().prune_superseded(&user, &options).await?;
    show(app, &pruned, false)?;
    for remains in &pruned.remains {
        let reason = one_line(&with_causes(&remains.error));
        say("failed", &format!("the removed lines are still in {}: {reason}", remains.file.display()));
    }
    if pruned.remains.is_empty() {
        return Ok(Outcome::Done);
    }
    let hint =
        format!("the next command that writes to the store erases them, such as `{} sync`", app.program());
    Err(Failure::failed("the words of removed lines could not be erased", hint))
}

/// The named sessions, if any.
async fn found(reader: &StoreReader, typed: &[String]) -> Result<Option<Vec<SessionId>>, Failure> {
    let mut sessions = Vec::new();
    for typed in typed {
        let session = reader.find_session(typed).await?.session_id;
        if !sessions.contains(&session) {
            sessions.push(session);
        }
    }
    Ok(Some(sessions).filter(|sessions| !sessions.is_empty()))
}

fn is_confirmed(app: &App, planned: &PruneReport) -> Result<bool, Failure> {
    let what = total(planned);
    if !app.out.can_ask() {
        let message = format!("{what} would be removed, but input is not a terminal to ask for confirmation");
        return Err(Failure::wrong_use(message, "pass --yes to remove without asking"));
    }
    let preview: Vec<String> = planned.sessions.iter().map(superseded::sentence).collect();
    Ok(confirmed(&preview, &format!("Remove {what} from the store?"))?)
}

fn show(app: &mut App, report: &PruneReport, dry_run: bool) -> Result<(), Failure> {
    let label = if dry_run { "would-prune" } else { "pruned" };
    if app.out.is_json() {
        app.out.json(&PruneView::new(report, dry_run))?;
    } else {
        for session in &report.sessions {
            let line = if app.out.is_terminal() {
                format!("{label}  {}", superseded::sentence(session))
            } else {
                superseded::tabbed_counts(label, session)
            };
            app.out.line(&line)?;
        }
    }
    Ok(app.out.finish()?)
}

fn total(report: &PruneReport) -> String {
    let lines = amount(report.messages, report.events, report.bytes);
    format!("{lines} of {}", crate::render::text::counted(report.sessions.len() as u64, "session"))
}
