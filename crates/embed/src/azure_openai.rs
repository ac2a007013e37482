//! Azure OpenAI, with a key or with Microsoft Entra ID.

use std::sync::Arc;

use amplifier_session_core::{
    Error, ErrorField, ErrorKind, Result,
    embedding::{EmbeddingProvider, EmbeddingPurpose},
};
use amplifier_session_entra as entra;
use async_trait::async_trait;
use azure_core::{
    credentials::TokenCredential,
    http::{ClientOptions, Transport},
};
use reqwest::{
    Url,
    header::{AUTHORIZATION, HeaderName},
};

use crate::{
    EntraIdentity, ModelConfig, Secret,
    http::{self, check_key_is_safe, parse_url},
    service_model::{Variable, allows_http, is_known},
    wire::{Credentials, Endpoint},
    wrappers::forward,
};

/// The latest generally available API version with a date:
/// <https://learn.microsoft.com/azure/ai-foundry/openai/api-version-lifecycle>. Version `v1` does not accept tokens from
/// Microsoft Entra ID for embeddings.
const API_VERSION: &str = "2024-10-21";
/// Where tokens come from, in every cloud: only the scheme of the address matters.
const SIGN_IN: &str = "https://login.microsoftonline.com";
/// The scope of the access token.
const SCOPE: &str = "https://cognitiveservices.azure.com/.default";
const API_KEY: HeaderName = HeaderName::from_static("api-key");

/// The resource, the deployment, and how to sign in.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AzureOpenAiConfig {
    /// The resource (`https://NAME.openai.azure.com`), or the deployment
    /// (`https://NAME.openai.azure.com/openai/deployments/DEPLOYMENT`, with or without `/embeddings` and a query).
    pub endpoint: String,
    /// The deployment. Default: the one in the endpoint, else the one named after the model.
    pub deployment: Option<String>,
    /// The API version. Default: the one in the endpoint's query, else `2024-10-21`.
    pub api_version: Option<String>,
    /// How to sign in.
    pub sign_in: AzureSignIn,
    /// The model. Default: the deployment's name, if OpenAI has a model of that name.
    pub model: ModelConfig,
    /// Whether a key or token may be sent to another machine over plain `http://`. Default: no.
    pub allow_http: bool,
}

/// How to sign in to Azure OpenAI.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum AzureSignIn {
    /// With the resource's key.
    Key(Secret),
    /// With an identity that has the role *Cognitive Services OpenAI User*.
    Entra(EntraIdentity),
}

impl AzureOpenAiConfig {
    /// The settings for `endpoint`, with defaults for everything else.
    #[must_use]
    pub fn new(endpoint: impl Into<String>, sign_in: AzureSignIn) -> Self {
        let (endpoint, model) = (endpoint.into(), ModelConfig::default());
        Self { endpoint, deployment: None, api_version: None, sign_in, model, allow_http: false }
    }

    /// Sets the deployment.
    #[must_use]
    pub fn with_deployment(mut self, deployment: impl Into<String>) -> Self {
        self.deployment = Some(deployment.into());
        self
    }

    /// Sets the API version.
    #[must_use]
    pub fn with_api_version(mut self, version: impl Into<String>) -> Self {
        self.api_version = Some(version.into());
        self
    }

    /// Sets the model.
    #[must_use]
    pub fn with_model(mut self, model: ModelConfig) -> Self {
        self.model = model;
        self
    }

