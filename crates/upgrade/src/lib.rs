//! Copies the sessions in databases of the Python library `amplifier_session_storage` to stores of this one.
//!
//! The Python library wrote three generations of tables, to SQLite and DuckDB files:
//!
//! | generation | vectors | recognised by |
//! | --- | --- | --- |
//! | 1 | four columns of `transcripts`, named `*_vector` or `*_vector_json` | those columns; `transcript_vectors` is a view, if it exists |
//! | 2 | rows of the table `transcript_vectors` | that table; `schema_meta` has version 2 |
//! | 3 | the same | `transcripts.has_vectors`; `schema_meta` has version 3 |
//!
//! [`upgrade`] reads such a file, never changes it, and writes to the backend of any store.
//!
//! | file | what is in it |
//! | --- | --- |
//! | `old.rs` | old files |
//! | `database.rs`, `sqlite.rs`, `duckdb.rs` | how they are read |
//! | `tables.rs` | rows by the names of their columns |
//! | `ids.rs`, `json.rs` | identifiers and JSON of any quality |
//! | `sessions.rs`, `messages.rs`, `events.rs`, `event_chunks.rs`, `vectors.rs` | from old rows to the model |
//! | `spaces.rs` | which vectors the store takes |
//! | `target.rs` | the store |
//! | `transfer.rs`, `writing.rs` | all rows, session by session; the writes of one session |
//! | `place.rs` | how the new store takes the place of the old file |
//! | `run.rs`, `report.rs` | the whole upgrade and its report |

mod database;
#[cfg(feature = "duckdb")]
mod duckdb;
mod event_chunks;
mod events;
mod ids;
mod json;
mod messages;
mod old;
mod replacement;
mod report;
mod run;
mod sessions;
mod spaces;
mod sqlite;
mod tables;
mod target;
mod transfer;
mod vectors;
mod writing;

pub use amplifier_session_sql::python::PythonDatabase;
pub use replacement::is_interrupted;
pub use report::{OnProgress, Upgrade, UpgradeCounts, UpgradeOutcome, UpgradeProgress};
pub use run::{NewStore, OpenStore, UpgradeOptions, upgrade};
