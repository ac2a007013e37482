//! Archives of sessions as Parquet: a folder with three files, which can be imported again and read by other tools.
//!
//! | file | a row is |
//! | --- | --- |
//! | `sessions.parquet` | a session, with its metadata files |
//! | `messages.parquet` | a line of a transcript |
//! | `events.parquet` | a line of an event log |
//!
//! The rows of a session are consecutive and in order. The columns are the fields of the records of an archive
//! ([`amplifier_session_core::storage::Record`]), the user and the session. The column `checksum` of a session covers the
//! sequences, lines and digests of its rows.
//!
//! | file | content |
//! | --- | --- |
//! | `tables.rs` | the files and their columns |
//! | `rows.rs` | conversion between records and rows |
//! | `batches.rs` | conversion between rows and batches of columns |
//! | `writer.rs`, `reader.rs` | writing and reading a folder of files |

mod batches;
mod reader;
mod rows;
mod tables;
mod writer;

use std::path::Path;

use amplifier_session_core::{Error, ErrorKind};

pub use reader::ParquetReader;
pub use writer::ParquetWriter;

/// The names of the files.
pub const FILES: [&str; 3] = [tables::SESSIONS.file, tables::MESSAGES.file, tables::EVENTS.file];

/// The metadata key of each file for the version of the archive's format.
const FORMAT_KEY: &str = "amplifier-session-storage.format";
/// The metadata key for the program that wrote the archive.
const WRITER_KEY: &str = "amplifier-session-storage.writer";

/// A row: fields by column name.
type Fields = serde_json::Map<String, serde_json::Value>;

/// The error if a file can't be written or read.
fn failed(what: &str, path: &Path, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    let source = source.into();
    let message = format!("can't {what} {}: {source}", path.display());
    Error::new(ErrorKind::StorageIo, message).with_source(source)
}
