//! The operations, one file each: a request, a response, and a method of [`Api`](crate::Api).

pub mod export;
pub mod import;
pub mod ingest;
pub mod check_store;
pub mod gaps;
pub mod projects;
pub mod events;
pub mod ignore_secrets;
pub mod purge_secrets;
pub mod files;
pub mod recent;
pub mod search;
pub mod search_superseded;
pub mod search_turns;
pub mod secrets;
pub mod sessions;
pub mod statistics;
pub mod store_status;
pub mod superseded_events;
pub mod superseded_messages;
pub mod superseded_sessions;
pub mod timeline;
pub mod users;
pub mod vectors;
