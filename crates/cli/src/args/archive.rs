//! `export` and `import`.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum, builder::NonEmptyStringValueParser};

/// Write sessions to a file, as lines of JSON or Parquet, to be imported elsewhere
#[derive(Debug, Args)]
#[command(long_about = "\
Writes sessions to a file of lines of JSON, or to a folder with three Parquet files, which `import` takes in elsewhere, on any \
kind of store: fields, also those that a person set, metadata files, every line of transcripts and event logs byte for byte. \
Vectors are left out; `backfill` makes them from the lines again.

What --scope says is written: your own sessions by default.")]
#[command(after_long_help = "\
Each line of JSON is an object with a `record`: archive (the first), session, message, event, end, complete (the last). Parquet has the same fields \
as columns of sessions.parquet, messages.parquet and events.parquet. What is written is for you alone and is put in its place \
when it is whole. --json prints how many sessions, messages and events there are.

Examples:
  amplifier-sessions export --out sessions.jsonl
  amplifier-sessions export --out payments.jsonl --project -home-ana-payments
  amplifier-sessions export --out team.jsonl --scope all
  amplifier-sessions export --out - | zstd > sessions.jsonl.zst
  amplifier-sessions export --out sessions --format parquet
  amplifier-sessions --store duckdb:~/sessions.duckdb import sessions.jsonl")]
pub(crate) struct ExportArgs {
    /// The file, or `-` for stdout; with Parquet, the folder
    #[arg(long, value_name = "PATH")]
    pub(crate) out: PathBuf,
    /// How they are written; `parquet` by default when PATH ends in .parquet, and `jsonl` otherwise
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<ArchiveFormat>,
    /// Only sessions of this project: its slug, a part of the slug that no other has, or its folder
    #[arg(long, value_name = "PROJECT", allow_hyphen_values = true)]
    pub(crate) project: Option<String>,
    /// Only this session, by its address
    #[arg(long, value_name = "SESSION", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) session: Option<String>,
}

/// How sessions are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ArchiveFormat {
    Jsonl,
    Parquet,
}

impl ArchiveFormat {
    /// The format that a name tells.
    pub(crate) fn of(path: &Path) -> Self {
        if path.extension().is_some_and(|extension| extension == "parquet") {
            Self::Parquet
        } else {
            Self::Jsonl
        }
    }
}

/// Take in sessions that were exported
#[derive(Debug, Args)]
#[command(long_about = "\
Takes in the sessions of a file, or a folder of Parquet files, that `export` wrote. Each is stored whole or not at all. One that is there already is refused, \
unless --replace lets it take the place; so are sessions of others, unless --scope all says that they are meant.

Messages owe their vectors then: `backfill` makes them.")]
#[command(after_long_help = "\
A line that is none of an export is an error that names it; what was read before is stored. Exit code 1 says that something \
was not taken. --json prints one object: sessions, replaced, messages, events, refused.

Examples:
  amplifier-sessions import sessions.jsonl
  amplifier-sessions import sessions.jsonl --replace
  amplifier-sessions import sessions.parquet")]
pub(crate) struct ImportArgs {
    /// The file, or the folder of Parquet files
    #[arg(value_name = "PATH")]
    pub(crate) file: PathBuf,
    /// Let sessions take the place of those that are there
    #[arg(long)]
    pub(crate) replace: bool,
}
