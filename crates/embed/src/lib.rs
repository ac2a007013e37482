//! Embedding providers: what turns texts into vectors.
//!
//! [`LocalEmbedding`] is the model that is compiled in: no key, no network, no files. [`provider`] finds a
//! provider by the name that stands in a configuration or on a command line.
//!
//! What every remote service needs is in [`wrappers`]: batches, retries, caches, secrets that stay home.

#[cfg(feature = "azure-openai")]
pub mod azure_openai;
pub mod clock;
#[cfg(feature = "cache")]
pub mod disk_cache;
#[cfg(feature = "azure-openai")]
mod entra;
#[cfg(feature = "http")]
// Each feature that needs HTTP uses a part of it.
#[cfg_attr(not(feature = "openai"), allow(dead_code))]
mod http;
pub mod local;
#[cfg(feature = "openai")]
pub mod openai;
mod secret;
#[cfg(feature = "redact")]
pub mod secrets;
#[cfg(feature = "openai")]
mod service_model;
#[cfg(feature = "openai")]
mod wire;
pub mod wrappers;

use std::sync::Arc;

#[cfg(not(feature = "azure-openai"))]
use amplifier_session_core::ErrorKind;
use amplifier_session_core::{Error, Result, embedding::EmbeddingProvider};

#[cfg(feature = "azure-openai")]
pub use azure_openai::{AzureOpenAiConfig, AzureOpenAiEmbedding, AzureSignIn};
#[cfg(feature = "azure-openai")]
pub use entra::EntraIdentity;
pub use local::LocalEmbedding;
#[cfg(feature = "openai")]
pub use openai::{OpenAiConfig, OpenAiEmbedding};
pub use secret::Secret;
#[cfg(feature = "openai")]
pub use service_model::ModelConfig;

/// The names that [`provider`] knows; [`provider_from_env`] also knows services.
pub const PROVIDERS: [&str; 2] = ["local", "none"];

/// The provider of this name: `local` for the model that is compiled in, `none` for no vectors at all.
///
/// # Errors
///
/// `Validation` for an unknown name; the message lists the known ones.
pub fn provider(name: &str) -> Result<Option<Arc<dyn EmbeddingProvider>>> {
    match name {
        "local" => Ok(Some(Arc::new(LocalEmbedding::new()))),
        "none" => Ok(None),
        _ => {
            let rule = format!(
                "no such embedding provider; known are {}, and the services openai and azure-openai",
                PROVIDERS.join(", ")
            );
            Err(Error::validation("embedding", rule).with("value", format_args!("{name:?}")))
        }
    }
}

/// A provider, and what its configuration says of the caches around it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Configured {
    /// The provider, which makes one attempt a call.
    pub provider: Arc<dyn EmbeddingProvider>,
    /// What tells its model from others of the same name in caches.
    pub cache_namespace: String,
    /// How many vectors are to be kept in memory; none of the model that is compiled in, which is as fast as a cache.
    pub cache_size: usize,
}

/// The provider of this name, configured by what `env` looks up: those of [`provider`], `openai` and `azure-openai`.
///
/// # Errors
///
/// Those of [`provider`]; `Unsupported` for one that is not built in; those of the configuration.
pub fn provider_from_env(name: &str, env: impl Fn(&str) -> Option<String>) -> Result<Option<Configured>> {
    match name {
        "openai" => openai_from_env(env).map(Some),
        "azure-openai" => azure_openai_from_env(env).map(Some),
        _ => {
            let configured =
                |provider| Configured { provider, cache_namespace: String::new(), cache_size: 0 };
            Ok(provider(name)?.map(configured))
        }
    }
}

#[cfg(feature = "openai")]
fn openai_from_env(env: impl Fn(&str) -> Option<String>) -> Result<Configured> {
    let config = OpenAiConfig::from_env(env)?;
    let provider = OpenAiEmbedding::new(&config)?;
    let (cache_namespace, cache_size) = (provider.cache_namespace(), config.model.cache_size);
    Ok(Configured { provider: Arc::new(provider), cache_namespace, cache_size })
}

#[cfg(not(feature = "openai"))]
fn openai_from_env(_: impl Fn(&str) -> Option<String>) -> Result<Configured> {
    Err(not_built_in("openai"))
}

#[cfg(feature = "azure-openai")]
fn azure_openai_from_env(env: impl Fn(&str) -> Option<String>) -> Result<Configured> {
    let config = AzureOpenAiConfig::from_env(env)?;
    let provider = Arc::new(AzureOpenAiEmbedding::new(&config)?);
    let cache_namespace = openai::OPENAI_NAMESPACE.to_owned();
    Ok(Configured { provider, cache_namespace, cache_size: config.model.cache_size })
}

#[cfg(not(feature = "azure-openai"))]
fn azure_openai_from_env(_: impl Fn(&str) -> Option<String>) -> Result<Configured> {
    Err(not_built_in("azure-openai"))
}

#[cfg(not(feature = "azure-openai"))]
fn not_built_in(name: &str) -> Error {
    let message = format!("the provider {name:?} is not built in; build with the feature {name}");
    Error::new(ErrorKind::Unsupported, message)
}

#[cfg(test)]
mod tests {
    use amplifier_session_core::ErrorKind;

    use super::*;

    #[test]
    fn every_listed_name_is_known() {
        assert!(provider("local").unwrap().unwrap().is_local());
        assert!(provider("none").unwrap().is_none());
        for name in PROVIDERS {
            provider(name).unwrap();
        }
    }

    #[test]
    fn services_are_configured_by_what_is_looked_up() {
        let env = |name: &str| match name {
            "OPENAI_BASE_URL" | "AZURE_OPENAI_ENDPOINT" => Some("http://localhost:1".to_owned()),
            "AZURE_OPENAI_API_KEY" => Some("made-up".to_owned()),
            _ => None,
        };
        for (name, built_in) in
            [("openai", cfg!(feature = "openai")), ("azure-openai", cfg!(feature = "azure-openai"))]
        {
            match provider_from_env(name, env) {
                Ok(configured) => {
                    let Configured { provider, cache_namespace, cache_size } = configured.unwrap();
                    assert!(built_in && provider.space().dimensions == 3072);
                    assert_eq!(cache_namespace, if name == "openai" { "localhost:1" } else { "openai" });
                    assert_eq!(cache_size, 1_000);
                }
                Err(error) => assert!(!built_in && error.kind() == ErrorKind::Unsupported, "{error}"),
            }
        }
        assert!(provider_from_env("local", env).unwrap().is_some());
        assert!(provider_from_env("cloud", env).is_err());
    }

    #[test]
    fn an_unknown_name_is_refused_with_the_known_ones_listed() {
        for name in ["", "Local", "openai2"] {
            let error = provider(name).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Validation);
            assert_eq!(error.context("field"), Some("embedding"));
            for known in PROVIDERS {
                assert!(error.to_string().contains(known), "{error}");
            }
        }
    }
}
