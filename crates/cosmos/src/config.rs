//! How to reach an account: the variables `AMPLIFIER_COSMOS_*`.

use std::{fmt, time::Duration};

use amplifier_session_core::{Error, Result};
use azure_core::http::Url;

/// The database when none is named.
pub const DEFAULT_DATABASE: &str = "amplifier-db";

/// Length of vectors when neither the configuration nor a provider says it: that of `text-embedding-3-large`.
pub const DEFAULT_DIMENSIONS: usize = 3072;

/// How to prove who is asking.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Authentication {
    /// Microsoft Entra ID, with the credentials that the environment offers.
    DefaultCredential,
    /// A key of the account.
    Key(String),
}

impl fmt::Debug for Authentication {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::DefaultCredential => "DefaultCredential",
            Self::Key(_) => "Key(hidden)",
        })
    }
}

/// The kind of index that the service finds vectors with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum VectorIndexKind {
    /// Compressed vectors, all of which are compared: for some ten thousand a partition.
    #[default]
    QuantizedFlat,
    /// A graph over compressed vectors: for more than that; nearest with high probability.
    DiskAnn,
    /// The vectors as they are, all of which are compared: exact, for at most 505 dimensions.
    Flat,
}

impl VectorIndexKind {
    /// Every kind.
    pub const ALL: [Self; 3] = [Self::QuantizedFlat, Self::DiskAnn, Self::Flat];

    /// The name by which the service knows it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::QuantizedFlat => "quantizedFlat",
            Self::DiskAnn => "diskANN",
            Self::Flat => "flat",
        }
    }

    /// Reads a name in any case.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str().eq_ignore_ascii_case(name))
    }
}

/// Where the store is, and how it is made and spoken to.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CosmosConfig {
    /// Address of the account: `https://<account>.documents.azure.com/`. Plain `http://` is taken on this machine only,
    /// for emulators.
    pub endpoint: String,
    /// The database. Default: `amplifier-db`.
    pub database: String,
    /// How to prove who is asking. Default: Entra ID.
    pub authentication: Authentication,
    /// Whether the server compares vectors, which an account has to be enabled for. Without it they are read and
    /// compared here, which is slow. Default: true.
    pub enable_vector: bool,
    /// Length of the vectors that the container's index is to be for. Default: that of the container that is there; one that
    /// is made is for 3072.
    pub vector_dimensions: Option<usize>,
    /// The kind of that index. Default: that of the container that is there; one that is made has
    /// [`VectorIndexKind::QuantizedFlat`].
    pub vector_index: Option<VectorIndexKind>,
    /// Whether the database and its containers are made where they are missing, which needs a key. Default: true.
    pub create: bool,
    /// How long the write of another process, which may be throttled, may stand still before it counts as dead. Default: 40 seconds.
    pub takeover_after: Duration,
    /// How long a request that the service throttles is repeated, counted in waits, before it is an error that says when
    /// to come back. Default: 30 seconds.
    pub throttle_patience: Duration,
    /// How many batches of writes may be under way at once. Default: 8.
    pub write_concurrency: usize,
    /// How many texts are scored for one search by words. Default: 10,000.
    pub most_texts: usize,
}

impl CosmosConfig {
    /// The account at `endpoint`, with the defaults of everything else.
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

