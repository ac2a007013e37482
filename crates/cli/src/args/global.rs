//! Options of every command.

use std::{collections::BTreeSet, path::PathBuf};

use amplifier_session_storage::{
    BACKENDS, Error,
    config::{ConfigSources, Configuration, FILE_VARIABLE, Origin},
};
use clap::{ArgAction, ArgMatches, Args, ValueEnum, parser::ValueSource};

/// Options of every command.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct GlobalArgs {
    // The help is `store_help`.
    #[arg(long, global = true, value_name = "URL", env = STORE_VARIABLE, default_value = DEFAULT_STORE)]
    #[arg(hide_env_values = true, help = store_help())]
    pub(crate) store: String,
    // The help is `read_only_help`.
    #[arg(long, global = true, help = read_only_help())]
    pub(crate) read_only: bool,
    /// Your user id; by default the account of the Azure CLI, or the system user
    #[arg(long, global = true, value_name = "ID", env = USER_VARIABLE, hide_env_values = true)]
    pub(crate) user: Option<String>,
    /// Whose sessions to read: your own, also those shared with you, or everyone's
    #[arg(long, global = true, value_name = "SCOPE", env = SCOPE_VARIABLE, default_value = "own")]
    #[arg(hide_env_values = true)]
    pub(crate) scope: ScopeArg,
    /// A team of yours, for --scope visible; may be repeated
    // `share --team` has the same id, so it takes the place of this option there.
    #[arg(long, global = true, value_name = "TEAM", env = TEAMS_VARIABLE, value_delimiter = ',')]
    #[arg(hide_env_values = true)]
    pub(crate) team: Vec<String>,
    /// Your organisation, for --scope visible
    #[arg(long, global = true, value_name = "ORG", env = ORG_VARIABLE, hide_env_values = true)]
    pub(crate) org: Option<String>,
    /// What makes vectors for search by meaning: `local` is compiled in, `local:NAME` is a stronger model (see
    /// `models`), `openai` and `azure-openai` are services, `none` searches by words only
    #[arg(
        long,
        global = true,
        value_name = "NAME",
        env = EMBEDDING_VARIABLE,
        default_value = DEFAULT_EMBEDDING
    )]
    #[arg(hide_env_values = true)]
    pub(crate) embedding: String,
    /// Whether to mask secrets in text that is sent to a service on another machine; on by default
    #[arg(long, global = true, value_name = "WHETHER", env = REDACT_VARIABLE, hide_env_values = true)]
    #[arg(value_parser = ["on", "off"])]
    pub(crate) redact: Option<String>,
    /// Allow sending a key to another machine over plain http://, where others can read it
    #[arg(long, global = true, hide_short_help = true)]
    pub(crate) allow_http: bool,
    /// The configuration file; by default ~/.config/amplifier-sessions/config.toml
    #[arg(long, global = true, value_name = "FILE", env = FILE_VARIABLE, hide_env_values = true)]
    pub(crate) config: Option<PathBuf>,
    /// Print results as one JSON object
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// When to use colours; NO_COLOR also turns them off
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: When,
    /// Print a log on stderr; twice for more detail
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub(crate) verbose: u8,
    /// The settings that come from the configuration file.
    #[arg(skip)]
    from_file: BTreeSet<&'static str>,
}

/// Whose sessions to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ScopeArg {
    Own,
    Visible,
    All,
}

impl ScopeArg {
    /// As it is typed.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Own => "own",
            Self::Visible => "visible",
            Self::All => "all",
        }
    }
}

/// The default store.
const DEFAULT_STORE: &str = "sqlite:~/.amplifier/sessions.sqlite";

/// The default embedding provider.
const DEFAULT_EMBEDDING: &str = "local";
/// The environment variable for `--embedding`.
const EMBEDDING_VARIABLE: &str = "AMPLIFIER_SESSIONS_EMBEDDING";

/// The environment variable for `--store`.
const STORE_VARIABLE: &str = "AMPLIFIER_SESSIONS_STORE";
/// The environment variable for `--user`.
const USER_VARIABLE: &str = "AMPLIFIER_SESSIONS_USER";
/// The environment variable for `--redact`.
const REDACT_VARIABLE: &str = "AMPLIFIER_SESSIONS_REDACT";
/// The environment variable for `--scope`.
const SCOPE_VARIABLE: &str = "AMPLIFIER_SESSIONS_SCOPE";
/// The environment variable for `--team`.
const TEAMS_VARIABLE: &str = "AMPLIFIER_SESSIONS_TEAMS";
/// The environment variable for `--org`.
const ORG_VARIABLE: &str = "AMPLIFIER_SESSIONS_ORG";

/// The help of `--store`: the stores of this build.
fn store_help() -> String {
    let forms: Vec<&str> = BACKENDS.iter().map(|backend| backend.form).collect();
    format!("Where the sessions are stored: {}; `help config` lists their settings", forms.join(", "))
}

/// The help of `--read-only`: which stores of this build can be opened that way.
fn read_only_help() -> String {
    let names = BACKENDS.iter().filter(|backend| backend.read_only).map(|backend| backend.name);
    match names.collect::<Vec<_>>().join(" or ") {
        names if names.is_empty() => {
            "Open the store read-only, which no store of this build can do".to_owned()
        }
        names => {
            format!("Open a {names} store read-only, so that several processes can read it at the same time")
        }
    }
}

