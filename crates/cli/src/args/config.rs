//! `config`.

use amplifier_session_storage::{
    BACKENDS,
    config::{Setting, settings},
};
use clap::{Args, Subcommand};

use super::InitArgs;

/// Show the configuration, or create a store
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, after_long_help = long_help())]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    pub(crate) action: Option<ConfigAction>,
}

/// The subcommands of `config`.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigAction {
    /// Show every setting with its value, and where the value comes from
    Show,
    Init(InitArgs),
}

const EXAMPLES: &str = "\
Examples:
  amplifier-sessions config show
  amplifier-sessions config show --embedding none --json
  amplifier-sessions --store postgres://admin@db/team config init
  amplifier-sessions help config                             all settings";

const FILE: &str = "\
The first of these that has a value for a setting wins: the store URL (for settings of stores), the command line, the \
environment, the file ~/.config/amplifier-sessions/config.toml (or the one that --config or AMPLIFIER_SESSIONS_CONFIG \
names), the default. Keys are never shown.

In a pipe, `config show` prints one line for each setting: name, value and origin, separated by tabs.

A file:

  store = \"sqlite:~/sessions.sqlite\"
  exclude = [\"*-scratch/*\"]
  events = \"summary\"
  org = \"acme\"
  teams = [\"payments\", \"platform\"]
  embedding = \"openai\"

  [openai]
  base_url = \"http://localhost:11434/v1\"
  model = \"nomic-embed-text\"
  dimensions = 768

  [cosmos]
  endpoint = \"https://NAME.documents.azure.com/\"
  auth_method = \"key\"
  key_file = \"~/.config/amplifier-sessions/cosmos-key\"";

/// The file, the kinds of stores with their settings, and all other settings.
fn long_help() -> String {
    let stores: String = BACKENDS
        .iter()
        .map(|backend| {
            let settings: String = backend.settings.iter().map(|setting| line(setting, "    ")).collect();
            format!("  {}\n          {}\n{settings}", backend.form, backend.help)
        })
        .collect();
    let of_stores = |setting: &Setting| BACKENDS.iter().any(|backend| backend.settings.contains(setting));
    let others: String =
        settings().filter(|setting| !of_stores(setting)).map(|setting| line(setting, "  ")).collect();
    format!(
        "{FILE}\n\nStores, and their settings, which can also follow a store URL as ?NAME=VALUE&NAME=VALUE:\n\n\
         {stores}\nOther settings:\n\n{others}\n{EXAMPLES}"
    )
}

/// A setting with its variable and what it is for.
fn line(setting: &Setting, indent: &str) -> String {
    let default = setting.default.map(|default| format!(" [default: {default}]")).unwrap_or_default();
    format!("{indent}{}, {}\n{indent}        {}{default}\n", setting.key, setting.variable, setting.help)
}
