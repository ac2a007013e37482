//! The settings.

use amplifier_session_core::config::Setting;

use crate::backends::BACKENDS;

/// All settings, including those of the backends of this build, in the order in which they are shown.
pub fn settings() -> impl Iterator<Item = &'static Setting> {
    let backends = BACKENDS.iter().flat_map(|backend| backend.settings);
    GENERAL.iter().chain(backends).chain(EMBEDDING)
}

/// The settings of the program.
static GENERAL: &[Setting] = &[
    Setting::text("store", "AMPLIFIER_SESSIONS_STORE", "Where the sessions are stored")
        .with_option("--store")
        .with_default("sqlite:~/.amplifier/sessions.sqlite"),
    Setting::paths("root", "AMPLIFIER_SESSIONS_ROOT", "The folders that sync reads")
        .with_option("--root")
        // As it is shown: two variables change it.
        .with_default("~/.amplifier, ~/.amplifier-agent"),
    Setting::text(
        "captures",
        "AMPLIFIER_CONTEXT_INTELLIGENCE_BASE_PATH",
        "Where captures are, if not in the folders of their sessions",
    ),
    Setting::text("user", "AMPLIFIER_SESSIONS_USER", "Your user id").with_option("--user"),
    Setting::text("org", "AMPLIFIER_SESSIONS_ORG", "Your organisation").with_option("--org"),
    Setting::list("teams", "AMPLIFIER_SESSIONS_TEAMS", "Your teams").with_option("--team"),
    Setting::list("exclude", "AMPLIFIER_SESSIONS_EXCLUDE", "Sessions that sync leaves out")
        .with_option("--exclude"),
    Setting::list("push.to", "AMPLIFIER_SESSIONS_PUSH", "The servers that sync and watch send sessions to")
        .with_option("--push"),
    Setting::list(
        "push.sources",
        "AMPLIFIER_SESSIONS_PUSH_SOURCES",
        "The programs whose sessions are sent: amplifier, amplifier-agent",
    )
    .with_default("amplifier"),
    Setting::list(
        "push.exclude",
        "AMPLIFIER_SESSIONS_PUSH_EXCLUDE",
        "Folders whose sessions are not sent, with those below them",
    ),
    Setting::choice(
        "events",
        "AMPLIFIER_SESSIONS_EVENTS",
        &["full", "summary", "none"],
        "How much of event logs is stored",
    )
    .with_option("--events")
    .with_default("full"),
    Setting::switch(
        "refresh",
        "AMPLIFIER_SESSIONS_REFRESH",
        "Let search and sessions read recent changes first",
    )
    .with_default("true"),
    Setting::text("pager", "AMPLIFIER_SESSIONS_PAGER", "The program that shows long output on a terminal"),
    Setting::text("embedding", "AMPLIFIER_SESSIONS_EMBEDDING", "The embedding model or service")
        .with_option("--embedding")
        .with_default("local"),
    Setting::choice(
        "redact",
        "AMPLIFIER_SESSIONS_REDACT",
        &["off", "mark", "mask"],
        "Mask secrets in texts for services on other machines (mark), and in the store (mask)",
    )
    .with_option("--redact")
    .with_default("mark"),
    Setting::switch(
        "allow_http",
        "AMPLIFIER_SESSIONS_ALLOW_HTTP",
        "Send keys over plain http:// to other machines",
    )
    .with_option("--allow-http")
    .with_default("false"),
    Setting::number(
        "price_per_million_tokens",
        "AMPLIFIER_SESSIONS_PRICE_PER_MILLION_TOKENS",
        "The price of the embedding service, for estimates",
    ),
];

