//! Connecting to an account: the containers are made, or compared with what is expected of them.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use amplifier_session_core::{Error, ErrorKind, Result, model::SessionKey};
use azure_core::credentials::{Secret, TokenCredential};
use azure_data_cosmos::{
    AccountReference, CosmosClient, CosmosError, CosmosRuntimeBuilder, RoutingStrategy,
    models::ContainerProperties,
    options::{
        BinaryEncodingOptions, ConnectionPoolOptions, OperationOptions, OperationOptionsBuilder,
        ThrottlingRetryOptionsBuilder,
    },
};
use tokio::sync::{OwnedMutexGuard, Semaphore};

use crate::{
    client::Container,
    config::{Authentication, CosmosConfig},
    containers, error, schema,
    totals::KeptTotals,
    usage::Usage,
};

/// How often a throttled request is repeated at most: far more than fit in its time.
const THROTTLED_REQUESTS: u32 = 1_000;

/// The containers of a store, and what is known of them.
#[derive(Debug)]
pub(crate) struct Store {
    pub(crate) config: CosmosConfig,
    pub(crate) sessions: Container,
    pub(crate) messages: Container,
    pub(crate) events: Container,
    pub(crate) chunks: Container,
    pub(crate) usage: Arc<Usage>,
    /// Length of the vectors that the service compares, where it does.
    pub(crate) vector_dimensions: Option<usize>,
    /// Whether the terms of texts have a full-text index.
    pub(crate) full_text: bool,
    /// What text search knows of the whole store.
    pub(crate) totals: KeptTotals,
    turns: Mutex<HashMap<SessionKey, Arc<tokio::sync::Mutex<()>>>>,
}

/// What a connection is made with beside its configuration.
#[derive(Debug, Default)]
pub(crate) struct Transport {
    /// The credential for [`Authentication::DefaultCredential`].
    pub(crate) credential: Option<Arc<dyn TokenCredential>>,
    /// The SDK's transport.
    pub(crate) runtime: CosmosRuntimeBuilder,
}

impl Store {
    /// Connects; makes the database and its containers where they are missing and a key allows it.
    pub(crate) async fn connect(config: CosmosConfig, transport: Transport) -> Result<Self> {
        let usage = Arc::new(Usage::default());
        let account = client(&config, transport, Arc::clone(&usage)).await?;
        let writes = Arc::new(Semaphore::new(config.write_concurrency.max(1)));
        let mut opened = Vec::new();
        let (mut full_text, mut vector_dimensions) = (false, None);
        for expected in containers::definitions(&config)? {
            let (container, found) = open_container(&config, &account, &expected).await?;
            full_text |= containers::has_full_text(&found);
            vector_dimensions = vector_dimensions.or(containers::dimensions(&found));
            opened.push(Container::new(container, Arc::clone(&writes)));
        }
        let Ok([sessions, messages, events, chunks]) = <[Container; 4]>::try_from(opened) else {
            return Err(Error::new(
                ErrorKind::StorageConnection,
                "the containers are not as many as expected",
            ));
        };
        let (totals, turns) = (KeptTotals::default(), Mutex::default());
        let vector_dimensions =
            vector_dimensions.filter(|_| config.enable_vector).map(|length| length as usize);
        let store = Self {
            config,
            sessions,
            messages,
            events,
            chunks,
            usage,
            vector_dimensions,
            full_text,
            totals,
            turns,
        };
        schema::put_first(&store).await?;
        Ok(store)
    }

    /// One writer of a session at a time in this process; other processes are kept apart by fences.
    pub(crate) async fn session_lock(&self, key: &SessionKey) -> OwnedMutexGuard<()> {
        let turn = {
            let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
            // Those that nobody holds are of no use any more.
            turns.retain(|_, turn| Arc::strong_count(turn) > 1);
            turns.entry(key.clone()).or_default().clone()
        };
        turn.lock_owned().await
    }

    /// The address of the account and the database.
    pub(crate) fn location(&self) -> String {
        format!("{}/{}", self.config.endpoint.trim_end_matches('/'), self.config.database)
    }
}