    /// Reads `AZURE_OPENAI_ENDPOINT`, `AZURE_OPENAI_API_KEY` or `AZURE_OPENAI_USE_RBAC=true` (with the variables of
    /// [`EntraIdentity::from_env`]), `AZURE_OPENAI_API_VERSION`, `AZURE_OPENAI_EMBEDDING_DEPLOYMENT`, `_MODEL`,
    /// `_DIMENSIONS`, `_CACHE_SIZE`, and `AZURE_OPENAI_EMBEDDING_REQUEST_DIMENSIONS`, `_MAX_TOKENS`,
    /// `_CONCURRENT_CALLS`, `_TIMEOUT_SECONDS`; see [`ModelConfig`]. If `AZURE_OPENAI_EMBEDDING_CACHE_SIZE` is not set,
    /// `OPENAI_EMBEDDING_CACHE_SIZE` applies. `env` looks up a variable.
    ///
    /// # Errors
    ///
    /// `Validation` if the endpoint is missing or a value is invalid; `Authentication` if there is neither a key nor
    /// `AZURE_OPENAI_USE_RBAC`.
    pub fn from_env(env: impl Fn(&str) -> Option<String>) -> Result<Self> {
        let variable = |name: &str| Variable::read(name.to_owned(), &env);
        let read = |name: &str| variable(name).map(|variable| variable.value);
        let endpoint = read("AZURE_OPENAI_ENDPOINT").ok_or_else(|| {
            Error::validation(
                ErrorField::Embedding,
                "Azure OpenAI needs an endpoint: set AZURE_OPENAI_ENDPOINT",
            )
        })?;
        let use_entra = variable("AZURE_OPENAI_USE_RBAC").map(Variable::yes_or_no).transpose()?;
        let sign_in = match (use_entra, read("AZURE_OPENAI_API_KEY")) {
            (Some(true), _) => AzureSignIn::Entra(EntraIdentity::from_env(&env)),
            (_, Some(key)) => AzureSignIn::Key(Secret::new(&key)),
            (_, None) => {
                let message =
                    "Azure OpenAI needs credentials: set AZURE_OPENAI_API_KEY, or AZURE_OPENAI_USE_RBAC=true";
                return Err(Error::new(ErrorKind::Authentication, message));
            }
        };
        let mut model = ModelConfig::from_env("AZURE_OPENAI", &env)?;
        let deployment = read("AZURE_OPENAI_EMBEDDING_DEPLOYMENT");
        if read("AZURE_OPENAI_EMBEDDING_MODEL").is_none() {
            let named = deployment.clone().or_else(|| Address::parse(&endpoint).ok()?.deployment);
            model.name = named.filter(|name| is_known(name)).unwrap_or(model.name);
        }
        let (api_version, allow_http) = (read("AZURE_OPENAI_API_VERSION"), allows_http(&env)?);
        Ok(Self { endpoint, deployment, api_version, sign_in, model, allow_http })
    }

    /// The URL that embeds texts with the deployment.
    fn url(&self) -> Result<Url> {
        let Address { mut url, deployment: in_endpoint, api_version } = Address::parse(&self.endpoint)?;
        let deployment = match (in_endpoint, self.deployment.clone()) {
            (Some(one), Some(other)) if one != other => {
                let rule = format!("names the deployment {one:?}, but {other:?} is configured");
                return Err(Error::validation(ErrorField::Endpoint, rule));
            }
            (in_endpoint, configured) => {
                in_endpoint.or(configured).unwrap_or_else(|| self.model.name.clone())
            }
        };
        if deployment.is_empty() {
            return Err(Error::validation(ErrorField::Deployment, "must not be empty"));
        }
        let has_no_path = |()| Error::validation(ErrorField::Endpoint, "must begin with http:// or https://");
        let mut path = url.path_segments_mut().map_err(has_no_path)?;
        path.clear().extend(["openai", "deployments", &deployment, "embeddings"]);
        drop(path);
        let version = self.api_version.clone().or(api_version).unwrap_or_else(|| API_VERSION.to_owned());
        url.query_pairs_mut().append_pair("api-version", &version);
        Ok(url)
    }
}

/// The parts of an endpoint.
struct Address {
    /// The resource, without path and query.
    url: Url,
    deployment: Option<String>,
    api_version: Option<String>,
}

impl Address {
    fn parse(endpoint: &str) -> Result<Self> {
        let mut url = parse_url(ErrorField::Endpoint, endpoint)?;
        let parts: Vec<&str> = url.path().split('/').filter(|part| !part.is_empty()).collect();
        let deployment = match parts.as_slice() {
            [] | ["openai"] => None,
            ["openai", "deployments", name] | ["openai", "deployments", name, "embeddings"] => {
                Some((*name).to_owned())
            }
            _ => {
                let rule =
                    "must be https://NAME.openai.azure.com, optionally with /openai/deployments/DEPLOYMENT";
                return Err(Error::validation(ErrorField::Endpoint, rule));
            }
        };
        let version = url.query_pairs().find(|(name, _)| name == "api-version");
        let api_version = version.map(|(_, value)| value.into_owned()).filter(|value| !value.is_empty());
        url.set_path("");
        url.set_query(None);
        url.set_fragment(None);
        Ok(Self { url, deployment, api_version })
    }
}

