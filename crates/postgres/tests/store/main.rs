//! The conformance suite, and what only a PostgreSQL store can break: creating its tables, its indexes, and connections.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

mod blocks;
mod changes;
mod conformance;
mod ending;
mod faults;
mod locks;
mod lost;
mod opening;
mod pooler;
mod refused;
mod replication;
mod row_security;
mod shards;
mod support;
mod without_pgvector;
