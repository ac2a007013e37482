//! Opening a store by its URL.

use std::{path::Path, sync::Arc};

use amplifier_session_core::{
    Error, ErrorKind, ErrorOption, Result, SessionStorage, StorageSettings, backend::OpenRequest,
    content::Redaction, embedding::EmbeddingProvider, model::UserId,
};

use crate::{
    config::{ConfigSources, Configuration},
    store_url::StoreUrl,
};

/// Options for opening a store. Backend-specific settings are part of the URL or the configuration.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct OpenOptions {
    /// The embedding provider. Without one, which is the default, searches match words only.
    pub embedding: Option<Arc<dyn EmbeddingProvider>>,
    /// The models for which secrets in texts are masked, with the feature `redact`. Default: models that are not on
    /// this machine.
    pub redaction: Redaction,
    /// The settings of the storage.
    pub settings: StorageSettings,
    /// Whether the store is opened read-only, which not every backend can do. Default: no.
    pub read_only: bool,
    /// The length of the vectors that will be written, for stores that need it at creation. Default: that of the
    /// embedding provider.
    pub dimensions: Option<usize>,
    /// Whether the store must exist. Default: no; a missing store is created.
    pub existing: bool,
    /// The configuration: the home folder, settings of backends, and the environment. By default it is empty, and every
    /// setting has its default.
    pub configuration: Configuration,
}

impl OpenOptions {
    /// The defaults, with the environment and the home folder of this process, but no configuration file.
    #[must_use]
    pub fn from_env() -> Self {
        Self::default().with_configuration(Configuration::without_file(&ConfigSources::from_env()))
    }

    /// Sets the embedding provider.
    #[must_use]
    pub fn with_embedding(mut self, embedding: Option<Arc<dyn EmbeddingProvider>>) -> Self {
        self.embedding = embedding;
        self
    }

    /// Sets the models for which secrets in texts are masked.
    #[must_use]
    pub fn with_redaction(mut self, redaction: Redaction) -> Self {
        self.redaction = redaction;
        self
    }

    /// Sets the settings of the storage.
    #[must_use]
    pub fn with_settings(mut self, settings: StorageSettings) -> Self {
        self.settings = settings;
        self
    }

    /// Sets whether the store is opened read-only.
    #[must_use]
    pub fn with_read_only(mut self, read_only: bool) -> Self {
        self.read_only = read_only;
        self
    }

    /// Sets the length of the vectors that will be written.
    #[must_use]
    pub fn with_dimensions(mut self, dimensions: Option<usize>) -> Self {
        self.dimensions = dimensions;
        self
    }

    /// Sets whether the store must exist.
    #[must_use]
    pub fn with_existing(mut self, existing: bool) -> Self {
        self.existing = existing;
        self
    }

    /// Sets the configuration.
    #[must_use]
    pub fn with_configuration(mut self, configuration: Configuration) -> Self {
        self.configuration = configuration;
        self
    }
}

/// Opens the store at `url` and creates it if it does not exist. See [`StoreUrl`] for the form of URLs.
///
/// # Errors
///
/// As [`StoreUrl::parse`] and [`open_at`].
pub async fn open(url: &str, options: OpenOptions) -> Result<SessionStorage> {
    open_at(&StoreUrl::parse(url, options.configuration.home())?, options).await
}

/// [`open`] for a parsed URL.
///
/// # Errors
///
/// `Unsupported` when the store can't be opened read-only; `StorageConnection` when it must exist and does not;
/// `Validation` when a setting of the backend has a wrong value; errors of the backend.
pub async fn open_at(url: &StoreUrl, options: OpenOptions) -> Result<SessionStorage> {
    let backend = url.backend();
    if options.read_only && !backend.read_only {
        let message = format!("{} stores cannot be opened read-only", backend.name);
        return Err(Error::new(ErrorKind::Unsupported, message).with_option(ErrorOption::ReadOnly));
    }
    let request = request(url, &options);
    // If the file can't be examined, the backend reports why.
    if options.existing && url.file().is_some_and(|file| !file.try_exists().unwrap_or(true)) {
        return Err(Error::new(ErrorKind::StorageConnection, format!("there is no store at {url}")));
    }
    let storage = SessionStorage::new(url.open(request).await?)
        .with_embedding(options.embedding)
        .with_settings(options.settings);
    #[cfg(feature = "redact")]
    let storage =
        storage.with_redactor(options.redaction, Arc::new(amplifier_session_secrets::BuiltInRedactor));
    Ok(storage)
}