/// A model deployed in Azure OpenAI.
#[derive(Debug)]
pub struct AzureOpenAiEmbedding {
    endpoint: Endpoint,
    caller: Caller,
}

#[derive(Debug)]
enum Caller {
    Key(Credentials),
    Entra(Arc<dyn TokenCredential>),
}

impl AzureOpenAiEmbedding {
    /// Builds the provider; nothing is sent yet.
    ///
    /// # Errors
    ///
    /// - `Validation` if the endpoint is invalid, or the model has no vectors with that many dimensions;
    /// - `Authentication` if the key can't be sent in a header, or the identity is invalid;
    /// - `Embedding` if TLS can't be set up.
    pub fn new(config: &AzureOpenAiConfig) -> Result<Self> {
        let caller = match &config.sign_in {
            AzureSignIn::Key(key) => Caller::Key(Credentials::new(API_KEY, "", key.clone())?),
            AzureSignIn::Entra(identity) => Caller::Entra(identity.credential(client_options)?),
        };
        Self::with_caller(config, caller)
    }

    /// Builds the provider with tokens from `credential` instead of the configured sign-in, for programs that sign in
    /// themselves.
    ///
    /// # Errors
    ///
    /// As [`AzureOpenAiEmbedding::new`].
    pub fn with_credential(config: &AzureOpenAiConfig, credential: Arc<dyn TokenCredential>) -> Result<Self> {
        Self::with_caller(config, Caller::Entra(credential))
    }

    fn with_caller(config: &AzureOpenAiConfig, caller: Caller) -> Result<Self> {
        let url = config.url()?;
        check_key_is_safe(&url, true, config.allow_http)?;
        Ok(Self { endpoint: Endpoint::new("Azure OpenAI", url, &config.model)?, caller })
    }

    async fn embedded(&self, texts: &[String]) -> Result<Vec<Vec<f32>>> {
        match &self.caller {
            Caller::Key(credentials) => self.endpoint.embed(Some(credentials), texts).await,
            Caller::Entra(credential) => {
                let token = entra::token(credential.as_ref(), SCOPE).await.map_err(of_service)?;
                let credentials = Credentials::new(AUTHORIZATION, "Bearer ", token)?;
                self.endpoint.embed(Some(&credentials), texts).await
            }
        }
    }
}

/// Options with our own client, because the client that the SDK builds itself panics if no TLS provider is installed.
fn client_options() -> Result<ClientOptions> {
    let client = http::client(&parse_url(ErrorField::Entra, SIGN_IN)?, &http::ClientOptions::default())?;
    Ok(ClientOptions { transport: Some(Transport::new(Arc::new(client))), ..ClientOptions::default() })
}

/// Treats a sign-in that may succeed later as an outage of the embedding service, not as a wrong credential.
fn of_service(error: Error) -> Error {
    if error.is_retryable() {
        return Error::new(ErrorKind::Embedding, error.message()).retryable();
    }
    error
}

#[async_trait]
impl EmbeddingProvider for AzureOpenAiEmbedding {
    forward!(endpoint: space, limits, strength, is_local, address);

