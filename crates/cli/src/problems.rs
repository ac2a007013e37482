//! Errors and invalid requests in words, with advice: with the names of commands and options.

use amplifier_session_api::{InvalidRequest, PlaceFields, with_causes};
use amplifier_session_storage::{
    Error, ErrorField, ErrorKind, ErrorOption, search::SEARCH_OPERATION, upgrade::PythonDatabase,
};

use crate::{program, render::text::counted};

/// The hint for usage errors.
pub(crate) const USAGE_HINT: &str = "run the command with --help to see its options, with examples";

/// The problem that an error of the store is, in the words of the command line.
pub(crate) fn message_of(error: &Error) -> String {
    match error.kind() {
        ErrorKind::Validation if is_about_arguments(error) => about_argument(error),
        ErrorKind::SessionNotFound => no_such_session(error),
        _ => with_causes(error),
    }
}

/// The problem with a request, with the names of options.
pub(crate) fn problem(invalid: &InvalidRequest) -> String {
    match invalid {
        InvalidRequest::EndsBeforeItBegins { since, until } => {
            format!("--until {until} is before --since {since}")
        }
        InvalidRequest::NoTurns { min_turns, max_turns } => {
            format!("--max-turns {max_turns} is less than --min-turns {min_turns}")
        }
        InvalidRequest::NothingToList => "--limit must be at least 1".to_owned(),
        InvalidRequest::NamesMessage { address, .. } => {
            format!("{address} names a message, but --events shows events")
        }
        InvalidRequest::NamesEvent { address, fields: PlaceFields::TurnOrMessage } => {
            format!("{address} names an event, but --context shows messages")
        }
        InvalidRequest::NamesEvent { address, fields: PlaceFields::Turn } => {
            format!("{address} names an event, which is not part of a turn")
        }
        InvalidRequest::PlaceNamedTwice { address, fields: PlaceFields::First } => {
            format!("{address} and --from both say where to begin")
        }
        InvalidRequest::PlaceNamedTwice { address, .. } => format!("{address} already names a message"),
        InvalidRequest::NoPlaceNamed { .. } => "a message or a turn is required".to_owned(),
        InvalidRequest::NotACursor { text } => format!("--after {text:?} is not a cursor"),
        InvalidRequest::BudgetTooSmall { budget, least } => {
            let least = counted(*least as u64, "token");
            format!("--budget {budget} is too small: this answer needs at least {least}")
        }
        InvalidRequest::AgeInTheFuture { age } => format!("--older-than {age} is in the future"),
        // The parser of arguments refuses all others.
        InvalidRequest::NotOneWayToDelete => "sessions can't be named together with --older-than".to_owned(),
        InvalidRequest::NotADate { .. }
        | InvalidRequest::UnknownTimeZone { .. }
        | InvalidRequest::NothingToChange
        | InvalidRequest::NothingNamedToDelete
        | InvalidRequest::FieldGivenTwice(_)
        | InvalidRequest::TagAddedAndRemoved { .. }
        | InvalidRequest::WrongSummary { .. }
        | InvalidRequest::NamesEvent { fields: PlaceFields::First, .. }
        | InvalidRequest::RelativeFolder { .. }
        | InvalidRequest::Unreadable { .. }
        | InvalidRequest::NoRepository { .. } => invalid.to_string(),
    }
}

