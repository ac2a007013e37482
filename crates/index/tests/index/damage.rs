//! Damaged folders: damage is noticed, answers are right meanwhile, and the next fold repairs it.

use std::{
    fs,
    path::{Path, PathBuf},
};

use amplifier_session_core::backend::VectorQuery;
use amplifier_session_index::{SearchIndex, WhenBusy};

use super::{
    model::{Numbers, check_text, check_vectors, text_query, vector_query},
    store::{ANA, Store},
};

fn filled(id: u8) -> Store {
    let store = Store::new(id);
    let mut numbers = Numbers(31);
    for key in 0..40 {
        let (text, vector) = (numbers.text(20), numbers.vector(16));
        store.put(key, &text, vector);
        store.write(|write| write.turn(key, ANA, 0, numbers.vector(16)));
    }
    store
}

/// Searches all parts and returns their notices about the index.
fn search(index: &SearchIndex, store: &Store) -> [Option<String>; 3] {
    let text = check_text(index, store, &text_query("w0 w1 w30"), false);
    let of_texts = vector_query(Numbers(5).vector(16));
    let of_turns = VectorQuery { turns: true, ..of_texts.clone() };
    let [vectors, turns] = [of_texts, of_turns].map(|query| check_vectors(index, store, &query));
    [text.notice, vectors.notice, turns.notice]
}

/// Checks a new process and a running one: both notice the damage, and a fold repairs it.
fn assert_noticed_and_repaired(dir: &Path, store: &Store, running: &SearchIndex, reason: &str) {
    for index in [&SearchIndex::open(dir), running] {
        let mut notices = search(index, store).into_iter().flatten();
        let notice = notices.next().unwrap_or_else(|| panic!("nothing was noticed: {reason}"));
        assert!(notice.contains(reason), "{notice}");
    }
    let folded = SearchIndex::open(dir).fold(&mut store.rows(), WhenBusy::Skip).unwrap();
    assert!(folded.rebuilt.unwrap().contains(reason));
    for index in [&SearchIndex::open(dir), running] {
        assert_eq!(search(index, store), [None, None, None]);
    }
    let again = running.fold(&mut store.rows(), WhenBusy::Skip).unwrap();
    assert_eq!((again.messages, again.vectors, again.rebuilt), (0, 0, None));
}

/// A store with an index, a running process that has searched it, and the folder.
fn prepared() -> (Store, tempfile::TempDir, SearchIndex) {
    let (store, dir) = (filled(1), tempfile::tempdir().unwrap());
    let index = SearchIndex::open(dir.path());
    index.fold(&mut store.rows(), WhenBusy::Skip).unwrap();
    assert_eq!(search(&index, &store), [None, None, None]);
    (store, dir, index)
}

/// All files of the index except the lock and the reserve, which holds nothing.
fn files(dir: &Path) -> Vec<PathBuf> {
    let entries =
        |dir: &Path| fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect::<Vec<_>>();
    let mut files: Vec<_> = [dir.to_owned(), dir.join("text"), dir.join("vectors"), dir.join("turns")]
        .iter()
        .flat_map(|dir| entries(dir))
        .collect();
    files.retain(|path| path.is_file() && !path.ends_with("lock") && !path.ends_with("reserve"));
    files.sort();
    files
}

/// Changes a manifest and its checksum.
fn rewrite_manifest(path: &Path, change: impl FnOnce(&mut String)) {
    let mut json = fs::read_to_string(path).unwrap().split_off(9);
    change(&mut json);
    fs::write(path, format!("{:08x}\n{json}", crc32fast::hash(json.as_bytes()))).unwrap();
}

#[test]
fn a_deleted_folder_is_noticed() {
    let (store, dir, index) = prepared();
    fs::remove_dir_all(dir.path()).unwrap();
    assert_noticed_and_repaired(dir.path(), &store, &index, "missing");
}

#[test]
fn each_missing_file_is_noticed() {
    let (store, dir, index) = prepared();
    for number in 0..files(dir.path()).len() {
        fs::remove_file(&files(dir.path())[number]).unwrap();
        // Files that are mapped or were read continue to serve the process.
        let folded = SearchIndex::open(dir.path()).fold(&mut store.rows(), WhenBusy::Skip).unwrap();
        assert!(folded.rebuilt.unwrap().contains("missing"));
        assert_eq!(search(&index, &store), [None, None, None]);
        assert_eq!(search(&SearchIndex::open(dir.path()), &store), [None, None, None]);
    }
}

