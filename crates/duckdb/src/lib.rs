//! A backend for analytics: rows in one DuckDB file, search through the derived index beside it.
//!
//! | file | what is in it |
//! | --- | --- |
//! | `tables.rs`, `schema.rs` | tables and views; what makes a file ours |
//! | `pool.rs`, `open_files.rs` | connections: one that writes, several that read; one database a file and process |
//! | `connect.rs` | how a file is opened, and put in place when it is made |
//! | `connection.rs`, `columns.rs` | DuckDB's dialect; a connection, a transaction and a row as `amplifier-session-sql` uses them |
//! | `vectors.rs` | the tables of vectors, and rows for them in bulk |
//! | `lookups.rs`, `event_counts.rs` | reads that DuckDB does in its own way |
//! | `payloads.rs` | compressed payloads, for questions in SQL |
//! | `numbers.rs` | numbers that are given out |
//! | `python.rs` | files of the Python library: read, and upgraded |
//! | `hnsw/` | the HNSW index of the extension VSS, for those who ask for it |
//! | `sql/` | questions in SQL, and the views that are there for them |
//! | `factory.rs` | how a store is opened by its URL; its settings |
//! | `quote.rs`, `error.rs` | names and texts in statements; DuckDB's errors as ours |
//!
//! One process at a time may write a file; several may read it while none writes.

mod backend;
mod columns;
mod connect;
mod connection;
mod error;
mod event_counts;
mod factory;
mod hnsw;
mod lookups;
mod numbers;
mod open_files;
mod payloads;
mod pool;
mod python;
mod quote;
mod schema;
mod sql;
mod tables;
mod vectors;

pub use backend::{DuckDb, DuckDbBackend};
pub use connect::Access;
pub use factory::FACTORY;
pub use hnsw::HnswOptions;
pub use python::DuckDbUpgrade;
pub use sql::{READY_VIEWS, ReadyView, SqlAnswer, SqlColumn, SqlForm, SqlQuery, SqlRow};
