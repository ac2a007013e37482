//! How the handles of one store, of any process, give way to each other.

use std::{any::Any, fmt::Debug};

use async_trait::async_trait;

/// Lets long work give way to searches. Every method has a default, for a store whose users do not share a machine.
#[async_trait]
pub trait Scheduling: Send + Sync {
    /// Declares that somebody waits for the answers of this handle: while it lives, long work of other handles gives way
    /// to it. For programs that read and then end.
    fn come_first(&self) {}

    /// Waits while a handle that comes first is searching, but only for a moment. To be called between two pieces of long
    /// work, such as a sync.
    async fn give_way(&self) {}

    /// Declares that a sync is running, until the answer is dropped. `None` if another handle, of any process, has
    /// declared it already.
    fn begin_sync(&self) -> Option<SyncGuard> {
        Some(SyncGuard::default())
    }
}

/// Held while a sync runs: see [`Scheduling::begin_sync`].
#[derive(Debug, Default)]
pub struct SyncGuard(
    #[expect(dead_code, reason = "it is held, not used")] Option<Box<dyn Any + Send + Sync>>,
);

impl SyncGuard {
    /// Keeps `held` until the sync has ended.
    pub fn new(held: impl Any + Send + Sync) -> Self {
        Self(Some(Box::new(held)))
    }
}
