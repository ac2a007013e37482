//! Text search, with the rows divided between index and tail in every way.

use amplifier_session_core::{
    backend::TextQuery,
    model::{ContentType, Role},
};
use amplifier_session_index::{SearchIndex, WhenBusy};
use serde_json::json;

use super::{
    model::{Numbers, check_text, phrase_query, text_model, text_query},
    store::{ANA, Store},
};

fn filled(messages: u64, seed: u64) -> Store {
    let store = Store::new(1);
    let mut numbers = Numbers(seed);
    for block in 0..messages / 10 {
        store.write(|write| {
            for key in block * 10..block * 10 + 10 {
                let words = 5 + numbers.below(60);
                write.say(key, ANA, &numbers.text(words));
            }
        });
    }
    store
}

#[test]
fn without_an_index_rows_answer_and_the_reason_is_reported() {
    let (store, dir) = (filled(50, 1), tempfile::tempdir().unwrap());
    let index = SearchIndex::open(dir.path().join("none"));
    let answer = check_text(&index, &store, &text_query("w1 w5 w17"), true);
    assert_eq!(answer.tail_rows, 50);
    assert!(answer.notice.unwrap().contains("the text index is missing"));
    assert!(!dir.path().join("none").exists(), "a search of few rows writes nothing");
}

#[test]
fn a_phrase_is_found_among_many_texts_with_its_words() {
    const MANY: u64 = 20_000;
    let (store, dir) = (Store::new(1), tempfile::tempdir().unwrap());
    store.write(|write| {
        for key in 0..MANY {
            write.say(key, ANA, "wrong is that");
        }
    });
    store.say(MANY, "that is wrong");
    let index = SearchIndex::open(dir.path());
    index.fold(&mut store.rows(), WhenBusy::Skip).unwrap();
    store.say(MANY + 1, "oh, that is wrong");
    let keys = |typed: &str, limit| {
        let query = TextQuery { limit, ..phrase_query(typed) };
        let hits = index.text_candidates(&mut store.rows(), &query).unwrap().hits;
        let mut keys: Vec<u64> = hits.iter().map(|hit| hit.key).collect();
        keys.sort_unstable();
        keys
    };
    assert_eq!(keys("that is wrong", 10), [MANY, MANY + 1]);
    assert_eq!(keys("wrong is that", usize::MAX).len() as u64, MANY);
    assert!(keys("that wrong", 10).is_empty());
}

#[test]
fn phrases_in_the_index_and_the_tail_are_those_of_the_texts() {
    let (store, dir) = (filled(100, 31), tempfile::tempdir().unwrap());
    let index = SearchIndex::open(dir.path());
    index.fold(&mut store.rows(), WhenBusy::Skip).unwrap();
    let mut numbers = Numbers(32);
    for key in 100..200 {
        store.say(key, &numbers.text(40));
    }
    // The first search caches no rows of the tail, and later ones do.
    for _ in 0..3 {
        for typed in ["w0 w1", "w1 w0", "w0 w0", "w2 w0 w1", "w3"] {
            let found = check_text(&index, &store, &phrase_query(typed), true);
            assert!(typed == "w2 w0 w1" || !found.hits.is_empty(), "{typed}");
        }
    }
}

#[test]
fn an_empty_store_is_no_reason_for_a_notice() {
    let dir = tempfile::tempdir().unwrap();
    let index = SearchIndex::open(dir.path());
    let answer = check_text(&index, &Store::new(1), &text_query("anything"), true);
    assert_eq!(answer.notice, None);
    let folded = index.fold(&mut Store::new(1).rows(), WhenBusy::Skip).unwrap();
    assert_eq!((folded.busy, folded.messages), (false, 0));
}

#[test]
fn index_and_tail_score_as_one() {
    let (store, dir) = (filled(200, 2), tempfile::tempdir().unwrap());
    let index = SearchIndex::open(dir.path());
    assert_eq!(index.fold(&mut store.rows(), WhenBusy::Skip).unwrap().messages, 200);
    assert_eq!(check_text(&index, &store, &text_query("w0 w3 w50"), true).tail_rows, 0);
    let mut numbers = Numbers(3);
    for key in 200..300 {
        store.say(key, &numbers.text(30));
        if key % 20 == 0 {
            let answer = check_text(&index, &store, &text_query("w0 w3 w50 unknown"), true);
            assert_eq!((answer.tail_rows, answer.notice), (key - 199, None));
        }
    }
    assert_eq!(index.fold(&mut store.rows(), WhenBusy::Skip).unwrap().messages, 100);
    assert_eq!(check_text(&index, &store, &text_query("w0 w3 w50 unknown"), true).tail_rows, 0);
}

