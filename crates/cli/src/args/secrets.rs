//! `secrets`.

use clap::{Args, builder::NonEmptyStringValueParser};

use super::PlaceArgs;

/// List the secrets in stored sessions
#[derive(Debug, Args)]
#[command(long_about = "\
Searches the stored lines of sessions for keys, passwords and other secrets: messages, events, metadata and superseded lines. \
Without SESSION, searches all sessions in --scope. Reads every line, so a large store takes a while.

A finding is `certain` if it has the form of a known kind of key, `likely` if its name says that it is a secret and it looks \
like one, and `possible` otherwise. It is shown by its address, the rule that found it, at most its first four characters and \
the text around it. Only certain and likely ones are masked, by `sync --redact mask` and in text for services on other \
machines.

Listing changes nothing. --purge removes the secrets of one message or event from the store, --ignore hides findings that are \
harmless, and `sync --redact mask` masks the secrets in all sessions, and from then on in everything that is stored.")]
#[command(after_long_help = "\
In a pipe, each secret is one line of tab-separated fields: session, project, file, sequence (empty for metadata), line, rule, \
begin and end of the secret in the line (in characters), its beginning, certainty, address, when the line was superseded (or \
empty), the text around it. The most certain come first.

--json prints one object: `redact`, `searched`, `count`, `ignored`, and `sessions` with the `count` and the `secrets` of each \
session that has any. Exits with 3 if there are no secrets, and with 1 if a line can't be read. With `--redact off`, nothing \
is searched.

Examples:
  amplifier-sessions secrets
  amplifier-sessions secrets 3a7c1e90 --json
  amplifier-sessions secrets --project payments
  amplifier-sessions secrets --purge 3a7c1e90#12
  amplifier-sessions secrets --ignore 3a7c1e90_evt_40")]
pub(crate) struct SecretsArgs {
    /// The sessions to search, each by its address; by default, all in --scope
    #[arg(value_name = "SESSION", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) sessions: Vec<String>,
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
    /// Mask all findings in this message or event, or in all lines of this session, and keep them masked. Erases them from
    /// the store, its index and its vectors
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["sessions", "project", "repo"], value_parser = NonEmptyStringValueParser::new())]
    pub(crate) purge: Option<String>,
    /// Do not list or mask the findings in this message or event, or in this session, wherever they occur. The store keeps
    /// digests of them
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["sessions", "project", "repo", "purge"], value_parser = NonEmptyStringValueParser::new())]
    pub(crate) ignore: Option<String>,
    /// List these findings again
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["sessions", "project", "repo", "purge", "ignore"], value_parser = NonEmptyStringValueParser::new())]
    pub(crate) unignore: Option<String>,
    /// Purge without asking
    #[arg(short, long, requires = "purge")]
    pub(crate) yes: bool,
}
