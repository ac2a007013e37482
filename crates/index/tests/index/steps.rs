//! Folds in many steps, and folds that fail midway.

use amplifier_session_index::{SearchIndex, WhenBusy};

use super::{
    model::{Numbers, check_text, check_vectors, text_query, vector_query},
    store::{ANA, Store},
};

/// A store with writes of different sizes, from one row to many.
fn filled() -> Store {
    let store = Store::new(1);
    let (mut numbers, mut key) = (Numbers(61), 0);
    while key < 600 {
        store.write(|write| {
            let rows = 1 + numbers.below(8) * numbers.below(8);
            for _ in 0..rows {
                write.put(key, ANA, &numbers.text(20), numbers.vector(16));
                key += 1;
            }
        });
    }
    store
}

fn check(index: &SearchIndex, store: &Store, scores: bool) -> (u64, u64) {
    let text = check_text(index, store, &text_query("w0 w2 w60"), scores);
    let vectors = check_vectors(index, store, &vector_query(Numbers(1).vector(16)));
    (text.tail_rows, vectors.tail_rows)
}

#[test]
fn small_steps_lead_to_the_same_index() {
    let (store, dir) = (filled(), tempfile::tempdir().unwrap());
    // Smaller than some of the writes, so that their messages are committed in parts.
    let index = SearchIndex::open(dir.path()).with_step_bytes(2_000);
    let folded = index.fold(&mut store.rows(), WhenBusy::Skip).unwrap();
    let rows = store.state().messages.len() as u64;
    assert_eq!((folded.messages, folded.vectors), (rows, rows));
    assert_eq!(check(&index, &store, true), (0, 0));
    store.say(3, "changed");
    store.remove(500);
    index.fold(&mut store.rows(), WhenBusy::Skip).unwrap();
    assert_eq!(check(&index, &store, false), (0, 0));
}

#[test]
fn a_fold_that_fails_midway_keeps_its_completed_steps() {
    let (store, dir) = (filled(), tempfile::tempdir().unwrap());
    let rows = store.state().messages.len() as u64;
    let mut tails = vec![(rows, rows)];
    loop {
        let index = SearchIndex::open(dir.path()).with_step_bytes(2_000);
        let mut snapshot = store.rows();
        snapshot.fails_after = 150;
        let folded = index.fold(&mut snapshot, WhenBusy::Skip);
        // Messages of the failed step may be in the files, but do not count twice.
        tails.push(check(&SearchIndex::open(dir.path()), &store, false));
        if folded.is_ok() {
            break;
        }
    }
    assert!(tails.is_sorted_by(|a, b| a.0 >= b.0 && a.1 >= b.1), "{tails:?}");
    assert!(tails.len() > 5 && tails.last() == Some(&(0, 0)), "{tails:?}");
}
