//! An in-memory storage backend: small enough to read as an example, and as strict as a remote document store.
//!
//! Each trait of [`core::backend`](amplifier_session_core::backend) has a file with its name. The files are short
//! because the backend stores related data together and scans all of it for every call. A real backend needs indexes
//! and a disk, and must follow the same rules. `core` has the logic that is the same on every backend: matching
//! sessions with scopes and filters, extracting the texts of a line, and tokenizing and scoring them.

mod changes;
mod events;
mod integrity;
mod messages;
mod other_rows;
mod rows;
mod search;
mod sessions;
mod vectors;
mod write;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use amplifier_session_core::{
    Result,
    backend::{
        ChangeSignal, Meta, Scheduling, SequenceRange, SessionLocks, StorageBackend, StoreInfo, StorePlace,
        meta,
    },
};
use async_trait::async_trait;

use crate::store::Subject;
use rows::Rows;

/// The maximum number of rows of a page.
const PAGE_SIZE: usize = 7;

/// Keeps everything in memory and behaves like a remote document store. Reads return small pages, so that every
/// caller's paging is tested. Writes are split into small batches, with other calls in between. Clones share the data.
///
/// ```
/// use std::sync::Arc;
/// use amplifier_session_core::SessionStorage;
/// use amplifier_session_testkit::MemoryBackend;
///
/// let storage = SessionStorage::new(Arc::new(MemoryBackend::new()));
/// ```
#[derive(Debug, Clone)]
pub struct MemoryBackend {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    rows: Mutex<Rows>,
    /// Allows one writer of a session at a time. A remote store uses a lease for this.
    leases: SessionLocks,
    /// Tells readers of changes.
    signal: ChangeSignal,
    /// The number of batches until a write is interrupted.
    interruption: Mutex<Option<usize>>,
}

impl Default for MemoryBackend {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryBackend {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        let meta = BTreeMap::from([
            (meta::VERSION.to_owned(), meta::SCHEMA_VERSION.to_string()),
            (meta::WRITER.to_owned(), meta::WRITER_NAME.to_owned()),
        ]);
        let rows = Mutex::new(Rows::new(meta));
        let shared = Shared {
            rows,
            leases: SessionLocks::default(),
            signal: ChangeSignal::default(),
            interruption: Mutex::default(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Interrupts the next write or deletion after `batches` batches: it fails with `StorageIo` (retryable) and leaves
    /// these batches in the store. `None` interrupts nothing.
    pub fn interrupt_after(&self, batches: Option<usize>) {
        *self.shared.interruption.lock().unwrap_or_else(PoisonError::into_inner) = batches;
    }

    fn rows(&self) -> MutexGuard<'_, Rows> {
        self.shared.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The first page of `range`.
fn page(range: SequenceRange) -> SequenceRange {
    SequenceRange { limit: range.limit.min(PAGE_SIZE), ..range }
}

#[async_trait]
impl Meta for MemoryBackend {
    fn info(&self) -> StoreInfo {
        StoreInfo::new("memory")
            .with_atomic_writes(false)
            .with_persistent(false)
            .with_places(vec![StorePlace::remote("store", "memory".to_owned())])
    }

    async fn meta(&self) -> Result<BTreeMap<String, String>> {
        Ok(self.rows().meta.clone())
    }

    async fn swap_meta(&self, key: &str, expected: Option<&str>, value: &str) -> Result<Option<String>> {
        let entries = &mut self.rows().meta;
        if entries.get(key).map(String::as_str) == expected {
            entries.insert(key.to_owned(), value.to_owned());
        }
        Ok(entries.get(key).cloned())
    }
}

impl Scheduling for MemoryBackend {}

/// A second handle is the same store, because no other process can access this memory.
#[async_trait]
impl Subject for MemoryBackend {
    async fn open(&self) -> Arc<dyn StorageBackend> {
        Arc::new(self.clone())
    }

    async fn open_again(&self) -> Arc<dyn StorageBackend> {
        self.open().await
    }
}