    /// Reads the variables `AMPLIFIER_COSMOS_ENDPOINT`, `_DATABASE`, `_AUTH_METHOD` (`default_credential` or `key`),
    /// `_KEY`, `_ENABLE_VECTOR`, `_VECTOR_DIMENSIONS` and `_VECTOR_INDEX` (`quantizedFlat`, `diskANN` or `flat`) with
    /// `variable`, which gives the value of a name. `None` when there is no endpoint.
    ///
    /// # Errors
    ///
    /// `Validation` naming the variable whose value makes no sense.
    pub fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Result<Option<Self>> {
        let set = |name: &str| variable(name).map(|value| value.trim().to_owned()).filter(|v| !v.is_empty());
        let Some(endpoint) = set("AMPLIFIER_COSMOS_ENDPOINT") else { return Ok(None) };
        let mut config = Self::new(endpoint);
        if let Some(database) = set("AMPLIFIER_COSMOS_DATABASE") {
            config.database = database;
        }
        config.authentication =
            authentication(set("AMPLIFIER_COSMOS_AUTH_METHOD"), set("AMPLIFIER_COSMOS_KEY"))?;
        if let Some(value) = set("AMPLIFIER_COSMOS_ENABLE_VECTOR") {
            config.enable_vector = boolean("AMPLIFIER_COSMOS_ENABLE_VECTOR", &value)?;
        }
        if let Some(value) = set("AMPLIFIER_COSMOS_VECTOR_DIMENSIONS") {
            let name = "AMPLIFIER_COSMOS_VECTOR_DIMENSIONS";
            let wrong = |_| Error::validation(name, "must be a number of dimensions");
            config.vector_dimensions = Some(value.parse().map_err(wrong)?);
        }
        if let Some(value) = set("AMPLIFIER_COSMOS_VECTOR_INDEX") {
            let wrong = || {
                Error::validation("AMPLIFIER_COSMOS_VECTOR_INDEX", "must be quantizedFlat, diskANN or flat")
            };
            config.vector_index = Some(VectorIndexKind::parse(&value).ok_or_else(wrong)?);
        }
        Ok(Some(config))
    }

    /// [`CosmosConfig::from_variables`] with those of the process.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn from_env() -> Result<Option<Self>> {
        Self::from_variables(|name| std::env::var(name).ok())
    }

    /// The address, and whether it is one of a server of plain HTTP on this machine.
    ///
    /// # Errors
    ///
    /// `Validation` when it is no address, or asks for plain HTTP to another machine: keys and tokens would be on the wire.
    pub(crate) fn address(&self) -> Result<(Url, bool)> {
        let wrong = |what| Error::validation("endpoint", what).with("value", &self.endpoint);
        let url: Url = self.endpoint.parse().map_err(|e| wrong("is no address").with_source(e))?;
        // As the SDK has it, which knows no other names of this machine.
        let is_here = matches!(url.host_str(), Some("127.0.0.1" | "[::1]" | "localhost"));
        match url.scheme() {
            "https" => Ok((url, false)),
            "http" if is_here => Ok((url, true)),
            "http" => Err(wrong("must begin with https://, unless it is on this machine")),
            _ => Err(wrong("must begin with https://")),
        }
    }

    /// Sets the database.
    #[must_use]
    pub fn with_database(mut self, database: impl Into<String>) -> Self {
        self.database = database.into();
        self
    }

    /// Sets how to prove who is asking.
    #[must_use]
    pub fn with_authentication(mut self, authentication: Authentication) -> Self {
        self.authentication = authentication;
        self
    }

    /// Sets whether the server compares vectors.
    #[must_use]
    pub fn with_vector(mut self, enable_vector: bool) -> Self {
        self.enable_vector = enable_vector;
        self
    }

    /// Sets the length of vectors.
    #[must_use]
    pub fn with_vector_dimensions(mut self, dimensions: usize) -> Self {
        self.vector_dimensions = Some(dimensions);
        self
    }

    /// Sets the kind of the index of vectors.
    #[must_use]
    pub fn with_vector_index(mut self, kind: VectorIndexKind) -> Self {
        self.vector_index = Some(kind);
        self
    }

    /// Sets whether the database and its containers are made where they are missing.
    #[must_use]
    pub fn with_create(mut self, create: bool) -> Self {
        self.create = create;
        self
    }

    /// Sets how long the write of another process may stand still.
    #[must_use]
    pub fn with_takeover_after(mut self, takeover_after: Duration) -> Self {
        self.takeover_after = takeover_after;
        self
    }

    /// Sets how long a throttled request is repeated.
    #[must_use]
    pub fn with_throttle_patience(mut self, patience: Duration) -> Self {
        self.throttle_patience = patience;
        self
    }

    /// Sets how many texts are scored for one search by words.
    #[must_use]
    pub fn with_most_texts(mut self, most_texts: usize) -> Self {
        self.most_texts = most_texts;
        self
    }

    /// Sets how many batches of writes may be under way at once.
    #[must_use]
    pub fn with_write_concurrency(mut self, batches: usize) -> Self {
        self.write_concurrency = batches;
        self
    }
}

