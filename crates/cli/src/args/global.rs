//! Options of every command.

use std::{collections::BTreeSet, path::PathBuf};

use amplifier_session_api::Reach;
use amplifier_session_storage::{
    BACKENDS, Error,
    config::{ConfigSources, Configuration, FILE_VARIABLE, Setting, SettingOrigin, settings},
};
use clap::{ArgAction, ArgMatches, Args, ValueEnum, parser::ValueSource};

use crate::{environment::Environment, failure::Failure};

/// Options of every command.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct GlobalArgs {
    // The help is `store_help`.
    #[arg(long, global = true, value_name = "URL", env = variable_of("store"), default_value = default_of("store"))]
    #[arg(hide_env_values = true, help = store_help())]
    pub(crate) store: String,
    // The help is `read_only_help`.
    #[arg(long, global = true, help = read_only_help())]
    pub(crate) read_only: bool,
    /// Your user id; by default the account of the Azure CLI, or the system user
    #[arg(long, global = true, value_name = "ID", env = variable_of("user"), hide_env_values = true)]
    pub(crate) user: Option<String>,
    /// Whose sessions to read: only your own, also those shared with you, or everyone's
    #[arg(long, global = true, value_name = "SCOPE", env = SCOPE_VARIABLE, default_value = "own")]
    #[arg(hide_env_values = true)]
    pub(crate) scope: ScopeArg,
    /// One of your teams, for --scope visible; may be repeated
    // `share --team` has the same id, so it takes the place of this option there.
    #[arg(long, global = true, value_name = "TEAM", env = variable_of("teams"), value_delimiter = ',')]
    #[arg(hide_env_values = true)]
    pub(crate) team: Vec<String>,
    /// Your organisation, for --scope visible
    #[arg(long, global = true, value_name = "ORG", env = variable_of("org"), hide_env_values = true)]
    pub(crate) org: Option<String>,
    /// What creates vectors for search by meaning: `local` is compiled in, `local:NAME` is a stronger model (see
    /// `embeddings models`), `openai` and `azure-openai` are services, `none` searches by words only
    #[arg(long, global = true, value_name = "NAME", env = variable_of("embedding"))]
    #[arg(default_value = default_of("embedding"), hide_env_values = true)]
    pub(crate) embedding: String,
    /// Mask secrets in text sent to services on other machines (`mark`), also in the store (`mask`), or nowhere (`off`);
    /// by default the value last chosen for the store, or `mark`
    #[arg(long, global = true, value_name = "WHAT", env = variable_of("redact"), hide_env_values = true)]
    #[arg(value_parser = ["off", "mark", "mask"])]
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
    /// Show and read dates in UTC; by default, in your time zone (TZ)
    #[arg(long, global = true)]
    pub(crate) utc: bool,
    /// When to use colours; NO_COLOR also turns them off
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: When,
    /// Print long output directly, without a pager
    #[arg(long, global = true)]
    pub(crate) no_pager: bool,
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
    /// The value as it is typed.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Own => "own",
            Self::Visible => "visible",
            Self::All => "all",
        }
    }
}

impl From<ScopeArg> for Reach {
    fn from(arg: ScopeArg) -> Self {
        match arg {
            ScopeArg::Own => Self::Own,
            ScopeArg::Visible => Self::Visible,
            ScopeArg::All => Self::All,
        }
    }
}

/// The environment variable for `--scope`, which is not a setting: it selects what one command reads.
const SCOPE_VARIABLE: &str = "AMPLIFIER_SESSIONS_SCOPE";

fn setting(key: &str) -> Option<&'static Setting> {
    settings().find(|setting| setting.key == key)
}

fn variable_of(key: &str) -> &'static str {
    let setting = setting(key);
    debug_assert!(setting.is_some(), "{key} is not a setting");
    setting.map_or("", |setting| setting.variable)
}

fn default_of(key: &str) -> &'static str {
    let default = setting(key).and_then(|setting| setting.default);
    debug_assert!(default.is_some(), "{key} has no default");
    default.unwrap_or_default()
}

/// The help of `--store`: the stores of this build, and servers if it has their client.
fn store_help() -> String {
    let server = cfg!(feature = "client").then_some("https://HOST (a server)");
    let forms: Vec<&str> = BACKENDS.iter().map(|backend| backend.form).chain(server).collect();
    format!("Where the sessions are stored: {}; `help config` lists their settings", forms.join(", "))
}

/// The help of `--read-only`: which stores of this build can be opened that way.
fn read_only_help() -> String {
    let names = BACKENDS.iter().filter(|backend| backend.read_only).map(|backend| backend.name);
    match names.collect::<Vec<_>>().join(" or ") {
        names if names.is_empty() => {
            "Open the store read-only, which no store of this build supports".to_owned()
        }
        names => {
            format!("Open a {names} store read-only, so that several processes can read it at the same time")
        }
    }
}

