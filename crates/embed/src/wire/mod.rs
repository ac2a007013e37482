//! The protocol that OpenAI, Azure OpenAI and compatible servers share.
//!
//! A call is one `POST` with texts, and the response has a vector for each. [`Endpoint`] makes calls, `answer` decodes
//! responses, `failure` turns error statuses into errors, and `wait` reads how long to wait before another attempt. The
//! differences between the services (URL, credentials) are in their own files.
//!
//! Sources: <https://platform.openai.com/docs/api-reference/embeddings>,
//! <https://learn.microsoft.com/azure/ai-services/openai/reference>.

mod answer;
mod failure;
mod wait;

use amplifier_session_core::{
    Error, ErrorKind, Result,
    embedding::{EmbeddingLimits, ModelStrength},
    model::EmbeddingSpace,
};
use reqwest::{
    Client, StatusCode, Url,
    header::{CONTENT_TYPE, HeaderName, HeaderValue},
};
use serde::Serialize;

use crate::{
    ModelConfig, Secret,
    http::{self, ClientOptions},
};

/// In base64, a dimension takes 5.4 bytes; in decimals, up to about 25. Twice that is enough.
const BYTES_A_DIMENSION: usize = 50;
/// The limit for everything else in a response, and for the bodies of errors.
const BYTES_AROUND: usize = 1 << 20;

/// A URL that embeds texts.
#[derive(Debug)]
pub(crate) struct Endpoint {
    /// The service's name in errors.
    service: &'static str,
    pub(crate) url: Url,
    /// The model's name in requests, and the expected length of the vectors.
    space: EmbeddingSpace,
    limits: EmbeddingLimits,
    /// Whether requests contain the parameter `dimensions`.
    asks_for_dimensions: bool,
    client: Client,
}

/// The header that authenticates requests.
#[derive(Debug)]
pub(crate) struct Credentials {
    name: HeaderName,
    value: HeaderValue,
    /// The secret in `value`, which is removed from errors.
    secret: Secret,
}

impl Credentials {
    /// The header `name` with `prefix` and `secret`.
    ///
    /// # Errors
    ///
    /// `Authentication` if the secret has characters that a header can't contain.
    pub(crate) fn new(name: HeaderName, prefix: &str, secret: Secret) -> Result<Self> {
        let mut value = HeaderValue::try_from(format!("{prefix}{}", secret.expose())).map_err(|_| {
            let message = "the key contains characters that can't be sent; was it copied correctly?";
            Error::new(ErrorKind::Authentication, message)
        })?;
        value.set_sensitive(true);
        Ok(Self { name, value, secret })
    }
}

#[derive(Serialize)]
struct Request<'a> {
    model: &'a str,
    input: &'a [String],
    /// Base64 is exact and takes a third of the bytes of decimals. A server that does not support it sends decimals.
    encoding_format: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    dimensions: Option<usize>,
}

impl Endpoint {
    /// The endpoint of `model` at `url`.
    ///
    /// # Errors
    ///
    /// `Validation` if the model has no vectors with that many dimensions; `Embedding` if no HTTP client can be built for
    /// `url`.
    pub(crate) fn new(service: &'static str, url: Url, model: &ModelConfig) -> Result<Self> {
        let space = model.space()?;
        // A slow model sends nothing until all vectors are computed.
        let options = ClientOptions {
            timeout: Some(model.timeout),
            read_timeout: model.timeout,
            ..ClientOptions::default()
        };
        let client = http::client(&url, &options)?;
        let asks_for_dimensions = model.asks_for_dimensions(&space);
        Ok(Self { service, url, space, limits: model.limits(), asks_for_dimensions, client })
    }

    pub(crate) fn space(&self) -> &EmbeddingSpace {
        &self.space
    }

    pub(crate) fn limits(&self) -> EmbeddingLimits {
        self.limits
    }

    pub(crate) fn strength(&self) -> ModelStrength {
        ModelStrength::Contextual
    }

    pub(crate) fn is_local(&self) -> bool {
        http::is_loopback(&self.url)
    }

    /// The address shown in errors.
    pub(crate) fn address(&self) -> Option<String> {
        Some(http::address(&self.url))
    }

    /// Returns the vectors of `texts`, in the same order; see [`EmbeddingProvider::embed`] for the errors.
    ///
    /// [`EmbeddingProvider::embed`]: amplifier_session_core::embedding::EmbeddingProvider::embed
    pub(crate) async fn embed(
        &self,
        credentials: Option<&Credentials>,
        texts: &[String],
    ) -> Result<Vec<Vec<f32>>> {
        if texts.is_empty() {
            return Ok(Vec::new());
        }
        let secret = credentials.map(|credentials| &credentials.secret);
        let response = self.send(credentials, texts).await?;
        let (status, headers) = (response.status(), response.headers().clone());
        let body = http::read_body(response, self.most_bytes(texts.len())).await;
        if status != StatusCode::OK {
            // The status is informative enough, even if the body can't be read.
            return Err(failure::refused(status, &headers, &body.unwrap_or_default(), secret));
        }
        let vectors = read_vectors(body?, texts.len(), self.space.dimensions).await;
        vectors.map_err(|error| failure::with_request_id(error, &headers, secret))
    }

    async fn send(&self, credentials: Option<&Credentials>, texts: &[String]) -> Result<reqwest::Response> {
        let request = Request {
            model: &self.space.model,
            input: texts,
            encoding_format: "base64",
            dimensions: self.asks_for_dimensions.then_some(self.space.dimensions),
        };
        let body = serde_json::to_vec(&request).map_err(|source| {
            Error::new(ErrorKind::Embedding, "the request can't be encoded").with_source(source)
        })?;
        let mut post = self.client.post(self.url.clone()).header(CONTENT_TYPE, "application/json").body(body);
        if let Some(Credentials { name, value, .. }) = credentials {
            post = post.header(name, value);
        }
        post.send().await.map_err(http::transport_error)
    }

    fn most_bytes(&self, texts: usize) -> usize {
        texts
            .saturating_mul(self.space.dimensions)
            .saturating_mul(BYTES_A_DIMENSION)
            .saturating_add(BYTES_AROUND)
    }

    /// Adds service, address and model to an error.
    pub(crate) fn named(&self, error: Error) -> Error {
        error.at(http::address(&self.url)).with("service", self.service).with("model", &self.space.model)
    }
}

/// Decodes a response on a blocking thread: it can be megabytes long, and other calls are waiting.
async fn read_vectors(body: Vec<u8>, texts: usize, dimensions: usize) -> Result<Vec<Vec<f32>>> {
    let reading = tokio::task::spawn_blocking(move || answer::vectors(&body, texts, dimensions));
    reading.await.map_err(|source| {
        Error::new(ErrorKind::Embedding, "decoding the service's response failed").with_source(source)
    })?
}
