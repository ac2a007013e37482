//! Processes that are killed during a fold.

use std::{
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use amplifier_session_index::{SearchIndex, WhenBusy};

use super::{
    model::{Numbers, check_text, check_vectors, text_query, vector_query},
    store::{ANA, Store},
};

/// The path of the index for a child process. Without it, the test does nothing.
const FOLDER: &str = "INDEX_TEST_KILL_FOLDER";
const STEPS: u64 = 120;

/// One write of a history that is the same in parent and child: new, changed and removed rows.
fn write_step(store: &Store, step: u64) {
    let mut numbers = Numbers(step);
    store.write(|write| {
        for key in step * 4..step * 4 + 4 {
            write.put(key, ANA, &numbers.text(40), numbers.vector(16));
        }
        let changed = numbers.below(step * 4 + 1);
        write.say(changed, ANA, &numbers.text(40));
        let removed = numbers.below(step * 4 + 1);
        write.remove(removed);
    });
}

#[test]
fn child_that_folds_until_it_is_killed() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let (store, index) = (Store::new(1), SearchIndex::open(folder));
    for step in 0..STEPS {
        write_step(&store, step);
        if step % 3 == 0 {
            index.fold(&mut store.rows(), WhenBusy::Wait).unwrap();
        }
    }
}

fn run_and_kill(folder: &Path, after: Duration) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "kill::child_that_folds_until_it_is_killed"])
        .env(FOLDER, folder)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    std::thread::sleep(after);
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn answers_are_right_after_a_killed_fold_and_after_the_next_one() {
    let (store, dir) = (Store::new(1), tempfile::tempdir().unwrap());
    (0..STEPS).for_each(|step| write_step(&store, step));
    let mut numbers = Numbers(51);
    for _ in 0..12 {
        run_and_kill(dir.path(), Duration::from_millis(numbers.below(700)));
        let index = SearchIndex::open(dir.path());
        for fold in [false, true] {
            if fold {
                index.fold(&mut store.rows(), WhenBusy::Wait).unwrap();
            }
            let text = check_text(&index, &store, &text_query("w0 w2 w60"), false);
            let vectors = check_vectors(&index, &store, &vector_query(numbers.vector(16)));
            for notice in [text.notice, vectors.notice].into_iter().flatten() {
                assert!(!fold && notice.contains("missing"), "{notice}");
            }
        }
        // The next child starts with an index that is newer than its store, or with none.
        if numbers.below(2) == 0 {
            std::fs::remove_dir_all(dir.path()).unwrap();
        }
    }
}
