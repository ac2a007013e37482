//! The description of a store, and its table of keys and values.

use std::path::{Path, PathBuf};

use crate::prelude::*;

/// A new store records its schema version and the program that created it.
pub async fn a_store_records_its_version_and_writer(store: Store) {
    let entries = store.backend.meta().await.unwrap();
    assert_eq!(entries.get(meta::VERSION).map(String::as_str), Some("4"));
    assert!(entries.get(meta::WRITER).is_some_and(|writer| writer.starts_with(meta::WRITER_NAME)));
}

/// A value is replaced only if it equals the expected one. Every handle sees the stored value.
pub async fn meta_values_are_compared_and_swapped(store: Store) {
    let (backend, again) = (&store.backend, store.again().await.backend);
    assert!(!backend.replace_meta("k", "", "new").await.unwrap());
    assert_eq!(backend.put_meta_if_absent("k", "first 'one'").await.unwrap(), "first 'one'");
    assert_eq!(again.put_meta_if_absent("k", "second").await.unwrap(), "first 'one'");
    assert!(!again.replace_meta("k", "other", "new").await.unwrap());
    assert!(again.replace_meta("k", "first 'one'", "new").await.unwrap());
    assert_eq!(backend.meta().await.unwrap().get("k").map(String::as_str), Some("new"));
}

/// A store reports its locations: the store itself first, then its indexes.
pub async fn a_store_reports_its_locations(store: Store) {
    let places = store.backend.info().places;
    assert_eq!(places[0].what, "store");
    assert!(places[1..].iter().all(|place| place.what == "index"), "{places:?}");
    assert!(places.iter().all(|place| !place.location.is_empty()), "{places:?}");
}

/// Only their owner can access the files and folders of a store, however they were written. A store without files
/// passes.
pub async fn files_are_private_to_their_owner(store: Store) {
    let target = target_of("ana", "p", "s");
    let check = |store: &Store| {
        for place in store.backend.info().places {
            let exist: Vec<&PathBuf> = place.files.iter().filter(|path| path.exists()).collect();
            assert_eq!(exist.is_empty(), place.files.is_empty(), "{place:?}");
            exist.into_iter().for_each(|path| check_private(path));
        }
    };
    for messages in [3, 5] {
        // More than one write, because files beside the store come and go.
        store.sync(&target, (0..messages).map(|n| lines::user(&format!("message {n}"))).collect()).await;
        store.storage.update_index().await.unwrap();
        check(&store);
    }
    let SessionKey { user_id, session_id, .. } = &target.key;
    store.storage.sessions().delete_session(user_id, &target.project_slug, session_id).await.unwrap();
    check(&store.again().await);
}

#[cfg(unix)]
fn check_private(path: &Path) {
    use std::{fs, os::unix::fs::PermissionsExt as _};

    let metadata = fs::symlink_metadata(path).unwrap();
    let mode = metadata.permissions().mode();
    assert_eq!(mode & 0o077, 0, "{}: {mode:o}", path.display());
    if metadata.is_dir() {
        fs::read_dir(path).unwrap().for_each(|entry| check_private(&entry.unwrap().path()));
    }
}

/// On other systems, files have the access rights of their folder.
#[cfg(not(unix))]
fn check_private(_: &Path) {}
