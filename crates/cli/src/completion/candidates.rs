//! Candidates for completion, from the store and elsewhere.

use std::{collections::BTreeSet, ffi::OsString};

use amplifier_session_api::{
    Reach,
    operations::sessions::{ListedSession, SessionsRequest},
};
use amplifier_session_storage::{backend::SessionQuery, embedding::models::KNOWN, model::Session};
use clap::{CommandFactory as _, FromArgMatches as _};

use crate::{
    app::App,
    args::{Cli, GlobalArgs, parse_arguments_for},
    environment::Environment,
    opened::OpenedStore,
    render::text::one_line,
};

/// The maximum number of sessions to offer.
const MOST: usize = 100;
/// Number of sessions read at a time.
const PAGE: usize = 500;

/// A completion of a word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WordCompletion {
    pub(super) value: String,
    /// A description, or empty.
    pub(super) help: String,
}

impl WordCompletion {
    pub(super) fn new(value: impl Into<String>, help: impl AsRef<str>) -> Self {
        Self { value: value.into(), help: one_line(help.as_ref()) }
    }
}

/// The candidates for the argument `id` of `command` that begin with `typed`. Earlier words may name another store.
pub(super) fn of(command: &str, id: &str, words: &[String], typed: &str) -> Vec<WordCompletion> {
    match (command, id) {
        (_, "session" | "sessions") => sessions(words, typed),
        (_, "project") => of_sessions(words, |session| Some(session.project_slug.to_string())),
        (_, "repo") => of_sessions(words, |session| session.repository.as_ref().map(ToString::to_string)),
        (_, "tags" | "remove") => of_sessions(words, |session| session.tags.clone()),
        (_, "bundle") => of_sessions(words, |session| session.bundle.clone()),
        ("events", "model") => of_sessions(words, |session| session.model.clone()),
        (_, "user") => values(all(words, Some(Reach::All), |session| Some(session.user_id.to_string()))),
        (_, "embedding") => values(Some(embeddings(words))),
        ("install" | "verify", "name") => values(Some(models(words))),
        (_, "content_types") => fixed(&["user", "assistant", "thinking", "tool", "system"]),
        (_, "role") => fixed(&["user", "assistant", "tool", "system", "developer"]),
        (_, "level") => fixed(&["debug", "info", "warn", "error"]),
        (_, "since" | "until") => {
            fixed(&["today", "yesterday", "monday", "7d", "2w", "last week", "last month"])
        }
        _ => Vec::new(),
    }
}

fn fixed(values: &[&str]) -> Vec<WordCompletion> {
    values.iter().map(|value| WordCompletion::new(*value, "")).collect()
}

/// The newest sessions whose ids begin with `typed`.
fn sessions(words: &[String], typed: &str) -> Vec<WordCompletion> {
    let found = ask(words, async |app, reader| {
        let (scope, id_prefix) = (app.global.scope.into(), Some(typed.to_owned()));
        let request = SessionsRequest { scope, id_prefix, limit: MOST, ..SessionsRequest::default() };
        Some(reader.api(app).sessions(&request).await.ok()?.response.sessions)
    });
    let found = found.unwrap_or_default();
    let named = |name: &str, listed: &ListedSession| WordCompletion::new(name, &listed.session.title);
    let latest = found.first().map(|listed| named("latest", listed));
    let candidate = |listed: &ListedSession| named(listed.session.session.session_id.as_str(), listed);
    latest.into_iter().filter(|_| typed.is_empty()).chain(found.iter().map(candidate)).collect()
}

fn of_sessions<V: IntoIterator<Item = String>>(
    words: &[String],
    of: impl Fn(&Session) -> V,
) -> Vec<WordCompletion> {
    values(all(words, None, of))
}

/// The embedding providers: built in, installed, known, or a service.
fn embeddings(words: &[String]) -> BTreeSet<String> {
    let mut names = BTreeSet::from(["local", "none", "openai", "azure-openai"].map(str::to_owned));
    if cfg!(feature = "local-transformer") {
        names.extend(models(words).into_iter().map(|name| format!("local:{name}")));
    }
    names
}

/// Installed models, and models that can be installed by name.
fn models(words: &[String]) -> BTreeSet<String> {
    let known = KNOWN.iter().map(|known| known.name.to_owned());
    known.chain(installed(words).unwrap_or_default()).collect()
}

/// The values that fit on a line unchanged.
fn values(values: Option<BTreeSet<String>>) -> Vec<WordCompletion> {
    let shown = values.unwrap_or_default().into_iter().filter(|value| *value == one_line(value));
    shown.map(|value| WordCompletion::new(value, "")).collect()
}

fn installed(words: &[String]) -> Option<Vec<String>> {
    let models = app(words)?.config.models()?.list().ok()?;
    Some(models.into_iter().map(|model| model.name).collect())
}

/// The values of `of` for all sessions within `reach`, by default that of `--scope`.
fn all<V: IntoIterator<Item = String>>(
    words: &[String],
    reach: Option<Reach>,
    of: impl Fn(&Session) -> V,
) -> Option<BTreeSet<String>> {
    ask(words, async |app, reader| {
        let scope = reader.caller.scope(reach.unwrap_or_else(|| app.global.scope.into())).ok()?;
        // Not a list of the API, which also looks up whether dates are estimates.
        let query = SessionQuery::new(scope).with_limit(PAGE);
        let sessions = reader.storage().ok()?.sessions().all_sessions(query).await.ok()?;
        Some(sessions.iter().flat_map(&of).collect())
    })
}

/// Queries the store that the typed words select. Returns nothing for a remote store, which would take too long.
fn ask<T>(words: &[String], question: impl AsyncFnOnce(&App, OpenedStore) -> Option<T>) -> Option<T> {
    let app = app(words)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    runtime.block_on(async {
        let reader = app.for_completion().await?;
        question(&app, reader).await
    })
}

/// The program as it would run with the words typed before the last.
fn app(words: &[String]) -> Option<App> {
    let (_, before) = words.split_last()?;
    let before: Vec<OsString> = before.iter().map(OsString::from).collect();
    let environment = Environment::current();
    let parsed = parse_arguments_for(Cli::command().ignore_errors(true), &environment, &before).ok()?;
    let mut global = GlobalArgs::from_arg_matches(&parsed.all).ok()?;
    let config = global.configure(&parsed.typed, &environment).ok()?;
    Some(App::new(environment, global, config))
}
