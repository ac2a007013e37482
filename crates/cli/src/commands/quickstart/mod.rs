//! `quickstart`: a first demonstration.
//!
//! The user's sessions are read into the configured store. If there are none, the samples are read into a temporary
//! one.

mod questions;

use std::path::PathBuf;

use amplifier_session_api::{names::names, operations::search::FoundMessage};
use amplifier_session_storage::{
    Scope, SessionStorage, StorageSettings,
    backend::SessionQuery,
    model::{ContentType, ContentTypes, HostId, Role, UserId},
    search::{MatchKind, SearchOptions, SearchResults},
    sync::{SyncOptions, SyncReport, discover, sync},
};
use serde::Serialize;
use unicode_width::UnicodeWidthStr as _;

use super::{
    masking, store_folder,
    sync::{interruptible, report_problems},
};
use crate::{
    app::{App, StoreWriter},
    args::{QuickstartArgs, quoted},
    failure::{Failure, Outcome, say},
    progress::Syncing,
    render::{
        markdown::wrapped,
        search::{ResultOptions, blocks},
        summary,
        text::{counted, one_line, printable},
    },
    roots::roots,
    samples,
    unfinished::TemporaryFolder,
};

/// At most this many sessions are read: enough to try it out, and few enough to be fast.
const NEWEST: usize = 200;
/// Number of results for each question.
const RESULTS: usize = 3;
/// Number of questions that are chosen.
const QUESTIONS: usize = 3;
/// Questions are chosen from this many sessions, and at most this many of their messages.
const ASKED: usize = 50;
const MESSAGES: usize = 500;
/// At most this many questions are tried.
const TRIED: usize = 12;

/// The result as JSON.
#[derive(Serialize)]
struct QuickstartView {
    /// `own` or `samples`.
    source: &'static str,
    /// The number of sessions in the folder.
    available: u64,
    sync: SyncReport,
    searches: Vec<QuickstartSearch>,
}

#[derive(Serialize)]
struct QuickstartSearch {
    query: String,
    /// Whether only messages of the assistant were searched: the best match of a prompt is the prompt itself.
    only_assistant: bool,
    #[serde(flatten)]
    found: SearchResults,
}

/// The sessions to read.
struct QuickstartSource {
    name: &'static str,
    roots: Vec<PathBuf>,
    available: usize,
    writer: StoreWriter,
    /// Whether the store did not exist.
    is_new: bool,
    /// The temporary folders of the samples and their store.
    _folders: Option<(TemporaryFolder, TemporaryFolder)>,
}

pub(super) async fn run(app: &mut App, args: QuickstartArgs) -> Result<Outcome, Failure> {
    let source = match own_sessions(app) {
        Some((roots, available)) => own(app, roots, available).await?,
        None => sample(app).await?,
    };
    if !app.out.is_json() {
        introduce(app, &source)?;
    }
    if source.is_new {
        store_folder::say_warning(app);
    }
    let StoreWriter { storage, user, host } = &source.writer;
    let exclude: &[String] = if source.is_samples() { &[] } else { app.config.list("exclude") };
    let captures = if source.is_samples() { None } else { app.config.captures() };
    let options = SyncOptions::new("", user.clone(), host.clone())
        .with_roots(&source.roots)
        .with_captures(captures)
        .with_newest(Some(NEWEST))
        .with_exclude(exclude);
    let report = if source.is_samples() {
        sync(storage, &options, &Syncing::default()).await?
    } else {
        interruptible(app, storage, &options).await?
    };
    report_problems(&report);
    let answers = match args.question.as_slice() {
        [] if source.is_samples() => chosen(storage, user, &samples::QUESTIONS.map(str::to_owned)).await?,
        [] => chosen(storage, user, &questions::pick(&prompts(storage, user).await?)).await?,
        words => vec![answer(storage, user, &words.join(" "), false).await?],
    };
    let anything = answers.iter().any(|answer| !answer.found.results.is_empty());
    if app.out.is_json() {
        let available = source.available as u64;
        app.out.json(&QuickstartView { source: source.name, available, sync: report, searches: answers })?;
    } else {
        let store = if source.is_samples() { None } else { Some(app.store_url()?) };
        summary::summary(&mut app.out, &report, store.as_ref())?;
        show(app, storage, &Scope::from(user.clone()), &answers).await?;
        say_what_is_next(app, &source)?;
    }
    // Exit code 3 is for a question of the user only.
    Ok(Outcome::found(anything || args.question.is_empty()))
}

impl QuickstartSource {
    fn is_samples(&self) -> bool {
        self.name == "samples"
    }

