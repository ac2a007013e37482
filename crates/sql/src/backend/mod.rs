//! A backend on a SQL database: each trait of a backend is in the file of its name.
//!
//! A [`Database`] describes what differs between databases, and a [`DerivedIndex`] finds the candidates of searches;
//! [`SqlBackend`] combines both into a backend. Each call runs on a thread for blocking work.
//!
//! | file | contents |
//! | --- | --- |
//! | `database.rs` | the traits that a database implements |
//! | `derived_index.rs` | the trait of the indexes that searches use |
//! | `write/` | the transactions that write |

mod changes;
mod database;
mod derived_index;
mod events;
mod integrity;
mod messages;
mod meta;
mod other_rows;
mod scheduling;
mod search;
mod sessions;
mod vectors;
pub(crate) mod write;

use std::{fmt, ops::Deref, sync::Arc};

use amplifier_session_core::{Result, backend::ChangeSignal, blocking, model::UserId};

pub use database::{Connections, Database, Lookups, NewVector, Removed, VectorTarget, Writer};
pub use derived_index::DerivedIndex;

type ReaderOf<'a, D> = <<D as Database>::Connections as Connections>::Reader<'a>;

/// A backend on a SQL database, with the signal of its writes. Cheap to clone; clones share both.
pub struct SqlBackend<D>(Arc<D>, ChangeSignal);

impl<D> Clone for SqlBackend<D> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0), self.1.clone())
    }
}

impl<D: fmt::Debug> fmt::Debug for SqlBackend<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<D> Deref for SqlBackend<D> {
    type Target = D;

    fn deref(&self) -> &D {
        &self.0
    }
}

impl<D: Database> SqlBackend<D> {
    /// A backend on `database`.
    #[must_use]
    pub fn new(database: D) -> Self {
        Self(Arc::new(database), ChangeSignal::default())
    }

    /// Wakes readers that wait for changes of sessions of these users.
    fn wake_readers<'a>(&self, users: impl IntoIterator<Item = &'a UserId>) {
        self.1.send(users);
    }

    async fn run<T: Send + 'static>(&self, run: impl FnOnce(&D) -> Result<T> + Send + 'static) -> Result<T> {
        on_thread(&self.0, run).await
    }

    async fn read<T: Send + 'static>(
        &self,
        read: impl FnMut(&ReaderOf<'_, D>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.run(|database| database.connections().read(read)).await
    }

    async fn read_snapshot<T: Send + 'static>(
        &self,
        read: impl FnMut(&ReaderOf<'_, D>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.run(|database| database.connections().read_snapshot(read)).await
    }
}

/// Runs `run` with a database on a thread for blocking work.
///
/// # Errors
///
/// `StorageIo` if `run` panics; errors of `run`.
pub async fn on_thread<D: Send + Sync + 'static, T: Send + 'static>(
    database: &Arc<D>,
    run: impl FnOnce(&D) -> Result<T> + Send + 'static,
) -> Result<T> {
    let database = Arc::clone(database);
    blocking(move || run(&database)).await?
}