#[test]
fn another_process_finds_a_row_at_once() {
    let (store, dir) = (filled(20, 4), tempfile::tempdir().unwrap());
    let (writer, reader) = (SearchIndex::open(dir.path()), SearchIndex::open(dir.path()));
    writer.fold(&mut store.rows(), WhenBusy::Skip).unwrap();
    check_text(&reader, &store, &text_query("w1"), true);
    store.say(900, "a word nobody has used: xylophone");
    assert_eq!(check_text(&reader, &store, &text_query("xylophone"), true).hits.len(), 1);
    writer.fold(&mut store.rows(), WhenBusy::Skip).unwrap();
    let answer = check_text(&reader, &store, &text_query("xylophone"), true);
    assert_eq!((answer.hits.len(), answer.tail_rows), (1, 0));
}

#[test]
fn the_best_few_are_the_best_of_all() {
    let (store, dir) = (filled(2_000, 5), tempfile::tempdir().unwrap());
    let index = SearchIndex::open(dir.path());
    for fold in [false, true] {
        if fold {
            index.fold(&mut store.rows(), WhenBusy::Skip).unwrap();
        }
        for words in ["w0", "w120 w7", "w1 w2 w3 w4 w5 w60 w70 w80 w90"] {
            let mut query = text_query(words);
            let all = check_text(&index, &store, &query, true);
            query.limit = 10;
            let best = index.text_candidates(&mut store.rows(), &query).unwrap();
            for (hit, expected) in best.hits.iter().zip(&all.hits) {
                assert!((hit.score - expected.score).abs() < expected.score * 1e-3, "{words}");
            }
            assert_eq!(best.hits.len(), 10.min(all.hits.len()));
        }
    }
}

/// Blocks of documents are skipped by what the index stores about each block: the document that would score best if
/// lengths had more weight than they have.
#[test]
fn a_long_text_among_short_ones_is_not_skipped() {
    let (store, dir) = (Store::new(1), tempfile::tempdir().unwrap());
    let index = SearchIndex::open(dir.path());
    let long = format!("{} {}", "quokka ".repeat(180), "filler ".repeat(120));
    store.write(|write| {
        for key in 0..1_000 {
            let text = match key {
                5 | 999 => "wombat",
                0..20 => "quokka quokka filler",
                600 => &long,
                _ => "quokka",
            };
            write.say(key, ANA, text);
        }
    });
    // Two words, because blocks are skipped only if several lists are merged.
    let mut query = text_query("quokka wombat");
    query.limit = 10;
    for _ in 0..2 {
        let answer = check_text(&index, &store, &query, true);
        assert_eq!(answer.hits.get(2).map(|hit| hit.key), Some(600));
        index.fold(&mut store.rows(), WhenBusy::Skip).unwrap();
    }
}

#[test]
fn every_text_of_a_message_is_found_under_its_content_type() {
    let (store, dir) = (Store::new(1), tempfile::tempdir().unwrap());
    let index = SearchIndex::open(dir.path());
    store.write(|write| {
        let blocks = json!([{"type": "thinking", "thinking": "weighing quokkas"}, {"type": "text", "text": "two quokkas"}]);
        write.message(1, ANA, Role::Assistant, 0, json!({"role": "assistant", "content": blocks}));
        write.message(2, ANA, Role::Tool, 0, json!({"role": "tool", "content": {"animal": "quokkas"}}));
        write.message(3, ANA, Role::System, 0, json!({"role": "system", "content": "be kind to quokkas"}));
        write.message(4, ANA, Role::User, 0, json!("no object: quokkas"));
    });
    for _ in 0..2 {
        let answer = check_text(&index, &store, &text_query("quokka"), true);
        let mut found: Vec<_> = answer.hits.iter().map(|hit| (hit.key, hit.content_type)).collect();
        found.sort_unstable();
        let expected = [
            (1, ContentType::AssistantResponse),
            (1, ContentType::AssistantThinking),
            (2, ContentType::ToolOutput),
            (3, ContentType::System),
        ];
        assert_eq!(found, expected);
        index.fold(&mut store.rows(), WhenBusy::Skip).unwrap();
    }
}

