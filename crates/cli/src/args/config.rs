//! `config`.

use clap::{Args, Subcommand};

/// Show what is configured, and where
#[derive(Debug, Args)]
#[command(after_help = "\
What the command line says comes first, then the environment, then the file ~/.config/amplifier-sessions/config.toml \
(or the one that --config or AMPLIFIER_SESSIONS_CONFIG names), then the default. Keys are never shown.

The file, with the settings as `config show` names them:

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
  key_file = \"~/.config/amplifier-sessions/cosmos-key\"

In a pipe, one line each of setting, value and origin, separated by tabs.

Examples:
  amplifier-sessions config show
  amplifier-sessions config show --embedding none --json")]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    pub(crate) action: Option<ConfigAction>,
}

/// What to do with the configuration.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigAction {
    /// Show every setting as it is in force, and who says so
    Show,
}
