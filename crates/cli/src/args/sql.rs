//! `sql`.

use std::path::PathBuf;

use clap::{Args, ValueEnum, builder::NonEmptyStringValueParser};

use super::at_least_one;

/// Ask a DuckDB store in SQL
#[derive(Debug, Args)]
#[command(long_about = "\
Asks a DuckDB store in SQL, in DuckDB's dialect. The store is opened for reading only: a statement that would write, reach \
another file or load something is refused. Without a query it lists the views that are there for what is asked most; \
`SHOW TABLES` lists the tables, `DESCRIBE NAME` their columns.

SQL sees the whole store. Where that holds sessions of others, --scope all has to say that they are meant.")]
#[command(after_long_help = "\
A terminal gets a table; a pipe one line a row, its fields separated by tabs, `-` where there is nothing. Times are in \
UTC. Bytes are shown as text where they are UTF-8, and in hexadecimal digits otherwise; a vector is never shown, only \
its type. --json prints one object: columns (name, type), rows (a list each), has_more.

Exit code 3 says that there are no rows.

Examples:
  amplifier-sessions sql
  amplifier-sessions sql 'FROM tool_use'
  amplifier-sessions sql 'SELECT model, sum(cost) FROM tokens_by_model_and_day GROUP BY model'
  amplifier-sessions sql 'FROM messages_by_day' --out days.csv
  amplifier-sessions sql 'FROM events' --out events.parquet --scope all")]
#[cfg_attr(
    not(feature = "duckdb-system"),
    allow(dead_code, reason = "only a build with DuckDB looks at them")
)]
pub(crate) struct SqlArgs {
    /// The query; without one, the views are listed
    #[arg(value_name = "QUERY", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) query: Option<String>,
    /// List the views that are there for what is asked most
    #[arg(long, conflicts_with = "query")]
    pub(crate) views: bool,
    /// How the answer is written; what the name of --out ends in by default
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<SqlFormat>,
    /// Write the answer to this file, for you alone; `-` is stdout
    #[arg(long, value_name = "FILE", requires = "query")]
    pub(crate) out: Option<PathBuf>,
    /// The most rows; 1000 by default in a table, all otherwise
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub(crate) limit: Option<usize>,
}

/// How an answer is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SqlFormat {
    Table,
    Csv,
    Json,
    Parquet,
}

#[cfg(feature = "duckdb-system")]
impl SqlFormat {
    /// The format that a file's name tells.
    pub(crate) fn of_file(file: &std::path::Path) -> Option<Self> {
        match file.extension()?.to_str()? {
            "csv" => Some(Self::Csv),
            "json" => Some(Self::Json),
            "parquet" => Some(Self::Parquet),
            "txt" => Some(Self::Table),
            _ => None,
        }
    }
}
