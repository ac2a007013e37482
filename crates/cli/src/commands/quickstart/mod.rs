//! `quickstart`: a first demonstration.
//!
//! The user's sessions are read into the configured store. If there are none, the samples are read into a temporary
//! one.

mod questions;

use std::path::PathBuf;

use amplifier_session_storage::{
    Scope, SessionStorage, StorageSettings,
    backend::SessionQuery,
    model::{HostId, UserId},
    search::{SearchOptions, SearchResults},
    sync::{SyncOptions, SyncReport, discover, sync},
};
use serde::Serialize;
use tempfile::TempDir;
use unicode_width::UnicodeWidthStr as _;

use super::{names::names, sync::report_problems};
use crate::{
    app::{App, Writer},
    args::QuickstartArgs,
    failure::{Failure, Outcome, say},
    progress::Bar,
    render::{
        markdown::wrapped,
        search::{ResultOptions, blocks},
        summary,
        text::{counted, one_line, printable},
    },
    roots::roots,
    samples,
};

/// At most this many sessions are read: enough to try it out, and few enough to be fast.
const NEWEST: usize = 200;
/// Number of results for each question.
const RESULTS: usize = 3;

/// The result as JSON.
#[derive(Serialize)]
struct View {
    /// `own` or `samples`.
    source: &'static str,
    /// The number of sessions in the folder.
    available: u64,
    sync: SyncReport,
    searches: Vec<Answer>,
}

#[derive(Serialize)]
struct Answer {
    query: String,
    #[serde(flatten)]
    found: SearchResults,
}

/// The sessions to read.
struct Source {
    name: &'static str,
    roots: Vec<PathBuf>,
    available: usize,
    writer: Writer,
    /// The temporary folders of the samples and their store.
    _folders: Option<(TempDir, TempDir)>,
}

pub(super) async fn run(app: &mut App, args: QuickstartArgs) -> Result<Outcome, Failure> {
    let source = match own_sessions(app) {
        Some((roots, available)) => own(app, roots, available).await?,
        None => sample(app).await?,
    };
    if !app.out.is_json() {
        introduce(app, &source)?;
    }
    let Writer { storage, user, host } = &source.writer;
    let exclude: &[String] = if source.is_samples() { &[] } else { app.config.list("exclude") };
    let captures = if source.is_samples() { None } else { app.config.captures() };
    let options = SyncOptions::new("", user.clone(), host.clone())
        .with_roots(&source.roots)
        .with_captures(captures)
        .with_newest(Some(NEWEST))
        .with_exclude(exclude);
    let report = sync(storage, &options, &Bar::of_sync()).await?;
    report_problems(&report);
    let questions = match args.question.as_slice() {
        [] if source.is_samples() => samples::QUESTIONS.map(str::to_owned).to_vec(),
        [] => questions::pick(&first_prompts(storage, user).await?),
        words => vec![words.join(" ")],
    };
    let answers = answers(storage, user, questions).await?;
    let anything = answers.iter().any(|answer| !answer.found.results.is_empty());
    if app.out.is_json() {
        let available = source.available as u64;
        app.out.json(&View { source: source.name, available, sync: report, searches: answers })?;
    } else {
        summary::summary(&mut app.out, &report)?;
        show(app, storage, &Scope::from(user.clone()), &answers).await?;
        say_what_is_next(app, &source)?;
    }
    // Exit code 3 is for a question of the user only.
    Ok(Outcome::found(anything || args.question.is_empty()))
}

impl Source {
    fn is_samples(&self) -> bool {
        self.name == "samples"
    }

    /// The folders, as text.
    fn places(&self) -> String {
        self.roots.iter().map(|root| root.display().to_string()).collect::<Vec<_>>().join(" and ")
    }
}

/// Returns the user's roots and the number of sessions in them; `None` if they contain no session.
fn own_sessions(app: &App) -> Option<(Vec<PathBuf>, usize)> {
    let mut available = 0;
    let mut roots = roots(app, &[]).ok()?;
    roots.retain(|root| {
        discover(root).is_ok_and(|found| {
            available += found.sessions.len();
            true
        })
    });
    (available > 0).then_some((roots, available))
}

async fn own(app: &App, roots: Vec<PathBuf>, available: usize) -> Result<Source, Failure> {
    let writer = app.writer(app.settings()?).await?;
    Ok(Source { name: "own", roots, available, writer, _folders: None })
}

