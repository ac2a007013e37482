//! From a store's URL to a storage.

use std::{
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use amplifier_session_core::{
    Error, ErrorKind, Result, SessionStorage, StorageSettings, backend::StorageBackend,
    embedding::EmbeddingProvider,
};
use amplifier_session_sqlite::Sqlite;

use crate::{StoreUrl, store_url::CosmosAddress};

/// What can be chosen when a store is opened.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct OpenOptions {
    /// What makes vectors. Default: nothing, so that searches go by words alone.
    pub embedding: Option<Arc<dyn EmbeddingProvider>>,
    /// The storage's settings.
    pub settings: StorageSettings,
    /// Whether nothing is written. A DuckDB store that several processes look at is opened so by all of them. Default: no.
    pub read_only: bool,
    /// Whether a DuckDB store has an HNSW index too, which DuckDB's extension VSS makes; other stores have none. Default: no.
    pub hnsw: bool,
    /// Where DuckDB's extensions are. Default: where DuckDB installs them.
    pub extension_directory: Option<PathBuf>,
    /// The folder that `~` stands for. Default: unknown, so that a URL with `~` is refused.
    pub home: Option<PathBuf>,
    /// Whether a database of Cosmos DB that is not there stays so, and can't be opened; files are made all the same. Default: no.
    pub existing: bool,
    /// What stores of a service are configured by: `AMPLIFIER_COSMOS_*`, and for Microsoft Entra ID `AZURE_*`. Default: nothing.
    pub variables: Variables,
}

/// Variables of an environment. Only their names are shown.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Variables(BTreeMap<String, String>);

impl Variables {
    /// Those of this process, but for those that are no text.
    #[must_use]
    pub fn from_env() -> Self {
        std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect()
    }

    /// The value of a variable.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }
}

impl FromIterator<(String, String)> for Variables {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(variables: I) -> Self {
        Self(variables.into_iter().collect())
    }
}

impl fmt::Debug for Variables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl OpenOptions {
    /// The defaults, with this process' environment: its variables, and `~` standing for its home folder.
    #[must_use]
    pub fn from_env() -> Self {
        Self { home: std::env::home_dir(), variables: Variables::from_env(), ..Self::default() }
    }

    /// Sets what makes vectors.
    #[must_use]
    pub fn with_embedding(mut self, embedding: Option<Arc<dyn EmbeddingProvider>>) -> Self {
        self.embedding = embedding;
        self
    }

    /// Sets the storage's settings.
    #[must_use]
    pub fn with_settings(mut self, settings: StorageSettings) -> Self {
        self.settings = settings;
        self
    }

    /// Sets whether nothing is written.
    #[must_use]
    pub fn with_read_only(mut self, read_only: bool) -> Self {
        self.read_only = read_only;
        self
    }

    /// Sets whether a DuckDB store has an HNSW index too.
    #[must_use]
    pub fn with_hnsw(mut self, hnsw: bool) -> Self {
        self.hnsw = hnsw;
        self
    }

    /// Sets where DuckDB's extensions are.
    #[must_use]
    pub fn with_extension_directory(mut self, directory: Option<PathBuf>) -> Self {
        self.extension_directory = directory;
        self
    }

    /// Sets the folder that `~` stands for.
    #[must_use]
    pub fn with_home(mut self, home: Option<PathBuf>) -> Self {
        self.home = home;
        self
    }

    /// Sets whether a database of Cosmos DB that is not there stays so.
    #[must_use]
    pub fn with_existing(mut self, existing: bool) -> Self {
        self.existing = existing;
        self
    }

    /// Sets what stores of a service are configured by.
    #[must_use]
    pub fn with_variables(mut self, variables: Variables) -> Self {
        self.variables = variables;
        self
    }
}

/// Opens the store at `url`, which is made when it does not exist: see [`StoreUrl`] for what a URL looks like.
///
/// # Errors
///
/// `Validation` when `url` is none, or its scheme is unknown; `Unsupported` for a backend that is not built in;
/// those of the backend.
pub async fn open(url: &str, options: OpenOptions) -> Result<SessionStorage> {
    open_at(&StoreUrl::parse(url, options.home.as_deref())?, options).await
}

