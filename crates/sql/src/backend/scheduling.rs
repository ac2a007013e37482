//! Gives priority to urgent work.

use amplifier_session_core::backend::{Scheduling, SyncGuard};
use async_trait::async_trait;

use super::SqlBackend;
use crate::backend::DerivedIndex;

#[async_trait]
impl<D: DerivedIndex> Scheduling for SqlBackend<D> {
    fn prioritize(&self) {
        self.0.prioritize();
    }

    async fn yield_to_searches(&self) {
        self.0.yield_to_searches().await;
    }

    fn begin_sync(&self) -> Option<SyncGuard> {
        self.0.begin_sync()
    }
}
