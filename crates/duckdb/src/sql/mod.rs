//! SQL queries over a DuckDB store.
//!
//! A [`SqlReader`] opens the store read-only, in a database that can't access other files or load extensions, and whose
//! settings are locked. A query is one `SELECT`, or a statement that DuckDB treats as one (`FROM`, `WITH`, `VALUES`,
//! `DESCRIBE`, `SHOW`, `SUMMARIZE`). DuckDB's own parser decides.
//!
//! | file | contents |
//! | --- | --- |
//! | `reader.rs` | opening a store and running queries |
//! | `query.rs` | a query, and its result as a stream of rows |
//! | `statement.rs` | checks that a query is one statement that only reads |
//! | `format.rs` | how values of each type are written |
//! | `parquet.rs` | results as Parquet files |
//! | `views.rs` | the ready-made views |
//! | `payloads.rs` | views with the content of lines |

mod format;
mod parquet;
mod payloads;
mod prepare;
mod query;
mod reader;
mod statement;
mod views;

pub use format::SqlForm;
pub use query::{SqlAnswer, SqlColumn, SqlQuery, SqlRow};
pub use reader::SqlReader;
pub use views::{READY_VIEWS, ReadyView};
