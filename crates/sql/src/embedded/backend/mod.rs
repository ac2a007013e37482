//! The backend: each call runs on a thread for blocking work, and writes update the index. Each trait has a file of its name.

mod erasing;
mod events;
mod integrity;
mod messages;
mod meta;
mod scheduling;
mod search;
mod sessions;
mod superseded;
mod vectors;

use std::{
    fmt,
    ops::Deref,
    sync::{Arc, atomic::AtomicBool},
};

use amplifier_session_core::{Result, blocking};

use super::{Connections, Database};

type ReaderOf<'a, D> = <<D as Database>::Connections as Connections>::Reader<'a>;

/// A backend on an embedded database. Cheap to clone; clones share the database.
pub struct Embedded<D>(Arc<Shared<D>>);

/// What clones share.
struct Shared<D> {
    database: D,
    /// Whether a write of this process has looked for deleted data that is still to be erased.
    looked_for_remains: AtomicBool,
}

impl<D> Clone for Embedded<D> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<D: fmt::Debug> fmt::Debug for Embedded<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.database.fmt(f)
    }
}

impl<D> Deref for Embedded<D> {
    type Target = D;

    fn deref(&self) -> &D {
        &self.0.database
    }
}

impl<D: Database> Embedded<D> {
    /// A backend on `database`.
    #[must_use]
    pub fn new(database: D) -> Self {
        Self(Arc::new(Shared { database, looked_for_remains: AtomicBool::new(false) }))
    }

    fn database(&self) -> &D {
        &self.0.database
    }

    async fn run<T: Send + 'static>(&self, run: impl FnOnce(&D) -> Result<T> + Send + 'static) -> Result<T> {
        let shared = Arc::clone(&self.0);
        blocking(move || run(&shared.database)).await?
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
}
