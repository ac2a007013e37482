//! `export` and `import`.

use std::path::PathBuf;

use clap::{Args, builder::NonEmptyStringValueParser};

use super::PlaceArgs;

/// Export sessions to a file of JSON lines
#[derive(Debug, Args)]
#[command(long_about = "\
Exports sessions to a file of JSON lines. `import` reads them into a store of any kind. An export contains all fields, including those set by hand, the metadata files, and every line of transcripts and \
event logs, byte for byte. It contains no vectors unless --vectors is given; `embeddings backfill` creates them again.

Exports the sessions in --scope, by default your own.")]
#[command(after_long_help = "\
Each JSON line is an object with a `record`: archive (first), session, message, event, end, complete (last). Only you can \
read the file, which replaces an existing one when it is complete. --json prints the number of sessions, messages, events and vectors.

Examples:
  amplifier-sessions export --out sessions.jsonl
  amplifier-sessions export --out payments.jsonl --project -home-ana-payments
  amplifier-sessions export --out team.jsonl --scope all
  amplifier-sessions export --out sessions.jsonl --vectors
  amplifier-sessions export --out - | zstd > sessions.jsonl.zst
  amplifier-sessions --store duckdb:~/sessions.duckdb import sessions.jsonl")]
pub(crate) struct ExportArgs {
    /// The file to write, or `-` for stdout
    #[arg(long, value_name = "FILE")]
    pub(crate) out: PathBuf,
    /// Include the vectors of messages
    #[arg(long)]
    pub(crate) vectors: bool,
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
    /// Only this session, by its address
    #[arg(long, value_name = "SESSION", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) session: Option<String>,
}

/// Import sessions that were exported, or summaries of turns
#[derive(Debug, Args)]
#[command(long_about = "\
Imports the sessions of a file that `export` wrote. Each session is stored completely or \
not at all: its rows must be complete and have the checksum that was exported. If a line is broken, its session is skipped, \
and the others are imported. Sessions that already exist are refused unless --replace is given, and sessions of other users \
unless --scope all is given. A session that was deleted from this store is imported too, with a note (were_deleted in JSON).

Vectors are imported if the archive has them (`export --vectors`) and the store has vectors of the same model, or none. \
Otherwise, `embeddings backfill` creates them.

With --summaries, sets summaries of turns. Each line of the file is an object with `message_id` and `text`: the id or the \
address of a message of the turn, and its summary of at most 10,000 characters. If a line is invalid, nothing is stored. A \
summary replaces the assistant's answer in the embedding of its turn, and `search --unit turn` finds its words. The lines of \
transcripts do not change. A later `sync` keeps the summaries as long as the user's message stays the same. These turns are \
embedded again.")]
#[command(after_long_help = "\
Broken lines are listed with their numbers. Exits with 1 if something was not imported. --json prints one object: sessions, \
replaced, messages, events, superseded, vectors, vectors_left_out (because the store has those of another model), \
were_deleted, refused, broken.

Examples:
  amplifier-sessions import sessions.jsonl
  amplifier-sessions import sessions.jsonl --replace
  amplifier-sessions import --summaries summaries.jsonl")]
pub(crate) struct ImportArgs {
    /// The file to read; with --summaries, `-` is stdin
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Replace sessions that already exist
    #[arg(long)]
    pub(crate) replace: bool,
    /// Import summaries of turns, a file of JSON lines
    #[arg(long, conflicts_with = "replace")]
    pub(crate) summaries: bool,
}
