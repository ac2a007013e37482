//! `copy`.

use clap::{Args, builder::NonEmptyStringValueParser};

use super::PlaceArgs;

/// Copy sessions from one store to another, of any kind
#[derive(Debug, Args)]
#[command(long_about = "\
Copies sessions from one store to another: messages, events, superseded lines, metadata files, vectors, and everything set \
by hand, such as names, tags and sharing. The stores may be of different kinds. The source is not changed, and the target is \
created if it does not exist. Copies the sessions in --scope, by default your own; they keep their owner.

Sessions that the target already has are skipped. If the target has a session with the same id but different content, that \
session is left alone and listed, unless --replace is given. If the command is interrupted, run it again: it continues where \
it stopped.

From a server, all sessions of its token's user are copied, without vectors: only what the target lacks, and nothing is \
deleted. With --follow, the command goes on, and copies changes within about a second; after a cut, it goes on where it \
was. Names, descriptions and tags that were changed on both sides: the newest wins. The token is in AMPLIFIER_SESSIONS_TOKEN, or by host in credentials.toml beside the configuration.

After it is written, each session is read again from the target, and must have the same digest as in the source.

Vectors are copied if both stores have vectors of the same model, or the target has none. If the target has vectors of \
another model, the messages are copied without vectors; `embeddings backfill` creates them.")]
#[command(after_long_help = "\
Without --project, --repo and --since, the target also remembers which sessions were deleted from the source, so that a sync does not \
read them again. Settings of a new target, such as the masking of secrets, are those of the source.

Exits with 1 if a session was not copied, and with 3 if no session matches. --json prints one object: from, to, sessions, \
replaced, unchanged, messages, events, superseded, vectors, deletions, space, other_space, not_copied (with user_id, \
session_id, because, reason). With --follow, it prints an object for each `event` on a line: `pulled`, `down`, `back`, \
`stopped`.

Examples:
  amplifier-sessions copy --to duckdb:~/sessions.duckdb
  amplifier-sessions copy --from duckdb:old.duckdb --to sqlite:new.sqlite --scope all
  amplifier-sessions copy --to sqlite:/mnt/team.sqlite --project -home-ana-payments --since 7d
  amplifier-sessions copy --to duckdb:~/sessions.duckdb --replace
  amplifier-sessions copy --from https://sessions.example.com --to sqlite:mine.sqlite
  amplifier-sessions copy --from https://sessions.example.com --to sqlite:mine.sqlite --follow")]
pub(crate) struct CopyArgs {
    /// The store to copy from, or the address of a server (see `serve`); by default the configured one
    #[arg(long, value_name = "URL", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) from: Option<String>,
    /// The store to copy to
    #[arg(long, value_name = "URL", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) to: String,
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
    /// Only sessions that changed on this date or later
    #[arg(long, value_name = "DATE")]
    pub(crate) since: Option<String>,
    /// Replace sessions of the target that have different content
    #[arg(long)]
    pub(crate) replace: bool,
    /// Also copy sessions that were deleted from the target
    #[arg(long)]
    pub(crate) include_deleted: bool,
    /// From a server: go on until the command is stopped, and copy what changes there within about a second
    #[arg(long)]
    pub(crate) follow: bool,
    /// With --follow, delete sessions that were deleted from the server; by default, their lines become superseded lines
    #[arg(long, requires = "follow")]
    pub(crate) mirror_deletes: bool,
}
