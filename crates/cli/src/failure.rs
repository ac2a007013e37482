//! How a command ends: exit codes, errors and hints.

use std::{
    error::Error as _,
    fmt::Write as _,
    io::{self, Write as _},
};

use amplifier_session_storage::{Error, ErrorKind, model::DamagedRow, upgrade::PythonDatabase};

use crate::{
    environment::Environment,
    out, program,
    render::{
        note,
        text::{counted, printable},
    },
};

/// The exit code of success.
pub(crate) const SUCCESS: u8 = 0;

/// How a command ends if it does not fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It succeeded.
    Done,
    /// Nothing matches.
    FoundNothing,
}

impl Outcome {
    /// [`Self::Done`] if something was found.
    pub(crate) fn found(something: bool) -> Self {
        if something { Self::Done } else { Self::FoundNothing }
    }

    /// The exit code of the process.
    pub(crate) const fn exit_code(self) -> u8 {
        match self {
            Self::Done => SUCCESS,
            Self::FoundNothing => 3,
        }
    }
}

/// Why a command failed, with a hint about what to do.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The command could not be carried out.
    Failed(Report),
    /// The command line is invalid.
    WrongUse(Report),
    /// The reader of stdout closed the pipe.
    OutputClosed,
    /// The process was told to end, and has reported what it did. Contains the exit code.
    Ended(u8),
}

/// An error message with its hint.
#[derive(Debug)]
pub(crate) struct Report {
    message: String,
    hint: Hint,
}

/// The hint for usage errors.
pub(crate) const USAGE_HINT: &str = "run the command with --help to see its options, with examples";

/// What the user can do about an error.
#[derive(Debug)]
enum Hint {
    Text(String),
    /// The hint for this error. Its text is made when it is printed, because it contains commands to type.
    For(Box<Error>),
    /// A part of the store can't be read.
    Salvage,
    None,
}

impl Failure {
    /// A failure with a hint.
    pub(crate) fn failed(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Failed(Report { message: message.into(), hint: Hint::Text(hint.into()) })
    }

    /// A failure whose hints were already printed.
    pub(crate) fn without_hint(message: impl Into<String>) -> Self {
        Self::Failed(Report { message: message.into(), hint: Hint::None })
    }

    /// The message of the failure.
    pub(crate) fn message(&self) -> &str {
        match self {
            Self::Failed(report) | Self::WrongUse(report) => &report.message,
            Self::OutputClosed => "the output was closed",
            Self::Ended(_) => "the process was told to end",
        }
    }

    /// A usage error with a hint.
    pub(crate) fn wrong_use(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::WrongUse(Report { message: message.into(), hint: Hint::Text(hint.into()) })
    }

    /// Prints the error and its hint, and returns the exit code. `program` is the name of the program in hints, and
    /// `store` that of the store.
    pub(crate) fn report(&self, program: &str, store: Option<&str>) -> u8 {
        let (report, code) = match self {
            Self::Failed(report) => (report, 1),
            Self::WrongUse(report) => (report, 2),
            Self::OutputClosed => return SUCCESS,
            Self::Ended(code) => return *code,
        };
        say("error", &report.message);
        if let Some(hint) = self.hint(program, store) {
            say("hint", &hint);
        }
        code
    }

    /// Advice for the user, if any. For the arguments, see [`Failure::report`].
    pub(crate) fn hint(&self, program: &str, store: Option<&str>) -> Option<String> {
        let (Self::Failed(report) | Self::WrongUse(report)) = self else { return None };
        match &report.hint {
            Hint::Text(text) => Some(text.clone()),
            Hint::For(error) if is_damage(error) => Some(salvage_hint(program, store)),
            Hint::For(error) => hint_for(error, program),
            Hint::Salvage => Some(salvage_hint(program, store)),
            Hint::None => None,
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let about_arguments = is_about_arguments(&error);
        let message = match error.kind() {
            ErrorKind::Validation if about_arguments => about_argument(&error),
            ErrorKind::SessionNotFound => no_such_session(&error),
            _ => with_causes(&error),
        };
        let report = Report { message, hint: Hint::For(Box::new(error)) };
        if about_arguments { Self::WrongUse(report) } else { Self::Failed(report) }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::OutputClosed,
            _ => Self::Failed(Report { message: error.to_string(), hint: Hint::None }),
        }
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        io::Error::from(error).into()
    }
}

/// Writes a line to stderr, and ignores errors of writing. `text` may contain typed or recorded text, so control
/// characters are removed.
pub(crate) fn say(label: &str, text: &str) {
    let text = printable(text);
    let environment = Environment::current();
    let line = match out::width_of_messages(&environment) {
        Some(width) => note::wrapped(label, &text, width),
        None => format!("{label}: {text}"),
    };
    let _ = environment.stderr.clone().write_all(format!("{line}\n").as_bytes());
}

