//! How handles of one store, in any process, give priority to each other.

use std::{any::Any, fmt::Debug};

use async_trait::async_trait;

/// Declares that long work should give priority to searches. Every method has a default, for stores whose users do not
/// share a machine.
#[async_trait]
pub trait Scheduling: Send + Sync {
    /// Declares that a user is waiting for the answers of this handle. As long as it exists, long work of other handles
    /// pauses for it. For programs that read and then exit.
    fn prioritize(&self) {}

    /// Waits briefly while a handle with priority is searching. Call this between two steps of long work, such as a
    /// sync.
    async fn yield_to_searches(&self) {}

    /// Declares that a sync is running, until the guard is dropped. Returns `None` if another handle, in any process,
    /// already did so.
    fn begin_sync(&self) -> Option<SyncGuard> {
        Some(SyncGuard::default())
    }
}

/// Held while a sync runs: see [`Scheduling::begin_sync`].
#[derive(Debug, Default)]
pub struct SyncGuard(#[expect(dead_code, reason = "it is only held")] Option<Box<dyn Any + Send + Sync>>);

impl SyncGuard {
    /// Keeps `held` until the sync has ended.
    pub fn new(held: impl Any + Send + Sync) -> Self {
        Self(Some(Box::new(held)))
    }
}