    async fn embed(&self, texts: &[String], _purpose: EmbeddingPurpose) -> Result<Vec<Vec<f32>>> {
        if texts.is_empty() {
            return Ok(Vec::new());
        }
        self.embedded(texts).await.map_err(|error| self.endpoint.named(error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(endpoint: &str) -> AzureOpenAiConfig {
        AzureOpenAiConfig::new(endpoint, AzureSignIn::Key(Secret::new("made-up")))
    }

    fn url(config: &AzureOpenAiConfig) -> String {
        config.url().unwrap().to_string()
    }

    #[test]
    fn every_form_of_an_endpoint_names_the_same_url() {
        let wanted = "https://x.openai.azure.com/openai/deployments/big/embeddings?api-version=2024-10-21";
        for endpoint in [
            "https://x.openai.azure.com",
            "https://x.openai.azure.com/",
            "https://x.openai.azure.com/openai/",
        ] {
            assert_eq!(url(&config(endpoint).with_deployment("big")), wanted);
        }
        let full = "https://x.openai.azure.com/openai/deployments/big";
        for endpoint in [full.to_owned(), format!("{full}/"), format!("{full}/embeddings")] {
            assert_eq!(url(&config(&endpoint)), wanted);
            assert_eq!(url(&config(&endpoint).with_deployment("big")), wanted);
        }
        let pasted = config(&format!("{full}/embeddings?api-version=2023-05-15"));
        assert!(url(&pasted).ends_with("/embeddings?api-version=2023-05-15"));
        assert!(
            url(&pasted.with_api_version("2025-04-01-preview")).ends_with("?api-version=2025-04-01-preview")
        );
    }

    #[test]
    fn the_default_deployment_is_named_after_the_model() {
        let endpoint = "https://x.openai.azure.com";
        assert!(url(&config(endpoint)).contains("/deployments/text-embedding-3-large/"));
        // A name can't change the rest of the path.
        assert!(url(&config(endpoint).with_deployment("a/../b?c")).contains("/deployments/a%2F..%2Fb%3Fc/"));
    }

    #[test]
    fn invalid_endpoints_are_refused() {
        for endpoint in [
            "x.openai.azure.com",
            "https://x.openai.azure.com/v2",
            "https://x.openai.azure.com/openai/deployments/a/chat/completions",
        ] {
            let error = config(endpoint).url().unwrap_err();
            assert_eq!(error.field(), Some(ErrorField::Endpoint), "{error}");
        }
        let two = config("https://x.openai.azure.com/openai/deployments/a").with_deployment("b");
        assert!(two.url().unwrap_err().to_string().contains("but \"b\" is configured"));
        assert!(config("https://x.openai.azure.com").with_deployment("").url().is_err());
    }

    #[test]
    fn the_configuration_is_read_from_the_environment() {
        let read = |variables: &[(&str, &str)]| {
            AzureOpenAiConfig::from_env(|asked| {
                variables.iter().find(|(name, _)| *name == asked).map(|(_, value)| (*value).to_owned())
            })
        };
        let endpoint =
            ("AZURE_OPENAI_ENDPOINT", "https://x.openai.azure.com/openai/deployments/text-embedding-3-small");
        let (key, entra) = (("AZURE_OPENAI_API_KEY", "made-up"), ("AZURE_OPENAI_USE_RBAC", "true"));
        let with_key = read(&[endpoint, key]).unwrap();
        assert_eq!(with_key.sign_in, AzureSignIn::Key(Secret::new("made-up")));
        // The deployment is named after a known model, so that is the model.
        assert_eq!(with_key.model.name, "text-embedding-3-small");
        assert!(!format!("{with_key:?}").contains("made-up"));
        let both = read(&[endpoint, key, entra]).unwrap();
        assert_eq!(both.sign_in, AzureSignIn::Entra(EntraIdentity::DeveloperTools));
        let shared = ("OPENAI_EMBEDDING_CACHE_SIZE", "7");
        assert_eq!(read(&[endpoint, key, shared]).unwrap().model.cache_size, 7);
        let own = ("AZURE_OPENAI_EMBEDDING_CACHE_SIZE", "9");
        assert_eq!(read(&[endpoint, key, shared, own]).unwrap().model.cache_size, 9);
        let named =
            read(&[endpoint, key, ("AZURE_OPENAI_EMBEDDING_MODEL", "text-embedding-ada-002")]).unwrap();
        assert_eq!(named.model.name, "text-embedding-ada-002");
        assert_eq!(read(&[endpoint]).unwrap_err().kind(), ErrorKind::Authentication);
        assert!(read(&[key]).unwrap_err().to_string().contains("AZURE_OPENAI_ENDPOINT"));
        assert!(read(&[endpoint, ("AZURE_OPENAI_USE_RBAC", "perhaps")]).is_err());
    }
}
