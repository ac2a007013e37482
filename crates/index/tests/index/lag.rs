//! An index that lacks only a few new rows need not be updated at once.

use amplifier_session_index::{SearchIndex, WhenBusy};

use super::store::Store;

const VECTOR: [f32; 2] = [1.0, 0.0];

/// A store with two rows and their index.
fn folded() -> (Store, SearchIndex, tempfile::TempDir) {
    let (store, dir) = (Store::new(1), tempfile::tempdir().unwrap());
    let index = SearchIndex::open(dir.path());
    assert!(!index.lacks_little(&mut store.rows()).unwrap(), "there is no index");
    store.put(1, "apples", VECTOR.to_vec());
    store.put(2, "pears", VECTOR.to_vec());
    index.fold(&mut store.rows(), WhenBusy::Wait).unwrap();
    assert!(index.lacks_little(&mut store.rows()).unwrap());
    (store, index, dir)
}

fn lacks_little_after(change: impl FnOnce(&Store)) -> bool {
    let (store, index, _dir) = folded();
    change(&store);
    index.lacks_little(&mut store.rows()).unwrap()
}

#[test]
fn a_few_new_rows_are_little() {
    assert!(lacks_little_after(|store| (3..100).for_each(|key| store.put(key, "plums", VECTOR.to_vec()))));
    assert!(!lacks_little_after(|store| (3..300).for_each(|key| store.say(key, "plums"))));
    assert!(!lacks_little_after(|store| store.say(3, &"plums ".repeat(20_000))));
    let vector = |write: &mut crate::store::Write<'_>, key| {
        let place = crate::store::ANA;
        write.vector(key, place, amplifier_session_core::model::ContentType::UserQuery, 0, VECTOR.to_vec());
    };
    assert!(!lacks_little_after(|store| store.write(|write| (3..300).for_each(|key| vector(write, key)))));
}

#[test]
fn a_changed_or_removed_row_is_not() {
    assert!(!lacks_little_after(|store| store.say(2, "plums")));
    assert!(!lacks_little_after(|store| store.remove(1)));
    // A row that was never in the index.
    assert!(lacks_little_after(|store| {
        store.say(3, "plums");
        store.remove(3);
    }));
}

#[test]
fn neither_is_an_index_of_another_store() {
    let (store, index, dir) = folded();
    store.say(3, "plums");
    index.fold(&mut store.rows(), WhenBusy::Wait).unwrap();
    let (older, _, _other) = folded();
    assert!(!index.lacks_little(&mut older.rows()).unwrap());
    std::fs::remove_file(dir.path().join("vectors.json")).unwrap();
    assert!(!index.lacks_little(&mut store.rows()).unwrap());
}
