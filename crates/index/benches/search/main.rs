//! Searching 100,000 messages of about 1.5 KB and 145,000 vectors of 256 dimensions, one thread.
//!
//! `cargo bench -p amplifier-session-index`. Yardsticks: `yardstick tantivy` searches the same files with tantivy
//! alone, `yardstick f32` compares every vector in full; how long the index takes to build is printed first, with
//! `yardstick tantivy` indexing the same texts. `SEARCH_BENCH_MESSAGES` sets another number of messages.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a benchmark tells what it found and stops where it can't go on"
)]

mod corpus;
mod tantivy_alone;
mod yardstick;

use std::{hint::black_box, path::Path, time::Instant};

use amplifier_session_core::{
    Scope, Viewer,
    backend::{TextQuery, VectorQuery},
    model::{ContentTypes, UserId},
    search::SearchFilter,
    text::query_terms,
};
use amplifier_session_index::{Rows, SearchIndex, WhenBusy};
use corpus::{Corpus, Random};
use criterion::{Criterion, criterion_group, criterion_main};
use tantivy_alone::TantivyAlone;

const LIMIT: usize = 50;

fn text_query(words: &str, user: Option<&str>) -> TextQuery {
    TextQuery {
        scope: user.map_or(Scope::Everyone, |user| Scope::User(UserId::new(user).unwrap())),
        filter: SearchFilter::default(),
        content_types: ContentTypes::embedded(),
        terms: query_terms(words),
        weights: Vec::new(),
        required: Vec::new(),
        phrases: Vec::new(),
        tools: Vec::new(),
        limit: LIMIT,
    }
}

fn vector_query(vector: Vec<f32>, user: Option<&str>) -> VectorQuery {
    let TextQuery { scope, filter, content_types, .. } = text_query("", user);
    VectorQuery {
        scope,
        filter,
        content_types,
        tools: Vec::new(),
        turns: false,
        vector,
        generation: 0,
        limit: LIMIT,
    }
}

/// Takes what `queries` gives in turn.
fn in_turn<T>(c: &mut Criterion, name: &str, queries: &[T], mut search: impl FnMut(&T)) {
    let mut turn = queries.iter().cycle();
    c.bench_function(name, |b| b.iter(|| search(black_box(turn.next().unwrap()))));
}

fn timed<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = work();
    println!("{what}: {:.2} s", start.elapsed().as_secs_f64());
    result
}

fn folder_mb(dir: &Path) -> f64 {
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len());
    entries.sum::<u64>() as f64 / 1e6
}

fn text(c: &mut Criterion, corpus: &Corpus, index: &SearchIndex, yardstick: &TantivyAlone) {
    let mut random = Random(5);
    for words in [1, 3, 9] {
        let queries: Vec<String> = (0..50).map(|_| corpus.query(&mut random, words)).collect();
        in_turn(c, &format!("text/{words} words"), &queries, |words| {
            index.text_candidates(&mut corpus.rows(), &text_query(words, None)).unwrap();
        });
        in_turn(c, &format!("text/{words} words, the only user"), &queries, |words| {
            index.text_candidates(&mut corpus.rows(), &text_query(words, Some("ana"))).unwrap();
        });
        in_turn(c, &format!("text/{words} words, yardstick tantivy"), &queries, |words| {
            yardstick.search(&query_terms(words), LIMIT);
        });
    }
}

fn vectors(c: &mut Criterion, corpus: &Corpus, index: &SearchIndex) {
    let mut random = Random(6);
    let queries: Vec<Vec<f32>> = (0..50).map(|_| corpus.vector(&mut random)).collect();
    in_turn(c, "vectors/all", &queries, |vector| {
        index.vector_candidates(&mut corpus.rows(), &vector_query(vector.clone(), None)).unwrap();
    });
    in_turn(c, "vectors/yardstick f32", &queries, |vector| {
        black_box(corpus.nearest(vector, LIMIT));
    });
    let (mut found, mut wanted) = (0, 0);
    for vector in &queries {
        let query = VectorQuery { limit: 10, ..vector_query(vector.clone(), None) };
        let hits = index.vector_candidates(&mut corpus.rows(), &query).unwrap().hits;
        let nearest = corpus.nearest(vector, 10);
        found += hits.iter().filter(|hit| nearest.contains(&hit.key)).count();
        wanted += nearest.len();
    }
    println!("recall@10: {:.4}", found as f64 / wanted as f64);
}

