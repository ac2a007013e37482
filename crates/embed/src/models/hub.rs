//! The server that known models are downloaded from.

/// A server with repositories of models, with the same URLs as the Hugging Face hub:
/// `{endpoint}/{repository}/resolve/{revision}/{file}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hub {
    endpoint: String,
}

impl Default for Hub {
    /// <https://huggingface.co>.
    fn default() -> Self {
        Self::at("https://huggingface.co")
    }
}

impl Hub {
    /// The hub at `endpoint`, for example a mirror.
    #[must_use]
    pub fn at(endpoint: impl Into<String>) -> Self {
        let endpoint: String = endpoint.into();
        Self { endpoint: endpoint.trim_end_matches('/').to_owned() }
    }

    /// The hub's address.
    #[must_use]
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }
}
