//! Stores in files that an older copy replaces.

#![allow(clippy::unwrap_used, clippy::missing_panics_doc, reason = "tests fail by panicking")]

use std::{fs, path::Path, sync::Arc};

use amplifier_session_core::{
    Scope, SessionStorage,
    backend::{ChangeCursor, ChangePage, StorageBackend},
};

use crate::{
    lines,
    store::{target, whole},
};

/// Checks that the cursors of readers notice it if an older copy is put in the place of a store's file, also after the copy
/// was written as often as the store was. `open` opens the store.
pub async fn check_cursors(file: &Path, open: impl AsyncFn() -> Arc<dyn StorageBackend>) {
    let write = async |session: &str| {
        let storage = SessionStorage::new(open().await);
        let lines = whole(vec![lines::user("hello")]);
        storage.ingestion().sync_transcript_lines(&target(session), lines).await.unwrap();
    };
    let page = async |after: Option<&ChangeCursor>| -> ChangePage {
        open().await.changes(&Scope::Everyone, after, 99).await.unwrap()
    };
    write("kept").await;
    let early = page(None).await.cursor;
    let copy = file.with_extension("copy");
    fs::copy(file, &copy).unwrap();
    write("lost").await;
    let late = page(None).await.cursor;
    fs::copy(&copy, file).unwrap();

    assert!(page(Some(&late)).await.reset);
    let begun = page(Some(&early)).await;
    assert!(!begun.reset && begun.changes.is_empty());
    for number in 0..9 {
        write(&format!("later{number}")).await;
        assert!(page(Some(&late)).await.reset, "{number}");
    }
    let later = page(Some(&early)).await;
    assert!(!later.reset && later.changes.len() == 9, "{later:?}");
}
