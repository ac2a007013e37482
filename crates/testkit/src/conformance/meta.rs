//! What a store says about itself, and its table of keys and values.

use crate::prelude::*;

/// A new store says which schema it has and who made it.
pub async fn meta_names_the_version_and_the_writer(store: Store) {
    let entries = store.backend.meta().await.unwrap();
    assert_eq!(entries.get(meta::VERSION).map(String::as_str), Some("4"));
    assert!(entries.get(meta::WRITER).is_some_and(|writer| writer.starts_with(meta::WRITER_NAME)));
}

/// A value is stored only in place of the expected one; every handle sees the value that is stored.
pub async fn meta_values_are_compared_and_swapped(store: Store) {
    let (backend, again) = (&store.backend, store.again().await.backend);
    assert!(!backend.replace_meta("k", "", "new").await.unwrap());
    assert_eq!(backend.put_meta_if_absent("k", "first 'one'").await.unwrap(), "first 'one'");
    assert_eq!(again.put_meta_if_absent("k", "second").await.unwrap(), "first 'one'");
    assert!(!again.replace_meta("k", "other", "new").await.unwrap());
    assert!(again.replace_meta("k", "first 'one'", "new").await.unwrap());
    assert_eq!(backend.meta().await.unwrap().get("k").map(String::as_str), Some("new"));
}

/// A store says where it is, itself first.
pub async fn a_store_says_where_it_is(store: Store) {
    let places = store.backend.info().places;
    assert_eq!(places[0].what, "store");
    assert!(places[1..].iter().all(|place| place.what == "index"), "{places:?}");
    assert!(places.iter().all(|place| !place.location.is_empty()), "{places:?}");
}