#[test]
fn each_truncated_file_is_noticed() {
    let (store, dir, _) = prepared();
    for number in 0..files(dir.path()).len() {
        let path = &files(dir.path())[number];
        let length = fs::metadata(path).unwrap().len();
        for kept in [0, 5, length / 2, length - 1] {
            let path = &files(dir.path())[number];
            let bytes = fs::read(path).unwrap();
            fs::write(path, &bytes[..bytes.len().min(kept as usize)]).unwrap();
            assert_noticed_and_repaired(dir.path(), &store, &SearchIndex::open(dir.path()), "damaged");
        }
    }
}

#[test]
fn each_flipped_bit_is_noticed() {
    let (store, dir, _) = prepared();
    for number in 0..files(dir.path()).len() {
        for part in 0..6 {
            let path = &files(dir.path())[number];
            let mut bytes = fs::read(path).unwrap();
            let place = (bytes.len() - 1) * part / 5;
            bytes[place] ^= 1 << part;
            let modified = fs::metadata(path).unwrap().modified().unwrap();
            fs::write(path, &bytes).unwrap();
            // Setting back the time of the file does not hide the change.
            fs::File::options().write(true).open(path).unwrap().set_modified(modified).unwrap();
            assert_noticed_and_repaired(dir.path(), &store, &SearchIndex::open(dir.path()), "damaged");
        }
    }
}

/// Changes a bit of the coarse codes or of the fine codes, which are at the end. Returns the file.
fn rot_codes(dir: &Path, fine: bool) -> PathBuf {
    let is_codes = |path: &PathBuf| path.extension().is_some_and(|end| end == "seg");
    let path =
        files(dir).into_iter().filter(is_codes).find(|path| path.starts_with(dir.join("vectors"))).unwrap();
    let mut bytes = fs::read(&path).unwrap();
    let (rows, bytes_per_row) = (40, 32);
    let from_end = if fine { 1 } else { rows * bytes_per_row + 1 };
    let place = bytes.len() - from_end;
    bytes[place] ^= 1;
    fs::write(&path, bytes).unwrap();
    path
}

#[test]
fn bit_rot_in_codes_is_noticed_when_they_are_read() {
    for fine in [false, true] {
        let (store, dir, _) = prepared();
        let path = rot_codes(dir.path(), fine);
        // Bit rot does not change file times. A test cannot do that, so it changes the times in the manifest.
        let metadata = fs::metadata(&path).unwrap();
        let nanos =
            |time: std::time::SystemTime| time.duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos();
        #[cfg(unix)]
        let entry = {
            use std::os::unix::fs::MetadataExt;
            metadata.ctime() as u128 * 1_000_000_000 + metadata.ctime_nsec() as u128
        };
        #[cfg(not(unix))]
        let entry = 0;
        rewrite_manifest(&dir.path().join("vectors.json"), |manifest| {
            let changed = format!("[{},{entry}]", nanos(metadata.modified().unwrap()));
            let at = manifest.find("\"changed\":").unwrap() + 10;
            let end = at + manifest[at..].find(']').unwrap() + 1;
            manifest.replace_range(at..end, &changed);
        });
        let index = SearchIndex::open(dir.path());
        let notice = search(&index, &store)[1].clone().unwrap();
        assert!(notice.contains("damaged"), "{notice}");
        assert!(index.fold(&mut store.rows(), WhenBusy::Skip).unwrap().rebuilt.unwrap().contains("damaged"));
        assert_eq!(search(&index, &store), [None, None, None]);
    }
}

#[test]
fn bit_rot_in_codes_is_noticed_by_a_process_that_searched_before() {
    for fine in [false, true] {
        let (store, dir, index) = prepared();
        rot_codes(dir.path(), fine);
        let notice = search(&index, &store)[1].clone().unwrap();
        assert!(notice.contains("damaged"), "{notice}");
    }
}

