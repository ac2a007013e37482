//! Connects to an account. Creates the containers, or compares them with the expected ones.

use std::sync::Arc;

use amplifier_session_core::{
    Error, ErrorKind, Result,
    backend::{ChangeSignal, SessionLocks},
};
use azure_core::credentials::{Secret, TokenCredential};
use azure_data_cosmos::{
    AccountReference, ContainerClient, CosmosClient, CosmosError, CosmosRuntimeBuilder, RoutingStrategy,
    models::ContainerProperties,
    options::{
        BinaryEncodingOptions, ConnectionPoolOptions, OperationOptionsBuilder, ThrottlingRetryOptionsBuilder,
    },
};
use tokio::sync::Semaphore;

use crate::{
    client::Container,
    config::{Authentication, CosmosConfig},
    containers, error, meta,
    store::{CosmosBackend, Store},
    totals::CachedTotals,
    usage::UsageCounter,
};

impl CosmosBackend {
    /// Connects to the account with a key. Creates the database and its containers if they do not exist.
    ///
    /// # Errors
    ///
    /// - `Authentication` if the account rejects the key, or if the configuration specifies Entra ID, which requires
    ///   [`CosmosBackend::connect_with`]
    /// - `StorageConnection` if the account cannot be reached
    /// - `Validation` if an existing container differs from what is expected
    pub async fn connect(config: CosmosConfig) -> Result<Self> {
        Self::open(config, None, CosmosRuntimeBuilder::default()).await
    }

    /// Connects with a credential of Entra ID. The database and its containers must exist, because such a credential
    /// does not permit creating them.
    ///
    /// # Errors
    ///
    /// As [`CosmosBackend::connect`]; `StorageConnection` also if a container does not exist.
    pub async fn connect_with(config: CosmosConfig, credential: Arc<dyn TokenCredential>) -> Result<Self> {
        Self::open(config, Some(credential), CosmosRuntimeBuilder::default()).await
    }

    /// Connects through this runtime, because tests use their own.
    pub(crate) async fn open(
        config: CosmosConfig,
        credential: Option<Arc<dyn TokenCredential>>,
        runtime: CosmosRuntimeBuilder,
    ) -> Result<Self> {
        let account = config.endpoint.clone();
        let failed = |error: Error| error.with_operation("connect").with("account", account);
        let store = open_store(config, credential, runtime).await.map_err(failed)?;
        Ok(Self(Arc::new(store)))
    }
}

async fn open_store(
    config: CosmosConfig,
    credential: Option<Arc<dyn TokenCredential>>,
    runtime: CosmosRuntimeBuilder,
) -> Result<Store> {
    let usage = Arc::new(UsageCounter::default());
    let account = client(&config, credential, runtime, Arc::clone(&usage)).await?;
    let writes = Arc::new(Semaphore::new(config.write_concurrency.max(1)));
    let open = async |expected: &ContainerProperties| {
        let (sdk, found) = open_container(&config, &account, expected).await?;
        Ok::<_, Error>((Container { sdk, writes: Arc::clone(&writes) }, found))
    };
    let [sessions, messages, events, chunks] = containers::definitions(&config)?;
    let (sessions, _) = open(&sessions).await?;
    let (messages, properties) = open(&messages).await?;
    let ((events, _), (chunks, _)) = (open(&events).await?, open(&chunks).await?);
    // An existing container may have other settings than a new one would get.
    let dimensions = containers::dimensions(&properties).filter(|_| config.enable_vector);
    let store = Store {
        sessions,
        messages,
        events,
        chunks,
        usage,
        vector_dimensions: dimensions.map(|length| length as usize),
        full_text: containers::has_full_text(&properties),
        totals: CachedTotals::default(),
        locks: SessionLocks::default(),
        signal: ChangeSignal::default(),
        config,
    };
    meta::create(&store).await?;
    Ok(store)
}