/// One of ten users, who are not equally busy.
fn users(c: &mut Criterion, corpus: &Corpus, index: &SearchIndex) {
    let mut random = Random(7);
    let vectors: Vec<Vec<f32>> = (0..50).map(|_| corpus.vector(&mut random)).collect();
    for (user, part) in [("user-0", "34 %"), ("user-4", "8 %"), ("user-9", "1 %")] {
        for words in [3, 9] {
            let queries: Vec<String> = (0..50).map(|_| corpus.query(&mut random, words)).collect();
            in_turn(c, &format!("text/{words} words, a user with {part}"), &queries, |words| {
                index.text_candidates(&mut corpus.rows(), &text_query(words, Some(user))).unwrap();
            });
        }
        in_turn(c, &format!("vectors/a user with {part}"), &vectors, |vector| {
            index.vector_candidates(&mut corpus.rows(), &vector_query(vector.clone(), Some(user))).unwrap();
        });
        let visible = Scope::Visible(Viewer::new(UserId::new(user).unwrap()));
        let queries: Vec<String> = (0..50).map(|_| corpus.query(&mut random, 9)).collect();
        in_turn(c, &format!("text/9 words, what a user with {part} may see"), &queries, |words| {
            let query = TextQuery { scope: visible.clone(), ..text_query(words, None) };
            index.text_candidates(&mut corpus.rows(), &query).unwrap();
        });
        in_turn(c, &format!("vectors/what a user with {part} may see"), &vectors, |vector| {
            let query = VectorQuery { scope: visible.clone(), ..vector_query(vector.clone(), None) };
            index.vector_candidates(&mut corpus.rows(), &query).unwrap();
        });
    }
}

/// Rows that are not in the index.
fn tail(c: &mut Criterion, corpus: &mut Corpus, index: &SearchIndex) {
    corpus.grow(2_000);
    let mut random = Random(8);
    let queries: Vec<String> = (0..50).map(|_| corpus.query(&mut random, 9)).collect();
    let vectors: Vec<Vec<f32>> = (0..50).map(|_| corpus.vector(&mut random)).collect();
    in_turn(c, "text/9 words, 2,000 messages in the tail", &queries, |words| {
        index.text_candidates(&mut corpus.rows(), &text_query(words, None)).unwrap();
    });
    in_turn(c, "vectors/2,900 rows in the tail", &vectors, |vector| {
        index.vector_candidates(&mut corpus.rows(), &vector_query(vector.clone(), None)).unwrap();
    });
    timed("folding 2,000 messages and 2,900 vectors", || {
        index.fold(&mut corpus.rows(), WhenBusy::Skip).unwrap()
    });
}

fn cold(c: &mut Criterion, corpus: &Corpus, dir: &Path) {
    let mut random = Random(9);
    let words = corpus.query(&mut random, 3);
    let vector = corpus.vector(&mut random);
    c.bench_function("text/3 words, the first search of a process", |b| {
        b.iter(|| {
            SearchIndex::open(dir).text_candidates(&mut corpus.rows(), &text_query(&words, None)).unwrap()
        });
    });
    c.bench_function("vectors/the first search of a process", |b| {
        b.iter(|| {
            SearchIndex::open(dir)
                .vector_candidates(&mut corpus.rows(), &vector_query(vector.clone(), None))
                .unwrap()
        });
    });
}

fn search(c: &mut Criterion) {
    let messages = std::env::var("SEARCH_BENCH_MESSAGES").map_or(100_000, |number| number.parse().unwrap());
    let mut corpus = timed("making the corpus", || Corpus::new(messages));
    println!(
        "{} messages, {:.0} MB of lines, {} vectors",
        messages,
        corpus.bytes() as f64 / 1e6,
        corpus.vectors()
    );
    let dir = tempfile::tempdir().unwrap();
    let index = SearchIndex::open(dir.path());
    timed("fold of everything", || index.fold(&mut corpus.rows(), WhenBusy::Skip).unwrap());
    println!(
        "text {:.0} MB, vectors {:.0} MB",
        folder_mb(&dir.path().join("text")),
        folder_mb(&dir.path().join("vectors"))
    );
    timed("yardstick tantivy, indexing", || yardstick::index_texts(&mut corpus.rows()));
    let yardstick = TantivyAlone::open(dir.path());
    text(c, &corpus, &index, &yardstick);
    vectors(c, &corpus, &index);
    cold(c, &corpus, dir.path());
    tail(c, &mut corpus, &index);
    drop((corpus, index));

    let corpus = Corpus::of_ten_users(messages);
    let dir = tempfile::tempdir().unwrap();
    let index = SearchIndex::open(dir.path());
    index.fold(&mut corpus.rows(), WhenBusy::Skip).unwrap();
    assert!(corpus.rows().store_revision().unwrap().revision > 0);
    users(c, &corpus, &index);
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(40);
    targets = search
}
criterion_main!(benches);
