//! The protocol that OpenAI, Azure OpenAI and the servers compatible with them share.
//!
//! One call is one `POST` of texts and one answer with a vector each. [`Endpoint`] makes it, `answer` puts the vectors
//! back in order, `failure` says what a refusal means, `wait` how long a service wants to be left alone. What differs
//! between the services (URL, credentials) is theirs.
//!
//! Sources: <https://platform.openai.com/docs/api-reference/embeddings>,
//! <https://learn.microsoft.com/azure/ai-services/openai/reference>.

mod answer;
mod failure;
mod wait;

use std::time::Duration;

use amplifier_session_core::{Error, ErrorKind, Result, model::EmbeddingSpace};
use reqwest::{
    Client, StatusCode, Url,
    header::{CONTENT_TYPE, HeaderName, HeaderValue},
};
use serde::Serialize;

use crate::{
    Secret,
    http::{self, ClientOptions},
};

/// A vector of base64 takes 5.4 bytes a dimension, one of decimals up to 25 or so; twice that is room enough.
const BYTES_A_DIMENSION: usize = 50;
/// Room for everything around the vectors, and for error bodies.
const BYTES_AROUND: usize = 1 << 20;

/// A place that makes vectors.
#[derive(Debug)]
pub(crate) struct Endpoint {
    /// What errors call the service.
    pub(crate) service: &'static str,
    /// Where to.
    pub(crate) url: Url,
    /// What the request calls the model.
    pub(crate) model: String,
    /// What has to come back.
    pub(crate) space: EmbeddingSpace,
    /// Whether the request says how long the vectors are to be.
    pub(crate) asks_for_dimensions: bool,
    client: Client,
}

/// What a request says of who makes it.
#[derive(Debug)]
pub(crate) struct Credentials {
    name: HeaderName,
    value: HeaderValue,
    /// What must not be repeated in errors.
    secret: Secret,
}

impl Credentials {
    /// `secret` after `prefix` in the header `name`.
    ///
    /// # Errors
    ///
    /// `Authentication` when the secret holds what no header can.
    pub(crate) fn new(name: HeaderName, prefix: &str, secret: Secret) -> Result<Self> {
        // The source would show nothing, but there is nothing to add either.
        let mut value = HeaderValue::try_from(format!("{prefix}{}", secret.expose())).map_err(|_| {
            let message = "the key holds characters that can't be sent; was it copied whole?";
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
    /// A third of the bytes that decimals take, and exact. A server that does not know it answers decimals.
    encoding_format: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    dimensions: Option<usize>,
}

impl Endpoint {
    /// An endpoint that is given `timeout` for each call.
    ///
    /// # Errors
    ///
    /// `Embedding` when there can be no client for `url`.
    pub(crate) fn new(
        service: &'static str,
        url: Url,
        space: EmbeddingSpace,
        timeout: Duration,
    ) -> Result<Self> {
        // A slow model sends nothing until all is done.
        let options =
            ClientOptions { timeout: Some(timeout), read_timeout: timeout, ..ClientOptions::default() };
        let client = http::client(&url, &options)?;
        Ok(Self { service, url, model: space.model.clone(), space, asks_for_dimensions: false, client })
    }

    /// The vectors of `texts`, in their order; see [`EmbeddingProvider::embed`] for the errors.
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
            // Whatever came of the body: the status is what counts.
            return Err(failure::refused(status, &headers, &body.unwrap_or_default(), secret));
        }
        let vectors = read_vectors(body?, texts.len(), self.space.dimensions).await;
        vectors.map_err(|error| failure::with_request_id(error, &headers, secret))
    }

    async fn send(&self, credentials: Option<&Credentials>, texts: &[String]) -> Result<reqwest::Response> {
        let request = Request {
            model: &self.model,
            input: texts,
            encoding_format: "base64",
            dimensions: self.asks_for_dimensions.then_some(self.space.dimensions),
        };
        let body = serde_json::to_vec(&request).map_err(|source| {
            Error::new(ErrorKind::Embedding, "the request can't be written").with_source(source)
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

    /// The address as errors name it.
    pub(crate) fn address(&self) -> String {
        http::address(&self.url)
    }

    /// Adds which service, at which address, and model an error is about.
    pub(crate) fn named(&self, error: Error) -> Error {
        error.at(self.address()).with("service", self.service).with("model", &self.space.model)
    }
}
/// [`answer::vectors`], beside the executor: an answer can be megabytes, and other calls wait for theirs.
async fn read_vectors(body: Vec<u8>, texts: usize, dimensions: usize) -> Result<Vec<Vec<f32>>> {
    let reading = tokio::task::spawn_blocking(move || answer::vectors(&body, texts, dimensions));
    reading.await.map_err(|source| {
        Error::new(ErrorKind::Embedding, "reading the service's answer failed").with_source(source)
    })?
}