#[test]
fn impossible_sizes_in_a_manifest_are_noticed() {
    for number in ["rows", "dimensions"] {
        let (store, dir, _) = prepared();
        rewrite_manifest(&dir.path().join("vectors.json"), |manifest| {
            let at = manifest.find(&format!("\"{number}\":")).unwrap() + number.len() + 3;
            let end = at + manifest[at..].find(',').unwrap();
            manifest.replace_range(at..end, &u64::MAX.to_string());
        });
        let notice = search(&SearchIndex::open(dir.path()), &store)[1].clone().unwrap();
        assert!(notice.contains("damaged"), "{notice}");
    }
}

#[test]
fn a_copied_folder_is_accepted() {
    let (store, dir, _) = prepared();
    let copy = tempfile::tempdir().unwrap();
    for path in files(dir.path()) {
        let to = copy.path().join(path.strip_prefix(dir.path()).unwrap());
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(&path, &to).unwrap();
    }
    let index = SearchIndex::open(copy.path());
    assert_eq!(search(&index, &store), [None, None, None]);
    assert_eq!(index.fold(&mut store.rows(), WhenBusy::Skip).unwrap().rebuilt, None);
}

#[test]
fn leftovers_of_a_killed_fold_do_no_harm() {
    let (store, dir, index) = prepared();
    let leftovers = [
        "text/0123456789abcdef0123456789abcdef.term",
        "vectors/00000009.seg",
        "vectors/00000009.seg.new",
        "turns/00000009.seg",
    ];
    for name in leftovers {
        fs::write(dir.path().join(name), b"half a file").unwrap();
    }
    fs::write(dir.path().join("text.json.new"), b"half a manifest").unwrap();
    assert_eq!(search(&SearchIndex::open(dir.path()), &store), [None, None, None]);
    store.say(100, "one more");
    index.fold(&mut store.rows(), WhenBusy::Skip).unwrap();
    assert_eq!(search(&SearchIndex::open(dir.path()), &store), [None, None, None]);
    for name in leftovers {
        assert!(!dir.path().join(name).exists(), "{name}");
    }
}

#[test]
fn the_index_of_another_store_is_noticed() {
    let (_, dir, index) = prepared();
    assert_noticed_and_repaired(dir.path(), &filled(2), &index, "belongs to another store");
}

#[test]
fn an_index_of_a_store_that_was_restored_is_noticed() {
    for (writes_after, reason) in [(0, "newer than the store"), (2, "the history of the store")] {
        let (store, dir, index) = prepared();
        let backup = store.restored();
        store.say(100, "written after the backup was made");
        index.fold(&mut store.rows(), WhenBusy::Skip).unwrap();
        assert_eq!(search(&index, &store), [None, None, None]);
        (0..writes_after).for_each(|n| backup.say(100 + n, "something else"));
        assert_noticed_and_repaired(dir.path(), &backup, &index, reason);
    }
}

#[test]
fn a_tail_of_another_history_is_not_kept() {
    let (store, dir, index) = prepared();
    let backup = store.restored();
    store.say(100, "zebra");
    assert_eq!(check_text(&index, &store, &text_query("zebra quagga"), false).hits.len(), 1);
    backup.say(100, "quagga");
    backup.say(101, "zebra");
    assert_eq!(check_text(&index, &backup, &text_query("zebra quagga"), false).hits.len(), 2);
    drop(dir);
}

#[test]
fn a_store_that_forgot_its_removals_is_noticed() {
    let (store, dir, index) = prepared();
    let mut forgetful = (*store.state()).clone();
    forgetful.nonces.retain(|revision, _| *revision > 80);
    let forgetful = Store::with_state(forgetful);
    forgetful.say(100, "more");
    assert_noticed_and_repaired(dir.path(), &forgetful, &index, "the history of the store");
}

#[test]
fn an_older_format_is_noticed() {
    let (store, dir, index) = prepared();
    for name in ["text.json", "vectors.json", "turns.json"] {
        rewrite_manifest(&dir.path().join(name), |manifest| {
            *manifest = manifest.replacen("\"format\":", "\"format\":1000", 1);
        });
    }
    assert_noticed_and_repaired(dir.path(), &store, &index, "a different format");
}
