//! What only a PostgreSQL store can break: creating its tables, and the blocks of its index of texts.

#[path = "../support/mod.rs"]
mod support;

mod blocks;
mod opening;
