//! What the backends that speak SQL have in common, whatever database it is.
//!
//! | file | what is in it |
//! | --- | --- |
//! | `conditions.rs` | which rows a read may look at: conditions with the values that they compare with |
//! | `sessions.rs`, `messages.rs`, `events.rs` | from scopes, filters and cursors to conditions |
//! | `deletions.rs` | which sessions were deleted |
//! | `columns.rs`, `rows.rs` | from the columns of a row to the model |
//! | `views.rs` | the views for people and their tools |
//! | `file.rs` | database files for their owner alone |
//!
//! A backend says in a [`Dialect`] what its database says differently, and implements [`Columns`] for its driver's rows.
//! The tables go by the same names and aliases in all of them: `sessions s`, `transcripts t`, `events e`.

mod columns;
mod conditions;
pub mod deletions;
mod events;
pub mod file;
mod messages;
pub mod rows;
mod sessions;
pub mod views;

pub use columns::{Columns, damaged, digest, number, unless_damaged};
pub use conditions::{Conditions, Dialect, Value};
pub use events::repeats_usage;
