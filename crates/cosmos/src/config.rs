//! How to reach an account, and the settings for that.

use std::time::Duration;

use amplifier_session_core::{
    Error, ErrorField, Result, Secret,
    config::{Setting, Settings},
};
use azure_core::http::Url;
use azure_data_cosmos::models::VectorIndexType;
use serde_json::{from_value, json};

/// The default database.
const DEFAULT_DATABASE: &str = "amplifier-db";

/// The length of vectors if neither the configuration nor an embedding provider sets it: the length for
/// `text-embedding-3-large`.
pub(crate) const DEFAULT_DIMENSIONS: usize = 3072;

/// The settings of stores in Cosmos DB.
pub(crate) const SETTINGS: &[Setting] = &[
    Setting::text(
        "cosmos.endpoint",
        "AMPLIFIER_COSMOS_ENDPOINT",
        "The address of the account, unless the store URL names a host",
    ),
    Setting::text(
        "cosmos.database",
        "AMPLIFIER_COSMOS_DATABASE",
        "The database, unless the store URL names one",
    )
    .with_default(DEFAULT_DATABASE),
    Setting::choice(
        "cosmos.auth_method",
        "AMPLIFIER_COSMOS_AUTH_METHOD",
        &["default_credential", "key"],
        "How to sign in: with Microsoft Entra ID (default_credential), or with a key of the account",
    )
    .with_default("default_credential"),
    Setting::secret(
        "cosmos.key",
        "AMPLIFIER_COSMOS_KEY",
        "The key of the account, for auth_method = \"key\"",
    )
    .not_in_file(),
    Setting::text(
        "cosmos.key_file",
        "AMPLIFIER_COSMOS_KEY_FILE",
        "A file with the key, unless cosmos.key is set",
    ),
    Setting::switch(
        "cosmos.enable_vector",
        "AMPLIFIER_COSMOS_ENABLE_VECTOR",
        "Let the service compare vectors, which needs the account's capability EnableNoSQLVectorSearch",
    )
    .with_default("true"),
    Setting::count(
        "cosmos.vector_dimensions",
        "AMPLIFIER_COSMOS_VECTOR_DIMENSIONS",
        "The length of the vectors that the index is made for, unless --embedding sets it; at most 4,096",
    ),
    Setting::choice(
        "cosmos.vector_index",
        "AMPLIFIER_COSMOS_VECTOR_INDEX",
        &["quantizedFlat", "diskANN", "flat"],
        "The kind of vector index. An existing container keeps its own; a new one gets quantizedFlat",
    ),
];

/// How to sign in.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Authentication {
    /// With Microsoft Entra ID, and the credentials that the environment offers.
    DefaultCredential,
    /// With a key of the account.
    Key(Secret),
}

/// The location of a store, how it is created, and the patience of its client.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CosmosConfig {
    /// The address of the account: `https://<account>.documents.azure.com/`. Plain `http://` is accepted only for this
    /// machine, for emulators.
    pub endpoint: String,
    /// The database. Default: `amplifier-db`.
    pub database: String,
    /// How to sign in. Default: with Entra ID.
    pub authentication: Authentication,
    /// Whether the service compares vectors, which must be enabled for the account. Otherwise, they are read and
    /// compared here, which is slow. Default: true.
    pub enable_vector: bool,
    /// The length of the vectors in the container's index. By default, it is taken from the existing container; a new
    /// container gets 3072.
    pub vector_dimensions: Option<usize>,
    /// The kind of that index. By default, it is taken from the existing container; a new container gets
    /// `QuantizedFlat`.
    ///
    /// - `QuantizedFlat` compares all vectors in compressed form, for up to some ten thousand vectors in a partition.
    /// - `DiskANN` follows a graph over compressed vectors, for larger numbers. It finds the nearest with high
    ///   probability.
    /// - `Flat` compares all vectors uncompressed. It is exact, for at most 505 dimensions.
    pub vector_index: Option<VectorIndexType>,
    /// Whether to create a missing database and missing containers, which requires a key. Default: true.
    pub create: bool,
    /// How long a write of another process, which may be throttled, can be without progress before that process counts
    /// as dead. Default: 40 seconds.
    pub takeover_after: Duration,
    /// How long to wait in total for throttled requests before returning an error that says when to retry. Default: 30
    /// seconds.
    pub throttle_patience: Duration,
    /// The maximum number of concurrent write batches. Default: 8.
    pub write_concurrency: usize,
    /// The maximum number of texts that are scored for one search by words. Default: 10,000.
    pub most_texts: usize,
}

impl CosmosConfig {
    /// The address of the database.
    pub(crate) fn location(&self) -> String {
        format!("{}/{}", self.endpoint.trim_end_matches('/'), self.database)
    }

    /// The account at `endpoint`, with defaults for everything else.
    #[must_use]
    pub fn new(endpoint: impl Into<String>) -> Self {
        Self {
            endpoint: endpoint.into(),
            database: DEFAULT_DATABASE.to_owned(),
            authentication: Authentication::DefaultCredential,
            enable_vector: true,
            vector_dimensions: None,
            vector_index: None,
            create: true,
            takeover_after: Duration::from_secs(40),
            throttle_patience: Duration::from_secs(30),
            write_concurrency: 8,
            most_texts: 10_000,
        }
    }

