//! Concurrent threads and processes.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use amplifier_session_index::{SearchIndex, WhenBusy};

use super::{
    model::{Numbers, check_text, check_vectors, text_model, text_query, vector_query},
    store::{ANA, Store},
};

#[test]
fn concurrent_folds_wait_or_are_skipped() {
    let (store, dir) = (Store::new(1), tempfile::tempdir().unwrap());
    let mut numbers = Numbers(41);
    for key in 0..200 {
        store.say(key, &numbers.text(50));
    }
    // Two values for one folder act like two processes, because the lock is a file lock.
    let indexes = [SearchIndex::open(dir.path()), SearchIndex::open(dir.path())];
    let folded: Vec<_> = thread::scope(|scope| {
        let store = &store;
        let fold = |index: &'_ SearchIndex| index.fold(&mut store.rows(), WhenBusy::Wait).unwrap();
        let threads: Vec<_> =
            indexes.iter().cycle().take(6).map(|index| scope.spawn(move || fold(index))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(folded.iter().all(|folded| !folded.busy));
    assert_eq!(folded.iter().map(|folded| folded.messages).sum::<u64>(), 200);
    assert_eq!(check_text(&indexes[0], &store, &text_query("w0 w1"), true).tail_rows, 0);
}

#[test]
fn a_fold_is_skipped_while_another_one_runs() {
    let (store, dir) = (Store::new(1), tempfile::tempdir().unwrap());
    store.say(1, "alpha");
    let lock = std::fs::File::create(dir.path().join("lock")).unwrap();
    lock.lock().unwrap();
    let index = SearchIndex::open(dir.path());
    assert!(index.fold(&mut store.rows(), WhenBusy::Skip).unwrap().busy);
    assert_eq!(check_text(&index, &store, &text_query("alpha"), true).hits.len(), 1);
    drop(lock);
    assert!(!index.fold(&mut store.rows(), WhenBusy::Skip).unwrap().busy);
}

#[test]
fn searches_are_right_while_rows_are_written_and_folded() {
    let (store, dir) = (Store::new(1), tempfile::tempdir().unwrap());
    let done = AtomicBool::new(false);
    let writer = SearchIndex::open(dir.path());
    let readers = [SearchIndex::open(dir.path()), SearchIndex::open(dir.path())];
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut numbers = Numbers(42);
            for round in 0..150 {
                store.write(|write| {
                    for _ in 0..5 {
                        let key = numbers.below(300);
                        if numbers.below(4) == 0 {
                            write.remove(key);
                        } else {
                            write.put(key, ANA, &numbers.text(10), numbers.vector(8));
                        }
                    }
                });
                if round % 10 == 9 {
                    writer.fold(&mut store.rows(), WhenBusy::Wait).unwrap();
                }
            }
            done.store(true, Ordering::Release);
        });
        for reader in readers.iter().cycle().take(4) {
            scope.spawn(|| {
                let query = text_query("w0 w1 w2");
                while !done.load(Ordering::Acquire) {
                    // The snapshot may be older than the index. The answer is that of the snapshot.
                    let (state, mut rows) = (store.state(), store.rows());
                    rows.fix(state.clone());
                    let mut found: Vec<_> = reader
                        .text_candidates(&mut rows, &query)
                        .unwrap()
                        .hits
                        .iter()
                        .map(|hit| hit.key)
                        .collect();
                    let mut expected: Vec<_> = text_model(&state, &query).iter().map(|hit| hit.key).collect();
                    found.sort_unstable();
                    expected.sort_unstable();
                    assert_eq!(found, expected);
                }
            });
        }
    });
    check_text(&readers[0], &store, &text_query("w0 w1 w2"), false);
    check_vectors(&readers[1], &store, &vector_query(Numbers(1).vector(8)));
}

/// The first search of a process finds a long tail. While it reads the tail, another process writes and folds, so the
/// index is newer than the snapshot of the search. This must not be mistaken for a store restored from a backup.
#[test]
fn a_fold_during_the_first_search_is_not_mistaken_for_a_restored_store() {
    let (store, dir) = (Store::new(1), tempfile::tempdir().unwrap());
    store.say(0, "alpha");
    let other = SearchIndex::open(dir.path());
    other.fold(&mut store.rows(), WhenBusy::Skip).unwrap();
    let long = "beta ".repeat(200_000);
    (1..=17).for_each(|key| store.say(key, &long));

    let index = SearchIndex::open(dir.path());
    let interruption = || {
        store.say(100, "alpha");
        other.fold(&mut store.rows(), WhenBusy::Skip).unwrap();
    };
    let mut rows = store.rows();
    rows.interruption = Some(Box::new(interruption));
    let answer = index.text_candidates(&mut rows, &text_query("alpha")).unwrap();
    assert!(rows.interruption.is_none());
    assert_eq!((answer.notice, answer.hits.len()), (None, 1));
}
