//! The settings of a hosted model: its name, the length of its vectors, and its limits.

use std::time::Duration;

use amplifier_session_core::{Error, ErrorField, Result, embedding::EmbeddingLimits, model::EmbeddingSpace};

use crate::http::ALLOW_HTTP;

/// One of OpenAI's models, from <https://platform.openai.com/docs/models>. Azure has the same.
struct OpenAiModel {
    name: &'static str,
    dimensions: usize,
    /// Whether a request may specify shorter vectors. Other models reject the parameter.
    reducible: bool,
}

const KNOWN: [OpenAiModel; 3] = [
    OpenAiModel { name: "text-embedding-3-large", dimensions: 3072, reducible: true },
    OpenAiModel { name: "text-embedding-3-small", dimensions: 1536, reducible: true },
    OpenAiModel { name: "text-embedding-ada-002", dimensions: 1536, reducible: false },
];

/// The maximum number of tokens in a text: ada-002 accepts one fewer than the 8,192 of the others.
const KNOWN_TOKENS: usize = 8_191;
/// The maximum number of tokens in a text for models of other services: the limit of the smallest common models.
const UNKNOWN_TOKENS: usize = 512;
/// The maximum number of texts that OpenAI accepts in one call. Most other services accept fewer.
const MOST_TEXTS: usize = 2_048;
/// The size of chunks, even for models that accept more: a vector of a long text says little about its parts.
const CHUNK_TOKENS: usize = 1_024;

/// The model of a hosted service, and how to call it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModelConfig {
    /// The model's name, under which its vectors are stored. Default: `text-embedding-3-large`.
    pub name: String,
    /// The length of the vectors. Default: the model's own. Required for models that are not OpenAI's.
    pub dimensions: Option<usize>,
    /// Whether requests contain the parameter `dimensions`, for models that are not OpenAI's. Default: no, because most
    /// servers reject or ignore it. For OpenAI's models, it is sent only to request shorter vectors.
    pub request_dimensions: Option<bool>,
    /// Texts with more `cl100k_base` tokens than this are cut into chunks. Default: 8,191 for OpenAI's models, else 512.
    pub max_tokens: Option<usize>,
    /// The maximum number of texts in one call. Default: 64. OpenAI accepts 2,048, some servers only 32.
    pub batch_texts: usize,
    /// How many vectors are kept in memory. Default: 1,000.
    pub cache_size: usize,
    /// The maximum number of concurrent calls. Default: 8.
    pub concurrent_calls: usize,
    /// How long a call may take. Default: 120 seconds.
    pub timeout: Duration,
}

impl Default for ModelConfig {
    fn default() -> Self {
        Self {
            name: "text-embedding-3-large".to_owned(),
            dimensions: None,
            request_dimensions: None,
            max_tokens: None,
            batch_texts: 64,
            cache_size: 1_000,
            concurrent_calls: 8,
            timeout: Duration::from_secs(120),
        }
    }
}

impl ModelConfig {
    /// The default settings of the model `name`.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// Sets the length of the vectors.
    #[must_use]
    pub fn with_dimensions(mut self, dimensions: usize) -> Self {
        self.dimensions = Some(dimensions);
        self
    }

    /// Sets whether requests contain the parameter `dimensions`.
    #[must_use]
    pub fn with_request_dimensions(mut self, request: bool) -> Self {
        self.request_dimensions = Some(request);
        self
    }

    /// Sets the maximum number of texts in one call.
    #[must_use]
    pub fn with_batch_texts(mut self, texts: usize) -> Self {
        self.batch_texts = texts;
        self
    }

    /// Sets how long a call may take.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Reads `{prefix}_EMBEDDING_MODEL`, `_DIMENSIONS`, `_REQUEST_DIMENSIONS`, `_MAX_TOKENS`, `_BATCH_TEXTS`,
    /// `_CONCURRENT_CALLS`, `_CACHE_SIZE` and `_TIMEOUT_SECONDS`. If `{prefix}_EMBEDDING_CACHE_SIZE` is not set,
    /// `OPENAI_EMBEDDING_CACHE_SIZE` applies.
    pub(crate) fn from_env(prefix: &str, env: &dyn Fn(&str) -> Option<String>) -> Result<Self> {
        let read = |name: &str| Variable::read(format!("{prefix}_EMBEDDING_{name}"), env);
        // The cache is the same, regardless of the server.
        let shared_cache_size = || Variable::read("OPENAI_EMBEDDING_CACHE_SIZE".to_owned(), env);
        let default = Self::default();
        Ok(Self {
            name: read("MODEL").map_or(default.name, |model| model.value),
            dimensions: read("DIMENSIONS").map(Variable::at_least_one).transpose()?,
            request_dimensions: read("REQUEST_DIMENSIONS").map(Variable::yes_or_no).transpose()?,
            max_tokens: read("MAX_TOKENS").map(Variable::at_least_one).transpose()?,
            batch_texts: read("BATCH_TEXTS").map_or(Ok(default.batch_texts), Variable::at_least_one)?,
            cache_size: read("CACHE_SIZE")
                .or_else(shared_cache_size)
                .map_or(Ok(default.cache_size), Variable::number)?,
            concurrent_calls: read("CONCURRENT_CALLS")
                .map_or(Ok(default.concurrent_calls), Variable::at_least_one)?,
            timeout: read("TIMEOUT_SECONDS").map_or(Ok(default.timeout), |seconds| {
                Ok(Duration::from_secs(seconds.at_least_one()? as u64))
            })?,
        })
    }

