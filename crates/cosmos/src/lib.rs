//! A backend for a team: documents in Azure Cosmos DB for NoSQL.
//!
//! ```no_run
//! # async fn open() -> amplifier_session_core::Result<()> {
//! use amplifier_session_core::Secret;
//! use amplifier_session_cosmos::{Authentication, CosmosBackend, CosmosConfig};
//!
//! let mut config = CosmosConfig::new("https://team.documents.azure.com/");
//! config.authentication = Authentication::Key(Secret::new("<key>"));
//! let backend = CosmosBackend::connect(config).await?;
//! # Ok(())
//! # }
//! ```
//!
//! One container stores sessions, another their messages, texts and vectors, a third events, and a fourth pieces of
//! large payloads. All documents of a session except its own have the same partition key. There are no joins, and no
//! transactions across partitions.
//!
//! | file | content |
//! | --- | --- |
//! | `meta`, `sessions`, `messages`, `events`, `other_rows`, `vectors`, `search`, `changes`, `scheduling` | the trait of the same name |
//! | `write`, `rewrite`, `rename` | changing a session with its rows |
//! | `lease`, `fence` | how such a change stays consistent without transactions |
//! | `vector_batches` | writing vectors |
//! | `scope` | which sessions a read looks at |
//! | `documents`, `ids` | what is stored |
//! | `connect`, `containers`, `store` | connecting to an account, its containers, an open store |
//! | `client`, `query`, `batch`, `limits`, `error` | reading and writing documents with the SDK |
//! | `totals`, `usage` | cached totals for scores; counters of requests |

mod batch;
mod changes;
mod client;
mod config;
mod connect;
mod containers;
mod documents;
mod error;
mod events;
mod factory;
mod fence;
mod ids;
mod integrity;
mod lease;
mod limits;
mod messages;
mod meta;
mod newest;
mod other_rows;
mod query;
mod rename;
mod rewrite;
mod scheduling;
mod scope;
mod search;
mod sessions;
mod store;
mod totals;
mod turns;
mod usage;
mod vector_batches;
mod vectors;
mod write;

#[cfg(test)]
mod tests;

pub use azure_data_cosmos::models::VectorIndexType;
pub use config::{Authentication, CosmosConfig};
pub use factory::FACTORY;
pub use store::CosmosBackend;
