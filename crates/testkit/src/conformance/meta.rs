//! The description of a store, and its table of keys and values.

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