/// At most this many damaged rows are listed.
const LISTED: usize = 20;

/// Lists the rows that were skipped because they can't be read, and fails if there are any. Call this after all other
/// output.
pub(crate) fn report_damage(damaged: &[DamagedRow]) -> Result<(), Failure> {
    list_damage(damaged);
    let message = match damaged.len() {
        0 => return Ok(()),
        1 => "1 row of the store can't be read and was skipped".to_owned(),
        more => format!("{} of the store can't be read and were skipped", counted(more as u64, "row")),
    };
    Err(Failure::Failed(Report { message, hint: Hint::Salvage }))
}

/// Lists rows that can't be read.
pub(crate) fn list_damage(damaged: &[DamagedRow]) {
    for row in damaged.iter().take(LISTED) {
        let place = match row.sequence {
            Some(sequence) => format!("{} {sequence} of session {}", row.kind.as_str(), row.session_id),
            None => format!("session {}", row.session_id),
        };
        say("damaged", &format!("{place}: {}", row.reason));
    }
    if damaged.len() > LISTED {
        say("damaged", &format!("… and {} more", damaged.len() - LISTED));
    }
}

/// A note about sessions that were skipped because they can't be read, if there are any.
pub(crate) fn damaged_sessions_note(damaged: &[DamagedRow]) -> Option<String> {
    const NAMED: usize = 5;
    let first = damaged.first()?;
    let ids: Vec<&str> = damaged.iter().take(NAMED).map(|row| row.session_id.as_str()).collect();
    let ids = ids.join(", ");
    Some(match damaged.len() {
        1 => format!("session {ids} can't be read and was skipped: {}", first.reason),
        count if count <= NAMED => format!("sessions {ids} can't be read and were skipped"),
        count => format!("sessions {ids} and {} more can't be read and were skipped", count - NAMED),
    })
}

/// Prints a usage error found by clap, or the requested help or version.
pub(crate) fn report_usage(error: &clap::Error) -> u8 {
    if !error.use_stderr() {
        let shown = print(error);
        return shown.map_or_else(|error| Failure::from(error).report(&program::name(), None), |()| SUCCESS);
    }
    if error.kind() == clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        let _ = print(error);
        return 2;
    }
    if let Some(failure) = unknown_command(error) {
        return failure.report(&program::name(), None);
    }
    let rendered = error.render().to_string();
    let text = rendered.split("\nFor more information").next().unwrap_or_default().trim_end();
    say("error", text.strip_prefix("error: ").unwrap_or(text));
    say("hint", USAGE_HINT);
    2
}

/// Prints help or an error as clap renders it, with colours where the stream of the process allows them.
fn print(error: &clap::Error) -> io::Result<()> {
    let environment = Environment::current();
    let stream = if error.use_stderr() { &environment.stderr } else { &environment.stdout };
    if stream.is_of_process() { error.print() } else { write!(stream.clone(), "{}", error.render()) }
}

/// The failure for an unknown command, with the command that was probably meant.
fn unknown_command(error: &clap::Error) -> Option<Failure> {
    use clap::error::{ContextKind, ContextValue, ErrorKind};
    if error.kind() != ErrorKind::InvalidSubcommand {
        return None;
    }
    let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidSubcommand) else { return None };
    let usage = error.get(ContextKind::Usage).map(ToString::to_string).unwrap_or_default();
    // The commands before the unknown one: `Usage: amplifier-sessions models [OPTIONS] <COMMAND>`.
    let before: Vec<&str> =
        usage.split_whitespace().skip(2).take_while(|word| !word.starts_with(['[', '<'])).collect();
    let program = [&[program::name().as_str()], before.as_slice()].concat().join(" ");
    // Of the most similar names, clap puts the best last.
    let similar = match error.get(ContextKind::SuggestedSubcommand) {
        Some(ContextValue::String(one)) => std::slice::from_ref(one),
        Some(ContextValue::Strings(several)) => several.as_slice(),
        _ => &[],
    };
    let similar = similar.iter().rev().map(String::as_str).find(|name| is_mistyped(typed, name));
    // After a command, as in `models ls`, these names mean something else.
    let meant = meaning(typed).filter(|_| before.is_empty());
    let hint = match meant.or(similar) {
        Some(command) => format!("{program} {command}"),
        None => format!("`{program} --help` lists the commands"),
    };
    Some(Failure::wrong_use(format!("unknown command '{typed}'"), hint))
}

/// Whether `typed` may stand for `name`: an abbreviation, or nearly the same letters.
fn is_mistyped(typed: &str, name: &str) -> bool {
    let typed = typed.to_ascii_lowercase();
    let is_short = typed.len() >= 3 && name.starts_with(&typed);
    is_short || edits(&typed, name) <= (typed.chars().count() + 1) / 3
}

