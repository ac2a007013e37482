//! A backend on an embedded database, with the search index beside it.
//!
//! A [`Database`] describes what differs between databases; [`Embedded`] makes it a backend.
//!
//! | file | contents |
//! | --- | --- |
//! | `database.rs` | the traits that a database implements |
//! | `backend.rs` | the backend: each call runs on a thread for blocking work, and writes update the index |
//! | `write/` | the transactions that write |
//! | `rows.rs` | the rows as the search index reads them |
//! | `idle.rs` | connections that are kept for later calls |

mod backend;
mod database;
mod idle;
mod rows;
mod write;

pub use backend::Embedded;
pub use database::{Connections, Database, Lookups, Nearest, NewVector, VectorTarget, Writer};
pub use idle::{Idle, lock};
pub use rows::{IndexRows, RowSnapshots};
