//! The conformance suite on the in-memory backend, in both of its manners, and tests of the backend itself.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use std::sync::Arc;

use amplifier_session_core::backend::prelude::*;
use amplifier_session_testkit::{MemoryBackend, conformance::Subject, conformance_suite};

mod archives;
mod completeness;
mod fakes;
mod faults;
mod interruption;

/// Stores in memory; a second handle is a clone.
struct InMemory(MemoryBackend);

#[async_trait::async_trait]
impl Subject for InMemory {
    async fn open(&self) -> Arc<dyn StorageBackend> {
        Arc::new(self.0.clone())
    }

    async fn open_again(&self) -> Arc<dyn StorageBackend> {
        Arc::new(self.0.clone())
    }
}

/// As a remote document store: small pages, and writes that do not happen as a whole.
mod paged {
    use super::*;

    conformance_suite!(InMemory(MemoryBackend::new()));
}

/// As a database: every write happens as a whole, answers are as long as asked for.
mod atomic {
    use super::*;

    conformance_suite!(InMemory(MemoryBackend::new().with_atomic_writes().with_page_size(usize::MAX)));
}
