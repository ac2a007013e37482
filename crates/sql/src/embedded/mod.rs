//! A backend on an embedded database, with the search index beside it.
//!
//! A [`Database`] is what differs between databases; [`Embedded`] makes a backend of it.
//!
//! | file | what is in it |
//! | --- | --- |
//! | `database.rs` | what a database has to offer |
//! | `backend.rs` | the backend: each call runs on a thread for blocking work and keeps the index up to date |
//! | `write/` | the transactions that write |
//! | `rows.rs` | the rows as the search index reads them |
//! | `staging.rs` | folders in which files are written before they replace others |

mod backend;
mod database;
mod rows;
mod staging;
mod write;

pub use backend::Embedded;
pub use database::{Connections, Database, Lookups, Nearest, NewVector, VectorTarget, Writer};
pub use rows::{IndexRows, RowSnapshots};
pub use staging::{REWRITING, remove_staging_folders, staging_folder};
