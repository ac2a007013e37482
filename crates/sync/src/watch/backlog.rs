//! Changes that a store does not have yet.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::changed::Changed;

/// The changes in each root, for one store.
#[derive(Debug)]
pub(super) struct Backlog {
    roots: Mutex<Vec<Changed>>,
    /// Why each root is polled, if it is.
    polls: Mutex<Vec<Option<String>>>,
    added: Notify,
}

impl Backlog {
    pub(super) fn new(roots: usize) -> Self {
        Self {
            roots: Mutex::new(vec![Changed::default(); roots]),
            polls: Mutex::new(vec![None; roots]),
            added: Notify::new(),
        }
    }

    /// Adds changes in a root.
    pub(super) fn add(&self, root: usize, changed: Changed) {
        if let Some(known) = lock(&self.roots).get_mut(root) {
            known.add(changed);
        }
        self.added.notify_one();
    }

    /// Adds all sessions of all roots.
    pub(super) fn add_everything(&self) {
        lock(&self.roots).fill(Changed::everything());
        self.added.notify_one();
    }

    /// Takes the changes of the first root that has any.
    pub(super) fn take(&self) -> Option<(usize, Changed)> {
        let mut roots = lock(&self.roots);
        let (root, changed) = roots.iter_mut().enumerate().find(|(_, changed)| !changed.is_empty())?;
        Some((root, std::mem::take(changed)))
    }

    /// The number of changed sessions; `None` if any session may have changed.
    pub(super) fn count(&self) -> Option<u64> {
        lock(&self.roots).iter().map(Changed::count).sum()
    }

    /// Sets why a root is polled.
    pub(super) fn set_polls(&self, root: usize, reason: Option<&str>) {
        if let Some(polls) = lock(&self.polls).get_mut(root) {
            *polls = reason.map(str::to_owned);
        }
    }

    /// Why a root is polled, if it is.
    pub(super) fn polls(&self, root: usize) -> Option<String> {
        lock(&self.polls).get(root).cloned().flatten()
    }

    /// Waits until something is added.
    pub(super) async fn added(&self) {
        self.added.notified().await;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
