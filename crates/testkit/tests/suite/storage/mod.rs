//! The logic of `core` above the backend traits. It is the same on every backend, so it is tested on two very different
//! ones: the in-memory backend, with small pages and batched writes, and SQLite, with atomic writes.

use std::path::PathBuf;

use amplifier_session_sqlite::Sqlite;
use amplifier_session_testkit::{InFolder, MemoryBackend, Store, conformance::check};

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
mod edits;
mod embeddings;
mod events;
mod generations;
mod lines;
mod messages;
mod ranking;
mod rewind;
mod scopes;
mod search;
mod sessions;
mod statistics;
mod superseded;
mod syntax;
mod trees;
mod turns;
mod vector_search;
mod vectors;
mod verify;

fn on_both_stores(test: impl AsyncFn(Store)) {
    println!("in memory");
    check(MemoryBackend::new(), &test);
    println!("on SQLite");
    check(InFolder::new(|path: PathBuf| Sqlite::open(path)), &test);
}