    /// The folders, as text.
    fn folders(&self) -> String {
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

async fn own(app: &App, roots: Vec<PathBuf>, available: usize) -> Result<QuickstartSource, Failure> {
    let is_new = !app.store_exists()?;
    let writer = app.writer(app.settings()?).await?;
    if !masking::is_confirmed(app, &writer.storage, false).await? {
        let hint = format!("`{} sync --redact mark` leaves the secrets as they are", app.program());
        return Err(Failure::failed("nothing was read or changed", hint));
    }
    Ok(QuickstartSource { name: "own", roots, available, writer, is_new, _folders: None })
}

async fn sample(app: &App) -> Result<QuickstartSource, Failure> {
    let (files, store) = (samples::unpack()?, TemporaryFolder::create()?);
    let url = App::temporary_store(store.path())?;
    let (user, host) = (UserId::new(samples::OWNER)?, HostId::new(samples::HOST)?);
    let storage = app.storage(&url, StorageSettings::default()).await?;
    let available = discover(files.path())?.sessions.len();
    let writer = StoreWriter { storage, user, host };
    Ok(QuickstartSource {
        name: "samples",
        roots: vec![files.path().to_owned()],
        available,
        writer,
        is_new: false,
        _folders: Some((files, store)),
    })
}

fn introduce(app: &mut App, source: &QuickstartSource) -> Result<(), Failure> {
    let available = source.available as u64;
    let text = if source.is_samples() {
        let samples = counted(available, "sample session");
        format!("There are no sessions in ~/.amplifier yet. This is a demonstration with {samples}.")
    } else if source.available > NEWEST {
        let sessions = counted(available, "session");
        format!("Reading the newest {NEWEST} of {sessions} in {}.", source.folders())
    } else {
        format!("Reading {} in {}.", counted(available, "session"), source.folders())
    };
    let lines = wrapped(&printable(&text), app.out.wrap_at());
    app.out.lines(&lines)?;
    app.out.line("")?;
    // The next step may take a while.
    app.out.finish()?;
    Ok(())
}

/// The user's prompts in the newest sessions that a person began, by session.
async fn prompts(storage: &SessionStorage, user: &UserId) -> Result<Vec<Vec<String>>, Failure> {
    let scope = Scope::from(user.clone());
    let mut sessions =
        storage.sessions().search_sessions(&SessionQuery::new(scope.clone()).with_limit(NEWEST)).await?;
    sessions.retain(|session| session.parent_id.is_none());
    let mut prompts = Vec::new();
    for session in sessions.iter().take(ASKED) {
        let lines =
            storage.reading().readable_transcript_lines(&scope, &session.session_id, None, MESSAGES).await?;
        let asked = lines.rows.iter().filter(|message| message.role == Role::User);
        prompts.push(asked.filter_map(|message| message.line().first_prompt()).collect());
    }
    Ok(prompts)
}

/// The first questions to which the assistant said something.
async fn chosen(
    storage: &SessionStorage,
    user: &UserId,
    questions: &[String],
) -> Result<Vec<QuickstartSearch>, Failure> {
    let mut answers = Vec::new();
    for question in questions.iter().take(TRIED) {
        let answer = answer(storage, user, question, true).await?;
        let best = answer.found.results.first();
        if best.is_some_and(|best| best.match_kind != MatchKind::Similar) {
            answers.push(answer);
        }
        if answers.len() == QUESTIONS {
            break;
        }
    }
    Ok(answers)
}

async fn answer(
    storage: &SessionStorage,
    user: &UserId,
    query: &str,
    only_assistant: bool,
) -> Result<QuickstartSearch, Failure> {
    let mut options = SearchOptions::new(query).with_limit(RESULTS);
    if only_assistant {
        options = options.with_content_types(ContentTypes::from_iter([ContentType::AssistantResponse]));
    }
    let found = storage.search().search_transcripts(&Scope::from(user.clone()), &options).await?;
    Ok(QuickstartSearch { query: query.to_owned(), only_assistant, found })
}

async fn show(
    app: &mut App,
    storage: &SessionStorage,
    scope: &Scope,
    answers: &[QuickstartSearch],
) -> Result<(), Failure> {
    for QuickstartSearch { query, only_assistant, found } in answers {
        let only = if *only_assistant { " --in assistant" } else { "" };
        let command = format!("{} search{only} {}", app.program(), quoted(query));
        app.out.line(&format!("\n$ {}\n", app.out.paint.command(&one_line(&command))))?;
        for notice in &found.notices {
            say("note", notice);
        }
        if found.results.is_empty() {
            app.out.line("    no message matches")?;
        }
        let names = names(storage, scope, &found.results).await?;
        let results: Vec<FoundMessage> =
            found.results.iter().map(|result| FoundMessage::new(result.clone(), &names)).collect();
        let options = ResultOptions { owners: false, max_chars: &|_| None };
        blocks(&mut app.out, &results, options, &app.now)?;
    }
    Ok(())
}

fn say_what_is_next(app: &mut App, source: &QuickstartSource) -> Result<(), Failure> {
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