/// Advice for the user. `program` is the name of the program in hints.
pub(crate) fn advice(invalid: &InvalidRequest, program: &str) -> String {
    let text = match invalid {
        InvalidRequest::NotADate { .. } => {
            "valid dates: 7d, 12h, 2w, '3 months ago', today, yesterday, monday, 'last week', 2026-01-31, \
            2026-01-31T09:30"
        }
        InvalidRequest::UnknownTimeZone { .. } => "time zones have names such as Europe/Berlin or UTC",
        InvalidRequest::EndsBeforeItBegins { .. } => {
            "--since is the beginning of the period, and --until its end"
        }
        InvalidRequest::NoTurns { .. } => "no session can match both",
        InvalidRequest::NothingToList => "the default is 50, or 3 per project with --by project",
        InvalidRequest::NothingToChange => {
            "pass --name, --description, --clear or --reset; set tags with `tag`"
        }
        InvalidRequest::FieldGivenTwice(_) => {
            "for each field, pass a new value, --clear or --reset, but only one of them"
        }
        InvalidRequest::TagAddedAndRemoved { .. } => {
            "pass it once: before --remove to add it, or after --remove to remove it"
        }
        InvalidRequest::AgeInTheFuture { .. } => "it would match everything; pass a date in the past",
        InvalidRequest::NamesMessage { sequence, .. } => {
            return format!("events are numbered separately: --from {sequence} begins at event {sequence}");
        }
        InvalidRequest::NamesEvent { fields: PlaceFields::Turn, .. } => "omit --turn to show the event",
        InvalidRequest::NamesEvent { .. } => "omit --context to show the event",
        InvalidRequest::PlaceNamedTwice { fields: PlaceFields::First, .. } => {
            "omit --from, and use --limit to show what follows"
        }
        InvalidRequest::PlaceNamedTwice { fields: PlaceFields::TurnOrMessage, .. } => "omit --turn",
        InvalidRequest::PlaceNamedTwice { fields: PlaceFields::Turn, .. } => {
            "omit the number of --turn, or the message"
        }
        InvalidRequest::NoPlaceNamed { fields: PlaceFields::Turn } => {
            return format!(
                "name the turn, as in `{program} show 3a7c1e90 --turn 2`, or one of its messages, as in \
                 `{program} show 3a7c1e90#14 --turn`"
            );
        }
        InvalidRequest::NoPlaceNamed { .. } => {
            return format!(
                "name a message, as in `{program} show 3a7c1e90#14 --context`, or a turn, as in \
                 `{program} show 3a7c1e90 --turn 2 --context`"
            );
        }
        InvalidRequest::NotACursor { .. } => "use the `next` cursor that --json prints",
        InvalidRequest::BudgetTooSmall { least, .. } => {
            return format!("pass --budget {least} or more");
        }
        InvalidRequest::NoRepository { .. } => {
            return format!(
                "name a repository, for example --repo github.com/acme/app; `{program} show SESSION` shows that of a session"
            );
        }
        InvalidRequest::NothingNamedToDelete => {
            "name sessions, or pass --project, --repo, --older-than, --all or --superseded"
        }
        InvalidRequest::NotOneWayToDelete => "omit one of them; only --superseded allows both",
        InvalidRequest::Unreadable { .. } => {
            "the server may be older than this program: update it, or leave the option out"
        }
        InvalidRequest::RelativeFolder { .. } | InvalidRequest::WrongSummary { .. } => USAGE_HINT,
    };
    text.to_owned()
}

/// The problem with an argument, using the name of its option.
fn about_argument(error: &Error) -> String {
    let message = error.message();
    if !message.starts_with("must ") && !message.starts_with("is ") {
        return message.to_owned();
    }
    let argument = error.field().map(argument_of).unwrap_or_default();
    match error.context("value") {
        Some(value) if value != "\"\"" => format!("{argument} {message}, not {value}"),
        _ => format!("{argument} {message}"),
    }
}

