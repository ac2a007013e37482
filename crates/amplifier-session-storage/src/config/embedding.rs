//! The configured embedding provider.

use std::sync::Arc;

use amplifier_session_core::{Result, content::Redaction, embedding::EmbeddingProvider};
use amplifier_session_embed::{
    Configured, models::InstalledModels, provider_from_env, wrappers::StackOptions,
};

use super::Configuration;

impl Configuration {
    /// The embedding provider in its wrappers; `None` for the provider `none`.
    ///
    /// The compiled-in model has no wrappers: it is as fast as a cache, and its texts stay on this machine.
    ///
    /// # Errors
    ///
    /// `Validation` for an unknown provider or a wrong setting; `Unsupported` for a provider that this build does not
    /// include.
    pub fn embedding(&self) -> Result<Option<Arc<dyn EmbeddingProvider>>> {
        let name = self.text("embedding").unwrap_or("local");
        let models = self.models();
        match provider_from_env(name, |variable| self.variable(variable), models.as_ref())? {
            Some(configured) if configured.cache_size == 0 && configured.provider.is_local() => {
                Ok(Some(configured.provider))
            }
            Some(configured) => self.wrapped(configured).map(Some),
            None => Ok(None),
        }
    }

    /// The address of the embedding service, if texts go to another machine over plain `http://`.
    #[must_use]
    #[cfg(feature = "openai")]
    pub fn plain_http_address(&self) -> Option<String> {
        let key = match self.text("embedding")? {
            "openai" => "openai.base_url",
            "azure-openai" => "azure_openai.endpoint",
            _ => return None,
        };
        amplifier_session_embed::plain_http_address(self.text(key)?)
    }

    /// The address of the embedding service, if texts go to another machine over plain `http://`.
    #[must_use]
    #[cfg(not(feature = "openai"))]
    pub fn plain_http_address(&self) -> Option<String> {
        None
    }

    /// The models that `local:NAME` refers to. They are in the data folder of the XDG Base Directory Specification, by
    /// default `~/.local/share/amplifier-sessions/models`. `None` if the home folder is unknown.
    #[must_use]
    pub fn models(&self) -> Option<InstalledModels> {
        let folder = self.sources.folder("XDG_DATA_HOME", ".local/share")?;
        Some(InstalledModels::at(folder.join("models")))
    }

    /// The models for which secrets are masked.
    ///
    /// # Errors
    ///
    /// `Validation` when the setting is not one of `off`, `mark` and `mask`.
    pub fn redaction(&self) -> Result<Redaction> {
        Ok(if self.choice("redact")? == Some("off") { Redaction::Off } else { Redaction::Remote })
    }

    fn wrapped(&self, configured: Configured) -> Result<Arc<dyn EmbeddingProvider>> {
        let options = StackOptions::default()
            .with_memory_entries(configured.cache_size)
            .with_namespace(configured.cache_namespace);
        #[cfg(feature = "cache")]
        let options = self.cached(options)?;
        #[cfg(feature = "redact")]
        let options = options.with_redaction(self.redaction()?);
        Ok(options.wrap(configured.provider)?.provider())
    }

    #[cfg(feature = "cache")]
    fn cached(&self, options: StackOptions) -> Result<StackOptions> {
        use amplifier_session_embed::disk_cache::DiskCache;
        let most = self.count("cache.max_megabytes")?.unwrap_or_default();
        let Some(folder) = self.cache_directory().filter(|_| most > 0) else { return Ok(options) };
        let cache = DiskCache::new(folder.join("embeddings.db"), most.saturating_mul(1 << 20));
        Ok(options.with_cache(Arc::new(cache)))
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use amplifier_session_core::{content::Redaction, storage::SecretsAtRest};

    use crate::config::{ConfigSources, Configuration};

    fn configured(sources: &ConfigSources) -> Configuration {
        Configuration::read(sources).unwrap()
    }

    #[test]
    fn the_configuration_names_the_provider() {
        let local = configured(&ConfigSources::default()).embedding().unwrap().unwrap();
        assert_eq!((local.space().model.as_str(), local.is_local()), ("static-256-v2", true));
        let sources = ConfigSources::default().with_option("embedding", "none");
        assert!(configured(&sources).embedding().unwrap().is_none());
        let sources = ConfigSources::default().with_option("embedding", "smoke-signals");
        assert!(configured(&sources).embedding().unwrap_err().to_string().contains("local"));
    }

    #[test]
    fn models_are_in_the_folder_for_data() {
        let folder =
            |sources: ConfigSources| configured(&sources).models().map(|models| models.folder().to_owned());
        let home = ConfigSources { home: Some(PathBuf::from("/home/ana")), ..ConfigSources::default() };
        let default = Some(PathBuf::from("/home/ana/.local/share/amplifier-sessions/models"));
        assert_eq!(folder(home.clone()), default);
        assert_eq!(folder(home.clone().with_variable("XDG_DATA_HOME", "relative")), default);
        let said = Some(PathBuf::from("/data/amplifier-sessions/models"));
        assert_eq!(folder(home.with_variable("XDG_DATA_HOME", "/data")), said);
        assert_eq!(folder(ConfigSources::default()), None);
    }

    #[cfg(feature = "openai")]
    #[test]
    fn a_key_goes_over_plain_http_only_if_that_is_allowed() {
        let sources = ConfigSources::default()
            .with_option("embedding", "openai")
            .with_variable("OPENAI_API_KEY", "none that works")
            .with_variable("OPENAI_BASE_URL", "http://192.0.2.7:8000/v1");
        let refused = configured(&sources);
        let error = refused.embedding().unwrap_err();
        assert!(
            error.to_string().contains("--allow-http") && !error.to_string().contains("none that works"),
            "{error}"
        );
        assert_eq!(refused.plain_http_address().as_deref(), Some("http://192.0.2.7:8000/v1"));
        for allowed in [
            sources.clone().with_option("allow_http", "true"),
            sources.clone().with_variable("AMPLIFIER_SESSIONS_ALLOW_HTTP", "1"),
            sources.clone().with_variable("OPENAI_BASE_URL", "http://localhost:8000/v1"),
        ] {
            assert!(configured(&allowed).embedding().is_ok());
        }
        let here = sources.with_variable("OPENAI_BASE_URL", "http://127.0.0.1:8000/v1");
        assert_eq!(configured(&here).plain_http_address(), None);
    }

    #[test]
    fn secrets_are_masked_unless_that_is_switched_off() {
        let sources = ConfigSources::default();
        assert_eq!(configured(&sources).redaction().unwrap(), Redaction::Remote);
        let off = configured(&sources.clone().with_option("redact", "off"));
        assert_eq!(off.redaction().unwrap(), Redaction::Off);
        assert_eq!(off.secrets_at_rest().unwrap(), Some(SecretsAtRest::Off));
        assert_eq!(configured(&sources).secrets_at_rest().unwrap(), None);
        let mask = configured(&sources.with_option("redact", "mask"));
        assert_eq!(mask.redaction().unwrap(), Redaction::Remote);
        assert_eq!(mask.secrets_at_rest().unwrap(), Some(SecretsAtRest::Mask));
    }
}
