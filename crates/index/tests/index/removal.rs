//! Changed and removed rows, keys that are used again, and what is left in the files.

use std::path::Path;

use amplifier_session_core::model::ContentType;
use amplifier_session_index::{SearchIndex, WhenBusy};

use super::{
    model::{Numbers, check_text, check_vectors, text_query, vector_query},
    store::{ANA, Place, Store},
};

fn folded(store: &Store, dir: &Path) -> SearchIndex {
    let index = SearchIndex::open(dir);
    index.fold(&mut store.rows(), WhenBusy::Skip).unwrap();
    index
}

/// Whether any file below a folder holds some bytes.
fn is_in_files(dir: &Path, bytes: &[u8]) -> bool {
    std::fs::read_dir(dir).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        if path.is_dir() {
            is_in_files(&path, bytes)
        } else {
            std::fs::read(&path).unwrap().windows(bytes.len()).any(|window| window == bytes)
        }
    })
}

#[test]
fn a_changed_message_is_found_by_its_new_words_only() {
    let (store, dir) = (Store::new(1), tempfile::tempdir().unwrap());
    store.say(1, "apples and pears");
    store.say(2, "apples alone");
    let index = folded(&store, dir.path());
    store.say(1, "plums");
    for _ in 0..2 {
        assert_eq!(check_text(&index, &store, &text_query("apples"), false).hits.len(), 1);
        assert_eq!(check_text(&index, &store, &text_query("pears"), false).hits.len(), 0);
        assert_eq!(check_text(&index, &store, &text_query("plums"), false).hits.len(), 1);
        index.fold(&mut store.rows(), WhenBusy::Skip).unwrap();
    }
}

#[test]
fn a_key_that_is_used_again_belongs_to_its_new_row() {
    let (store, dir) = (Store::new(1), tempfile::tempdir().unwrap());
    let mut numbers = Numbers(21);
    store.write(|write| {
        write.say(1, ANA, "apples");
        write.vector(1, ANA, ContentType::UserQuery, 0, vec![1.0, 0.0]);
    });
    let index = folded(&store, dir.path());
    store.write(|write| {
        write.remove_message(1);
        write.remove_vector(1);
    });
    store.write(|write| {
        write.say(1, Place { user: "ben", ..ANA }, "pears");
        write.vector(1, Place { user: "ben", ..ANA }, ContentType::ToolOutput, 0, vec![0.0, 1.0]);
    });
    for _ in 0..2 {
        assert_eq!(check_text(&index, &store, &text_query("apples"), false).hits.len(), 0);
        assert_eq!(check_text(&index, &store, &text_query("pears"), false).hits.len(), 1);
        let hits = check_vectors(&index, &store, &vector_query(numbers.vector(2))).hits;
        assert_eq!(hits.len(), 1);
        index.fold(&mut store.rows(), WhenBusy::Skip).unwrap();
    }
}

#[test]
fn nothing_is_left_of_removed_rows_in_any_file() {
    let (store, dir) = (Store::new(1), tempfile::tempdir().unwrap());
    let mut numbers = Numbers(22);
    let secret = Place { user: "ana", project: "topsecretproject", session: "secretsession" };
    for key in 0..50 {
        let vector = numbers.vector(16);
        store.write(|write| {
            let place = if key % 10 == 0 { secret.clone() } else { ANA };
            let word = if key % 10 == 0 { "zugzwang" } else { "harmless" };
            write.say(key, place.clone(), &format!("{word} {}", numbers.text(10)));
            write.vector(key, place, ContentType::UserQuery, 0, vector);
        });
    }
    let index = folded(&store, dir.path());
    let traces: [&[u8]; 3] = [b"zugzwang", b"secretsession", b"topsecretproject"];
    assert!(traces.iter().all(|trace| is_in_files(dir.path(), trace)));
    store.write(|write| {
        for key in (0..50).step_by(10) {
            write.remove_message(key);
            write.remove_vector(key);
        }
    });
    assert_eq!(check_text(&index, &store, &text_query("zugzwang"), false).hits.len(), 0);
    index.fold(&mut store.rows(), WhenBusy::Wait).unwrap();
    for trace in traces {
        assert!(!is_in_files(dir.path(), trace), "{}", String::from_utf8_lossy(trace));
    }
    let answer = check_text(&index, &store, &text_query("harmless w1"), true);
    assert_eq!((answer.tail_rows, answer.notice), (0, None));
    check_vectors(&index, &store, &vector_query(numbers.vector(16)));
}

#[test]
fn a_removal_that_came_before_the_fold_leaves_nothing_either() {
    let (store, dir) = (Store::new(1), tempfile::tempdir().unwrap());
    store.say(1, "zugzwang");
    store.write(|write| write.remove_message(1));
    store.say(2, "harmless");
    let index = folded(&store, dir.path());
    assert!(!is_in_files(dir.path(), b"zugzwang"));
    assert_eq!(check_text(&index, &store, &text_query("zugzwang harmless"), true).hits.len(), 1);
}

#[test]
fn removing_everything_leaves_an_index_of_nothing() {
    let (store, dir) = (Store::new(1), tempfile::tempdir().unwrap());
    store.write(|write| {
        write.say(1, ANA, "zugzwang");
        write.vector(1, ANA, ContentType::UserQuery, 0, vec![1.0, 0.0]);
    });
    let index = folded(&store, dir.path());
    store.write(|write| {
        write.remove_message(1);
        write.remove_vector(1);
    });
    index.fold(&mut store.rows(), WhenBusy::Skip).unwrap();
    assert!(!is_in_files(dir.path(), b"zugzwang"));
    assert!(check_text(&index, &store, &text_query("zugzwang"), true).hits.is_empty());
    assert!(check_vectors(&index, &store, &vector_query(vec![1.0, 0.0, 0.0])).hits.is_empty());
}

#[test]
fn the_files_are_the_owners_alone() {
    let (store, dir) = (Store::new(1), tempfile::tempdir().unwrap());
    store.write(|write| {
        write.say(1, ANA, "private");
        write.vector(1, ANA, ContentType::UserQuery, 0, vec![1.0, 0.0]);
    });
    let dir = dir.path().join("index");
    folded(&store, &dir);
    #[cfg(unix)]
    for entry in [dir.clone(), dir.join("text"), dir.join("vectors")] {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(std::fs::metadata(&entry).unwrap().permissions().mode() & 0o777, 0o700);
        for file in std::fs::read_dir(&entry).unwrap().map(Result::unwrap).filter(|entry| entry.path().is_file()) {
            assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{:?}", file.path());
        }
    }
}
