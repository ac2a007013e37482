//! Connections that are kept for later calls.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// The maximum number of connections that are kept.
const LIMIT: usize = 4;

/// Open connections that no call is using.
#[derive(Debug)]
pub struct Idle<C>(Mutex<Vec<C>>);

impl<C> Default for Idle<C> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<C> Idle<C> {
    /// Takes a connection, if there is one.
    pub fn take(&self) -> Option<C> {
        lock(&self.0).pop()
    }

    /// Keeps a connection for later calls, or closes it if enough are kept already.
    pub fn keep(&self, connection: C) {
        let mut idle = lock(&self.0);
        if idle.len() < LIMIT {
            idle.push(connection);
        }
    }

    /// Closes all connections.
    pub fn clear(&self) {
        lock(&self.0).clear();
    }
}

/// Locks a mutex. A panic in another thread rolled its transaction back, so the locked data is intact.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