/// How many letters must be inserted or removed to get `name`.
fn edits(typed: &str, name: &str) -> usize {
    let mut counts: Vec<usize> = (0..=name.chars().count()).collect();
    for (at, letter) in typed.chars().enumerate() {
        let mut before = at;
        let mut last = at + 1;
        for (count, other) in counts.iter_mut().skip(1).zip(name.chars()) {
            let replaced = before + if letter == other { 0 } else { 2 };
            before = *count;
            last = replaced.min(*count + 1).min(last + 1);
            *count = last;
        }
        if let Some(first) = counts.first_mut() {
            *first = at + 1;
        }
    }
    counts.last().copied().unwrap_or_default()
}

/// The command for a name that other programs use.
fn meaning(typed: &str) -> Option<&'static str> {
    Some(match typed.to_ascii_lowercase().as_str() {
        "find" | "grep" | "query" | "ask" => "search",
        "ls" | "list" | "session" | "ps" => "sessions",
        "history" => "recent",
        "log" | "logs" | "event" => "events",
        "rm" | "remove" | "del" | "drop" | "forget" => "delete",
        "cat" | "view" | "open" | "read" | "print" | "get" => "show",
        "stat" | "count" | "usage" | "cost" => "stats",
        "rename" => "edit",
        "undo" | "truncate" => "rewind",
        "check" | "fsck" | "validate" => "verify",
        "label" | "tags" => "tag",
        "recover" | "rescue" => "salvage",
        "follow" | "daemon" | "monitor" => "watch",
        "index" | "update" | "pull" | "ingest" | "refresh" => "sync",
        "start" | "demo" | "tutorial" => "quickstart",
        "create" | "new" => "init",
        "settings" | "configure" => "config",
        "clean" | "gc" | "purge" | "vacuum" => "prune",
        "dump" => "export",
        "load" => "import",
        "cp" | "clone" => "copy",
        "embed" | "vectors" => "backfill",
        "migrate" => "upgrade",
        "whoami" => "user",
        "install" | "autostart" => "service",
        "version" => "--version",
        "completion" => "completions",
        _ => return None,
    })
}

/// The message, followed by the messages of those causes that add information.
pub(crate) fn with_causes(error: &Error) -> String {
    let mut message = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let text = error.to_string();
        // Some errors have advice for programmers after the first line.
        let line = text.lines().next().unwrap_or_default();
        if !message.contains(line) {
            let _ = write!(message, ": {line}");
        }
        cause = error.source();
    }
    message
}

/// The problem with an argument, using the name of its option.
fn about_argument(error: &Error) -> String {
    let message = error.message();
    if !message.starts_with("must ") && !message.starts_with("is ") {
        return message.to_owned();
    }
    let argument = match error.context("field").unwrap_or_default() {
        "content_type" | "content_types" => "--in",
        "description" => "--description",
        "exclude" => "--exclude",
        "limit" => "--limit",
        "min_similarity" => "--min-similarity",
        "mmr_lambda" => "--mmr-lambda",
        "name" => "--name",
        "org_id" => "--org",
        "project_slug" => "--project",
        "repository" => "--repo",
        "user_id" => "--user",
        "session_id" => "a session's id",
        "tags" => "a tag",
        "team_ids" => "--team",
        field => &field.replace('_', " "),
    };
    match error.context("value") {
        Some(value) if value != "\"\"" => format!("{argument} {message}, not {value}"),
        _ => format!("{argument} {message}"),
    }
}

fn no_such_session(error: &Error) -> String {
    match error.context("session") {
        Some(latest) if latest.eq_ignore_ascii_case("latest") => "the store has no sessions yet".to_owned(),
        Some(id) => format!("no session matches {id}"),
        None => error.to_string(),
    }
}

/// Whether the error is about what was typed, not about stored data.
fn is_about_arguments(error: &Error) -> bool {
    match (error.kind(), error.context("field").unwrap_or_default()) {
        (
            ErrorKind::Validation,
            "address" | "config" | "content_type" | "content_types" | "description" | "embedding" | "exclude"
            | "limit" | "min_similarity" | "mmr_lambda" | "model" | "name" | "org_id" | "project_slug"
            | "query" | "repository" | "scope" | "sequence" | "session_id" | "store" | "tags" | "team_ids"
            | "turn" | "user_id",
        ) => true,
        (ErrorKind::Unsupported, _) => error.operation().is_none(),
        _ => false,
    }
}

/// Whether a part of the store can't be read.
fn is_damage(error: &Error) -> bool {
    error.kind() == ErrorKind::Damaged
}

