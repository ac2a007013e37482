//! Tools for tests: a conformance suite for storage backends, an in-memory backend, fakes and fault injection.
//!
//! - [`MemoryBackend`] keeps everything in memory and behaves like a remote document store.
//! - [`FakeEmbedding`] makes vectors of words, counts calls and can simulate failures.
//! - [`TinyModel`] writes a sentence embedder of a few kilobytes.
//! - [`FlakyBackend`] wraps a backend, counts its calls and can simulate failures.
//! - [`OtherStore`] takes pushed sessions and gives pulled ones, in place of a server.
//! - [`TestClock`] returns the time that a test sets.
//! - [`lines`] builds lines of transcripts and event logs; [`AmplifierHome`] and [`SessionFolder`] build session
//!   folders.
//! - [`adr`] has the table of ADR-0003, which those of databases are compared with.
//! - [`corpus`] generates sessions of realistic shape, for benchmarks.
//! - [`earlier`] checks the stores that an earlier version wrote.
//! - [`python_library`] has the databases of the Python library, all generations.
//! - [`postgres`] starts PostgreSQL servers, and [`PgBouncer`] a pooler in front of one.
//! - The feature `http` adds a mock embedding service, and `cosmos` a mock account of Azure Cosmos DB.
//! - [`replaced`] checks stores whose file an older copy replaces.
//! - [`rounds`] makes tests longer at night.
//! - [`Store`] is a store under test; [`samples`] has lines that are easily corrupted.
//! - [`conformance`] is the suite that every backend passes: see [`conformance_suite!`].

pub mod adr;
mod clock;
pub mod conformance;
pub mod corpus;
#[cfg(feature = "cosmos")]
pub mod cosmos;
pub mod earlier;
mod embedding;
pub mod erasure;
mod flaky;
mod folder;
pub mod hostile;
#[cfg(feature = "http")]
pub mod http;
pub mod lines;
#[cfg(any(feature = "cosmos", feature = "http"))]
mod loopback;
mod memory;
mod other_store;
#[cfg(unix)]
mod pgbouncer;
#[cfg(unix)]
pub mod postgres;
pub mod prelude;
pub mod python_library;
mod random;
mod redactor;
pub mod replaced;
mod rounds;
pub mod samples;
pub mod store;
mod tiny_model;
mod users;
pub mod views;

pub use clock::TestClock;
pub use embedding::{Answer, FakeEmbedding};
pub use flaky::{FlakyBackend, Operation};
pub use folder::{AmplifierHome, SessionFolder};
pub use memory::MemoryBackend;
pub use other_store::{KeptBytes, OtherStore};
#[cfg(unix)]
pub use pgbouncer::PgBouncer;
pub use random::Random;
pub use redactor::WordRedactor;
pub use rounds::rounds;
pub use store::{InFolder, Store, Subject};
pub use tiny_model::{TinyModel, write_json};
pub use users::{name_of, user};
