//! A backend on an embedded database, with the search index beside it.
//!
//! An [`EmbeddedDatabase`] has the index; [`Indexed`] finds candidates with it and keeps it up to date.
//!
//! | file | contents |
//! | --- | --- |
//! | `database.rs` | the trait that an embedded database implements |
//! | `indexed.rs` | a database with its index |
//! | `erasing.rs`, `leftover.rs` | erasing what deleted sessions have left in files |
//! | `rows.rs`, `decoded.rs`, `batches.rs` | the rows as the search index reads them |
//! | `idle.rs` | connections that are kept for later calls |

mod batches;
mod database;
mod decoded;
mod erasing;
mod idle;
mod indexed;
mod leftover;
mod rows;

pub use database::{EmbeddedDatabase, Nearest};
pub use idle::{Idle, lock};
pub use indexed::{Embedded, Indexed};
pub use rows::{IndexRows, RowSnapshots};
