//! Changed and removed rows, reused keys, and what is left in the files.

use std::{collections::BTreeSet, fs, path::Path};

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

/// Whether a file of the folder contains a text.
fn is_in_files(dir: &Path, text: &str) -> bool {
    let files = fs::read_dir(dir).unwrap().map(|entry| fs::read(entry.unwrap().path()).unwrap());
    files.into_iter().any(|bytes| bytes.windows(text.len()).any(|window| window == text.as_bytes()))
}

/// All words in the files of the text index, including those of deleted documents. The words are compressed, so tantivy
/// has to read them. Checks that tantivy knows all files.
fn words_in_files(dir: &Path) -> BTreeSet<String> {
    let manifest = fs::read_to_string(dir.join("text.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_str(&manifest[9..]).unwrap();
    let files = manifest["body"]["files"].as_object().unwrap();
    let copy = tempfile::tempdir().unwrap();
    fs::write(copy.path().join("meta.json"), manifest["body"]["meta"].as_str().unwrap()).unwrap();
    for entry in fs::read_dir(dir.join("text")).unwrap().map(Result::unwrap) {
        assert!(files.contains_key(entry.file_name().to_str().unwrap()), "{entry:?} is not used");
        fs::copy(entry.path(), copy.path().join(entry.file_name())).unwrap();
    }
    let index = tantivy::Index::open_in_dir(copy.path()).unwrap();
    let mut words = BTreeSet::new();
    for segment in index.reader().unwrap().searcher().segment_readers() {
        for (field, _) in index.schema().fields().filter(|(_, entry)| entry.field_type().is_str()) {
            let terms = segment.inverted_index(field).unwrap();
            let mut terms = terms.terms().stream().unwrap();
            while terms.advance() {
                words.insert(String::from_utf8(terms.key().to_vec()).unwrap());
            }
        }
    }
    words
}

#[test]
fn a_changed_message_is_found_by_its_new_words_only() {
    let (store, dir) = (Store::new(1), tempfile::tempdir().unwrap());
    store.say(1, "apples and pears");
    store.say(2, "apples alone");
    let index = folded(&store, dir.path());
    store.say(1, "plums");
    for _ in 0..2 {
        assert_eq!(check_text(&index, &store, &text_query("apples"), true).hits.len(), 1);
        assert_eq!(check_text(&index, &store, &text_query("pears"), true).hits.len(), 0);
        assert_eq!(check_text(&index, &store, &text_query("plums"), true).hits.len(), 1);
        index.fold(&mut store.rows(), WhenBusy::Skip).unwrap();
    }
}

#[test]
fn a_reused_key_belongs_to_its_new_row() {
    let (store, dir) = (Store::new(1), tempfile::tempdir().unwrap());
    let mut numbers = Numbers(21);
    store.put(1, "apples", vec![1.0, 0.0]);
    let index = folded(&store, dir.path());
    store.remove(1);
    store.write(|write| {
        write.say(1, Place { user: "ben", ..ANA }, "pears");
        write.vector(1, Place { user: "ben", ..ANA }, ContentType::ToolOutput, 0, vec![0.0, 1.0]);
    });
    for _ in 0..2 {
        assert_eq!(check_text(&index, &store, &text_query("apples"), true).hits.len(), 0);
        assert_eq!(check_text(&index, &store, &text_query("pears"), true).hits.len(), 1);
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
            write.put(key, place, &format!("{word} {}", numbers.text(10)), vector);
        });
    }
    let index = folded(&store, dir.path());
    let traces = ["secretsession", "topsecretproject"];
    assert!(traces.iter().all(|trace| is_in_files(&dir.path().join("vectors"), trace)));
    let words = ["zugzwang", "secretsession", "topsecretproject"];
    assert!(words.iter().all(|word| words_in_files(dir.path()).contains(*word)));
    store.write(|write| {
        for key in (0..50).step_by(10) {
            write.remove(key);
        }
    });
    assert_eq!(check_text(&index, &store, &text_query("zugzwang"), true).hits.len(), 0);
    index.fold(&mut store.rows(), WhenBusy::Wait).unwrap();
    for trace in traces {
        assert!(!is_in_files(&dir.path().join("vectors"), trace), "{trace}");
    }
    let left = words_in_files(dir.path());
    assert!(left.contains("harmless") && words.iter().all(|word| !left.contains(*word)), "{left:?}");
    let answer = check_text(&index, &store, &text_query("harmless w1"), true);
    assert_eq!((answer.tail_rows, answer.notice), (0, None));
    check_vectors(&index, &store, &vector_query(numbers.vector(16)));
}

