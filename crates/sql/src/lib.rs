//! The common parts of the SQL backends.
//!
//! | file | contents |
//! | --- | --- |
//! | `query.rs` | statements as data, and the trait of connections that run them |
//! | `read/` | the reads, one file for each subject |
//! | `conditions/` | conditions with their values, and the dialect |
//! | `columns.rs`, `rows.rs` | decoding rows |
//! | `table.rs` | rows to write |
//! | `numbers.rs` | numbers as literals in statements |
//! | `backend/` | a backend on a SQL database |
//! | `embedded/` | a backend on an embedded database, with the search index beside it |
//! | `deletions.rs`, `removals.rs` | remembered deletions; sessions that left a scope |
//! | `superseded.rs` | superseded lines |
//! | `turns.rs` | embeddings and summaries of turns |
//! | `views.rs` | the views for people and their tools |
//! | `file.rs`, `file_copy.rs` | database files, which only their owner can read; private copies of them |
//! | `staging.rs` | folders in which files are written before they replace others |
//! | `quote.rs` | quoted names and texts |
//! | `contents.rs`, `python.rs` | recognising stores, and databases of the Python library |
//!
//! A backend describes the differences of its database with a [`Dialect`], and implements [`Columns`] for its driver's
//! rows and [`Reader`] for its connections. The tables have the same names and aliases in all databases: `sessions s`,
//! `transcripts t`, `events e`.

#[cfg(feature = "backend")]
pub mod backend;
mod columns;
mod conditions;
mod contents;
pub mod deletions;
#[cfg(feature = "embedded")]
pub mod embedded;
pub mod file;
mod file_copy;
mod numbers;
pub mod python;
mod query;
pub mod quote;
pub mod read;
pub mod removals;
pub mod rows;
pub mod staging;
pub mod superseded;
pub mod table;
pub mod turns;
pub mod views;

pub use columns::{Columns, damaged, digest, number, unless_damaged};
pub use conditions::{Batch, Conditions, Dialect, PendingRows, Value, WordSearch};
pub use contents::Contents;
pub use file_copy::FileCopy;
pub use numbers::is_one_of;
pub use query::{Query, Reader, Statement};
pub use table::{Cell, Table};

/// The message of errors of a full disk.
pub const DISK_FULL: &str = "the disk is full";

/// The message if a file can't grow beyond the limit of the process, `RLIMIT_FSIZE`.
pub const FILE_LIMIT: &str =
    "the disk is full, or a file has reached the size limit of the process (`ulimit -f`)";

/// Whether an error says that the disk is full, or that a file has reached its limit. Both need the same treatment.
#[must_use]
pub fn is_disk_full(error: &amplifier_session_core::Error) -> bool {
    [DISK_FULL, FILE_LIMIT].contains(&error.message())
}
