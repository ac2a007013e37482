//! The conformance suite of the testkit on the SDK's emulator in memory.
//!
//! The emulator answers the queries of this crate but those with `VectorDistance` and `FullTextContainsAny`, which it does
//! not know: vectors are compared on this side here, as in an account without vector search.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use std::{sync::Arc, time::Duration};

use amplifier_session_core::backend::StorageBackend;
use amplifier_session_cosmos::{Authentication, CosmosBackend, CosmosConfig};
use amplifier_session_testkit::{conformance::Subject, conformance_suite};
use azure_data_cosmos::CosmosRuntimeBuilder;
use azure_data_cosmos_driver::in_memory_emulator::{
    ConsistencyLevel, InMemoryEmulatorHttpClient, VirtualAccountConfig, VirtualRegion,
};

const ENDPOINT: &str = "https://eastus.emulator.local";

/// An account in memory; a second handle is a client of its own.
struct Emulator(Arc<InMemoryEmulatorHttpClient>);

impl Emulator {
    fn new() -> Self {
        let region = VirtualRegion::new("East US", ENDPOINT.parse().unwrap());
        let account = VirtualAccountConfig::new(vec![region]).unwrap();
        Self(Arc::new(InMemoryEmulatorHttpClient::new(account.with_consistency(ConsistencyLevel::Session))))
    }
}

#[async_trait::async_trait]
impl Subject for Emulator {
    async fn open(&self) -> Arc<dyn StorageBackend> {
        let runtime = CosmosRuntimeBuilder::from(self.0.runtime_builder());
        let config = CosmosConfig::new(ENDPOINT)
            .with_authentication(Authentication::Key("dGVzdGtleQ==".to_owned()))
            .with_vector(false)
            .with_takeover_after(Duration::from_millis(300));
        Arc::new(CosmosBackend::connect_through(config, runtime).await.unwrap())
    }

    async fn open_again(&self) -> Arc<dyn StorageBackend> {
        self.open().await
    }
}

conformance_suite!(Emulator::new());
