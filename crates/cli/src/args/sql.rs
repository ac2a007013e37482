//! `sql`.

use std::path::PathBuf;

use clap::{Args, ValueEnum, builder::NonEmptyStringValueParser};

use super::at_least_one;

/// Query a DuckDB store in SQL
#[derive(Debug, Args)]
#[command(long_about = "\
Queries a DuckDB store in DuckDB's SQL dialect. The store is opened read-only: a statement that would write, access another \
file or load an extension is refused. Without a query, lists views for common questions; `SHOW TABLES` lists the tables, \
`DESCRIBE NAME` their columns.

SQL sees the whole store. If the store contains sessions of other users, --scope all is required.")]
#[command(after_long_help = "\
A terminal gets a table; a pipe gets one line of tab-separated fields per row, with `-` for NULL. Times are in UTC. Bytes are \
shown as text if they are UTF-8, or else as hexadecimal digits. --json prints one object: columns (name, type), rows (a list \
each), has_more.

Exits with 3 if there are no rows.

Examples:
  amplifier-sessions sql
  amplifier-sessions sql 'FROM tool_use'
  amplifier-sessions sql 'SELECT model, sum(cost) FROM tokens_by_model_and_day GROUP BY model'
  amplifier-sessions sql 'FROM messages_by_day' --out days.csv
  amplifier-sessions sql 'FROM events' --out events.parquet --scope all")]
#[cfg_attr(not(feature = "duckdb-system"), allow(dead_code, reason = "only a build with DuckDB reads them"))]
pub(crate) struct SqlArgs {
    /// The query; without one, the views are listed
    #[arg(value_name = "QUERY", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) query: Option<String>,
    /// List the views for common questions
    #[arg(long, conflicts_with = "query")]
    pub(crate) views: bool,
    /// The output format; by default the file extension of --out
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<SqlFormat>,
    /// Write the answer to this file, which only you can read; `-` is stdout
    #[arg(long, value_name = "FILE", requires = "query")]
    pub(crate) out: Option<PathBuf>,
    /// Maximum number of rows; by default 1000 in a table, and all otherwise
    #[arg(short = 'n', long, value_name = "N", value_parser = at_least_one)]
    pub(crate) limit: Option<usize>,
}

/// The format of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SqlFormat {
    Table,
    // Fields separated by tabs, in a pipe only.
    #[cfg(feature = "duckdb-system")]
    #[value(skip)]
    Tabs,
    Csv,
    Json,
    Parquet,
}

#[cfg(feature = "duckdb-system")]
impl SqlFormat {
    /// The format for a file name.
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
