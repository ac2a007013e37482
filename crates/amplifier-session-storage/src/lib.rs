//! Stores the sessions of AI agents and finds them again.
//!
//! This is the crate to depend on. It opens a store by its URL ([`open`]), determines the user ([`identity`]) and the
//! configuration ([`config`]), and re-exports the rest: the storage and its model from `core`, the backends, the
//! embedding providers and the sync of session folders.
//!
//! # A whole program
//!
//! ```
//! use amplifier_session_storage::{
//!     OpenOptions, Result, Scope, embedding,
//!     model::{HostId, ProjectSlug, RawJson, SessionId, SessionKey, UserId},
//!     open,
//!     search::SearchOptions,
//!     storage::{IngestTarget, SyncLines},
//! };
//!
//! #[tokio::main]
//! async fn main() -> Result<()> {
//!     # let folder = tempfile::tempdir().unwrap();
//!     # let url = &format!("sqlite:{}", folder.path().join("sessions.sqlite").display());
//!     # /*
//!     let url = "sqlite:sessions.sqlite";
//!     # */
//!     let storage = open(url, OpenOptions::default().with_embedding(embedding::provider("local")?)).await?;
//!
//!     let user = UserId::new("ana@example.com")?;
//!     let target = IngestTarget {
//!         key: SessionKey::new(user.clone(), SessionId::new("session-1")?),
//!         host_id: HostId::new("laptop")?,
//!         project_slug: ProjectSlug::new("payments")?,
//!     };
//!     let lines = vec![
//!         RawJson::from(r#"{"role":"user","content":"Why does the nightly import time out?"}"#),
//!         RawJson::from(r#"{"role":"assistant","content":"The connection pool is exhausted at midnight."}"#),
//!     ];
//!     storage.ingestion().sync_transcript_lines(&target, SyncLines::whole(lines)).await?;
//!
//!     let found = storage.search().search_transcripts(&Scope::from(user), &SearchOptions::new("connection pool")).await?;
//!     let best = found.results.first().expect("the assistant's answer");
//!     assert_eq!(best.sequence, 1);
//!     println!("{} #{}: {}", best.session_id, best.sequence, best.snippet);
//!     Ok(())
//! }
//! ```
//!
//! [`sync::sync`] reads whole folders. Every read names its [`Scope`]: nothing returns everybody's data by accident, and
//! nothing returns a vector.

mod backends;
pub mod config;
pub mod identity;
mod open;
mod salvage;
mod store_url;
pub mod upgrade;

pub use amplifier_session_api as api;
pub use amplifier_session_core::{
    Backoff, Error, ErrorField, ErrorKind, ErrorOption, Result, Scope, SessionStorage, StorageSettings,
    Viewer, backend, content, events, metadata, model, search, storage, text,
};
// For the command line.
#[doc(hidden)]
pub use amplifier_session_core::KnownPart;
#[cfg(feature = "cosmos")]
pub use amplifier_session_cosmos as cosmos;
#[cfg(feature = "duckdb-system")]
pub use amplifier_session_duckdb as duckdb;
#[cfg(feature = "postgres")]
pub use amplifier_session_postgres as postgres;
#[cfg(feature = "redact")]
pub use amplifier_session_secrets as secrets;
pub use amplifier_session_sqlite as sqlite;
pub use amplifier_session_sync as sync;
pub use backends::BACKENDS;
pub use open::{OpenOptions, backup, open, open_at, restrict_roles};
pub use salvage::salvage;
pub use store_url::StoreUrl;

/// Embedding providers: the trait and its implementations.
pub mod embedding {
    pub use amplifier_session_core::embedding::*;
    pub use amplifier_session_embed::*;
}
