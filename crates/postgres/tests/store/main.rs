//! The conformance suite, and what only a PostgreSQL store can break: creating its tables, and its indexes.

mod blocks;
mod conformance;
mod opening;
mod support;
mod without_pgvector;
