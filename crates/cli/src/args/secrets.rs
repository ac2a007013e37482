//! `secrets`.

use clap::{Args, builder::NonEmptyStringValueParser};

/// List the secrets in stored sessions
#[derive(Debug, Args)]
#[command(long_about = "\
Searches the stored lines of sessions for keys, passwords and other secrets: messages, events and metadata. Without SESSION, \
searches all sessions in --scope. Reads every line, so a large store takes a while.

A secret is shown by its place and the rule that found it, with at most its first four characters. The same rules mask text \
for services on other machines.

Nothing is changed. `sync --redact mask` masks the secrets in all sessions of the store, and from then on in everything that is \
stored; `delete` removes a session.")]
#[command(after_long_help = "\
In a pipe, each secret is one line of tab-separated fields: session, project, file, sequence (empty for metadata), line, rule, \
begin and end of the secret in the line (in characters), its beginning.

--json prints one object: `redact`, `searched`, `count`, and `sessions` with the `count` and the `secrets` of each session \
that has any. Exits with 3 if there are no secrets, and with 1 if a line can't be read. With `--redact off`, nothing is \
searched.

Examples:
  amplifier-sessions secrets
  amplifier-sessions secrets 3a7c1e90 --json
  amplifier-sessions secrets --project payments")]
pub(crate) struct SecretsArgs {
    /// The sessions to search, each by its address; by default, all in --scope
    #[arg(value_name = "SESSION", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) sessions: Vec<String>,
    /// Only sessions of this project: its slug, a unique part of the slug, or its folder
    #[arg(long, value_name = "PROJECT", allow_hyphen_values = true)]
    pub(crate) project: Option<String>,
}
