//! The same suite on a real account, with a key that can create databases. It costs money, so it runs only on request:
//!
//!     AMPLIFIER_COSMOS_ENDPOINT=... AMPLIFIER_COSMOS_KEY=... \
//!         cargo nextest run -p amplifier-session-cosmos --run-ignored only -E 'test(/^live::/)'

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::SystemTime,
};

use amplifier_session_core::{Secret, backend::prelude::*};
use amplifier_session_cosmos::{Authentication, CosmosBackend, CosmosConfig};
use amplifier_session_testkit::{Subject, conformance_suite};
use azure_data_cosmos::{
    AccountReference, CosmosClient, CosmosRuntimeBuilder, RoutingStrategy, options::ConnectionPoolOptions,
};

/// A database for one test, removed at the end, because an account can have only a few hundred containers.
struct Live(CosmosConfig);

impl Live {
    fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let variable = |name: &str| std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set"));
        let mut config = CosmosConfig::new(variable("AMPLIFIER_COSMOS_ENDPOINT"));
        config.authentication = Authentication::Key(Secret::new(&variable("AMPLIFIER_COSMOS_KEY")));
        config.vector_dimensions = Some(64);
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        config.database = format!("amplifier-live-{}-{}-{number}", since.as_nanos(), std::process::id());
        Self(config)
    }

    async fn remove(&self) -> Result<(), Box<dyn std::error::Error>> {
        let Authentication::Key(key) = &self.0.authentication else {
            return Err("databases are made and removed with a key only".into());
        };
        let account =
            AccountReference::with_authentication_key(self.0.endpoint.parse()?, key.expose().to_owned());
        let pool = ConnectionPoolOptions::builder().with_is_http2_allowed(false).build()?;
        let runtime = CosmosRuntimeBuilder::new().with_connection_pool(pool).build().await?;
        let builder = CosmosClient::builder().with_runtime(runtime);
        let client = builder.build(account, RoutingStrategy::PreferredRegions(Vec::new())).await?;
        client.database_client(self.0.database.clone()).delete(None).await?;
        Ok(())
    }
}

#[async_trait::async_trait]
impl Subject for Live {
    async fn open(&self) -> Arc<dyn StorageBackend> {
        Arc::new(CosmosBackend::connect(self.0.clone()).await.unwrap())
    }

    async fn open_again(&self) -> Arc<dyn StorageBackend> {
        self.open().await
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        let removed = tokio::runtime::Runtime::new().unwrap().block_on(self.remove());
        assert!(removed.is_ok() || std::thread::panicking(), "{} is left: {removed:?}", self.0.database);
    }
}

conformance_suite!(Live::new(), ignore = "needs an account in the cloud: AMPLIFIER_COSMOS_ENDPOINT");