    /// The name and length of the vectors.
    pub(crate) fn space(&self) -> Result<EmbeddingSpace> {
        let model = self.name.clone();
        let invalid =
            |rule: String| Err(Error::validation(ErrorField::Dimensions, rule).with("model", &self.name));
        match (self.known(), self.dimensions) {
            (_, Some(0)) => invalid("must be at least 1".to_owned()),
            (Some(known), None) => Ok(EmbeddingSpace { model, dimensions: known.dimensions }),
            (Some(known), Some(dimensions)) if dimensions > known.dimensions => {
                invalid(format!("must be at most {}", known.dimensions))
            }
            (Some(known), Some(dimensions)) if dimensions < known.dimensions && !known.reducible => {
                invalid(format!("must be {}: the model has no shorter vectors", known.dimensions))
            }
            (_, Some(dimensions)) => Ok(EmbeddingSpace { model, dimensions }),
            (None, None) => invalid("must be set for a model that is not OpenAI's".to_owned()),
        }
    }

    /// Whether requests specify the length of vectors of `space`.
    pub(crate) fn asks_for_dimensions(&self, space: &EmbeddingSpace) -> bool {
        match self.known() {
            Some(known) => known.reducible && space.dimensions < known.dimensions,
            None => self.request_dimensions.unwrap_or(false),
        }
    }

    /// The model's limits. OpenAI accepts 2,048 texts and 300,000 tokens in one call. Calls are smaller than that,
    /// because a failed call fails for all of its texts, and a rejected text costs the others another call.
    pub(crate) fn limits(&self) -> EmbeddingLimits {
        let known = self.known().is_some();
        let max_tokens = self.max_tokens.unwrap_or(if known { KNOWN_TOKENS } else { UNKNOWN_TOKENS });
        EmbeddingLimits {
            chunk_threshold_tokens: max_tokens,
            chunk_target_tokens: max_tokens.min(CHUNK_TOKENS),
            batch_texts: self.batch_texts.clamp(1, MOST_TEXTS),
            batch_tokens: if known { 100_000 } else { 32_768.max(max_tokens) },
            concurrent_calls: self.concurrent_calls.max(1),
        }
    }

    fn known(&self) -> Option<&'static OpenAiModel> {
        KNOWN.iter().find(|known| known.name == self.name)
    }
}

/// Whether OpenAI has a model of this name.
#[cfg(feature = "azure-openai")]
pub(crate) fn is_known(name: &str) -> bool {
    KNOWN.iter().any(|known| known.name == name)
}

/// An environment variable.
pub(crate) struct Variable {
    pub(crate) name: String,
    pub(crate) value: String,
}

impl Variable {
    /// Reads the variable `name`, unless it is missing or blank.
    pub(crate) fn read(name: String, env: &dyn Fn(&str) -> Option<String>) -> Option<Self> {
        let value = env(&name)?.trim().to_owned();
        (!value.is_empty()).then_some(Self { name, value })
    }

    pub(crate) fn yes_or_no(self) -> Result<bool> {
        match self.value.to_ascii_lowercase().as_str() {
            "true" | "1" | "yes" | "on" => Ok(true),
            "false" | "0" | "no" | "off" => Ok(false),
            _ => Err(self.invalid("must be true or false")),
        }
    }

    fn number(self) -> Result<usize> {
        self.value.parse().map_err(|_| self.invalid("must be a whole number"))
    }

    fn at_least_one(self) -> Result<usize> {
        match self.value.parse() {
            Ok(0) | Err(_) => Err(self.invalid("must be a whole number of at least 1")),
            Ok(number) => Ok(number),
        }
    }

    fn invalid(&self, rule: &str) -> Error {
        Error::validation(ErrorField::Embedding, format!("{} {rule}", self.name))
            .with("value", format_args!("{:?}", self.value))
    }
}

