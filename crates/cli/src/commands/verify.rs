//! `verify`: compares the store with the session folders and with itself.

use std::path::PathBuf;

use amplifier_session_storage::{
    ErrorKind,
    model::{Difference, SessionId},
    sync::{KnownDifferences, VerifyOptions, VerifyProgress, VerifyReport, discover, is_root, verify},
};

use crate::{
    app::{App, with_turns},
    args::VerifyArgs,
    failure::{Failure, Outcome, say, say_some},
    opened::OpenedStore,
    progress::Bar,
    render::{
        note::wrapped_line,
        text::{counted, grouped, one_line, printable, size},
    },
    roots::{self, no_root},
};

/// At most this many differences that could not be repaired are listed.
const LISTED: usize = 20;

pub(super) async fn run(app: &mut App, args: VerifyArgs) -> Result<Outcome, Failure> {
    let reader = if args.repair { app.editor(true).await? } else { app.own_reader(false).await? };
    let (identity, host) = app.who()?;
    let roots = roots_of(app, &args)?;
    let sessions = named(&reader, &roots, &args.sessions).await?;
    let project = app.sessions_of(&reader, &args.place).await?;
    app.say_notices(&reader.api_here(app)?.unknown_names(&reader.scope, &project).await?);
    let options = VerifyOptions::new(identity.user_id, host)
        .with_projects(project.named_projects().map(|named| named.into_iter().cloned().collect()))
        .with_repositories(project.repositories)
        .excluding(project.without)
        .with_exclude(app.config.list("exclude"))
        .with_sessions(sessions)
        .with_roots(roots)
        .with_captures(app.config.captures())
        .with_repair(args.repair);
    // As in a sync: a repair embeds the turns of the messages that it writes.
    let storage = with_turns(reader.storage()?.clone().with_settings(app.settings()?), None);
    let bar = Comparing(Bar::new(0, "comparing {wide_bar} {pos}/{len} sessions"));
    let report = verify(&storage, &options, &bar).await?;
    drop(bar);
    if app.out.is_json() {
        app.out.json(&report)?;
    } else {
        print(app, &report)?;
    }
    app.out.finish()?;
    outcome(app, &report)
}

/// The roots to compare with; empty without files. If no default root exists, that is a note.
fn roots_of(app: &App, args: &VerifyArgs) -> Result<Vec<PathBuf>, Failure> {
    if args.no_disk {
        return Ok(Vec::new());
    }
    let roots = roots::roots(app, &args.root)?;
    if args.root.is_empty()
        && let Some(first) = roots.first()
        && roots.iter().all(|root| !is_root(root))
    {
        let missing = no_root(first);
        say("note", &format!("{missing}; the store is only compared with itself"));
        return Ok(Vec::new());
    }
    roots::existing(app, &args.root)
}

/// The sessions given as arguments; `None` without any. A session that is not stored may be on disk.
async fn named(
    reader: &OpenedStore,
    roots: &[PathBuf],
    typed: &[String],
) -> Result<Option<Vec<SessionId>>, Failure> {
    let mut ids = Vec::new();
    for typed in typed {
        let id = match reader.find_session(typed).await {
            Ok(session) => session.session_id,
            // Its row can't be read, but the session has this id.
            Err(error) if error.kind() == ErrorKind::Damaged => SessionId::new(typed)?,
            Err(error) if error.kind() == ErrorKind::SessionNotFound => on_disk(roots, typed).ok_or(error)?,
            Err(error) => return Err(error.into()),
        };
        ids.push(id);
    }
    Ok(Some(ids).filter(|ids| !ids.is_empty()))
}

/// The only session on disk whose id begins like this.
fn on_disk(roots: &[PathBuf], typed: &str) -> Option<SessionId> {
    let found = roots.iter().filter_map(|root| discover(root).ok());
    let mut fitting =
        found.flat_map(|found| found.sessions).filter(|folder| folder.session.as_str().starts_with(typed));
    let first = fitting.next()?.session;
    fitting.all(|folder| folder.session == first).then_some(first)
}

/// The progress on a bar.
struct Comparing(Bar);