/// Advice for a damaged store.
fn salvage_hint(program: &str, store: Option<&str>) -> String {
    let store = store.map_or_else(|| "the store".to_owned(), |store| format!("the damaged store {store}"));
    format!(
        "`{program} salvage --to FILE` copies what can still be read from {store} to a new one; or restore a backup"
    )
}

/// Advice for an error, if any.
fn hint_for(error: &Error, program: &str) -> Option<String> {
    // Without `--store`, because its value may be wrong, and may contain a key that does not belong there.
    let help = format!("`{} help config`", program::name());
    let stores = || {
        format!(
            "a store is a URL, for example --store sqlite:~/.amplifier/sessions.sqlite; {help} lists the kinds of stores \
             and their settings"
        )
    };
    let field = error.context("field").unwrap_or_default();
    if let Some(hint) = error.hint() {
        return Some(hint.to_owned());
    }
    if PythonDatabase::cause_of(error).is_some() {
        return Some(format!(
            "`{program} upgrade` converts it to a store and keeps the old file; `upgrade --check` reports what it would do"
        ));
    }
    let hint = match (error.kind(), field) {
        (ErrorKind::SessionNotFound, _) => &format!("`{program} sessions` lists all sessions"),
        (ErrorKind::Validation, "session_id") => {
            &format!("type more of the id; `{program} sessions` lists all sessions")
        }
        (ErrorKind::Validation, "address") => {
            "the address of a message has its number after `#`, for example 7f3c9a52#4"
        }
        (ErrorKind::Validation, "turn" | "sequence") => {
            &format!("`{program} show SESSION` shows the numbers of turns and messages")
        }
        (ErrorKind::Validation, "project_slug") => &format!(
            "type more of the project's slug, or its folder; `{program} recent --days 365` lists projects"
        ),
        (ErrorKind::Validation, "repository") => {
            "type more of the repository's address, for example github.com/acme/app"
        }
        (ErrorKind::Validation, "user_id") => "pass --user ID, or set AMPLIFIER_SESSIONS_USER",
        (ErrorKind::Validation, "store") => &stores(),
        (ErrorKind::Validation, "query") => {
            &format!("`{program} sql` lists the views, and `{program} sql 'SHOW TABLES'` all tables")
        }
        (ErrorKind::Validation, "scope") => "--scope all reads everyone's sessions",
        (ErrorKind::Validation, "container") => return None,
        (ErrorKind::Validation, "archive") => "`import` reads files that `export --out FILE` wrote",
        (ErrorKind::Validation, "config") => {
            &format!("{help} lists the settings and shows an example of the file")
        }
        (ErrorKind::Validation, "model") => &format!("`{program} models` lists all models"),
        (ErrorKind::Validation, "embedding") => {
            "--embedding local needs no configuration; for services, see docs/embeddings.md"
        }
        (ErrorKind::Validation, _) => USAGE_HINT,
        (ErrorKind::Rewind, _) if error.context("option") == Some("keep_events") => {
            "pass --keep-events to remove only messages"
        }
        (ErrorKind::Rewind, _) => &format!("`{program} show SESSION` shows the numbers of turns"),
        // The embedding provider is `none`.
        (ErrorKind::Unsupported, _) if error.operation() == Some("search") => {
            "search by words with --mode full-text, or choose a model with --embedding"
        }
        (ErrorKind::Embedding, _) if error.operation() == Some("search") => {
            "search by words with --mode full-text, or select the model of the store's vectors with --embedding"
        }
        (ErrorKind::Unsupported, _) if error.context("option") == Some("read_only") => {
            "run the command without --read-only"
        }
        (ErrorKind::Unsupported, _) => &stores(),
        (ErrorKind::Authentication, _) if error.context("account").is_some() => {
            "sign in with `az login`, or set AMPLIFIER_COSMOS_AUTH_METHOD=key and AMPLIFIER_COSMOS_KEY"
        }
        (ErrorKind::StorageConnection, _) if error.message().ends_with("not a SQLite database") => &format!(
            "if it was a store, its first page is damaged: `{program} salvage --to FILE` copies what can still be read to a new one"
        ),
        (ErrorKind::StorageConnection, _) if error.context("database").is_some() => {
            &format!("if the address is right, `{program} sync` creates the store")
        }
        (ErrorKind::StorageConnection, _) if error.context("account").is_some() => {
            "check the address of the account and the network connection"
        }
        (ErrorKind::StorageConnection, _) if error.context("server").is_some() => {
            "check the host, the port, the role and PGPASSWORD, and whether the server is running"
        }
        _ if error.context("status").is_some() && error.is_retryable() => {
            "the service is busy or unavailable; try again later"
        }
        _ if error.is_retryable() => "another program is using the store; try again later",
        _ => return None,
    };
    Some(hint.to_owned())
}