/// The SDK's HTTP client takes the provider of TLS from the process: ring, unless the program has chosen another one.
pub(crate) fn provide_tls() {
    // An error says that somebody else was faster.
    let _ = rustls::crypto::ring::default_provider().install_default();
}

async fn client(config: &CosmosConfig, transport: Transport, usage: Arc<Usage>) -> Result<CosmosClient> {
    provide_tls();
    let (endpoint, is_plain) = config.address()?;
    let account = match (&config.authentication, transport.credential) {
        (Authentication::Key(key), _) => {
            AccountReference::with_authentication_key(endpoint.into(), Secret::new(key.clone()))
        }
        (Authentication::DefaultCredential, Some(credential)) => {
            AccountReference::with_credential(endpoint.into(), credential)
        }
        (Authentication::DefaultCredential, None) => {
            return Err(Error::new(ErrorKind::Authentication, "no credential of Entra ID was handed in"));
        }
    };
    let failed = |e| error::of_sdk("opening the account", e);
    let runtime = if is_plain {
        // HTTP/2 without TLS has to be agreed on beforehand; emulators speak HTTP/1.1.
        let pool = ConnectionPoolOptions::builder().with_is_http2_allowed(false).build().map_err(failed)?;
        transport.runtime.with_connection_pool(pool)
    } else {
        transport.runtime
    };
    let builder = CosmosClient::builder()
        .with_runtime(runtime.build().await.map_err(failed)?)
        .with_default_operation_options(operations(config))
        .with_diagnostics_handler(usage)
        // In preview, and emulators don't know it.
        .with_binary_encoding_options(BinaryEncodingOptions::new().with_enabled(false));
    let routing = RoutingStrategy::PreferredRegions(Vec::new());
    builder.build(account, routing).await.map_err(failed)
}

/// How long a throttled request is repeated. The service says when to come back: its waits count, not how many they are.
fn operations(config: &CosmosConfig) -> OperationOptions {
    let throttling = ThrottlingRetryOptionsBuilder::new()
        .with_max_retry_count(THROTTLED_REQUESTS)
        .with_max_retry_wait_time(config.throttle_patience)
        .build();
    OperationOptionsBuilder::new().with_throttling_retry_options(throttling).build()
}

/// Opens a container; makes it, and the database, if they are not there and we are allowed to.
async fn open_container(
    config: &CosmosConfig,
    account: &CosmosClient,
    expected: &ContainerProperties,
) -> Result<(azure_data_cosmos::ContainerClient, ContainerProperties)> {
    let name = expected.id.to_string();
    let database = account.database_client(config.database.clone());
    let container = match database.container_client(name.clone(), None).await {
        Err(missing) if is_missing(&missing) => {
            make(config, account, expected).await?;
            database.container_client(name, None).await
        }
        other => other,
    };
    let failed = |e| error::of_sdk("opening a container", e);
    let container = container.map_err(failed)?;
    let found = container.read(None).await.and_then(|answer| answer.into_model()).map_err(failed)?;
    containers::compare(config, expected, &found)?;
    Ok((container, found))
}

fn is_missing(error: &CosmosError) -> bool {
    u16::from(error.status().status_code()) == 404
}

async fn make(config: &CosmosConfig, account: &CosmosClient, expected: &ContainerProperties) -> Result<()> {
    if !config.create {
        let message = format!("there is no store: the container {} is missing", expected.id);
        return Err(Error::new(ErrorKind::StorageConnection, message).with("database", &config.database));
    }
    if config.authentication == Authentication::DefaultCredential {
        let message = format!("the container {} is missing; with Entra ID, have it made first", expected.id);
        return Err(Error::new(ErrorKind::StorageConnection, message).with("database", &config.database));
    }
    unless_there(account.create_database(&config.database, None).await)?;
    let database = account.database_client(config.database.clone());
    unless_there(database.create_container(expected.clone(), None).await)
}

/// Somebody else may be faster.
fn unless_there<T>(created: Result<T, CosmosError>) -> Result<()> {
    match created {
        Ok(_) => Ok(()),
        Err(there) if u16::from(there.status().status_code()) == 409 => Ok(()),
        Err(failure) => Err(error::of_sdk("making a container", failure)),
    }
}
