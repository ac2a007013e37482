//! The logic of `core` above the backend traits. It is the same on every backend, so it is tested on the in-memory one,
//! with small pages: with batched writes, and with writes that it claims to be atomic, as those of databases are.

use std::sync::Arc;

use amplifier_session_testkit::{
    FlakyBackend, MemoryBackend, Store, Subject, conformance::check, prelude::StorageBackend,
};
use async_trait::async_trait;

/// Makes a test of each function that runs on both stores.
macro_rules! on_both_stores {
    [$($test:ident),* $(,)?] => {
        mod on_both_stores {
            $(#[test]
            fn $test() {
                crate::storage::on_both_stores(super::$test);
            })*
        }
    };
}

mod activity;
mod addresses;
mod archives;
mod context;
mod copies;
mod duplicates;
mod edits;
mod embeddings;
mod events;
mod exchange;
mod generations;
mod lines;
mod masked_reads;
mod messages;
mod posted;
mod pulls;
mod ranking;
mod rewind;
mod scopes;
mod search;
mod session_writer;
mod sessions;
mod sorted;
mod statistics;
mod summaries;
mod superseded;
mod syntax;
mod trees;
mod turns;
mod used_files;
mod vector_search;
mod vectors;
mod verify;

fn on_both_stores(test: impl AsyncFn(Store)) {
    println!("with batched writes");
    check(MemoryBackend::new(), &test);
    println!("with atomic writes");
    check(Atomic(MemoryBackend::new()), &test);
}

/// The in-memory backend with writes that count as atomic, which is true if none fails.
struct Atomic(MemoryBackend);

#[async_trait]
impl Subject for Atomic {
    async fn open(&self) -> Arc<dyn StorageBackend> {
        Arc::new(FlakyBackend::new(self.0.open().await).claiming_atomic_writes())
    }

    async fn open_again(&self) -> Arc<dyn StorageBackend> {
        self.open().await
    }
}
