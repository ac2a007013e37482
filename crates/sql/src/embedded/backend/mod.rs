//! The backend: each call runs on a thread for blocking work, and writes update the index. Each trait has a file of its name.

mod events;
mod messages;
mod meta;
mod scheduling;
mod search;
mod sessions;
mod vectors;

use std::{fmt, ops::Deref, sync::Arc};

use amplifier_session_core::{Result, blocking};
use amplifier_session_index::WhenBusy;

use super::{Connections, Database};

type ReaderOf<'a, D> = <<D as Database>::Connections as Connections>::Reader<'a>;

/// A backend on an embedded database. Cheap to clone; clones share the database.
pub struct Embedded<D>(Arc<D>);

impl<D> Clone for Embedded<D> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<D: fmt::Debug> fmt::Debug for Embedded<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<D> Deref for Embedded<D> {
    type Target = D;

    fn deref(&self) -> &D {
        &self.0
    }
}

impl<D: Database> Embedded<D> {
    /// A backend on `database`.
    #[must_use]
    pub fn new(database: D) -> Self {
        Self(Arc::new(database))
    }

    async fn run<T: Send + 'static>(&self, run: impl FnOnce(&D) -> Result<T> + Send + 'static) -> Result<T> {
        let database = Arc::clone(&self.0);
        blocking(move || run(&database)).await?
    }

    async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&ReaderOf<'_, D>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.run(|database| database.connections().read(read)).await
    }

    async fn read_snapshot<T: Send + 'static>(
        &self,
        read: impl FnOnce(&ReaderOf<'_, D>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.run(|database| database.connections().read_snapshot(read)).await
    }

    /// Removes from all files what a deleted session has left: in the index and in the database.
    async fn erase(&self) -> Result<()> {
        let updated = self.0.index().fold(WhenBusy::Wait).await;
        self.run(D::erase).await.and(updated)
    }
}
