//! The settings that there are.

use std::borrow::Cow;

/// A setting: what it is called where, and what it is when nobody says.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Setting {
    /// Its name in the file; a dot separates table and key.
    pub key: &'static str,
    /// Its name in the environment.
    pub variable: &'static str,
    /// Its name on the command line, where it has one.
    pub option: Option<&'static str>,
    /// What it is when nobody says. `None` leaves it to what uses it.
    pub default: Option<&'static str>,
    /// What it holds.
    pub kind: Kind,
}

/// What a setting holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// A text.
    Text,
    /// A text that is never shown.
    Secret,
    /// A whole number of at least 0.
    Count,
    /// A number of at least 0.
    Number,
    /// Yes or no: `true` or `false` in the file, also `on` and `off` elsewhere.
    Switch,
    /// One of these texts.
    Choice(&'static [&'static str]),
    /// Texts: a list in the file, elsewhere with commas between them, but for those in braces.
    List,
}

impl Kind {
    /// What a value has to be, to go on after "must be".
    pub(super) fn rule(self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Self::Text | Self::Secret => "a text in quotes",
            Self::Count => "a whole number of at least 0",
            Self::Number => "a number of at least 0",
            Self::Switch => "true or false",
            Self::Choice(choices) => return Cow::Owned(format!("one of {}", choices.join(", "))),
            Self::List => "a list of texts in quotes, such as [\"a\", \"b\"]",
        })
    }
}

impl Setting {
    const fn new(key: &'static str, variable: &'static str, kind: Kind) -> Self {
        Self { key, variable, option: None, default: None, kind }
    }

    const fn text(key: &'static str, variable: &'static str) -> Self {
        Self::new(key, variable, Kind::Text)
    }

    const fn count(key: &'static str, variable: &'static str) -> Self {
        Self::new(key, variable, Kind::Count)
    }

    const fn list(key: &'static str, variable: &'static str) -> Self {
        Self::new(key, variable, Kind::List)
    }

    const fn with_option(mut self, option: &'static str) -> Self {
        self.option = Some(option);
        self
    }

    const fn with_default(mut self, default: &'static str) -> Self {
        self.default = Some(default);
        self
    }

    /// Whether its value is never shown.
    #[must_use]
    pub fn is_secret(&self) -> bool {
        self.kind == Kind::Secret
    }
}

