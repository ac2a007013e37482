//! Opening SQLite stores by their URL.

use std::sync::Arc;

use amplifier_session_core::{
    backend::{BackendFactory, Open, SalvageSource, StorageBackend},
    blocking,
};

use crate::{Sqlite, pool::SqlitePool, salvage::Salvage};

/// SQLite stores: `sqlite:PATH`.
pub static FACTORY: BackendFactory = BackendFactory {
    name: "SQLite",
    schemes: &["sqlite"],
    form: "sqlite:PATH",
    help: "a file that many programs may use at the same time",
    // Read-only access has no advantage: readers and a writer do not block each other.
    read_only: false,
    sql: false,
    settings: &[],
    open: Open::File {
        default: None,
        open: |path, _| {
            Box::pin(async move {
                let store: Arc<dyn StorageBackend> = Arc::new(Sqlite::open(path).await?);
                Ok(store)
            })
        },
    },
    backup: Some(|from, to| {
        Box::pin(async move { blocking(move || SqlitePool::open(&from)?.copy_to(&to)).await? })
    }),
    salvage: Some(|path| {
        Box::pin(async move {
            let source: Box<dyn SalvageSource> = Box::new(blocking(move || Salvage::open(&path)).await??);
            Ok(source)
        })
    }),
    restrict_roles: None,
};
