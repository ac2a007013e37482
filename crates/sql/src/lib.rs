//! What the backends that speak SQL have in common, whatever database it is.
//!
//! | file | what is in it |
//! | --- | --- |
//! | `query.rs` | a read as data, and the trait of a connection that runs it |
//! | `read/` | the reads, one file for each subject |
//! | `conditions/` | which rows a read may look at: conditions with the values that they compare with |
//! | `columns.rs`, `rows.rs` | from the columns of a row to the model |
//! | `table.rs` | from the model to the columns of a row |
//! | `numbers.rs` | our own numbers, written in statements |
//! | `embedded/` | a backend on an embedded database, with the search index beside it |
//! | `deletions.rs` | which sessions were deleted |
//! | `views.rs` | the views for people and their tools |
//! | `file.rs`, `quote.rs` | database files, which only their owner can read; quoted names and texts |
//!
//! A backend says in a [`Dialect`] what its database says differently, implements [`Columns`] for its driver's rows and
//! [`Reader`] for its connections. The tables have the same names and aliases in all databases: `sessions s`,
//! `transcripts t`, `events e`.

mod columns;
mod conditions;
pub mod deletions;
#[cfg(feature = "embedded")]
pub mod embedded;
pub mod file;
mod numbers;
mod query;
pub mod quote;
pub mod read;
pub mod rows;
pub mod table;
pub mod views;

pub use columns::{Columns, damaged, digest, number, unless_damaged};
pub use conditions::{Batch, Conditions, Dialect, Value, repeats_usage};
pub use numbers::is_one_of;
pub use query::{Query, Reader, Statement};
pub use table::{Cell, Table};