/// All settings, in the order in which they are shown.
pub const SETTINGS: &[Setting] = &[
    Setting::text("store", "AMPLIFIER_SESSIONS_STORE")
        .with_option("--store")
        .with_default("sqlite:~/.amplifier/sessions.sqlite"),
    Setting::text("root", "AMPLIFIER_SESSIONS_ROOT").with_option("--root").with_default("~/.amplifier"),
    Setting::text("user", "AMPLIFIER_SESSIONS_USER").with_option("--user"),
    Setting::text("org", "AMPLIFIER_SESSIONS_ORG").with_option("--org"),
    Setting::list("teams", "AMPLIFIER_SESSIONS_TEAMS").with_option("--team"),
    Setting::list("exclude", "AMPLIFIER_SESSIONS_EXCLUDE").with_option("--exclude"),
    Setting::new("events", "AMPLIFIER_SESSIONS_EVENTS", Kind::Choice(&["full", "summary", "none"]))
        .with_option("--events")
        .with_default("full"),
    Setting::new("refresh", "AMPLIFIER_SESSIONS_REFRESH", Kind::Switch).with_default("true"),
    Setting::text("embedding", "AMPLIFIER_SESSIONS_EMBEDDING")
        .with_option("--embedding")
        .with_default("local"),
    Setting::new("redact", "AMPLIFIER_SESSIONS_REDACT", Kind::Switch)
        .with_option("--redact")
        .with_default("true"),
    Setting::new("allow_http", "AMPLIFIER_SESSIONS_ALLOW_HTTP", Kind::Switch)
        .with_option("--allow-http")
        .with_default("false"),
    Setting::new("price_per_million_tokens", "AMPLIFIER_SESSIONS_PRICE_PER_MILLION_TOKENS", Kind::Number),
    Setting::new("hnsw", "AMPLIFIER_SESSIONS_HNSW", Kind::Switch).with_default("false"),
    Setting::text("extension_directory", "AMPLIFIER_SESSIONS_EXTENSION_DIRECTORY"),
    Setting::text("cosmos.endpoint", "AMPLIFIER_COSMOS_ENDPOINT"),
    Setting::text("cosmos.database", "AMPLIFIER_COSMOS_DATABASE").with_default("amplifier-db"),
    Setting::new(
        "cosmos.auth_method",
        "AMPLIFIER_COSMOS_AUTH_METHOD",
        Kind::Choice(&["default_credential", "key"]),
    )
    .with_default("default_credential"),
    // The key itself stands in the environment or in a file of its own: a configuration file is shown and shared.
    Setting::text("cosmos.key_file", "AMPLIFIER_COSMOS_KEY_FILE"),
    Setting::new("cosmos.enable_vector", "AMPLIFIER_COSMOS_ENABLE_VECTOR", Kind::Switch).with_default("true"),
    Setting::count("cosmos.vector_dimensions", "AMPLIFIER_COSMOS_VECTOR_DIMENSIONS"),
    Setting::new(
        "cosmos.vector_index",
        "AMPLIFIER_COSMOS_VECTOR_INDEX",
        Kind::Choice(&["quantizedFlat", "diskANN", "flat"]),
    )
    .with_default("quantizedFlat"),
    Setting::text("cache.directory", "AMPLIFIER_SESSIONS_CACHE_DIRECTORY")
        .with_default("~/.cache/amplifier-sessions"),
    Setting::count("cache.max_megabytes", "AMPLIFIER_SESSIONS_CACHE_MAX_MEGABYTES").with_default("1024"),
    Setting::text("openai.base_url", "OPENAI_BASE_URL").with_default("https://api.openai.com/v1"),
    Setting::new("openai.api_key", "OPENAI_API_KEY", Kind::Secret),
    Setting::text("openai.model", "OPENAI_EMBEDDING_MODEL").with_default("text-embedding-3-large"),
    Setting::count("openai.dimensions", "OPENAI_EMBEDDING_DIMENSIONS"),
    Setting::new("openai.request_dimensions", "OPENAI_EMBEDDING_REQUEST_DIMENSIONS", Kind::Switch),
    Setting::count("openai.max_tokens", "OPENAI_EMBEDDING_MAX_TOKENS"),
    Setting::count("openai.batch_texts", "OPENAI_EMBEDDING_BATCH_TEXTS").with_default("64"),
    Setting::count("openai.concurrent_calls", "OPENAI_EMBEDDING_CONCURRENT_CALLS").with_default("8"),
    Setting::count("openai.timeout_seconds", "OPENAI_EMBEDDING_TIMEOUT_SECONDS").with_default("120"),
    Setting::count("openai.cache_size", "OPENAI_EMBEDDING_CACHE_SIZE").with_default("1000"),
    Setting::text("azure_openai.endpoint", "AZURE_OPENAI_ENDPOINT"),
    Setting::new("azure_openai.api_key", "AZURE_OPENAI_API_KEY", Kind::Secret),
    Setting::new("azure_openai.use_rbac", "AZURE_OPENAI_USE_RBAC", Kind::Switch).with_default("false"),
    Setting::text("azure_openai.api_version", "AZURE_OPENAI_API_VERSION"),
    Setting::text("azure_openai.deployment", "AZURE_OPENAI_EMBEDDING_DEPLOYMENT"),
    // No default: a deployment that is called like a model says which.
    Setting::text("azure_openai.model", "AZURE_OPENAI_EMBEDDING_MODEL"),
    Setting::count("azure_openai.dimensions", "AZURE_OPENAI_EMBEDDING_DIMENSIONS"),
    Setting::new(
        "azure_openai.request_dimensions",
        "AZURE_OPENAI_EMBEDDING_REQUEST_DIMENSIONS",
        Kind::Switch,
    ),
    Setting::count("azure_openai.max_tokens", "AZURE_OPENAI_EMBEDDING_MAX_TOKENS"),
    Setting::count("azure_openai.batch_texts", "AZURE_OPENAI_EMBEDDING_BATCH_TEXTS").with_default("64"),
    Setting::count("azure_openai.concurrent_calls", "AZURE_OPENAI_EMBEDDING_CONCURRENT_CALLS")
        .with_default("8"),
    Setting::count("azure_openai.timeout_seconds", "AZURE_OPENAI_EMBEDDING_TIMEOUT_SECONDS")
        .with_default("120"),
    Setting::count("azure_openai.cache_size", "AZURE_OPENAI_EMBEDDING_CACHE_SIZE").with_default("1000"),
];

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_name_is_given_twice() {
        let keys: HashSet<_> = SETTINGS.iter().map(|setting| setting.key).collect();
        let variables: HashSet<_> = SETTINGS.iter().map(|setting| setting.variable).collect();
        assert_eq!((keys.len(), variables.len()), (SETTINGS.len(), SETTINGS.len()));
    }

    #[test]
    fn keys_are_secret() {
        for setting in SETTINGS {
            assert_eq!(setting.is_secret(), setting.key.ends_with("api_key"), "{}", setting.key);
        }
    }
}
