//! Locks for the sessions that are being written.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::sync::OwnedMutexGuard;

use crate::model::SessionKey;

/// One lock for each session that is being written, for backends without transactions: only one writer of a session at a
/// time in this process.
#[derive(Debug, Default)]
pub struct SessionLocks(Mutex<HashMap<SessionKey, Arc<tokio::sync::Mutex<()>>>>);

impl SessionLocks {
    /// Waits until nobody in this process writes the session. Others wait until the guard is dropped.
    pub async fn lock(&self, key: &SessionKey) -> OwnedMutexGuard<()> {
        let lock = {
            let mut locks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            // Drops the locks that nobody holds.
            locks.retain(|_, lock| Arc::strong_count(lock) > 1);
            locks.entry(key.clone()).or_default().clone()
        };
        lock.lock_owned().await
    }
}