async fn sample(app: &App) -> Result<Source, Failure> {
    let (files, store) = (samples::unpack()?, tempfile::tempdir()?);
    let url = App::temporary_store(store.path())?;
    let (user, host) = (UserId::new(samples::OWNER)?, HostId::new(samples::HOST)?);
    let storage = app.storage(&url, StorageSettings::default()).await?;
    let available = discover(files.path())?.sessions.len();
    let writer = Writer { storage, user, host };
    Ok(Source {
        name: "samples",
        roots: vec![files.path().to_owned()],
        available,
        writer,
        _folders: Some((files, store)),
    })
}

fn introduce(app: &mut App, source: &Source) -> Result<(), Failure> {
    let available = source.available as u64;
    let text = if source.is_samples() {
        let samples = counted(available, "sample session");
        format!("There are no sessions in ~/.amplifier yet. This is a demonstration with {samples}.")
    } else if source.available > NEWEST {
        let sessions = counted(available, "session");
        format!("Reading the newest {NEWEST} of {sessions} in {}.", source.places())
    } else {
        format!("Reading {} in {}.", counted(available, "session"), source.places())
    };
    let lines = wrapped(&printable(&text), app.out.wrap_at());
    app.out.lines(&lines)?;
    app.out.line("")?;
    // The next step may take a while.
    app.out.finish()?;
    Ok(())
}

/// How the user's newest sessions began.
async fn first_prompts(storage: &SessionStorage, user: &UserId) -> Result<Vec<String>, Failure> {
    let query = SessionQuery::new(user.clone()).with_limit(NEWEST);
    let sessions = storage.search_sessions(&query).await?;
    Ok(sessions.into_iter().filter_map(|session| session.first_prompt).collect())
}

async fn answers(
    storage: &SessionStorage,
    user: &UserId,
    questions: Vec<String>,
) -> Result<Vec<Answer>, Failure> {
    let scope = Scope::from(user.clone());
    let mut answers = Vec::new();
    for query in questions {
        let found =
            storage.search_transcripts(&scope, &SearchOptions::new(&query).with_limit(RESULTS)).await?;
        answers.push(Answer { query, found });
    }
    Ok(answers)
}

async fn show(
    app: &mut App,
    storage: &SessionStorage,
    scope: &Scope,
    answers: &[Answer],
) -> Result<(), Failure> {
    for Answer { query, found } in answers {
        let command = format!("{} search {query}", app.program());
        app.out.line(&format!("\n$ {}\n", app.out.paint.command(&one_line(&command))))?;
        for notice in &found.notices {
            say("note", notice);
        }
        if found.results.is_empty() {
            app.out.line("    no message matches")?;
        }
        let names = names(storage, scope, &found.results).await?;
        let options = ResultOptions { names: &names, owners: false, max_chars: &|_| None };
        blocks(&mut app.out, &found.results, options, &app.now)?;
    }
    Ok(())
}

fn say_what_is_next(app: &mut App, source: &Source) -> Result<(), Failure> {
    let rest = source.available.saturating_sub(NEWEST) as u64;
    let mut next = Vec::new();
    if source.is_samples() {
        app.out.line("\nThese were samples in a temporary store. Next:")?;
        next.push(("quickstart YOUR QUESTION", "search the samples".to_owned()));
        next.push(("sync", "read the sessions in ~/.amplifier, once there are some".to_owned()));
        next.push(("sync --root DIR", "or in another folder that contains projects/".to_owned()));
        next.push(("search YOUR QUESTION", "search your sessions".to_owned()));
    } else {
        app.out.line("\nNext:")?;
        if rest > 0 {
            next.push(("sync", format!("read the other {}", counted(rest, "session"))));
        }
        next.push(("search YOUR QUESTION", "search them".to_owned()));
        next.push(("sessions", "list them, newest first".to_owned()));
        next.push(("show SESSION", "show one, by the beginning of its id".to_owned()));
    }
    for (arguments, what) in next {
        let command = one_line(&format!("{} {arguments}", app.program()));
        let padding = " ".repeat(26_usize.saturating_sub(arguments.len()));
        let fits = command.width() + padding.len() + what.width() + 2 <= app.out.width;
        let gap = if fits || !app.out.is_terminal() { padding } else { "\n      ".to_owned() };
        app.out.line(&format!("  {}{gap}{what}", app.out.paint.command(&command)))?;
    }
    Ok(())
}
