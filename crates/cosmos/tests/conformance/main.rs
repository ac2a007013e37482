//! The conformance suite over HTTP, on the local account of the testkit: with vector search and a full-text policy.
//!
//! `vectors_compared_here` has the promises that depend on these features, on an account without them.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

use std::{sync::Arc, time::Duration};

use amplifier_session_core::{Secret, backend::prelude::*};
use amplifier_session_cosmos::{Authentication, CosmosBackend, CosmosConfig};
use amplifier_session_testkit::{
    Subject, conformance_suite,
    cosmos::{AccountOptions, CosmosAccount},
};
use tokio::sync::OnceCell;

mod live;

/// An account that starts with the first handle. A second handle is another client.
struct Account {
    options: AccountOptions,
    vector: bool,
    server: OnceCell<CosmosAccount>,
}

impl Account {
    /// An account with all features of the service.
    fn new() -> Self {
        Self { options: AccountOptions::default(), vector: true, server: OnceCell::new() }
    }

    /// An account without vector search and full text.
    fn bare() -> Self {
        let options = AccountOptions::default().with_full_text(false);
        Self { options, vector: false, server: OnceCell::new() }
    }
}

#[async_trait::async_trait]
impl Subject for Account {
    async fn open(&self) -> Arc<dyn StorageBackend> {
        let start = || async { CosmosAccount::start(self.options.clone()).await.unwrap() };
        let server = self.server.get_or_init(start).await;
        let mut config = CosmosConfig::new(server.endpoint());
        config.authentication = Authentication::Key(Secret::new(server.key()));
        config.enable_vector = self.vector;
        config.vector_dimensions = Some(64);
        config.takeover_after = Duration::from_millis(300);
        Arc::new(CosmosBackend::connect(config).await.unwrap())
    }

    async fn open_again(&self) -> Arc<dyn StorageBackend> {
        self.open().await
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        let refused = self.server.get().map(CosmosAccount::refused_queries).unwrap_or_default();
        assert!(refused.is_empty() || std::thread::panicking(), "{refused:?}");
    }
}

conformance_suite!(Account::new());

mod vectors_compared_here {
    use super::*;

    amplifier_session_testkit::conformance_tests! { Account::bare();
        search_text: [
            each_text_of_a_message_is_a_candidate,
            long_identifiers_are_found,
        ] + [
            candidates_are_scored_by_bm25,
        ]
        search_vectors: [
            candidates_are_exact,
            semantic_search_agrees_with_brute_force,
        ]
        filters: [] + [
            filters_apply_before_ranking,
        ]
    }
}