impl GlobalArgs {
    /// Fills in options from the configuration where none was typed, according to `matches`.
    pub(crate) fn configure(&mut self, matches: &ArgMatches) -> Result<Configuration, Error> {
        let mut sources = ConfigSources::from_env().with_file(self.config.clone());
        let typed = [
            ("store", Some(&self.store)),
            ("user", self.user.as_ref()),
            ("embedding", Some(&self.embedding)),
            ("redact", self.redact.as_ref()),
            ("org", self.org.as_ref()),
        ];
        let is_typed = |key| matches.value_source(key) == Some(ValueSource::CommandLine);
        for (key, value) in typed {
            if let Some(value) = value.filter(|_| is_typed(key)) {
                sources = sources.with_option(key, value);
            }
        }
        if self.allow_http {
            sources = sources.with_option("allow_http", "true");
        }
        if is_typed("team") {
            sources = sources.with_option("teams", &self.team.join(","));
        }
        let configuration = Configuration::read(&sources)?;
        let text = |key| configuration.text(key).map(str::to_owned);
        self.store = text("store").unwrap_or_default();
        self.user = text("user");
        self.embedding = text("embedding").unwrap_or_default();
        self.org = text("org");
        self.team = configuration.list("teams").to_vec();
        let entries = configuration.entries().iter();
        let in_file = entries.filter(|entry| matches!(entry.origin, Origin::File { .. }));
        self.from_file = in_file.map(|entry| entry.setting.key).collect();
        Ok(configuration)
    }

    /// The options that select store and sessions, to repeat in hints: without defaults and options that come from the
    /// environment or the configuration file. Each begins with a space.
    pub(crate) fn typed_again(&self) -> String {
        let some = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        let team = some(&self.team.join(",")).filter(|_| !self.from_file.contains("teams"));
        let whose = options([
            ("--user", USER_VARIABLE, self.user.clone().filter(|_| !self.from_file.contains("user"))),
            ("--scope", SCOPE_VARIABLE, some(self.scope.as_str()).filter(|_| self.scope != ScopeArg::Own)),
            ("--team", TEAMS_VARIABLE, team),
            ("--org", ORG_VARIABLE, self.org.clone().filter(|_| !self.from_file.contains("org"))),
        ]);
        self.store_typed_again() + &whose
    }

    /// The options that select the store, for hints about the sessions of everyone in it.
    pub(crate) fn store_typed_again(&self) -> String {
        let store = Some(&self.store).filter(|store| !store.is_empty() && *store != DEFAULT_STORE);
        let config = self.config.as_ref().map(|file| file.display().to_string());
        options([
            ("--config", FILE_VARIABLE, config),
            ("--store", STORE_VARIABLE, store.filter(|_| !self.from_file.contains("store")).cloned()),
        ])
    }

    /// [`Self::typed_again`] with `--embedding`, for hints about vectors.
    pub(crate) fn typed_again_with_embedding(&self) -> String {
        let is_default = self.embedding == DEFAULT_EMBEDDING
            || self.from_file.contains("embedding")
            || is_said(EMBEDDING_VARIABLE, &self.embedding);
        let embedding =
            if is_default { String::new() } else { format!(" --embedding {}", quoted(&self.embedding)) };
        let allow = if self.allow_http { " --allow-http" } else { "" };
        self.typed_again() + &embedding + allow
    }

    /// Whether `--team` or `--org` were typed.
    pub(crate) fn typed_groups(&self) -> bool {
        let team = self.team.join(",");
        let team_is_typed = !team.is_empty() && !self.from_file.contains("teams");
        let org_is_typed = |_: &&String| !self.from_file.contains("org");
        team_is_typed && !is_said(TEAMS_VARIABLE, &team)
            || self.org.as_ref().filter(org_is_typed).is_some_and(|org| !is_said(ORG_VARIABLE, org))
    }

    /// What to log, in the syntax of `tracing_subscriber::EnvFilter`; nothing by default.
    pub(crate) fn log_level(&self) -> Option<&'static str> {
        match self.verbose {
            0 => None,
            1 => Some("info"),
            _ => Some("debug"),
        }
    }
}

/// When to do something that is by default for terminals only.
// No doc comments on the values of an argument: they would turn every help text into its long form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum When {
    Auto,
    Always,
    Never,
}

/// Whether the environment variable has this value.
fn is_said(variable: &str, value: &str) -> bool {
    std::env::var(variable).is_ok_and(|said| said == value)
}

/// The options that have a value, except those whose environment variable has the same value. Each begins with a space.
fn options<const N: usize>(all: [(&str, &str, Option<String>); N]) -> String {
    let typed = all.into_iter().filter_map(|(option, variable, value)| {
        let value = value.filter(|value| !is_said(variable, value))?;
        Some(format!(" {option} {}", quoted(&value)))
    });
    typed.collect()
}

/// `text`, quoted for a shell if it must be.
pub(crate) fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_.,:/~@%+=".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_those_of_the_configuration() {
        let configuration = Configuration::read(&ConfigSources::default()).unwrap();
        assert_eq!(configuration.text("store"), Some(DEFAULT_STORE));
        assert_eq!(configuration.text("embedding"), Some("local"));
    }

    #[test]
    fn text_that_a_shell_would_split_is_quoted() {
        assert_eq!(quoted("sqlite:~/a.sqlite"), "sqlite:~/a.sqlite");
        assert_eq!(quoted("a b"), "'a b'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
    }
}
