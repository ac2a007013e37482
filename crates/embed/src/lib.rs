//! Embedding providers, which turn texts into vectors.
//!
//! [`LocalEmbedding`] is the compiled-in model: it needs no key, no network and no files. `TransformerEmbedding` (feature
//! `local-transformer`) is a stronger model in a folder; [`models`] installs such folders. [`provider`] finds a provider
//! by its name in a configuration or on a command line.
//!
//! [`wrappers`] add what hosted services need: batches, retries, caches and masked secrets.

#[cfg(feature = "azure-openai")]
pub mod azure_openai;
pub mod clock;
#[cfg(feature = "cache")]
pub mod disk_cache;
#[cfg(feature = "http")]
// Downloads use only a part of it.
#[cfg_attr(not(feature = "openai"), allow(dead_code, unused_imports))]
mod http;
pub mod local;
pub mod models;
mod named;
#[cfg(feature = "openai")]
pub mod openai;
#[cfg(feature = "openai")]
mod service_model;
#[cfg(feature = "local-transformer")]
pub mod transformer;
#[cfg(feature = "openai")]
mod wire;
pub mod wrappers;

pub use amplifier_session_core::Secret;
#[cfg(feature = "azure-openai")]
pub use amplifier_session_entra::EntraIdentity;
#[cfg(feature = "openai")]
pub use amplifier_session_http::plain_http_address;
#[cfg(feature = "azure-openai")]
pub use azure_openai::{AzureOpenAiConfig, AzureOpenAiEmbedding, AzureSignIn};
pub use local::LocalEmbedding;
pub use named::{Configured, PROVIDERS, check_provider, provider, provider_from_env};
#[cfg(feature = "openai")]
pub use openai::{OpenAiConfig, OpenAiEmbedding};
#[cfg(feature = "openai")]
pub use service_model::ModelConfig;
#[cfg(feature = "local-transformer")]
pub use transformer::TransformerEmbedding;
