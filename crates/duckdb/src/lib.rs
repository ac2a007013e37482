//! A backend for analytics: rows in one DuckDB file, search through the derived index beside it.
//!
//! | file | what is in it |
//! | --- | --- |
//! | `tables.rs`, `schema.rs` | tables and views; what makes a file ours |
//! | `pool.rs`, `open_files.rs` | connections: one that writes, several that read; one database a file and process |
//! | `connect.rs` | how a file is opened, and put in place when it is made |
//! | `write.rs`, `appends.rs` | the one transaction that writes sessions; rows in bulk |
//! | `sessions.rs`, `messages.rs`, `vectors.rs`, `events.rs` | reading and writing the rows of each table |
//! | `generations.rs` | from one generation of vectors to the next |
//! | `conditions.rs`, `columns.rs` | how DuckDB keeps what `amplifier-session-sql` asks for and reads |
//! | `event_counts.rs` | counting events |
//! | `python.rs` | files of the Python library: read, and upgraded |
//! | `rows.rs` | what the search index reads |
//! | `hnsw/` | the HNSW index of the extension VSS, for those who ask for it |
//! | `sql/` | questions in SQL, and the views that are there for them |
//! | `quote.rs`, `error.rs` | names and texts in statements; DuckDB's errors as ours |
//!
//! One process at a time may write a file; several may read it while none writes.

mod appends;
mod backend;
mod columns;
mod connect;
mod error;
mod event_counts;
mod events;
mod generations;
mod hnsw;
mod messages;
mod open_files;
mod pool;
mod python;
mod quote;
mod reader;
mod rows;
mod schema;
mod sessions;
mod sql;
mod tables;
mod vectors;
mod write;

pub use backend::{Access, DuckDb, DuckDbBackend};
pub use hnsw::HnswOptions;
pub use python::DuckDbUpgrade;
pub use sql::{READY_VIEWS, ReadyView, SqlAnswer, SqlColumn, SqlForm, SqlQuery, SqlRow};
