//! How a command ends: exit codes, errors and hints.

use std::{
    error::Error as _,
    fmt::Write as _,
    io::{self, Write as _},
    process::ExitCode,
};

use amplifier_session_storage::{Error, ErrorKind, storage::DamagedRow, upgrade::PythonDatabase};

use crate::{
    out, program,
    render::{note, text::printable},
};

/// How a command ends when it does not fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It did what it was asked.
    Done,
    /// There is nothing that matches.
    FoundNothing,
}

impl Outcome {
    /// Whether something was found.
    pub(crate) fn found(something: bool) -> Self {
        if something { Self::Done } else { Self::FoundNothing }
    }

    /// The exit code of the process.
    pub(crate) fn exit_code(self) -> ExitCode {
        match self {
            Self::Done => ExitCode::SUCCESS,
            Self::FoundNothing => ExitCode::from(3),
        }
    }
}

/// Why a command failed, and what to do about it.
#[derive(Debug)]
pub(crate) enum Failure {
    /// It could not be carried out.
    Failed(Report),
    /// What was typed makes no sense.
    WrongUse(Report),
    /// Whoever read our output has seen enough.
    NobodyReads,
}

/// What the user is told.
#[derive(Debug)]
pub(crate) struct Report {
    message: String,
    hint: Hint,
}

/// What to do about it.
#[derive(Debug)]
enum Hint {
    Text(String),
    /// What helps against this error. It is put into words when it is told: it names what to type.
    Against(Box<Error>),
    None,
}

impl Failure {
    /// A failure with a hint.
    pub(crate) fn failed(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Failed(Report { message: message.into(), hint: Hint::Text(hint.into()) })
    }

    /// What happened, in a sentence.
    pub(crate) fn message(&self) -> &str {
        match self {
            Self::Failed(report) | Self::WrongUse(report) => &report.message,
            Self::NobodyReads => "nobody reads the output",
        }
    }

    /// Wrong use with a hint.
    pub(crate) fn wrong_use(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::WrongUse(Report { message: message.into(), hint: Hint::Text(hint.into()) })
    }

    /// Tells the user; returns the exit code. `program` is what hints call the program.
    pub(crate) fn report(&self, program: &str) -> ExitCode {
        let (report, code) = match self {
            Self::Failed(report) => (report, 1),
            Self::WrongUse(report) => (report, 2),
            Self::NobodyReads => return ExitCode::SUCCESS,
        };
        say("error", &report.message);
        let hint = match &report.hint {
            Hint::Text(text) => Some(text.clone()),
            Hint::Against(error) => hint_against(error, program),
            Hint::None => None,
        };
        if let Some(hint) = hint {
            say("hint", &hint);
        }
        ExitCode::from(code)
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
        let report = Report { message, hint: Hint::Against(Box::new(error)) };
        if about_arguments { Self::WrongUse(report) } else { Self::Failed(report) }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::NobodyReads,
            _ => Self::Failed(Report { message: error.to_string(), hint: Hint::None }),
        }
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        io::Error::from(error).into()
    }
}

/// Writes a line to stderr; where nobody listens there is nobody to tell. What was typed or recorded may be part of it, so
/// that it is made fit for a terminal.
pub(crate) fn say(label: &str, text: &str) {
    let text = printable(text);
    let said = match out::width_of_messages() {
        Some(width) => note::wrapped(label, &text, width),
        None => format!("{label}: {text}"),
    };
    let _ = writeln!(io::stderr().lock(), "{said}");
}

/// The most damaged rows that are listed.
const LISTED: usize = 20;

/// Names the rows of the store that were left out because they can't be read; a failure if there are any. To be called when
/// everything else has been written.
pub(crate) fn report_damage(damaged: &[DamagedRow]) -> Result<(), Failure> {
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
    if damaged.is_empty() {
        return Ok(());
    }
    let message = match damaged.len() {
        1 => "1 row of the store can't be read and was left out".to_owned(),
        more => format!("{more} rows of the store can't be read and were left out"),
    };
    Err(Failure::failed(
        message,
        "restore the store from a backup, or delete the session and sync it again from its folder",
    ))
}