/// Whether `env` allows a key to be sent to another machine over plain `http://`.
pub(crate) fn allows_http(env: &dyn Fn(&str) -> Option<String>) -> Result<bool> {
    let allowed = Variable::read(ALLOW_HTTP.to_owned(), env).map(Variable::yes_or_no).transpose()?;
    Ok(allowed.unwrap_or(false))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn space(config: &ModelConfig) -> (usize, bool) {
        let space = config.space().unwrap();
        (space.dimensions, config.asks_for_dimensions(&space))
    }

    #[test]
    fn known_models_are_asked_only_for_shorter_vectors() {
        let large = ModelConfig::new("text-embedding-3-large");
        assert_eq!(space(&large), (3072, false));
        assert_eq!(space(&large.clone().with_dimensions(3072)), (3072, false));
        assert_eq!(space(&large.clone().with_dimensions(256)), (256, true));
        assert_eq!(space(&ModelConfig::new("text-embedding-3-small")), (1536, false));
        let ada = ModelConfig::new("text-embedding-ada-002");
        assert_eq!(space(&ada.clone().with_dimensions(1536).with_request_dimensions(true)), (1536, false));
        for (config, says) in [
            (ada.with_dimensions(256), "must be 1536"),
            (large.clone().with_dimensions(4000), "at most 3072"),
            (large.with_dimensions(0), "at least 1"),
        ] {
            let error = config.space().unwrap_err();
            assert_eq!(error.field(), Some(ErrorField::Dimensions));
            assert!(error.to_string().contains(says), "{error}");
        }
    }

    #[test]
    fn unknown_models_need_configured_dimensions() {
        let model = ModelConfig::new("nomic-embed-text");
        assert!(model.space().unwrap_err().to_string().contains("must be set"));
        let model = model.with_dimensions(768);
        assert_eq!(space(&model), (768, false));
        assert_eq!(space(&model.with_request_dimensions(true)), (768, true));
    }

    #[test]
    fn limits_follow_the_model() {
        let limits = ModelConfig::default().limits();
        assert_eq!((limits.chunk_threshold_tokens, limits.chunk_target_tokens), (8_191, 1_024));
        assert!(limits.batch_texts <= 2_048 && limits.batch_tokens <= 300_000);
        let limits = ModelConfig::new("bge").limits();
        assert_eq!((limits.chunk_threshold_tokens, limits.chunk_target_tokens), (512, 512));
        let limits = ModelConfig { max_tokens: Some(40_000), ..ModelConfig::new("bge") }.limits();
        assert_eq!((limits.chunk_threshold_tokens, limits.chunk_target_tokens), (40_000, 1_024));
        assert!(limits.batch_tokens >= 40_000);
        let texts = |texts| ModelConfig::new("bge").with_batch_texts(texts).limits().batch_texts;
        assert_eq!((texts(32), texts(0), texts(9_999)), (32, 1, 2_048));
    }

    #[test]
    fn the_environment_is_read_with_its_prefix() {
        let env = |name: &str| match name {
            "X_EMBEDDING_MODEL" => Some(" m ".to_owned()),
            "X_EMBEDDING_DIMENSIONS" => Some("7".to_owned()),
            "X_EMBEDDING_CACHE_SIZE" => Some("0".to_owned()),
            "X_EMBEDDING_REQUEST_DIMENSIONS" => Some("True".to_owned()),
            "X_EMBEDDING_MAX_TOKENS" => Some("  ".to_owned()),
            "X_EMBEDDING_TIMEOUT_SECONDS" => Some("5".to_owned()),
            "X_EMBEDDING_BATCH_TEXTS" => Some("32".to_owned()),
            _ => None,
        };
        let read = ModelConfig::from_env("X", &env).unwrap();
        let mut wanted = ModelConfig::new("m").with_dimensions(7).with_request_dimensions(true);
        wanted = wanted.with_timeout(Duration::from_secs(5)).with_batch_texts(32);
        wanted.cache_size = 0;
        assert_eq!(read, wanted);
        assert_eq!(ModelConfig::from_env("Y", &env).unwrap(), ModelConfig::default());
        for (name, value) in
            [("DIMENSIONS", "0"), ("DIMENSIONS", "x"), ("CACHE_SIZE", "-1"), ("REQUEST_DIMENSIONS", "maybe")]
        {
            let variable = format!("X_EMBEDDING_{name}");
            let error = ModelConfig::from_env("X", &|asked| (asked == variable).then(|| value.to_owned()))
                .unwrap_err();
            assert!(error.to_string().contains(&variable), "{error}");
        }
    }
}
