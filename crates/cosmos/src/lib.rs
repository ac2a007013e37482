//! A backend for a team: documents in Azure Cosmos DB for NoSQL.
//!
//! ```no_run
//! # async fn open() -> amplifier_session_core::Result<()> {
//! use amplifier_session_cosmos::{Authentication, CosmosBackend, CosmosConfig};
//!
//! let config = CosmosConfig::new("https://team.documents.azure.com/")
//!     .with_authentication(Authentication::Key("<key>".to_owned()));
//! let backend = CosmosBackend::connect(config).await?;
//! # Ok(())
//! # }
//! ```
//!
//! Sessions lie in one container, their messages, texts and vectors in another, events in a third, and pieces of large
//! payloads in a fourth. Everything of a session but its own document has one partition key. There are no joins and no
//! transactions across partitions; `lease` and `fence` say how writes stay whole all the same.
//!
//! `client` is the only module that speaks to the SDK about documents, `store` the only one that connects.

mod backend;
mod client;
mod config;
mod containers;
mod counts;
mod documents;
mod error;
mod events;
mod factory;
mod fence;
mod generations;
mod ids;
mod lease;
mod limits;
mod messages;
mod queries;
mod rename;
mod schema;
mod search;
mod sessions;
mod store;
mod texts;
mod totals;
mod usage;
mod vectors;
mod write;

#[cfg(test)]
mod tests;

pub use backend::CosmosBackend;
pub use config::{Authentication, CosmosConfig, DEFAULT_DATABASE, DEFAULT_DIMENSIONS, VectorIndexKind};
pub use factory::FACTORY;
