//! Everything that is the same on every backend: data model, content rules, search, and [`SessionStorage`].

#[macro_use]
mod macros;

pub mod backend;
mod backoff;
mod blocking;
pub mod compression;
pub mod config;
pub mod content;
pub mod embedding;
mod error;
pub mod events;
mod known;
pub mod metadata;
pub mod model;
mod scope;
pub mod search;
mod secret;
pub mod storage;
pub mod text;
mod times;

pub use backoff::Backoff;
pub use blocking::blocking;
pub use error::{CHANGED_SINCE, Error, ErrorField, ErrorKind, ErrorOption, HELD_BY, Result};
pub use known::{KnownPart, known_json};
pub use scope::{Scope, SessionReaders, Viewer};
pub use secret::Secret;
pub use storage::{SessionStorage, StorageSettings};