fn request(url: &StoreUrl, options: &OpenOptions) -> OpenRequest {
    let of_provider = || Some(options.embedding.as_ref()?.space().dimensions);
    options
        .configuration
        .open_request(url)
        .with_read_only(options.read_only)
        .with_must_exist(options.existing)
        .with_dimensions(options.dimensions.or_else(of_provider))
}

/// Restricts each role of the database at `url` to the rows of the user with the same name, by row level security.
/// Creates the store if it does not exist. For each of `users`, returns the statements that create its role; an
/// administrator has to run them.
///
/// # Errors
///
/// `Unsupported` if the database has no such roles; `Validation` if a user id can't be the name of a role; errors of
/// the backend.
pub async fn restrict_roles(url: &StoreUrl, options: OpenOptions, users: Vec<UserId>) -> Result<Vec<String>> {
    let (Some(address), Some(restrict)) = (url.address(), url.backend().restrict_roles) else {
        let message = format!("{} stores have no roles to restrict", url.backend().name);
        return Err(Error::new(ErrorKind::Unsupported, message).with_operation("restrict_roles"));
    };
    restrict(address.to_owned(), request(url, &options), users).await
}

/// Copies the store at `url`, which must exist, to the file `to`, which must be empty or not exist. The copy has one
/// consistent state of all rows, even while other processes write. It is an independent store;
/// [`SessionStorage::update_index`] rebuilds its search index.
///
/// # Errors
///
/// `Unsupported` if this kind of store can't be copied
/// ([`ArchiveTransfer::export_sessions`](amplifier_session_core::storage::ArchiveTransfer::export_sessions) works with
/// every store); `StorageConnection` if there is no store; errors of the backend.
pub async fn backup(url: &StoreUrl, to: &Path) -> Result<()> {
    let (Some(from), Some(backup)) = (url.file(), url.backend().backup) else {
        let message = format!("{} stores can't be copied while they are in use", url.backend().name);
        return Err(Error::new(ErrorKind::Unsupported, message).with_operation("backup"));
    };
    if !from.try_exists().unwrap_or(true) {
        return Err(Error::new(ErrorKind::StorageConnection, format!("there is no store at {url}")));
    }
    backup(from.to_owned(), to.to_owned()).await.map_err(|error| error.with_operation("backup"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_store_that_must_exist_is_not_created() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("s.sqlite");
        let url = format!("sqlite:{}", file.display());
        let missing = open(&url, OpenOptions::default().with_existing(true)).await.unwrap_err();
        assert_eq!((missing.kind(), file.exists()), (ErrorKind::StorageConnection, false));
        open(&url, OpenOptions::default()).await.unwrap();
        open(&url, OpenOptions::default().with_existing(true)).await.unwrap();
    }

    #[tokio::test]
    async fn unsupported_options_are_refused_before_the_store_is_opened() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("s.sqlite");
        let read_only = OpenOptions::default().with_read_only(true);
        let error = open(&format!("sqlite:{}", file.display()), read_only).await.unwrap_err();
        assert_eq!((error.kind(), file.exists()), (ErrorKind::Unsupported, false));
        assert_eq!(error.message(), "SQLite stores cannot be opened read-only");
    }

    #[tokio::test(flavor = "multi_thread")]
    #[cfg(feature = "duckdb-system")]
    async fn a_duckdb_store_can_be_opened_read_only() {
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
    #[cfg(feature = "duckdb-system")]
    async fn a_store_opens_without_the_extension() {
        let folder = tempfile::tempdir().unwrap();
        let (file, nowhere) = (folder.path().join("s.duckdb"), folder.path().join("extensions"));
        let url = format!("duckdb:{}?hnsw=true&extension_directory={}", file.display(), nowhere.display());
        let storage = open(&url, OpenOptions::default()).await.unwrap();
        storage.update_index().await.unwrap();
        let wrong = open(&format!("duckdb:{}?hnsw=perhaps", file.display()), OpenOptions::default()).await;
        assert_eq!(wrong.unwrap_err().message(), "store URL: hnsw must be true or false");
    }
}
