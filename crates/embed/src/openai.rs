//! OpenAI, and servers with the same API: Ollama, vLLM, LM Studio, llama.cpp.

use amplifier_session_core::{
    Error, ErrorField, ErrorKind, Result,
    embedding::{EmbeddingProvider, EmbeddingPurpose},
};
use async_trait::async_trait;
use reqwest::{Url, header::AUTHORIZATION};

use crate::{
    ModelConfig, Secret,
    http::{check_key_is_safe, parse_url},
    service_model::{Variable, allows_http},
    wire::{Credentials, Endpoint},
    wrappers::forward,
};

const OPENAI: &str = "https://api.openai.com/v1";
/// The cache namespace of OpenAI's models, regardless of the server.
pub(crate) const OPENAI_NAMESPACE: &str = "openai";

/// The service, and which of its models to use.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct OpenAiConfig {
    /// The service's URL without `/embeddings`. Default: `https://api.openai.com/v1`.
    pub base_url: String,
    /// The API key. Default: no key; OpenAI itself requires one.
    pub api_key: Option<Secret>,
    /// The model.
    pub model: ModelConfig,
    /// Whether the key may be sent to another machine over plain `http://`. Default: no.
    pub allow_http: bool,
}

impl Default for OpenAiConfig {
    fn default() -> Self {
        Self { base_url: OPENAI.to_owned(), api_key: None, model: ModelConfig::default(), allow_http: false }
    }
}

impl OpenAiConfig {
    /// Reads `OPENAI_BASE_URL`, `OPENAI_API_KEY`, `OPENAI_EMBEDDING_MODEL`, `_DIMENSIONS`, `_CACHE_SIZE`, and
    /// `OPENAI_EMBEDDING_REQUEST_DIMENSIONS`, `_MAX_TOKENS`, `_CONCURRENT_CALLS`, `_TIMEOUT_SECONDS`; see
    /// [`ModelConfig`]; and `AMPLIFIER_SESSIONS_ALLOW_HTTP`. `env` looks up a variable, for example in the environment
    /// of the process.
    ///
    /// ```
    /// use amplifier_session_embed::OpenAiConfig;
    ///
    /// let config = OpenAiConfig::from_env(|name| std::env::var(name).ok())?;
    /// # Ok::<(), amplifier_session_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `Validation` if a value is invalid; the message names the variable.
    pub fn from_env(env: impl Fn(&str) -> Option<String>) -> Result<Self> {
        let read = |name: &str| Variable::read(name.to_owned(), &env).map(|variable| variable.value);
        Ok(Self {
            base_url: read("OPENAI_BASE_URL").unwrap_or_else(|| OPENAI.to_owned()),
            api_key: read("OPENAI_API_KEY").map(|key| Secret::new(&key)),
            model: ModelConfig::from_env("OPENAI", &env)?,
            allow_http: allows_http(&env)?,
        })
    }

    /// Sets the service's URL.
    #[must_use]
    pub fn with_base_url(mut self, url: impl Into<String>) -> Self {
        self.base_url = url.into();
        self
    }

    /// Sets the API key.
    #[must_use]
    pub fn with_api_key(mut self, key: Option<Secret>) -> Self {
        self.api_key = key;
        self
    }

    /// Sets the model.
    #[must_use]
    pub fn with_model(mut self, model: ModelConfig) -> Self {
        self.model = model;
        self
    }
}

/// A model of OpenAI or of a compatible server.
#[derive(Debug)]
pub struct OpenAiEmbedding {
    endpoint: Endpoint,
    credentials: Option<Credentials>,
}

impl OpenAiEmbedding {
    /// Builds the provider; nothing is sent yet.
    ///
    /// # Errors
    ///
    /// - `Validation` if the base URL is invalid, the key would be sent to another machine over plain `http://`, or the
    ///   model has no vectors with that many dimensions;
    /// - `Authentication` if the key is missing or can't be sent in a header;
    /// - `Embedding` if TLS can't be set up.
    pub fn new(config: &OpenAiConfig) -> Result<Self> {
        let mut url = parse_url(ErrorField::BaseUrl, &config.base_url)?;
        let path = url.path().trim_end_matches('/');
        let path = path.strip_suffix("/embeddings").unwrap_or(path).to_owned() + "/embeddings";
        url.set_path(&path);
        check_key_is_safe(&url, config.api_key.is_some(), config.allow_http)?;
        let is_openai = is_openai(&url);
        let credentials = match &config.api_key {
            Some(key) => Some(Credentials::new(AUTHORIZATION, "Bearer ", key.clone())?),
            None if is_openai => return Err(no_key()),
            None => None,
        };
        let service = if is_openai { "OpenAI" } else { "OpenAI-compatible" };
        Ok(Self { endpoint: Endpoint::new(service, url, &config.model)?, credentials })
    }