/// That sessions were left out because they can't be read; nothing if none was.
pub(crate) fn damaged_sessions_note(damaged: &[DamagedRow]) -> Option<String> {
    const NAMED: usize = 5;
    let first = damaged.first()?;
    let ids: Vec<&str> = damaged.iter().take(NAMED).map(|row| row.session_id.as_str()).collect();
    let ids = ids.join(", ");
    Some(match damaged.len() {
        1 => format!("session {ids} can't be read and was left out: {}", first.reason),
        count if count <= NAMED => format!("sessions {ids} can't be read and were left out"),
        count => format!("sessions {ids} and {} more can't be read and were left out", count - NAMED),
    })
}

/// Tells what clap found wrong, or shows the help or version that was asked for.
pub(crate) fn report_usage(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        let shown = error.print();
        return shown
            .map_or_else(|error| Failure::from(error).report(&program::name()), |()| ExitCode::SUCCESS);
    }
    if error.kind() == clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        let _ = error.print();
        return ExitCode::from(2);
    }
    if let Some(failure) = unknown_command(error) {
        return failure.report(&program::name());
    }
    let rendered = error.render().to_string();
    let text = rendered.split("\nFor more information").next().unwrap_or_default().trim_end();
    say("error", text.strip_prefix("error: ").unwrap_or(text));
    say("hint", "--help after the command lists what it takes, with examples");
    ExitCode::from(2)
}

/// What is said about a command that there isn't: what it is called here.
fn unknown_command(error: &clap::Error) -> Option<Failure> {
    use clap::error::{ContextKind, ContextValue, ErrorKind};
    if error.kind() != ErrorKind::InvalidSubcommand {
        return None;
    }
    let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidSubcommand) else { return None };
    // Below a command, as in `models ls`, the names mean something else.
    let usage = error.get(ContextKind::Usage).map(ToString::to_string).unwrap_or_default();
    let is_first = usage.trim_end().ends_with("<COMMAND>") && usage.split_whitespace().count() <= 4;
    let similar = match error.get(ContextKind::SuggestedSubcommand) {
        Some(ContextValue::String(one)) => Some(one.as_str()),
        Some(ContextValue::Strings(several)) => several.last().map(String::as_str),
        _ => None,
    };
    let program = program::name();
    let meant = meaning(typed).filter(|_| is_first);
    let hint = match meant.or(similar.filter(|_| is_first)) {
        Some(command) => format!("{program} {command}"),
        None => format!("`{program} help` lists the commands"),
    };
    Some(Failure::wrong_use(format!("unknown command '{typed}'"), hint))
}

/// What people call a command who know other programs.
fn meaning(typed: &str) -> Option<&'static str> {
    Some(match typed.to_ascii_lowercase().as_str() {
        "find" | "grep" | "query" | "ask" => "search",
        "ls" | "list" | "session" | "ps" => "sessions",
        "history" => "recent",
        "log" | "logs" | "event" => "events",
        "rm" | "remove" | "del" => "delete",
        "cat" | "view" | "open" | "read" | "print" | "get" => "show",
        "stat" | "count" | "usage" | "cost" => "stats",
        "rename" => "edit",
        "label" | "tags" => "tag",
        "index" | "update" | "pull" | "ingest" => "sync",
        "init" | "start" | "demo" => "quickstart",
        "settings" | "configure" => "config",
        "completion" => "completions",
        _ => return None,
    })
}

/// The message with those of its causes that say something new.
fn with_causes(error: &Error) -> String {
    let mut message = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let text = error.to_string();
        // What some say behind the first line is advice for programmers.
        let line = text.lines().next().unwrap_or_default();
        if !message.contains(line) {
            let _ = write!(message, ": {line}");
        }
        cause = error.source();
    }
    message
}

/// What is wrong with an argument, by the name under which it is typed.
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
        Some(latest) if latest.eq_ignore_ascii_case("latest") => "there is no session yet".to_owned(),
        Some(id) => format!("there is no session {id}"),
        None => error.to_string(),
    }
}

