//! The conformance suite of the testkit on SQLite.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use std::{path::PathBuf, sync::Arc};

use amplifier_session_core::backend::prelude::*;
use amplifier_session_sqlite::Sqlite;
use amplifier_session_testkit::{conformance::Subject, conformance_suite};

/// A file in a folder of its own; a second handle has its own connections to it.
struct OnDisk {
    folder: tempfile::TempDir,
}

impl OnDisk {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("sessions.sqlite")
    }
}

#[async_trait::async_trait]
impl Subject for OnDisk {
    async fn open(&self) -> Arc<dyn StorageBackend> {
        Arc::new(Sqlite::open(self.path()).await.unwrap())
    }

    async fn open_again(&self) -> Arc<dyn StorageBackend> {
        self.open().await
    }
}

conformance_suite!(OnDisk::new());