/// tantivy estimates the number of tokens of a segment when it removes documents from it, and counts deleted documents
/// until then.
#[test]
fn scores_are_those_of_a_store_that_never_had_the_removed_rows() {
    let fill = |store: &Store, count: u64| {
        let mut numbers = Numbers(23);
        for key in 0..count {
            let words = 30 + numbers.below(400);
            store.say(key, &numbers.text(words));
        }
    };
    let (never, had) = (Store::new(1), Store::new(1));
    let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fill(&never, 150);
    fill(&had, 250);
    let index = folded(&had, dir.path());
    had.write(|write| (150..250).for_each(|key| write.remove(key)));
    let expected = folded(&never, other.path());
    for _ in 0..2 {
        for words in ["w1 w2", "w3", "w150 w199 w7"] {
            let hits = |index: &SearchIndex, store| check_text(index, store, &text_query(words), true).hits;
            assert_eq!(hits(&index, &had), hits(&expected, &never), "{words}");
        }
        index.fold(&mut had.rows(), WhenBusy::Wait).unwrap();
    }
}

#[test]
fn an_index_that_can_not_be_cleaned_is_an_error_and_can_be_discarded() {
    let (store, dir) = (Store::new(1), tempfile::tempdir().unwrap());
    store.put(1, "zugzwang", vec![1.0, 0.0]);
    let index = folded(&store, dir.path());
    store.remove(1);
    fs::remove_file(dir.path().join("lock")).unwrap();
    fs::create_dir(dir.path().join("lock")).unwrap();
    assert!(index.fold(&mut store.rows(), WhenBusy::Wait).is_err());
    assert!(index.discard().is_err());
    fs::remove_dir(dir.path().join("lock")).unwrap();
    index.discard().unwrap();
    for part in ["text", "vectors"] {
        assert_eq!(fs::read_dir(dir.path().join(part)).unwrap().count(), 0);
    }
    store.say(2, "harmless");
    assert_eq!(check_text(&index, &store, &text_query("zugzwang harmless"), true).hits.len(), 1);
}

#[test]
fn nothing_is_left_of_rows_removed_before_the_fold() {
    let (store, dir) = (Store::new(1), tempfile::tempdir().unwrap());
    store.say(1, "zugzwang");
    store.remove(1);
    store.say(2, "harmless");
    let index = folded(&store, dir.path());
    assert!(!words_in_files(dir.path()).contains("zugzwang"));
    assert_eq!(check_text(&index, &store, &text_query("zugzwang harmless"), true).hits.len(), 1);
}

#[test]
fn removing_everything_leaves_an_empty_index() {
    let (store, dir) = (Store::new(1), tempfile::tempdir().unwrap());
    store.put(1, "zugzwang", vec![1.0, 0.0]);
    let index = folded(&store, dir.path());
    store.remove(1);
    index.fold(&mut store.rows(), WhenBusy::Skip).unwrap();
    assert!(words_in_files(dir.path()).is_empty());
    assert!(check_text(&index, &store, &text_query("zugzwang"), true).hits.is_empty());
    assert!(check_vectors(&index, &store, &vector_query(vec![1.0, 0.0, 0.0])).hits.is_empty());
}

#[test]
fn only_the_owner_can_access_the_index() {
    let (store, dir) = (Store::new(1), tempfile::tempdir().unwrap());
    store.put(1, "private", vec![1.0, 0.0]);
    let dir = dir.path().join("index");
    folded(&store, &dir);
    #[cfg(unix)]
    for entry in [dir.clone(), dir.join("text"), dir.join("vectors")] {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(fs::metadata(&entry).unwrap().permissions().mode() & 0o777, 0o700);
        for file in fs::read_dir(&entry).unwrap().map(Result::unwrap).filter(|entry| entry.path().is_file()) {
            assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{:?}", file.path());
        }
    }
}