/// The settings of embedding providers and their cache.
static EMBEDDING: &[Setting] = &[
    Setting::text("cache.directory", "AMPLIFIER_SESSIONS_CACHE_DIRECTORY", "The folder for cached vectors")
        .with_default("~/.cache/amplifier-sessions"),
    Setting::count(
        "cache.max_megabytes",
        "AMPLIFIER_SESSIONS_CACHE_MAX_MEGABYTES",
        "The maximum size of that cache",
    )
    .with_default("1024"),
    Setting::text("openai.base_url", "OPENAI_BASE_URL", "The address of the service")
        .with_default("https://api.openai.com/v1"),
    Setting::secret("openai.api_key", "OPENAI_API_KEY", "The key"),
    Setting::text("openai.model", "OPENAI_EMBEDDING_MODEL", "The model")
        .with_default("text-embedding-3-large"),
    Setting::count("openai.dimensions", "OPENAI_EMBEDDING_DIMENSIONS", DIMENSIONS),
    Setting::switch("openai.request_dimensions", "OPENAI_EMBEDDING_REQUEST_DIMENSIONS", REQUEST_DIMENSIONS),
    Setting::count("openai.max_tokens", "OPENAI_EMBEDDING_MAX_TOKENS", MAX_TOKENS),
    Setting::count("openai.batch_texts", "OPENAI_EMBEDDING_BATCH_TEXTS", BATCH_TEXTS).with_default("64"),
    Setting::count("openai.concurrent_calls", "OPENAI_EMBEDDING_CONCURRENT_CALLS", CONCURRENT_CALLS)
        .with_default("8"),
    Setting::count("openai.timeout_seconds", "OPENAI_EMBEDDING_TIMEOUT_SECONDS", TIMEOUT).with_default("120"),
    Setting::count("openai.cache_size", "OPENAI_EMBEDDING_CACHE_SIZE", CACHE_SIZE).with_default("1000"),
    Setting::text("azure_openai.endpoint", "AZURE_OPENAI_ENDPOINT", "The address of the resource"),
    Setting::secret("azure_openai.api_key", "AZURE_OPENAI_API_KEY", "The key"),
    Setting::switch(
        "azure_openai.use_rbac",
        "AZURE_OPENAI_USE_RBAC",
        "Sign in with Microsoft Entra ID, without a key",
    )
    .with_default("false"),
    Setting::text("azure_openai.api_version", "AZURE_OPENAI_API_VERSION", "The version of the API"),
    Setting::text("azure_openai.deployment", "AZURE_OPENAI_EMBEDDING_DEPLOYMENT", "The deployment"),
    // No default: a deployment may have the name of its model.
    Setting::text(
        "azure_openai.model",
        "AZURE_OPENAI_EMBEDDING_MODEL",
        "The model, if the deployment is not named after it",
    ),
    Setting::count("azure_openai.dimensions", "AZURE_OPENAI_EMBEDDING_DIMENSIONS", DIMENSIONS),
    Setting::switch(
        "azure_openai.request_dimensions",
        "AZURE_OPENAI_EMBEDDING_REQUEST_DIMENSIONS",
        REQUEST_DIMENSIONS,
    ),
    Setting::count("azure_openai.max_tokens", "AZURE_OPENAI_EMBEDDING_MAX_TOKENS", MAX_TOKENS),
    Setting::count("azure_openai.batch_texts", "AZURE_OPENAI_EMBEDDING_BATCH_TEXTS", BATCH_TEXTS)
        .with_default("64"),
    Setting::count(
        "azure_openai.concurrent_calls",
        "AZURE_OPENAI_EMBEDDING_CONCURRENT_CALLS",
        CONCURRENT_CALLS,
    )
    .with_default("8"),
    Setting::count("azure_openai.timeout_seconds", "AZURE_OPENAI_EMBEDDING_TIMEOUT_SECONDS", TIMEOUT)
        .with_default("120"),
    Setting::count("azure_openai.cache_size", "AZURE_OPENAI_EMBEDDING_CACHE_SIZE", CACHE_SIZE)
        .with_default("1000"),
];

const DIMENSIONS: &str = "The length of the vectors";
const REQUEST_DIMENSIONS: &str = "Whether requests specify that length";
const MAX_TOKENS: &str = "The maximum number of tokens of a text";
const BATCH_TEXTS: &str = "The maximum number of texts in a call";
const CONCURRENT_CALLS: &str = "The maximum number of concurrent calls";
const TIMEOUT: &str = "How long to wait for an answer";
const CACHE_SIZE: &str = "The maximum number of vectors to keep in memory";

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn names_are_unique() {
        let keys: HashSet<_> = settings().map(|setting| setting.key).collect();
        let variables: HashSet<_> = settings().map(|setting| setting.variable).collect();
        assert_eq!((keys.len(), variables.len()), (settings().count(), settings().count()));
    }

    #[test]
    fn keys_and_passwords_are_secret() {
        for setting in settings() {
            let is_secret = ["key", "password"].iter().any(|end| setting.name().ends_with(end));
            assert_eq!(setting.is_secret(), is_secret, "{}", setting.key);
        }
    }
}