fn authentication(method: Option<String>, key: Option<String>) -> Result<Authentication> {
    match (method.as_deref(), key) {
        (None | Some("default_credential"), _) => Ok(Authentication::DefaultCredential),
        (Some("key"), Some(key)) => Ok(Authentication::Key(key)),
        (Some("key"), None) => {
            Err(Error::validation("AMPLIFIER_COSMOS_KEY", "must be set with the method `key`"))
        }
        (Some(_), _) => {
            Err(Error::validation("AMPLIFIER_COSMOS_AUTH_METHOD", "must be default_credential or key"))
        }
    }
}

fn boolean(name: &'static str, value: &str) -> Result<bool> {
    match value.to_ascii_lowercase().as_str() {
        "1" | "true" | "yes" | "on" => Ok(true),
        "0" | "false" | "no" | "off" => Ok(false),
        _ => Err(Error::validation(name, "must be true or false")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Option<CosmosConfig>> {
        CosmosConfig::from_variables(|name| {
            variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn without_an_endpoint_there_is_no_store() {
        assert_eq!(read(&[("AMPLIFIER_COSMOS_KEY", "k")]).unwrap(), None);
    }

    #[test]
    fn every_variable_counts() {
        let config = read(&[
            ("AMPLIFIER_COSMOS_ENDPOINT", "https://a.documents.azure.com/"),
            ("AMPLIFIER_COSMOS_DATABASE", "d"),
            ("AMPLIFIER_COSMOS_AUTH_METHOD", "key"),
            ("AMPLIFIER_COSMOS_KEY", "c2VjcmV0"),
            ("AMPLIFIER_COSMOS_ENABLE_VECTOR", "false"),
            ("AMPLIFIER_COSMOS_VECTOR_DIMENSIONS", "1536"),
            ("AMPLIFIER_COSMOS_VECTOR_INDEX", "diskann"),
        ]);
        let expected = CosmosConfig::new("https://a.documents.azure.com/")
            .with_database("d")
            .with_authentication(Authentication::Key("c2VjcmV0".to_owned()))
            .with_vector(false)
            .with_vector_dimensions(1536)
            .with_vector_index(VectorIndexKind::DiskAnn);
        assert_eq!(config.unwrap(), Some(expected));
    }

    #[test]
    fn a_value_that_makes_no_sense_is_named() {
        let field = |name, value| {
            let error = read(&[("AMPLIFIER_COSMOS_ENDPOINT", "https://a/"), (name, value)]).unwrap_err();
            error.context("field").unwrap().to_owned()
        };
        assert_eq!(field("AMPLIFIER_COSMOS_AUTH_METHOD", "password"), "AMPLIFIER_COSMOS_AUTH_METHOD");
        assert_eq!(field("AMPLIFIER_COSMOS_AUTH_METHOD", "key"), "AMPLIFIER_COSMOS_KEY");
        assert_eq!(field("AMPLIFIER_COSMOS_ENABLE_VECTOR", "perhaps"), "AMPLIFIER_COSMOS_ENABLE_VECTOR");
        assert_eq!(field("AMPLIFIER_COSMOS_VECTOR_DIMENSIONS", "x"), "AMPLIFIER_COSMOS_VECTOR_DIMENSIONS");
        assert_eq!(field("AMPLIFIER_COSMOS_VECTOR_INDEX", "hnsw"), "AMPLIFIER_COSMOS_VECTOR_INDEX");
    }

    #[test]
    fn plain_http_is_for_this_machine_only() {
        let address = |endpoint| CosmosConfig::new(endpoint).address();
        assert!(!address("https://a.documents.azure.com/").unwrap().1);
        for here in ["http://127.0.0.1:8081", "http://[::1]:8081/", "http://LOCALHOST:1"] {
            assert!(address(here).unwrap().1, "{here}");
        }
        for elsewhere in
            ["http://a.documents.azure.com/", "http://127.0.0.1.example.com", "ftp://localhost", "a"]
        {
            let error = address(elsewhere).unwrap_err();
            assert_eq!(error.context("field"), Some("endpoint"), "{elsewhere}");
        }
    }

    #[test]
    fn the_key_is_not_shown() {
        let config =
            CosmosConfig::new("https://a/").with_authentication(Authentication::Key("c2VjcmV0".into()));
        assert!(!format!("{config:?}").contains("c2VjcmV0"));
    }
}