/// The name of an argument on the command line.
fn argument_of(field: ErrorField) -> &'static str {
    use ErrorField::*;
    match field {
        ContentType | ContentTypes => "--in",
        Description => "--description",
        Exact => "--exact",
        Exclude => "--exclude",
        Limit => "--limit",
        MinSimilarity => "--min-similarity",
        MmrLambda => "--mmr-lambda",
        Mode => "--mode",
        Name => "--name",
        OrgId => "--org",
        ProjectSlug => "--project",
        Repository => "--repo",
        SessionId => "a session's id",
        Tags => "a tag",
        TeamIds => "--team",
        Until => "--until",
        UserId => "--user",
        // Their names are words.
        Address | Config | Embedding | Model | Query | Scope | Sequence | Store | Turn => field.as_str(),
        // No argument.
        Archive | BaseUrl | ChunkIndex | Container | ContentHash | Copy | Cost | Deployment | Digest
        | Dimensions | Document | Endpoint | Entra | Event | Generation | HostId | Hub | Id | Kind | Line
        | Lines | MessageId | Partition | Path | PostgresPort | Reason | Redact | Role | Root | Secrets
        | Seen | Source | Span | SpanEnd | StartSequence | Text | Texts | TokenCount | Ts | TsSource
        | Vector | VectorDimensions | Vectors | Visibility => field.as_str(),
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
pub(crate) fn is_about_arguments(error: &Error) -> bool {
    match error.kind() {
        ErrorKind::Validation => error.field().is_some_and(ErrorField::is_argument),
        ErrorKind::Unsupported => error.operation().is_none(),
        _ => false,
    }
}

/// Whether a part of the store can't be read.
pub(crate) fn is_damage(error: &Error) -> bool {
    error.kind() == ErrorKind::Damaged
}

/// Advice for a damaged store.
pub(crate) fn salvage_hint(program: &str, store: Option<&str>) -> String {
    let store = store.map_or_else(|| "the store".to_owned(), |store| format!("the damaged store {store}"));
    format!(
        "`{program} salvage --to FILE` copies what can still be read from {store} to a new one; or restore a backup"
    )
}

/// Advice for an error, if any.
pub(crate) fn hint_for(error: &Error, program: &str) -> Option<String> {
    if let Some(hint) = error.hint() {
        return Some(hint.to_owned());
    }
    if PythonDatabase::cause_of(error).is_some() {
        return Some(format!(
            "`{program} upgrade` converts it to a store and keeps the old file; `upgrade --check` reports what it would do"
        ));
    }
    let hint = match error.kind() {
        ErrorKind::SessionNotFound => &format!("`{program} sessions` lists all sessions"),
        ErrorKind::Validation => return hint_about(error.field(), program),
        ErrorKind::Rewind if error.option() == Some(ErrorOption::KeepEvents) => {
            "pass --keep-events to remove only messages"
        }
        ErrorKind::Rewind => &format!("`{program} show SESSION` shows the numbers of turns"),
        // The embedding provider is `none`.
        ErrorKind::Unsupported if error.operation() == Some(SEARCH_OPERATION) => {
            "search by words with --mode full-text, or choose a model with --embedding"
        }
        ErrorKind::Embedding if error.operation() == Some(SEARCH_OPERATION) => {
            "search by words with --mode full-text, or select the model of the store's vectors with --embedding"
        }
        ErrorKind::Unsupported if error.option() == Some(ErrorOption::ReadOnly) => {
            "run the command without --read-only"
        }
        ErrorKind::Unsupported => &kinds_of_stores(),
        ErrorKind::Authentication if error.context("account").is_some() => {
            "sign in with `az login`, or set AMPLIFIER_COSMOS_AUTH_METHOD=key and AMPLIFIER_COSMOS_KEY"
        }
        ErrorKind::StorageConnection if error.message().ends_with("not a SQLite database") => &format!(
            "if it was a store, its first page is damaged: `{program} salvage --to FILE` copies what can still be read to a new one"
        ),
        ErrorKind::StorageConnection if error.context("database").is_some() => {
            &format!("if the address is right, `{program} sync` creates the store")
        }
        ErrorKind::StorageConnection if error.context("account").is_some() => {
            "check the address of the account and the network connection"
        }
        ErrorKind::StorageConnection if error.context("server").is_some() => {
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

/// Advice for an invalid argument or other data, if any.
fn hint_about(field: Option<ErrorField>, program: &str) -> Option<String> {
    use ErrorField::*;
    let Some(field) = field else { return Some(USAGE_HINT.to_owned()) };
    let hint = match field {
        Address => "the address of a message has its number after `#`, for example 7f3c9a52#4",
        Archive => "`import` reads files that `export --out FILE` wrote",
        Config => &format!("{} lists the settings and shows an example of the file", help_of_config()),
        Container => return None,
        Embedding => "--embedding local needs no configuration; for services, see docs/embeddings.md",
        Model => &format!("`{program} embeddings models` lists all models"),
        ProjectSlug => &format!(
            "type more of the project's slug, or its folder; `{program} sessions --by project --days 365` lists projects"
        ),
        Query => &format!("`{program} sql` lists the views, and `{program} sql 'SHOW TABLES'` all tables"),
        Repository => "type more of the repository's address, for example github.com/acme/app",
        Scope => "--scope all reads everyone's sessions",
        SessionId => &format!("type more of the id; `{program} sessions` lists all sessions"),
        Store => &kinds_of_stores(),
        Turn | Sequence => &format!("`{program} show SESSION` shows the numbers of turns and messages"),
        UserId => "pass --user ID, or set AMPLIFIER_SESSIONS_USER",
        BaseUrl | ChunkIndex | ContentHash | ContentType | ContentTypes | Copy | Cost | Deployment
        | Description | Digest | Dimensions | Document | Endpoint | Entra | Event | Exact | Exclude
        | Generation | HostId | Hub | Id | Kind | Limit | Line | Lines | MessageId | MinSimilarity
        | MmrLambda | Mode | Name | OrgId | Partition | Path | PostgresPort | Reason | Redact | Role
        | Root | Secrets | Seen | Source | Span | SpanEnd | StartSequence | Tags | TeamIds | Text | Texts
        | TokenCount | Ts | TsSource | Until | Vector | VectorDimensions | Vectors | Visibility => USAGE_HINT,
    };
    Some(hint.to_owned())
}

fn kinds_of_stores() -> String {
    format!(
        "a store is a URL, for example --store sqlite:~/.amplifier/sessions.sqlite; {} lists the kinds of stores and \
         their settings",
        help_of_config()
    )
}

/// Without `--store`, because its value may be wrong, and may contain a key that does not belong there.
fn help_of_config() -> String {
    format!("`{} help config`", program::name())
}