    /// The namespace of the model's vectors in caches, because another server may use the name of one of OpenAI's
    /// models for its own model: `openai` for OpenAI and Azure OpenAI, otherwise the server's host and port.
    #[must_use]
    pub fn cache_namespace(&self) -> String {
        let url = &self.endpoint.url;
        if is_openai(url) {
            return OPENAI_NAMESPACE.to_owned();
        }
        let (host, port) = (url.host_str().unwrap_or_default(), url.port_or_known_default());
        format!("{host}:{}", port.unwrap_or_default())
    }
}

#[async_trait]
impl EmbeddingProvider for OpenAiEmbedding {
    forward!(endpoint: space, limits, strength, is_local, address);

    async fn embed(&self, texts: &[String], _purpose: EmbeddingPurpose) -> Result<Vec<Vec<f32>>> {
        let made = self.endpoint.embed(self.credentials.as_ref(), texts).await;
        made.map_err(|error| self.endpoint.named(error))
    }
}

/// Whether `url` belongs to OpenAI. Regions have their own hosts, such as `eu.api.openai.com`.
fn is_openai(url: &Url) -> bool {
    url.host_str().is_some_and(|host| host == "api.openai.com" || host.ends_with(".api.openai.com"))
}

fn no_key() -> Error {
    Error::new(ErrorKind::Authentication, "OpenAI needs a key: set OPENAI_API_KEY")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn local(base_url: &str) -> Result<OpenAiEmbedding> {
        OpenAiEmbedding::new(&OpenAiConfig::default().with_base_url(base_url))
    }

    #[test]
    fn the_path_is_appended_once() {
        for (base, wanted) in [
            ("http://localhost:11434/v1", "http://localhost:11434/v1/embeddings"),
            ("http://localhost:11434/v1/", "http://localhost:11434/v1/embeddings"),
            ("http://localhost:11434/v1/embeddings/", "http://localhost:11434/v1/embeddings"),
            ("http://localhost", "http://localhost/embeddings"),
            ("http://localhost/v1?tenant=7", "http://localhost/v1/embeddings?tenant=7"),
        ] {
            assert_eq!(local(base).unwrap().endpoint.url.as_str(), wanted);
        }
    }

    #[test]
    fn only_openai_requires_a_key() {
        assert!(local("http://127.0.0.1:8000/v1").unwrap().is_local());
        // Other servers decide themselves whether they need a key.
        assert!(!local("http://192.168.1.7:8000/v1").unwrap().is_local());
        let error = OpenAiEmbedding::new(&OpenAiConfig::default()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Authentication);
        assert!(error.to_string().contains("OPENAI_API_KEY"));
    }

    #[test]
    fn the_configuration_is_read_from_the_given_environment() {
        let env = |name: &str| match name {
            "OPENAI_API_KEY" => Some("sk-made-up\n".to_owned()),
            "OPENAI_BASE_URL" => Some(String::new()),
            "OPENAI_EMBEDDING_MODEL" => Some("text-embedding-3-small".to_owned()),
            _ => None,
        };
        let config = OpenAiConfig::from_env(env).unwrap();
        assert_eq!(config.base_url, OPENAI);
        assert_eq!(config.api_key.as_ref().map(Secret::expose), Some("sk-made-up"));
        assert_eq!(config.model.space().unwrap().dimensions, 1536);
        assert_eq!(OpenAiConfig::from_env(|_| None).unwrap(), OpenAiConfig::default());
    }

    #[test]
    fn the_error_about_an_invalid_key_does_not_show_it() {
        let config = OpenAiConfig::default()
            .with_base_url("http://localhost")
            .with_api_key(Some(Secret::new("sk-made\nup")));
        let error = OpenAiEmbedding::new(&config).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Authentication);
        assert!(!format!("{error:?}{config:?}").contains("sk-made"));
    }

    #[test]
    fn each_server_has_its_own_cache_namespace() {
        assert_eq!(local("http://localhost:1234/v1").unwrap().cache_namespace(), "localhost:1234");
    }
}