    /// The account at `endpoint`, configured by [`SETTINGS`]. Reads the file with the key. `Validation` if a setting
    /// has an invalid value, or there is no key to sign in with.
    pub(crate) fn from_settings(endpoint: impl Into<String>, settings: &Settings) -> Result<Self> {
        let mut config = Self::new(endpoint);
        config.database = settings.text("cosmos.database").unwrap_or(DEFAULT_DATABASE).to_owned();
        if settings.choice("cosmos.auth_method")? == Some("key") {
            config.authentication = Authentication::Key(key(settings)?);
        }
        config.enable_vector = settings.switch("cosmos.enable_vector")?;
        config.vector_dimensions =
            settings.count("cosmos.vector_dimensions")?.map(|length| length.try_into().unwrap_or(usize::MAX));
        let index = settings.choice("cosmos.vector_index")?;
        config.vector_index = index.and_then(|name| from_value(json!(name)).ok());
        Ok(config)
    }

    /// The address of the account, and whether it is plain HTTP on this machine. `Validation` if it is not an address,
    /// or specifies plain HTTP to another machine, which would expose keys and tokens.
    pub(crate) fn address(&self) -> Result<(Url, bool)> {
        let wrong = |what| Error::validation(ErrorField::Endpoint, what).with("value", &self.endpoint);
        let url: Url = self.endpoint.parse().map_err(|e| wrong("is not an address").with_source(e))?;
        // The SDK accepts only these names for this machine.
        let is_here = matches!(url.host_str(), Some("127.0.0.1" | "[::1]" | "localhost"));
        match url.scheme() {
            "https" => Ok((url, false)),
            "http" if is_here => Ok((url, true)),
            _ => Err(wrong("must begin with https://, or with http:// on this machine")),
        }
    }
}

fn key(settings: &Settings) -> Result<Secret> {
    if let Some(key) = settings.text("cosmos.key") {
        return Ok(Secret::new(key));
    }
    let Some(file) = settings.path("cosmos.key_file") else {
        let message =
            "auth_method `key` needs a key: set AMPLIFIER_COSMOS_KEY, or name a file with cosmos.key_file";
        return Err(Error::validation(ErrorField::Config, message));
    };
    let unreadable = |error: std::io::Error| {
        let message = format!("the file named by cosmos.key_file can't be read: {}: {error}", file.display());
        Error::validation(ErrorField::Config, message).with_source(error)
    };
    std::fs::read_to_string(&file).map_err(unreadable).map(|key| Secret::new(&key))
}

#[cfg(test)]
mod tests {
    use amplifier_session_core::config::{Entry, SettingOrigin};

    use super::*;

    /// The configuration by these values of settings, with the defaults of the others.
    fn read(values: &[(&str, &str)]) -> Result<CosmosConfig> {
        let entry = |setting: &'static Setting| match values.iter().find(|(key, _)| *key == setting.key) {
            Some((_, value)) => Entry::new(setting, SettingOrigin::StoreUrl, Some(value)),
            None => Entry::new(setting, SettingOrigin::Default, setting.default),
        };
        let home = std::env::temp_dir();
        CosmosConfig::from_settings(
            "https://a/",
            &Settings::new(SETTINGS.iter().map(entry).collect(), Some(home)),
        )
    }

    #[test]
    fn every_setting_is_used() {
        let config = read(&[
            ("cosmos.database", "d"),
            ("cosmos.auth_method", "key"),
            ("cosmos.key", "c2VjcmV0"),
            ("cosmos.key_file", "/nowhere"),
            ("cosmos.enable_vector", "off"),
            ("cosmos.vector_dimensions", "1536"),
            ("cosmos.vector_index", "diskann"),
        ]);
        let mut expected = CosmosConfig::new("https://a/");
        expected.authentication = Authentication::Key(Secret::new("c2VjcmV0"));
        expected.enable_vector = false;
        expected.vector_dimensions = Some(1536);
        expected.database = "d".to_owned();
        expected.vector_index = Some(VectorIndexType::DiskANN);
        assert_eq!(config.unwrap(), expected);
        assert_eq!(read(&[]).unwrap(), CosmosConfig::new("https://a/"));
    }

    #[test]
    fn the_key_may_be_in_a_file() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(&file, "c2VjcmV0\n").unwrap();
        let read = |file: &str| read(&[("cosmos.auth_method", "key"), ("cosmos.key_file", file)]);
        let config = read(file.path().to_str().unwrap()).unwrap();
        assert_eq!(config.authentication, Authentication::Key(Secret::new("c2VjcmV0")));
        let error = read("~/there/is/no/such/file").unwrap_err();
        assert!(error.message().contains("cosmos.key_file") && !error.message().contains('~'), "{error}");
    }

    #[test]
    fn a_wrong_value_is_named() {
        for (key, value, rule) in [
            ("cosmos.auth_method", "password", "cosmos.auth_method must be one of default_credential, key"),
            ("cosmos.auth_method", "key", "set AMPLIFIER_COSMOS_KEY"),
            ("cosmos.enable_vector", "perhaps", "cosmos.enable_vector must be true or false"),
            ("cosmos.vector_dimensions", "x", "cosmos.vector_dimensions must be a whole number"),
            (
                "cosmos.vector_index",
                "hnsw",
                "cosmos.vector_index must be one of quantizedFlat, diskANN, flat",
            ),
        ] {
            let error = read(&[(key, value)]).unwrap_err();
            assert!(error.message().contains(rule), "{error}");
        }
    }

    #[test]
    fn plain_http_is_allowed_only_to_this_machine() {
        let address = |endpoint| CosmosConfig::new(endpoint).address();
        assert!(!address("https://a.documents.azure.com/").unwrap().1);
        for here in ["http://127.0.0.1:8081", "http://[::1]:8081/", "http://LOCALHOST:1"] {
            assert!(address(here).unwrap().1, "{here}");
        }
        for elsewhere in
            ["http://a.documents.azure.com/", "http://127.0.0.1.example.com", "ftp://localhost", "a"]
        {
            let error = address(elsewhere).unwrap_err();
            assert_eq!(error.field(), Some(ErrorField::Endpoint), "{elsewhere}");
        }
    }
}
