//! What tests of the system need: a conformance suite for storage backends, an in-memory backend, fakes and
//! fault injection.
//!
//! - [`MemoryBackend`] keeps everything in memory, in the manner of a remote document store.
//! - [`FakeEmbedding`] makes vectors of words, counts what it is asked, and fails on demand.
//! - [`TinyModel`] writes a sentence embedder of a few kilobytes.
//! - [`FlakyBackend`] wraps a backend, counts its calls and fails on demand.
//! - [`TestClock`] tells the time that a test gives it.
//! - [`lines`] builds lines of transcripts and event logs, [`AmplifierHome`] and [`SessionFolder`] the
//!   folders that hold them.
//! - [`corpus`] makes up sessions of realistic shape, for benchmarks.
//! - [`python_library`] has the databases of the Python library, all generations.
//! - `http`, a feature, is an embedding service on this machine; `cosmos`, another one, an account of Azure Cosmos DB.
//! - [`Store`] is a store under test; [`samples`] has lines that are easily damaged.
//! - [`conformance`] is the suite that every backend passes: see [`conformance_suite!`].

mod clock;
pub mod conformance;
pub mod corpus;
#[cfg(feature = "cosmos")]
pub mod cosmos;
mod embedding;
mod flaky;
mod folder;
#[cfg(feature = "http")]
pub mod http;
pub mod lines;
#[cfg(any(feature = "cosmos", feature = "http"))]
mod loopback;
mod memory;
pub mod prelude;
pub mod python_library;
mod random;
pub mod samples;
pub mod store;
mod tiny_model;

pub use clock::TestClock;
pub use embedding::{Answer, FakeEmbedding};
pub use flaky::{FlakyBackend, Operation};
pub use folder::{AmplifierHome, SessionFolder};
pub use memory::MemoryBackend;
pub use random::Random;
pub use store::{InFolder, Store, Subject};
pub use tiny_model::{TinyModel, write_json};