/// Whether the error is about what was typed, not about what is stored.
fn is_about_arguments(error: &Error) -> bool {
    const ARGUMENTS: [&str; 23] = [
        "address",
        "config",
        "content_type",
        "content_types",
        "description",
        "embedding",
        "exclude",
        "limit",
        "min_similarity",
        "mmr_lambda",
        "model",
        "name",
        "org_id",
        "project_slug",
        "query",
        "scope",
        "sequence",
        "session_id",
        "store",
        "tags",
        "team_ids",
        "turn",
        "user_id",
    ];
    let field = error.context("field").unwrap_or_default();
    match error.kind() {
        ErrorKind::Validation => ARGUMENTS.contains(&field),
        ErrorKind::Unsupported => error.operation().is_none(),
        _ => false,
    }
}

/// What to do about an error, where that is known.
fn hint_against(error: &Error, program: &str) -> Option<String> {
    const READ_ONLY: &str = "the store was opened for reading only";
    const STORE: &str = "a store is named like --store sqlite:~/.amplifier/sessions.sqlite";
    let field = error.context("field").unwrap_or_default();
    if PythonDatabase::cause_of(error).is_some() {
        return Some(format!(
            "`{program} upgrade` makes a store of it and keeps the old file; `upgrade --check` tells more"
        ));
    }
    let hint = match (error.kind(), field) {
        (ErrorKind::SessionNotFound, _) => &format!("`{program} sessions` lists the sessions that there are"),
        (ErrorKind::Validation, "session_id") => {
            &format!("type more of the session's id; `{program} sessions` lists them")
        }
        (ErrorKind::Validation, "address") => "a message is named like 7f3c9a52#4: a line number follows `#`",
        (ErrorKind::Validation, "turn" | "sequence") => {
            &format!("`{program} show SESSION` lists turns and messages")
        }
        (ErrorKind::Validation, "project_slug") => &format!(
            "type more of the project's slug, or its folder; `{program} recent --days 365` lists projects"
        ),
        (ErrorKind::Validation, "user_id") => "name the user with --user ID, or in AMPLIFIER_SESSIONS_USER",
        (ErrorKind::Validation, "store") => STORE,
        (ErrorKind::Validation, "query") => &format!(
            "`{program} sql` lists the views, and `{program} sql 'SHOW TABLES'` all that can be asked"
        ),
        (ErrorKind::Validation, "scope") => "--scope all looks at everybody's sessions",
        (ErrorKind::Validation, "container") => return None,
        (ErrorKind::Validation, "archive") => "`export --out FILE` writes what `import` reads",
        (ErrorKind::Validation, "config") => {
            &format!("`{program} help config` shows what the file looks like")
        }
        (ErrorKind::Validation, "model") => &format!("`{program} models` lists the models that there are"),
        (ErrorKind::Validation, "embedding") => {
            "--embedding local needs nothing; docs/embeddings.md tells how to name a service"
        }
        (ErrorKind::Validation, _) => "--help after the command lists what it takes, with examples",
        (ErrorKind::Unsupported | ErrorKind::Embedding, _) if error.operation() == Some("search") => {
            "search by words with --mode full-text, name what made the store's vectors with --embedding, or make all of them anew with `rebuild`"
        }
        (ErrorKind::Unsupported, _) if error.message() == READ_ONLY => "leave --read-only out",
        (ErrorKind::Unsupported, _) => STORE,
        (ErrorKind::Authentication, _) if error.context("account").is_some() => {
            "AMPLIFIER_COSMOS_AUTH_METHOD=key takes the key in AMPLIFIER_COSMOS_KEY; without it, `az login` signs in"
        }
        (ErrorKind::StorageConnection, _) if error.context("database").is_some() => {
            &format!("`{program} sync` makes the store, if the address is right")
        }
        (ErrorKind::StorageConnection, _) if error.context("account").is_some() => {
            "is the account's address right, and can it be reached from here?"
        }
        _ if error.context("status").is_some() && error.is_retryable() => {
            "the service was busy or away: try again"
        }
        _ if error.is_retryable() => "another program is using the store: try again",
        _ => return None,
    };
    Some(hint.to_owned())
}