/// [`open`], for a URL that is read already.
///
/// # Errors
///
/// Those of the backend; `Unsupported` for a backend that is not built in, or one that can't be opened for reading only.
pub async fn open_at(url: &StoreUrl, options: OpenOptions) -> Result<SessionStorage> {
    let backend: Arc<dyn StorageBackend> = match url {
        StoreUrl::Sqlite(_) if options.read_only => {
            let message = "a SQLite store has no reading only: many processes may read it while others write";
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        StoreUrl::Sqlite(path) => Arc::new(Sqlite::open(path).await?),
        StoreUrl::DuckDb(path) => duckdb(path, &options).await?,
        StoreUrl::Cosmos(address) => cosmos(address, &options).await?,
    };
    Ok(SessionStorage::new(backend).with_embedding(options.embedding).with_settings(options.settings))
}

#[cfg(feature = "duckdb-system")]
async fn duckdb(path: &Path, options: &OpenOptions) -> Result<Arc<dyn StorageBackend>> {
    use amplifier_session_duckdb::{Access, DuckDb, HnswOptions};

    let access = if options.read_only { Access::ReadOnly } else { Access::ReadWrite };
    let backend = DuckDb::open(path, access).await?;
    if !options.hnsw {
        return Ok(Arc::new(backend));
    }
    let hnsw = HnswOptions::default().with_extension_directory(options.extension_directory.clone());
    backend.use_hnsw(hnsw);
    Ok(Arc::new(backend))
}

#[cfg(not(feature = "duckdb-system"))]
async fn duckdb(_: &Path, _: &OpenOptions) -> Result<Arc<dyn StorageBackend>> {
    Err(StoreUrl::duckdb_not_built_in())
}

#[cfg(feature = "cosmos")]
async fn cosmos(address: &CosmosAddress, options: &OpenOptions) -> Result<Arc<dyn StorageBackend>> {
    use amplifier_session_cosmos::{Authentication, CosmosBackend};
    use amplifier_session_embed::EntraIdentity;

    if options.read_only {
        let message =
            "a store in Cosmos DB has no reading only: many programs may read it while others write";
        return Err(Error::new(ErrorKind::Unsupported, message));
    }
    let config = cosmos_config(address, options)?;
    Ok(Arc::new(match config.authentication {
        Authentication::DefaultCredential => {
            let variable = |name: &str| options.variables.get(name).map(str::to_owned);
            let credential = EntraIdentity::from_env(variable).credential()?;
            CosmosBackend::connect_with(config, credential).await?
        }
        _ => CosmosBackend::connect(config).await?,
    }))
}

/// What the URL says counts, then the variables, then what the embedding provider makes.
#[cfg(feature = "cosmos")]
fn cosmos_config(
    address: &CosmosAddress,
    options: &OpenOptions,
) -> Result<amplifier_session_cosmos::CosmosConfig> {
    let dimensions = options.embedding.as_ref().map(|provider| provider.space().dimensions);
    let variable = |name: &str| {
        let of_url = match name {
            "AMPLIFIER_COSMOS_ENDPOINT" => address.endpoint(),
            "AMPLIFIER_COSMOS_DATABASE" => address.database.clone(),
            _ => None,
        };
        let of_provider = || dimensions.filter(|_| name == "AMPLIFIER_COSMOS_VECTOR_DIMENSIONS");
        of_url
            .or_else(|| options.variables.get(name).map(str::to_owned))
            .or_else(|| of_provider().map(|dimensions| dimensions.to_string()))
    };
    let config = amplifier_session_cosmos::CosmosConfig::from_variables(variable)?.ok_or_else(|| {
        Error::validation("store", "cosmos:// names no account, and AMPLIFIER_COSMOS_ENDPOINT is not set")
    })?;
    Ok(config.with_create(!options.existing))
}

#[cfg(not(feature = "cosmos"))]
async fn cosmos(_: &CosmosAddress, _: &OpenOptions) -> Result<Arc<dyn StorageBackend>> {
    Err(StoreUrl::cosmos_not_built_in())
}

#[cfg(all(test, feature = "cosmos"))]
mod cosmos_tests {
    use super::*;

    /// `rest` is what stands behind `cosmos:`.
    fn config(rest: &str, variables: &[(&str, &str)]) -> Result<amplifier_session_cosmos::CosmosConfig> {
        let address = CosmosAddress::parse(rest, rest)?;
        let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        cosmos_config(&address, &OpenOptions::default().with_variables(variables.collect()))
    }

    #[test]
    fn the_url_counts_before_the_variables() {
        let variables = [
            ("AMPLIFIER_COSMOS_ENDPOINT", "https://b.documents.azure.com/"),
            ("AMPLIFIER_COSMOS_DATABASE", "b"),
        ];
        let told = config("//a.documents.azure.com/a", &variables).unwrap();
        assert_eq!((told.endpoint.as_str(), told.database.as_str()), ("https://a.documents.azure.com/", "a"));
        let left_open = config("//", &variables).unwrap();
        assert_eq!((left_open.endpoint, left_open.database), (variables[0].1.to_owned(), "b".to_owned()));
        assert!(config("//", &[]).unwrap_err().to_string().contains("AMPLIFIER_COSMOS_ENDPOINT"));
    }

    #[test]
    fn values_of_variables_are_not_shown() {
        let variables: Variables =
            [("AMPLIFIER_COSMOS_KEY".to_owned(), "c2VjcmV0".to_owned())].into_iter().collect();
        let shown = format!("{:?}", OpenOptions::default().with_variables(variables));
        assert!(shown.contains("AMPLIFIER_COSMOS_KEY") && !shown.contains("c2VjcmV0"));
    }
}

#[cfg(all(test, feature = "duckdb-system"))]
mod tests {
    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn a_duckdb_store_is_opened_by_its_url() {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("duckdb:{}", folder.path().join("s.duckdb").display());
        let read_only = OpenOptions::default().with_read_only(true);
        let missing = open(&url, read_only.clone()).await.unwrap_err();
        assert_eq!(missing.kind(), ErrorKind::StorageConnection);
        let storage = open(&url, OpenOptions::default()).await.unwrap();
        assert_eq!(storage.backend().info().name, "duckdb");
        drop(storage);
        open(&url, read_only).await.unwrap();
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn an_hnsw_index_that_cannot_be_made_is_no_reason_not_to_open() {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("duckdb:{}", folder.path().join("s.duckdb").display());
        let nowhere = Some(folder.path().join("extensions"));
        let options = OpenOptions::default().with_hnsw(true).with_extension_directory(nowhere);
        open(&url, options).await.unwrap().update_index().await.unwrap();
    }
}