impl GlobalArgs {
    /// Fills in options from the configuration where none was typed, according to `matches`.
    pub(crate) fn configure(
        &mut self,
        matches: &ArgMatches,
        environment: &Environment,
    ) -> Result<Configuration, Error> {
        let Environment { home, variables, .. } = environment;
        let mut sources = ConfigSources::new(home.clone(), variables.clone()).with_file(self.config.clone());
        let typed = [
            ("store", Some(&self.store)),
            ("user", self.user.as_ref()),
            ("embedding", Some(&self.embedding)),
            ("redact", self.redact.as_ref()),
            ("org", self.org.as_ref()),
        ];
        // Options also have values by default, which must not hide those of the configuration.
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
        let in_file = entries.filter(|entry| matches!(entry.origin, SettingOrigin::File { .. }));
        self.from_file = in_file.map(|entry| entry.setting.key).collect();
        Ok(configuration)
    }

    /// The options that select store and sessions, to repeat in hints: without defaults and options that come from the
    /// environment or the configuration file. Each begins with a space.
    pub(crate) fn typed_again(&self) -> String {
        let scope = if self.scope == ScopeArg::Own { "" } else { self.scope.as_str() };
        // Elsewhere, they have no effect; `share` has options with the same names.
        let groups = if self.scope == ScopeArg::Visible { self.groups_again() } else { String::new() };
        self.store_typed_again()
            + &self.setting_again("user", self.user.as_deref())
            + &again("--scope", SCOPE_VARIABLE, scope)
            + &groups
            + if self.utc { " --utc" } else { "" }
    }

    /// The typed teams and organisation.
    fn groups_again(&self) -> String {
        self.setting_again("teams", Some(&self.team.join(",")))
            + &self.setting_again("org", self.org.as_deref())
    }

    /// The options that select the store, for hints about the sessions of everyone in it.
    pub(crate) fn store_typed_again(&self) -> String {
        let config = self.config.as_ref().map(|file| file.display().to_string()).unwrap_or_default();
        again("--config", FILE_VARIABLE, &config) + &self.setting_again("store", Some(&self.store))
    }

    /// [`Self::typed_again`] with `--embedding`, for hints about vectors.
    pub(crate) fn typed_again_with_embedding(&self) -> String {
        let allow = if self.allow_http { " --allow-http" } else { "" };
        self.typed_again() + &self.setting_again("embedding", Some(&self.embedding)) + allow
    }

    /// The value of `--user`, if it was typed.
    pub(crate) fn typed_user(&self) -> Option<String> {
        let user = self.user.as_deref();
        user.filter(|_| !self.setting_again("user", user).is_empty()).map(str::to_owned)
    }

    /// Whether `--team` or `--org` was typed.
    pub(crate) fn typed_groups(&self) -> bool {
        !self.groups_again().is_empty()
    }

    /// Fails if an option was typed that means nothing to a server, because its token or the server itself decides that.
    pub(crate) fn check_for_server(&self) -> Result<(), Failure> {
        const STORE: &str = "the server decides that for its store";
        let typed = |key: &str, value: Option<&str>| !self.setting_again(key, value).is_empty();
        let options = [
            ("--user", typed("user", self.user.as_deref()), "the user is that of the token"),
            ("--embedding", typed("embedding", Some(&self.embedding)), STORE),
            ("--redact", typed("redact", self.redact.as_deref()), STORE),
            ("--read-only", self.read_only, STORE),
        ];
        match options.into_iter().find(|(_, is_typed, _)| *is_typed) {
            Some((option, _, hint)) => {
                Err(Failure::wrong_use(format!("{option} can't be used with a server"), hint))
            }
            None => Ok(()),
        }
    }

    /// Fails if teams or an organisation were typed to read from a server.
    pub(crate) fn check_groups_for_server(&self) -> Result<(), Failure> {
        if self.typed_groups() {
            return Err(Failure::wrong_use(
                "--team and --org can't be used with a server",
                "`token create` on the server sets the teams and the organisation of a token",
            ));
        }
        Ok(())
    }

    /// The option for a setting with this value, unless the value is the default or comes from the configuration file.
    fn setting_again(&self, key: &str, value: Option<&str>) -> String {
        match (setting(key), value) {
            (Some(Setting { option: Some(option), variable, default, .. }), Some(value))
                if *default != Some(value) && !self.from_file.contains(key) =>
            {
                again(option, variable, value)
            }
            _ => String::new(),
        }
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

/// When to do something that by default only happens on a terminal.
// No doc comments on the values of an argument: they would turn every help text into its long form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum When {
    Auto,
    Always,
    Never,
}

/// An option with its value after a space, unless the value is empty or that of the environment variable.
fn again(option: &str, variable: &str, value: &str) -> String {
    if value.is_empty() || Environment::current().variable(variable) == Some(value) {
        return String::new();
    }
    format!(" {option} {}", quoted(value))
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
    fn options_are_settings() {
        for (key, option) in [
            ("store", "--store"),
            ("user", "--user"),
            ("teams", "--team"),
            ("org", "--org"),
            ("embedding", "--embedding"),
            ("redact", "--redact"),
        ] {
            assert_eq!(setting(key).and_then(|setting| setting.option), Some(option));
        }
    }

    #[test]
    fn text_that_a_shell_would_split_is_quoted() {
        assert_eq!(quoted("sqlite:~/a.sqlite"), "sqlite:~/a.sqlite");
        assert_eq!(quoted("a b"), "'a b'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
    }
}