/// The SDK's HTTP client uses the TLS provider of the process: ring, unless the program has installed another one.
pub(crate) fn provide_tls() {
    // Fails if a provider is installed already.
    let _ = rustls::crypto::ring::default_provider().install_default();
}

async fn client(
    config: &CosmosConfig,
    credential: Option<Arc<dyn TokenCredential>>,
    runtime: CosmosRuntimeBuilder,
    usage: Arc<UsageCounter>,
) -> Result<CosmosClient> {
    provide_tls();
    let (endpoint, is_plain) = config.address()?;
    let account = match (&config.authentication, credential) {
        (Authentication::Key(key), _) => {
            AccountReference::with_authentication_key(endpoint.into(), Secret::new(key.expose().to_owned()))
        }
        (Authentication::DefaultCredential, Some(credential)) => {
            AccountReference::with_credential(endpoint.into(), credential)
        }
        (Authentication::DefaultCredential, None) => {
            return Err(Error::new(ErrorKind::Authentication, "no Entra ID credential was given"));
        }
    };
    let failed = |failure| error::of_sdk("opening the account", failure);
    let runtime = if is_plain {
        // HTTP/2 without TLS requires prior knowledge, and emulators support HTTP/1.1.
        let pool = ConnectionPoolOptions::builder().with_is_http2_allowed(false).build().map_err(failed)?;
        runtime.with_connection_pool(pool)
    } else {
        runtime
    };
    // The total wait that the service requests limits how long a throttled request is repeated, not the number of
    // repetitions.
    let throttling = ThrottlingRetryOptionsBuilder::new()
        .with_max_retry_count(1_000)
        .with_max_retry_wait_time(config.throttle_patience);
    let options = OperationOptionsBuilder::new().with_throttling_retry_options(throttling.build());
    let builder = CosmosClient::builder()
        .with_runtime(runtime.build().await.map_err(failed)?)
        .with_default_operation_options(options.build())
        .with_diagnostics_handler(usage)
        // A preview, which emulators do not support.
        .with_binary_encoding_options(BinaryEncodingOptions::new().with_enabled(false));
    let routing = RoutingStrategy::PreferredRegions(Vec::new());
    builder.build(account, routing).await.map_err(failed)
}

/// Opens a container. Creates it and the database if they do not exist and the configuration allows it.
async fn open_container(
    config: &CosmosConfig,
    account: &CosmosClient,
    expected: &ContainerProperties,
) -> Result<(ContainerClient, ContainerProperties)> {
    let name = expected.id.to_string();
    let database = account.database_client(config.database.clone());
    let container = match database.container_client(name.clone(), None).await {
        Err(missing) if error::status(&missing) == 404 => {
            create(config, account, expected).await?;
            database.container_client(name, None).await
        }
        other => other,
    };
    let failed = |failure| error::of_sdk("opening a container", failure);
    let container = container.map_err(failed)?;
    let found = container.read(None).await.and_then(|answer| answer.into_model()).map_err(failed)?;
    containers::compare(config, expected, &found)?;
    Ok((container, found))
}

async fn create(config: &CosmosConfig, account: &CosmosClient, expected: &ContainerProperties) -> Result<()> {
    let name = &expected.id;
    let missing =
        |message| Err(Error::new(ErrorKind::StorageConnection, message).with("database", &config.database));
    if !config.create {
        return missing(format!("there is no store: the container {name} does not exist"));
    }
    if config.authentication == Authentication::DefaultCredential {
        return missing(format!("the container {name} does not exist; with Entra ID, create it first"));
    }
    unless_present(account.create_database(&config.database, None).await)?;
    let database = account.database_client(config.database.clone());
    unless_present(database.create_container(expected.clone(), None).await)
}

/// Ignores the error if another process was faster.
fn unless_present<T>(created: Result<T, CosmosError>) -> Result<()> {
    match created {
        Err(failure) if error::status(&failure) != 409 => Err(error::of_sdk("creating a container", failure)),
        _ => Ok(()),
    }
}
