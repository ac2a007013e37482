//! Archives of sessions as Parquet: a folder with three files, for whatever reads Parquet, and to be imported again.
//!
//! | file | a row is |
//! | --- | --- |
//! | `sessions.parquet` | a session, with its metadata files |
//! | `messages.parquet` | a line of a transcript |
//! | `events.parquet` | a line of an event log |
//!
//! Rows of a session stand together, in order; the columns are the fields of the records of an archive
//! ([`amplifier_session_core::storage::Record`]), and whose they are.
//!
//! | file | what is in it |
//! | --- | --- |
//! | `tables.rs` | the files and their columns |
//! | `rows.rs` | from records to rows, and back |
//! | `batches.rs` | from rows to batches of columns, and back |
//! | `writer.rs`, `reader.rs` | a folder of files |

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

/// The version of the format of the archive, among the metadata of each file.
const FORMAT_KEY: &str = "amplifier-session-storage.format";
/// Who wrote it.
const WRITER_KEY: &str = "amplifier-session-storage.writer";

/// A row: fields by the names of their columns.
type Fields = serde_json::Map<String, serde_json::Value>;

/// The error of a file that can't be written or read.
fn failed(
    what: &str,
    path: &Path,
) -> impl FnOnce(Box<dyn std::error::Error + Send + Sync + 'static>) -> Error + use<> {
    let message = format!("can't {what} {}", path.display());
    move |source| Error::new(ErrorKind::StorageIo, format!("{message}: {source}")).with_source(source)
}
