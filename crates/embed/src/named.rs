//! Providers by their name in a configuration or on a command line.

use std::{path::Path, sync::Arc};

use amplifier_session_core::{Error, ErrorField, Result, embedding::EmbeddingProvider};

use crate::{LocalEmbedding, models::InstalledModels};

/// The names of providers:
///
/// | name | provider |
/// | --- | --- |
/// | `local` | the compiled-in model |
/// | `local:NAME` | the model installed under this name, see [`models`](crate::models) |
/// | `local:FOLDER` | the model in this folder; a name with a `/` is a folder |
/// | `openai` | OpenAI, or a server with the same API |
/// | `azure-openai` | Azure OpenAI |
/// | `none` | nothing |
pub const PROVIDERS: [&str; 5] = ["local", "local:MODEL", "openai", "azure-openai", "none"];

/// How many vectors of a model in a folder are kept in memory.
#[cfg(feature = "local-transformer")]
const TRANSFORMER_CACHE: usize = 1_000;

/// A provider, with the settings for its caches.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Configured {
    /// The provider, which makes one attempt per call.
    pub provider: Arc<dyn EmbeddingProvider>,
    /// The namespace of its vectors in caches, which distinguishes models with the same name.
    pub cache_namespace: String,
    /// How many vectors to keep in memory; 0 for the compiled-in model, which is as fast as a cache.
    pub cache_size: usize,
}

/// The provider `local` or `none`, which need no configuration. There is no provider for `none`.
///
/// # Errors
///
/// `Validation` for all other names; if the name is unknown, the message lists [`PROVIDERS`].
pub fn provider(name: &str) -> Result<Option<Arc<dyn EmbeddingProvider>>> {
    match name {
        "local" => Ok(Some(Arc::new(LocalEmbedding::new()))),
        "none" => Ok(None),
        _ => {
            check_provider(name)?;
            let rule = format!("the provider {name} needs a configuration; only `local` and `none` don't");
            Err(Error::validation(ErrorField::Embedding, rule))
        }
    }
}

/// The provider for any name in [`PROVIDERS`], configured from environment variables that `env` looks up. `models` are
/// the installed models for `local:NAME`; `None` if their folder is unknown.
///
/// # Errors
///
/// `Validation` for an unknown name (the message lists the known ones), a model that is not installed, and an invalid
/// configuration; `Unsupported` for a provider that is not built in; `Embedding` if a model's files can't be read.
pub fn provider_from_env(
    name: &str,
    env: impl Fn(&str) -> Option<String>,
    models: Option<&InstalledModels>,
) -> Result<Option<Configured>> {
    check_provider(name)?;
    match name {
        "openai" => openai_from_env(env).map(Some),
        "azure-openai" => azure_openai_from_env(env).map(Some),
        _ => match name.strip_prefix("local:") {
            Some(model) => transformer(model, models).map(Some),
            None => Ok(provider(name)?.map(|provider| Configured {
                provider,
                cache_namespace: String::new(),
                cache_size: 0,
            })),
        },
    }
}

/// Checks that [`provider_from_env`] knows this name, without looking at files or configuration.
///
/// # Errors
///
/// `Validation` if not; the message lists the known names.
pub fn check_provider(name: &str) -> Result<()> {
    let known = match name.strip_prefix("local:") {
        Some(model) => !model.is_empty(),
        None => PROVIDERS.contains(&name),
    };
    if known {
        return Ok(());
    }
    let rule = format!("unknown embedding provider; choose one of {}", PROVIDERS.join(", "));
    Err(Error::validation(ErrorField::Embedding, rule).with("value", format_args!("{name:?}")))
}

#[cfg(feature = "openai")]
fn openai_from_env(env: impl Fn(&str) -> Option<String>) -> Result<Configured> {
    use crate::openai::{OpenAiConfig, OpenAiEmbedding};
    let config = OpenAiConfig::from_env(env)?;
    let provider = OpenAiEmbedding::new(&config)?;
    let (cache_namespace, cache_size) = (provider.cache_namespace(), config.model.cache_size);
    Ok(Configured { provider: Arc::new(provider), cache_namespace, cache_size })
}

#[cfg(not(feature = "openai"))]
fn openai_from_env(_: impl Fn(&str) -> Option<String>) -> Result<Configured> {
    Err(not_built_in("openai", "openai"))
}

#[cfg(feature = "azure-openai")]
fn azure_openai_from_env(env: impl Fn(&str) -> Option<String>) -> Result<Configured> {
    use crate::{
        azure_openai::{AzureOpenAiConfig, AzureOpenAiEmbedding},
        openai::OPENAI_NAMESPACE,
    };
    let config = AzureOpenAiConfig::from_env(env)?;
    let provider = Arc::new(AzureOpenAiEmbedding::new(&config)?);
    Ok(Configured {
        provider,
        cache_namespace: OPENAI_NAMESPACE.to_owned(),
        cache_size: config.model.cache_size,
    })
}

#[cfg(not(feature = "azure-openai"))]
fn azure_openai_from_env(_: impl Fn(&str) -> Option<String>) -> Result<Configured> {
    Err(not_built_in("azure-openai", "azure-openai"))
}

#[cfg(feature = "local-transformer")]
fn transformer(model: &str, models: Option<&InstalledModels>) -> Result<Configured> {
    let provider = Arc::new(crate::TransformerEmbedding::open(&folder(model, models)?)?);
    // The name of its space contains a hash of the model's files, so it needs no namespace.
    Ok(Configured { provider, cache_namespace: String::new(), cache_size: TRANSFORMER_CACHE })
}

#[cfg(not(feature = "local-transformer"))]
fn transformer(model: &str, models: Option<&InstalledModels>) -> Result<Configured> {
    folder(model, models)?;
    Err(not_built_in("local:MODEL", "local-transformer"))
}

/// The folder of `model`, which is either a folder itself or the name of an installed model.
fn folder(model: &str, models: Option<&InstalledModels>) -> Result<std::path::PathBuf> {
    let folder = Path::new(model);
    if model.contains(std::path::is_separator) || model.chars().all(|c| c == '.') {
        if folder.is_dir() {
            return Ok(folder.to_owned());
        }
        return Err(Error::validation(ErrorField::Model, format!("there is no folder {model:?}")));
    }
    let unknown = || {
        Error::validation(
            ErrorField::Model,
            "the folder of installed models is unknown: set XDG_DATA_HOME or HOME",
        )
    };
    Ok(models.ok_or_else(unknown)?.find(model)?.folder)
}

#[cfg(not(all(feature = "azure-openai", feature = "local-transformer")))]
fn not_built_in(name: &str, feature: &str) -> Error {
    let message = format!("the provider {name} is not built in; build with the feature {feature}");
    Error::new(amplifier_session_core::ErrorKind::Unsupported, message)
}

#[cfg(test)]
mod tests;
