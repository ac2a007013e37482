//! `token`: makes, lists and revokes the tokens of `serve`.

use std::{io, path::PathBuf};

use amplifier_session_server::{NewToken, StorageQuota, TokenFile, TokenRecord};
use amplifier_session_storage::{
    config::{ConfigSources, SettingOrigin},
    model::Timestamp,
};
use jiff::{Span, Zoned};
use serde::Serialize;

use crate::{
    app::App,
    args::{CreateTokenArgs, TokenAction, TokenArgs},
    failure::{Failure, Outcome, say},
};

/// The tokens as JSON.
#[derive(Debug, Serialize)]
struct TokensView<'a> {
    tokens: Vec<TokenView<'a>>,
}

/// A token as JSON, without its hash.
#[derive(Debug, Serialize)]
struct TokenView<'a> {
    id: &'a str,
    name: Option<&'a str>,
    user_id: &'a str,
    teams: &'a [String],
    org: Option<&'a str>,
    reach: &'static str,
    rights: Vec<&'static str>,
    created: Timestamp,
    expires: Option<Timestamp>,
    expired: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    quota_sessions: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    quota_rows: Option<u64>,
}

/// A new token as JSON.
#[derive(Debug, Serialize)]
struct NewTokenView<'a> {
    id: &'a str,
    token: &'a str,
}

pub(super) fn run(app: &mut App, args: TokenArgs) -> Result<Outcome, Failure> {
    let file = token_file(app, args.tokens)?;
    match args.action {
        TokenAction::Create(args) => create(app, &file, args),
        TokenAction::List => list(app, &file),
        TokenAction::Revoke { id } => revoke(&file, &id),
    }
}

/// The file of the tokens: the named one, or that in the folder of the configuration.
pub(super) fn token_file(app: &App, named: Option<PathBuf>) -> Result<TokenFile, Failure> {
    let by_default = || {
        let environment = &app.environment;
        let sources = ConfigSources::new(app.home.clone(), environment.variables.clone());
        Some(sources.folder_of_configuration()?.join("tokens.toml"))
    };
    let path = named.filter(|path| !path.as_os_str().is_empty()).or_else(by_default);
    let none = || Failure::failed("there is no home folder for the tokens", "pass --tokens FILE");
    path.map(TokenFile::new).ok_or_else(none)
}

/// The token that the options ask for. The teams of the configuration are those of one user, so only typed ones count.
fn create(app: &mut App, file: &TokenFile, args: CreateTokenArgs) -> Result<Outcome, Failure> {
    let is_typed = |key| matches!(app.config.origin(key), SettingOrigin::CommandLine(_));
    let new = NewToken {
        name: args.name,
        teams: app.global.team.clone().into_iter().filter(|_| is_typed("teams")).collect(),
        org: app.global.org.clone().filter(|_| is_typed("org")),
        reach: args.reach.into(),
        rights: args.rights.into_iter().map(Into::into).collect(),
        expires: args.expires.as_deref().map(|text| end(text, &app.now)).transpose()?,
        quota: StorageQuota { sessions: args.quota_sessions, rows: args.quota_rows },
        ..NewToken::new(app.who()?.0.user_id)
    };
    let token = file.create(&new, timestamp(&app.now)).map_err(|error| unwritable(file, &error))?;
    if app.out.is_json() {
        app.out.json(&NewTokenView { id: token.id(), token: token.text() })?;
    } else {
        app.out.line(token.text())?;
    }
    app.out.finish()?;
    Ok(Outcome::Done)
}

fn list(app: &mut App, file: &TokenFile) -> Result<Outcome, Failure> {
    let tokens = file.tokens().map_err(|error| unwritable(file, &error))?;
    let now = timestamp(&app.now);
    if app.out.is_json() {
        app.out.json(&TokensView { tokens: tokens.iter().map(|token| view(token, now)).collect() })?;
    } else {
        for token in &tokens {
            app.out.line(&line(token, now, app.out.is_terminal()))?;
        }
    }
    app.out.finish()?;
    if tokens.is_empty() {
        say("note", &format!("there are no tokens in {}", file.path().display()));
    }
    Ok(Outcome::found(!tokens.is_empty()))
}

fn revoke(file: &TokenFile, id: &str) -> Result<Outcome, Failure> {
    match file.revoke(id).map_err(|error| unwritable(file, &error))? {
        Some(token) => {
            say("note", &format!("token {id} of {} ends within two seconds", token.user));
            Ok(Outcome::Done)
        }
        None => {
            say("note", &format!("there is no token {id} in {}", file.path().display()));
            Ok(Outcome::FoundNothing)
        }
    }
}

fn view(token: &TokenRecord, now: Timestamp) -> TokenView<'_> {
    TokenView {
        id: &token.id,
        name: token.name.as_deref(),
        user_id: token.user.as_str(),
        teams: &token.teams,
        org: token.org.as_deref(),
        reach: token.reach.as_str(),
        rights: token.rights.iter().map(|right| right.as_str()).collect(),
        created: token.created,
        expires: token.expires,
        expired: token.has_expired(now),
        quota_sessions: token.quota_sessions,
        quota_rows: token.quota_rows,
    }
}

fn line(token: &TokenRecord, now: Timestamp, is_terminal: bool) -> String {
    let day = |time: Timestamp| time.to_string().chars().take(10).collect::<String>();
    let rights: Vec<&str> = token.rights.iter().map(|right| right.as_str()).collect();
    let expires = match token.expires {
        None => String::new(),
        Some(_) if is_terminal && token.has_expired(now) => "expired".to_owned(),
        Some(expires) => day(expires),
    };
    let name = token.name.clone().unwrap_or_default();
    let (user, rights) = (token.user.to_string(), rights.join(","));
    let fields =
        [token.id.clone(), user, token.reach.as_str().to_owned(), rights, day(token.created), expires, name];
    fields
        .map(|field| amplifier_session_api::text::one_line(&field))
        .join(if is_terminal { "  " } else { "\t" })
        .trim_end()
        .to_owned()
}

/// The end of a period that begins now.
fn end(text: &str, now: &Zoned) -> Result<Timestamp, Failure> {
    let wrong = || {
        Failure::wrong_use(
            format!("--expires {text} is not a time from now"),
            "times are 90d, 12h or 4w, for example",
        )
    };
    let period: Span = text.parse().map_err(|_| wrong())?;
    if !period.is_positive() {
        return Err(wrong());
    }
    Ok(timestamp(&now.checked_add(period).map_err(|_| wrong())?))
}

fn timestamp(time: &Zoned) -> Timestamp {
    Timestamp::from_micros(time.timestamp().as_microsecond())
}

fn unwritable(file: &TokenFile, error: &io::Error) -> Failure {
    let message = format!("can't use the tokens in {}: {error}", file.path().display());
    Failure::failed(message, "pass another file with --tokens, or repair this one")
}
