//! What is in the store, for shells.

use std::{collections::BTreeSet, sync::Mutex};

use amplifier_session_storage::{
    Scope, SessionStorage,
    backend::{SessionCursor, SessionQuery},
    embedding::models::KNOWN,
    model::Session,
};
use clap::{CommandFactory as _, FromArgMatches as _};

use crate::{
    app::App,
    args::{Cli, GlobalArgs},
    render::text::one_line,
};

/// The most sessions that are offered.
const MOST: usize = 100;
/// How many sessions are read at a time.
const PAGE: usize = 500;

/// What was typed so far, which may name another store.
static WORDS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// What a word may become.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) value: String,
    /// What it is, or nothing.
    pub(super) help: String,
}

impl Candidate {
    pub(super) fn new(value: impl Into<String>, help: impl AsRef<str>) -> Self {
        Self { value: value.into(), help: one_line(help.as_ref()) }
    }
}

/// Remembers what was typed so far.
pub(super) fn remember(words: &[String]) {
    if let Ok(mut remembered) = WORDS.lock() {
        *remembered = words.to_vec();
    }
}

/// What the argument `id` of `command` may be.
pub(super) fn of(command: &str, id: &str, typed: &str) -> Vec<Candidate> {
    match (command, id) {
        (_, "session" | "sessions") => sessions(typed),
        (_, "project") => of_sessions(|session| Some(session.project_slug.to_string())),
        (_, "tags" | "remove") => of_sessions(|session| session.tags.clone()),
        (_, "bundle") => of_sessions(|session| session.bundle.clone()),
        ("events", "model") => of_sessions(|session| session.model.clone()),
        (_, "user") => values(all(|_| Scope::Everyone, |session| Some(session.user_id.to_string()))),
        (_, "embedding") => values(Some(embeddings())),
        ("install" | "verify", "name") => values(Some(models())),
        (_, "content_types") => fixed(&["user", "assistant", "thinking", "tool", "system"]),
        (_, "role") => fixed(&["user", "assistant", "tool", "system", "developer"]),
        (_, "level") => fixed(&["debug", "info", "warn", "error"]),
        (_, "since" | "until") => {
            fixed(&["today", "yesterday", "monday", "7d", "2w", "last week", "last month"])
        }
        _ => Vec::new(),
    }
}

fn fixed(values: &[&str]) -> Vec<Candidate> {
    values.iter().map(|value| Candidate::new(*value, "")).collect()
}

/// The newest sessions whose ids begin so.
fn sessions(typed: &str) -> Vec<Candidate> {
    let found = ask(async |storage, scope| {
        let query = SessionQuery::new(scope).with_id_prefix(Some(typed.to_owned())).with_limit(MOST);
        storage.search_sessions(&query).await.ok()
    });
    let found = found.unwrap_or_default();
    let latest = found.first().map(|session| Candidate::new("latest", session.title()));
    let candidate = |session: &Session| Candidate::new(session.session_id.as_str(), session.title());
    latest.into_iter().filter(|_| typed.is_empty()).chain(found.iter().map(candidate)).collect()
}

fn of_sessions<V: IntoIterator<Item = String>>(of: impl Fn(&Session) -> V) -> Vec<Candidate> {
    values(all(|own| own, of))
}

/// What makes vectors: built in, installed, known, or a service.
fn embeddings() -> BTreeSet<String> {
    let mut names = BTreeSet::from(["local", "none", "openai", "azure-openai"].map(str::to_owned));
    if cfg!(feature = "local-transformer") {
        names.extend(models().into_iter().map(|name| format!("local:{name}")));
    }
    names
}

/// The models that are installed, and those that can be installed by name.
fn models() -> BTreeSet<String> {
    let known = KNOWN.iter().map(|known| known.name.to_owned());
    known.chain(installed().unwrap_or_default()).collect()
}

/// Those that a line of a terminal can show as they are.
fn values(values: Option<BTreeSet<String>>) -> Vec<Candidate> {
    let shown = values.unwrap_or_default().into_iter().filter(|value| *value == one_line(value));
    shown.map(|value| Candidate::new(value, "")).collect()
}

fn installed() -> Option<Vec<String>> {
    let models = app()?.config.models()?.list().ok()?;
    Some(models.into_iter().map(|model| model.name).collect())
}

/// What `of` says of all sessions.
fn all<V: IntoIterator<Item = String>>(
    scope: impl Fn(Scope) -> Scope,
    of: impl Fn(&Session) -> V,
) -> Option<BTreeSet<String>> {
    ask(async |storage, own| {
        let mut found = BTreeSet::new();
        let mut query = SessionQuery::new(scope(own)).with_limit(PAGE);
        loop {
            let page = storage.search_sessions(&query).await.ok()?;
            found.extend(page.iter().flat_map(&of));
            if page.len() < PAGE {
                return Some(found);
            }
            query = query.with_after(page.last().map(SessionCursor::from));
        }
    })
}

/// Asks the store that what was typed names. One that is far away would take longer than anybody waits.
fn ask<T>(question: impl AsyncFnOnce(SessionStorage, Scope) -> Option<T>) -> Option<T> {
    let app = app()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    runtime.block_on(async {
        let (storage, scope) = app.for_completion().await?;
        question(storage, scope).await
    })
}

/// The program as it would run with what was typed so far.
fn app() -> Option<App> {
    let mut words = WORDS.lock().ok()?.clone();
    words.pop();
    let matches = Cli::command().ignore_errors(true).try_get_matches_from(words).ok()?;
    let mut global = GlobalArgs::from_arg_matches(&matches).ok()?;
    let config = global.configure(&matches).ok()?;
    Some(App::new(global, config))
}