#[test]
fn long_words_and_accents_are_found_in_index_and_tail() {
    let (store, dir) = (Store::new(1), tempfile::tempdir().unwrap());
    let index = SearchIndex::open(dir.path());
    let hash = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
    store.say(1, &format!("the commit {hash}"));
    store.say(2, "un café à Zürich");
    for _ in 0..2 {
        for words in [hash, "cafe", "ZURICH"] {
            assert_eq!(check_text(&index, &store, &text_query(words), true).hits.len(), 1, "{words}");
        }
        index.fold(&mut store.rows(), WhenBusy::Skip).unwrap();
    }
}

#[test]
fn a_search_that_finds_a_long_tail_folds_it() {
    let (store, dir) = (Store::new(1), tempfile::tempdir().unwrap());
    let index = SearchIndex::open(dir.path());
    let mut numbers = Numbers(6);
    for key in 0..40 {
        store.say(key, &numbers.text(150_000));
    }
    let answer = check_text(&index, &store, &text_query("w150 w199"), true);
    assert_eq!(answer.tail_rows, 0);
    assert!(answer.notice.unwrap().contains("rebuilt"));
    assert_eq!(check_text(&index, &store, &text_query("w150"), true).notice, None);
}

#[test]
fn the_first_search_of_a_process_folds_a_long_tail_too() {
    let (store, dir) = (filled(10, 6), tempfile::tempdir().unwrap());
    SearchIndex::open(dir.path()).fold(&mut store.rows(), WhenBusy::Skip).unwrap();
    let mut numbers = Numbers(6);
    for key in 100..140 {
        store.say(key, &numbers.text(150_000));
    }
    let answer = check_text(&SearchIndex::open(dir.path()), &store, &text_query("w150 w199"), true);
    assert_eq!((answer.tail_rows, answer.notice), (0, None));
}

#[test]
fn a_tail_is_read_once_by_many_searches() {
    let (store, dir) = (filled(100, 7), tempfile::tempdir().unwrap());
    let index = SearchIndex::open(dir.path());
    let mut reads = Vec::new();
    for _ in 0..3 {
        let mut rows = store.rows();
        index.text_candidates(&mut rows, &text_query("w1")).unwrap();
        reads.push(rows.reads);
    }
    store.say(500, "one more");
    let mut rows = store.rows();
    index.text_candidates(&mut rows, &text_query("w1")).unwrap();
    reads.push(rows.reads);
    assert_eq!(reads, [100, 0, 0, 1]);
}

#[test]
fn an_older_snapshot_gets_the_answer_of_its_time() {
    let (store, dir) = (filled(30, 8), tempfile::tempdir().unwrap());
    let index = SearchIndex::open(dir.path());
    store.say(100, "first version");
    let earlier = store.state();
    store.say(100, "second version");
    store.remove(5);
    for _ in 0..2 {
        // A thread with the newer snapshot searched first.
        check_text(&index, &store, &text_query("version first w1"), false);
        let mut rows = store.rows();
        rows.fix(earlier.clone());
        let query = text_query("version first w1");
        let mut found = index.text_candidates(&mut rows, &query).unwrap().hits;
        let mut expected = text_model(&earlier, &query);
        found.sort_by_key(|hit| hit.key);
        expected.sort_by_key(|hit| hit.key);
        assert_eq!(found, expected);
        check_text(&index, &store, &text_query("version first w1"), false);
    }
}

#[test]
fn a_search_of_old_rows_leaves_the_newer_index_alone() {
    let (store, dir) = (Store::new(1), tempfile::tempdir().unwrap());
    let index = SearchIndex::open(dir.path());
    let mut numbers = Numbers(9);
    (0..20).for_each(|key| store.say(key, &numbers.text(150_000)));
    let earlier = store.state();
    store.say(100, "w150 again");
    index.fold(&mut store.rows(), WhenBusy::Skip).unwrap();
    // As if another process had folded between the snapshot and the search.
    let mut rows = store.rows();
    rows.fix(earlier.clone());
    let answer = index.text_candidates(&mut rows, &text_query("w150")).unwrap();
    assert_eq!((answer.hits.len(), answer.tail_rows), (text_model(&earlier, &text_query("w150")).len(), 20));
    assert_eq!(index.status().text.unwrap().revision, 21);
    assert_eq!(check_text(&index, &store, &text_query("w150"), true).tail_rows, 0);
}
