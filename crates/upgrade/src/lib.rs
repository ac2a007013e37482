//! From the databases that the Python library `amplifier_session_storage` wrote to stores of this library.
//!
//! The library wrote three generations of tables, in SQLite and in DuckDB:
//!
//! | generation | vectors | told by |
//! | --- | --- | --- |
//! | 1 | four columns of `transcripts`, named `*_vector` or `*_vector_json` | those columns; `transcript_vectors` is a view, if it is there |
//! | 2 | rows of the table `transcript_vectors` | that table; `schema_meta` says version 2 |
//! | 3 | the same | `transcripts.has_vectors`; `schema_meta` says version 3 |
//!
//! What becomes of their rows is the same for both databases and stands here. A backend brings a [`Driver`]: it opens the
//! old file to read ([`OldDatabase`]), and a new one to write, with the statements that it writes all its stores with.
//!
//! | file | what is in it |
//! | --- | --- |
//! | `origin.rs` | what a file is, by its tables |
//! | `driver.rs`, `tables.rs` | what is asked of a database; rows by the names of their columns |
//! | `copy.rs` | files that can't be read where they are |
//! | `ids.rs`, `json.rs` | identifiers and JSON of any quality |
//! | `sessions.rs`, `messages.rs`, `events.rs`, `event_chunks.rs`, `vectors.rs` | from old rows to the model |
//! | `spaces.rs` | whose vectors the new store takes |
//! | `transfer.rs`, `writing.rs` | all rows of a file, session by session; what is written of one |
//! | `workshop.rs`, `place.rs` | where the new store is built; how it takes the place of the old file |
//! | `run.rs`, `report.rs` | the whole, and what is told of it |

mod copy;
mod driver;
mod event_chunks;
mod events;
mod ids;
mod json;
mod messages;
mod origin;
mod place;
mod report;
mod run;
mod sessions;
mod spaces;
mod tables;
mod transfer;
mod vectors;
mod workshop;
mod writing;

pub use copy::FileCopy;
pub use driver::{Cell, Driver, Found, OldDatabase, Purpose};
pub use origin::{Origin, PythonDatabase, Relation, origin};
pub use report::{Counts, OnProgress, Outcome, Progress, Upgrade};
pub use run::{UpgradeOptions, upgrade};
