//! A backend on a PostgreSQL server: rows, vectors, and an index of texts.
//!
//! | file | contents |
//! | --- | --- |
//! | `database.rs` | [`Postgres`]: opening it, and what PostgreSQL does in its own way |
//! | `config.rs`, `tls.rs` | where the server is, and how to connect |
//! | `pool.rs`, `connection.rs` | connections, transactions and the dialect |
//! | `connect.rs`, `runtime.rs` | connections outside the pool, and the runtime of all connections |
//! | `locks.rs` | who holds the lock that a call waits for |
//! | `columns.rs`, `copy.rs`, `text.rs` | reading and writing values |
//! | `lookups.rs`, `event_counts.rs` | reads that differ from those of other databases |
//! | `schema.rs`, `entries.rs`, `vector_support.rs`, `encoding.rs` | creating and upgrading the tables, their version, the extension pgvector, and the encoding of the database |
//! | `row_security.rs` | restricting roles to the rows of one user |
//! | `index/` | the indexes that searches use |
//! | `factory.rs` | opening a store by its URL |
//! | `error.rs` | errors of PostgreSQL as ours |
//!
//! The reads and writes themselves are shared by all SQL databases and are in `amplifier-session-sql`.

mod columns;
mod config;
mod connect;
mod connection;
mod copy;
mod database;
mod encoding;
mod entries;
mod error;
mod event_counts;
mod factory;
mod index;
mod locks;
mod lookups;
mod pool;
mod row_security;
mod runtime;
mod schema;
mod text;
mod tls;
mod vector_support;

pub use config::PostgresConfig;
pub use connection::{PgReader, PgWriter};
pub use database::{Postgres, PostgresBackend};
pub use factory::FACTORY;
pub use pool::PgPool;
pub use vector_support::VectorSupport;
