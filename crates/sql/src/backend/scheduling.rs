//! Gives priority to urgent work.

use amplifier_session_core::backend::{Scheduling, SyncGuard};
use async_trait::async_trait;

use super::SqlBackend;
use crate::backend::DerivedIndex;

#[async_trait]
impl<D: DerivedIndex> Scheduling for SqlBackend<D> {
    fn come_first(&self) {
        self.0.come_first();
    }

    async fn give_way(&self) {
        self.0.give_way().await;
    }

    fn begin_sync(&self) -> Option<SyncGuard> {
        self.0.begin_sync()
    }
}