impl VerifyProgress for Comparing {
    fn begin(&self, sessions: u64) {
        self.0.set(0, sessions);
    }

    fn session(&self, _session: &SessionId) {
        self.0.add(1);
    }
}

fn print(app: &mut App, report: &VerifyReport) -> Result<(), Failure> {
    for difference in &report.differences {
        let line = line(difference, app.out.is_terminal());
        let lines = match app.out.wrap_at() {
            Some(width) => wrapped_line(&line, "", "  ", width),
            None => vec![line],
        };
        app.out.lines(&lines)?;
    }
    let unlisted = report.difference_count - report.differences.len() as u64;
    if unlisted > 0 {
        // Before the note on stderr, so that they appear in this order.
        app.out.finish()?;
        let are = if unlisted == 1 { "is" } else { "are" };
        say("note", &format!("{} {are} not listed", counted(unlisted, "more difference")));
    }
    let pending = match report.pending_vectors {
        0 => String::new(),
        pending => format!(" ({} without vectors yet)", counted(pending, "message")),
    };
    let sessions = format!("{} ({} with a folder)", grouped(report.sessions), grouped(report.on_disk));
    count(app, "sessions", &sessions)?;
    count(app, "messages", &grouped(report.messages))?;
    count(app, "events", &grouped(report.events))?;
    count(app, "vectors", &format!("{}{pending}", grouped(report.vectors)))?;
    if report.on_disk > 0 {
        let bytes = size(report.bytes);
        count(app, "on disk", &format!("{} in {bytes}", counted(report.lines, "line")))?;
    }
    if let Some(known) = known(&report.known) {
        count(app, "known", &known)?;
    }
    for folder in &report.copies {
        count(app, "copy", &printable(&folder.display().to_string()))?;
    }
    count(app, "differences", &grouped(report.difference_count))?;
    if report.left.is_some() && report.difference_count > 0 {
        count(app, "left", &grouped(report.left_count))?;
    }
    Ok(())
}

/// Prints a line of the summary.
fn count(app: &mut App, label: &str, value: &str) -> Result<(), Failure> {
    const LABEL: usize = 13;
    let (begin, below) = (format!("{label:<LABEL$}"), " ".repeat(LABEL));
    let width = app.out.wrap_at().unwrap_or(usize::MAX);
    Ok(app.out.lines(&wrapped_line(value, &begin, &below, width))?)
}

/// A difference and the session that it is in, if it is not about the store as a whole.
fn line(difference: &Difference, is_terminal: bool) -> String {
    let (store, separator) = if is_terminal { ("(store)", "  ") } else { ("-", "\t") };
    let session = difference.session_id.as_ref().map_or(store, |id| id.as_str());
    printable(&format!("{session}{separator}{}", one_line(&difference.to_string())))
}

/// Differences that a sync does not change.
fn known(known: &KnownDifferences) -> Option<String> {
    let parts = [
        (known.deleted_sessions, "deleted session"),
        (known.without_folder, "session without a folder"),
        (known.skipped_folders, "skipped folder"),
        (known.skipped_lines, "unreadable line"),
        (known.kept_rows, "kept row"),
        (known.rewound_lines, "rewound line"),
    ];
    let name = |count: u64, what: &str| match what.split_once(' ') {
        Some(("session", rest)) => format!("{} {rest}", counted(count, "session")),
        _ => counted(count, what),
    };
    let parts: Vec<String> =
        parts.into_iter().filter(|(count, _)| *count > 0).map(|(count, what)| name(count, what)).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

fn outcome(app: &App, report: &VerifyReport) -> Result<Outcome, Failure> {
    if report.is_clean() {
        return Ok(Outcome::Done);
    }
    let Some(left) = &report.left else {
        let hint = format!("`{} verify --repair` repairs what can be repaired", app.program());
        return Err(Failure::failed(
            format!("{} found", counted(report.difference_count, "difference")),
            hint,
        ));
    };
    say_some("left", left.iter().map(|difference| line(difference, true)), LISTED, report.left_count);
    let message = format!("{} could not be repaired", counted(report.left_count, "difference"));
    Err(Failure::failed(message, "restore these sessions from a backup of the store, or from their files"))
}
