//! Letting urgent work go first.

use amplifier_session_core::backend::{Scheduling, SyncGuard};
use async_trait::async_trait;

use super::Embedded;
use crate::embedded::Database;

#[async_trait]
impl<D: Database> Scheduling for Embedded<D> {
    fn come_first(&self) {
        self.database().index().index().come_first();
    }

    async fn give_way(&self) {
        // Work that does not give way is work all the same.
        let _ = self.database().index().give_way().await;
    }

    fn begin_sync(&self) -> Option<SyncGuard> {
        self.database().index().index().begin_sync().map(SyncGuard::new)
    }
}
