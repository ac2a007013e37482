//! The operations, one file each: a request, a response, and a method of [`Api`](crate::Api).

pub mod changes;
pub mod check_store;
pub mod context;
pub mod delete;
pub mod edit;
pub mod events;
pub mod export;
pub mod files;
pub mod gaps;
pub mod ignore_secrets;
pub mod import;
pub mod ingest;
pub mod messages;
pub mod post_event;
pub mod projects;
pub mod prune;
pub mod purge_secrets;
pub mod read_rows;
pub mod recent;
pub mod rewind;
pub mod row_extents;
pub mod search;
pub mod search_superseded;
pub mod search_turns;
pub mod search_vector;
pub mod secrets;
pub mod session;
pub mod session_events;
pub mod sessions;
pub mod share;
pub mod statistics;
pub mod store_status;
pub mod summaries;
pub mod superseded_events;
pub mod superseded_messages;
pub mod superseded_sessions;
pub mod tag;
pub mod tags;
pub mod timeline;
pub mod turn;
pub mod users;
pub mod vectors;
pub mod write_rows;

#[cfg(test)]
mod change_tests;

/// Whether a number says nothing, so that a request without it can be read by earlier versions.
fn is_zero(number: &usize) -> bool {
    *number == 0
}
