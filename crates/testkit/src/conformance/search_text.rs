//! Full-text search.

use std::collections::BTreeSet;

use amplifier_session_core::text::{
    Analyzer, TermPhrase,
    bm25::{CollectionStatistics, count_terms, score},
    query_terms,
};

use crate::prelude::*;

/// A text query in the scope of ana.
fn query(terms: Vec<String>, limit: usize) -> TextQuery {
    let filter = SearchFilter::default();
    TextQuery {
        scope: ana(),
        filter,
        content_types: ContentTypes::embedded(),
        terms,
        weights: Vec::new(),
        required: Vec::new(),
        phrases: Vec::new(),
        tools: Vec::new(),
        limit,
    }
}

/// Accents, case and English endings make no difference.
pub async fn accents_and_case_make_no_difference(store: Store) {
    let lines =
        ["Das Café öffnet", "CAFÉ", "cafe\u{301}", "naïve Straße", "Ελληνικά", "東京タワー", "running TESTS"];
    store.sync_text(&target("s"), lines.map(lines::user).to_vec()).await;
    let cafes = ["café", "cafe", "CAFE", "Cafe\u{301}"].map(|query| (query, vec![0, 1, 2]));
    let others = [("naive", 3), ("strasse", 3), ("ΕΛΛΗΝΙΚΆ", 4), ("東京", 5), ("test", 6), ("runs", 6)];
    for (query, expected) in cafes.into_iter().chain(others.map(|(query, at)| (query, vec![at]))) {
        assert_eq!(store.find(&target("s"), query).await, expected, "{query}");
    }
}

/// Hashes and other long identifiers are words. Words of any length are accepted.
pub async fn long_identifiers_are_found(store: Store) {
    let sha256 = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
    let uuid = "3a7c1e90-1f4b-4d2a-9c11-0b2e5d6f7a01";
    let identifier = "verylongfunctionname".repeat(5);
    let base64 = "QUJD".repeat(10_000);
    let lines = vec![
        lines::tool(&format!("sha256:{sha256} image.tar")),
        lines::user(&format!("what is {identifier}?")),
        lines::tool(&format!("{base64} behind")),
        lines::user(uuid),
    ];
    store.sync_text(&target("s"), lines).await;
    for (query, sequence) in
        [(sha256, 0), (&sha256.to_uppercase(), 0), (&identifier, 1), ("behind", 2), (uuid, 3)]
    {
        assert_eq!(store.find(&target("s"), query).await, [sequence], "{query}");
    }
    assert_eq!(store.find(&target("s"), &sha256[..40]).await, [0], "the beginning of a hash");
    assert!(store.find(&target("s"), &sha256[1..40]).await.is_empty());
}

/// Candidates are scored by the BM25 formula in `core` with the statistics of all texts, best first, up to the limit.
pub async fn candidates_are_scored_by_bm25(store: Store) {
    let mut random = Random(7);
    let texts: Vec<String> = (0..120).map(|n| random.words(5 + n % 30, 60)).collect();
    store.sync_text(&target("s"), texts.iter().map(|text| lines::user(text)).collect()).await;
    store.storage.update_index().await.unwrap();
    for text in ["word1", "word2 word3 word59", "word7 word7 nothing"] {
        let terms = query_terms(text);
        let expected = scores(&texts, &terms);
        for limit in [5, 1_000] {
            let query = query(terms.clone(), limit);
            let candidates = store.backend.text_candidates(&query).await.unwrap().items;
            assert_eq!(candidates.len(), expected.iter().filter(|score| **score > 0.0).count().min(limit));
            assert!(candidates.windows(2).all(|pair| pair[0].score >= pair[1].score));
            for candidate in &candidates {
                let expected = expected[candidate.message_ref.sequence as usize];
                let difference = (candidate.score - expected).abs();
                assert!(difference < 0.01 * expected, "{candidate:?} {expected}");
            }
        }
    }
}

fn scores(texts: &[String], terms: &[String]) -> Vec<f32> {
    let mut analyzer = Analyzer::new();
    let counted: Vec<_> = texts.iter().map(|text| count_terms(&mut analyzer, text, terms)).collect();
    let mut statistics = CollectionStatistics::new(terms.len());
    counted.iter().for_each(|document| statistics.add_document(document));
    counted.iter().map(|document| score(&statistics, document)).collect()
}

/// Scores depend on the current contents of the store, not on earlier ones.
pub async fn scores_after_a_deletion_are_those_of_the_other_sessions(store: Store) {
    let mut random = Random(17);
    let mut texts = |count: usize| -> Vec<Line> {
        (0..count).map(|n| lines::user(&random.words(20 + 7 * n, 60))).collect()
    };
    let owners = ["ana", "eve"];
    let session = |owner: &str, name: &str| target_of(owner, "shop", name);
    let candidates = async || {
        let mut found = Vec::new();
        for text in ["word1", "word2 word3 word59", "word7 word12"] {
            found
                .extend(store.backend.text_candidates(&query(query_terms(text), 1_000)).await.unwrap().items);
        }
        found
    };
    for owner in owners {
        store.sync_text(&session(owner, "kept"), texts(30)).await;
    }
    store.storage.update_index().await.unwrap();
    let expected = candidates().await;
    for owner in owners {
        store.sync_text(&session(owner, "gone"), texts(40)).await;
    }
    store.storage.update_index().await.unwrap();
    assert_ne!(candidates().await.len(), expected.len());
    for owner in owners {
        store.backend.delete_session(&session(owner, "gone").key).await.unwrap();
    }
    for _ in 0..2 {
        let found = candidates().await;
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(&expected) {
            assert_eq!(found.message_ref, expected.message_ref);
            assert!((found.score - expected.score).abs() < 1e-5 * expected.score, "{found:?} {expected:?}");
        }
        store.storage.update_index().await.unwrap();
    }
}

/// Each text of a message is a separate candidate.
pub async fn each_text_of_a_message_is_a_candidate(store: Store) {
    store.sync(&target("s"), vec![lines::thinking("needle", "needle"), lines::tool("needle")]).await;
    let query = query(query_terms("needle"), 10);
    let candidates = store.backend.text_candidates(&query).await.unwrap().items;
    let mut found: Vec<_> = candidates.iter().map(|c| (c.message_ref.sequence, c.content_type)).collect();
    found.sort();
    let (answer, thinking) = (ContentType::AssistantResponse, ContentType::AssistantThinking);
    assert_eq!(found, [(0, answer), (0, thinking), (1, ContentType::ToolOutput)]);
}

/// A changed message is found by its new text, and not by its old one.
pub async fn a_changed_message_is_found_by_its_new_text(store: Store) {
    for round in 0..5 {
        let lines = vec![lines::user(&format!("round{round}")), lines::tool(&format!("output{round}"))];
        store.sync(&target("s"), lines).await;
        if round % 2 == 0 {
            store.storage.update_index().await.unwrap();
        }
        for other in 0..5 {
            let expected: &[u32] = if other == round { &[0, 1] } else { &[] };
            assert_eq!(store.find(&target("s"), &format!("round{other} output{other}")).await, expected);
        }
    }
    store.sync(&target("s"), vec![lines::user("round4")]).await;
    assert!(store.find(&target("s"), "output4").await.is_empty());
}

/// Updating the index does not change any result.
pub async fn updating_the_index_changes_no_results(store: Store) {
    let mut random = Random(11);
    for session in ["a", "b", "c"] {
        store
            .sync_text(&target(session), (0..60).map(|_| lines::user(&random.words(12, 80))).collect())
            .await;
    }
    let queries =
        ["word1 word2", "word3", "word79 word40 word20"].map(|query| words(query).with_limit(1_000));
    let mut before = Vec::new();
    for query in &queries {
        before.push(store.search(&target("a"), query).await.results);
    }
    store.storage.update_index().await.unwrap();
    for (query, before) in queries.iter().zip(&before) {
        let after = store.search(&target("a"), query).await.results;
        assert_eq!(addresses(&after), addresses(before));
        let top = |results: &[_]| addresses(&results[..10]);
        let shared = top(&after).intersection(&top(before)).count();
        assert!(shared >= 9, "{shared} of 10 for {}", query.query);
    }
}

fn addresses(results: &[SearchResult]) -> BTreeSet<(String, u32)> {
    results.iter().map(|result| (result.session_id.to_string(), result.sequence)).collect()
}

/// A committed message is found at once, even through a handle that searched before.
pub async fn a_committed_message_is_found_at_once(store: Store) {
    let again = store.again().await;
    for n in 0..10 {
        let target = target_of("ana", "shop", &format!("s{}", n % 3));
        let start = n / 3;
        let writer = if n % 2 == 0 { &store } else { &again };
        writer.sync_from(&target, start, vec![lines::user(&format!("needle fresh{n}"))]).await.unwrap();
        for handle in [&store, &again] {
            assert_eq!(handle.find(&target, &format!("fresh{n}")).await, [start]);
            assert_eq!(handle.find(&target, "needle").await.len() as u32, n + 1);
        }
        if n % 4 == 3 {
            store.storage.update_index().await.unwrap();
        }
    }
}

/// A text is a candidate only if it contains a term of each required group. The groups do not change its score.
pub async fn required_terms_narrow_the_candidates(store: Store) {
    let texts = ["alpha", "alpha beta", "beta gamma", "alpha gamma", "alpha beta gamma", "delta"];
    store.sync_text(&target("s"), texts[..3].iter().map(|text| lines::user(text)).collect()).await;
    store.storage.update_index().await.unwrap();
    let rest = texts[3..].iter().map(|text| lines::user(text)).collect();
    store.sync_from(&target("s"), 3, rest).await.unwrap();
    let candidates = async |required: &[&[usize]]| -> Vec<(u32, f32)> {
        let required = required.iter().map(|group| group.to_vec()).collect();
        let query = TextQuery { required, ..query(query_terms("alpha beta gamma"), 10) };
        let found = store.backend.text_candidates(&query).await.unwrap().items;
        let mut found: Vec<_> = found.iter().map(|c| (c.message_ref.sequence, c.score)).collect();
        found.sort_by_key(|(sequence, _)| *sequence);
        found
    };
    let cases: [(&[&[usize]], &[u32]); 5] = [
        (&[], &[0, 1, 2, 3, 4]),
        (&[&[0]], &[0, 1, 3, 4]),
        (&[&[0], &[1]], &[1, 4]),
        (&[&[0], &[1, 2]], &[1, 3, 4]),
        (&[&[0], &[1], &[2]], &[4]),
    ];
    for _ in 0..2 {
        let all = candidates(&[]).await;
        for (required, expected) in cases {
            let found = candidates(required).await;
            let places: Vec<u32> = found.iter().map(|(sequence, _)| *sequence).collect();
            assert_eq!(places, expected, "{required:?}");
            for (sequence, score) in found {
                let (_, before) = all[sequence as usize];
                assert!((score - before).abs() < 1e-5 * before, "{required:?} {sequence}: {score} {before}");
            }
        }
        store.storage.update_index().await.unwrap();
    }
}

/// A query for texts with a phrase of words.
fn phrase_query(typed: &str) -> TextQuery {
    let (mut terms, mut phrase) = (Vec::new(), TermPhrase::default());
    let mut analyzer = Analyzer::new();
    let mut tokens = analyzer.query_tokens(typed);
    while tokens.advance() {
        phrase.push(terms.len(), tokens.place());
        terms.push(tokens.term().to_owned());
    }
    let required = (0..terms.len()).map(|term| vec![term]).collect();
    TextQuery { required, phrases: vec![phrase], ..query(terms, 10) }
}

/// A text is a candidate only if it has the terms of a phrase one after the other, each in its form. Texts of a message are
/// compared one by one.
pub async fn phrases_narrow_the_candidates(store: Store) {
    let lines = vec![
        lines::user("That is wrong, she said"),
        lines::user("wrong is that"),
        lines::tool("is that wrong?\n\"that\": is — WRONG"),
        lines::user("The tests passed"),
        lines::user("the test passes"),
    ];
    store.sync_text(&target("s"), lines).await;
    store.storage.update_index().await.unwrap();
    let newer = vec![
        lines::thinking("that is", "wrong"),
        lines::user("Das Café öffnet"),
        lines::user("全文検索エンジン that is x wrong"),
        lines::user("tests passed, that's wrong"),
    ];
    store.sync_from(&target("s"), 5, newer).await.unwrap();
    let cases: [(&str, &[u32]); 8] = [
        ("that is wrong", &[0, 2]),
        ("is wrong", &[0, 2]),
        ("tests passed", &[3, 8]),
        ("test passes", &[4]),
        ("the tests", &[3]),
        ("cafe offnet", &[6]),
        ("文検索エ", &[7]),
        ("she is", &[]),
    ];
    for _ in 0..2 {
        for (typed, expected) in cases {
            let found = store.backend.text_candidates(&phrase_query(typed)).await.unwrap().items;
            let mut found: Vec<u32> = found.iter().map(|found| found.message_ref.sequence).collect();
            found.sort_unstable();
            assert_eq!(found, expected, "{typed}");
        }
        store.storage.update_index().await.unwrap();
    }
}

/// Finds what was typed, and returns the sequences, sorted, with the notices.
async fn typed(store: &Store, query: &str, mode: SearchMode) -> (Vec<u32>, Vec<String>) {
    let options = SearchOptions::parsed(&TypedQuery::parse(query)).with_mode(mode).with_limit(1_000);
    let found = store.search(&target("s"), &options).await;
    let mut sequences = sequences(&found.results);
    sequences.sort_unstable();
    (sequences, found.notices)
}

/// Case, accents and what is between the words make no difference, but forms of words do. Stop words count. So do phrases
/// that are excluded, also in a search by meaning.
pub async fn phrases_are_found_as_they_are_written(store: Store) {
    let texts = [
        "To be, or not to BE: that is wrong",
        "that was wrong; the café-bar opens",
        "that is not wrong; the Cafe\u{301} bars open",
        "東京 都の検索エンジン",
        "run the tests",
        "running the test",
    ];
    store.sync(&target("s"), texts.map(lines::user).to_vec()).await;
    store.embed().await;
    let cases: [(&str, &[u32]); 9] = [
        ("\"to be or not to be\"", &[0]),
        ("\"that is\"", &[0, 2]),
        ("\"cafe bar\"", &[1]),
        ("\"CAFÉ bars\"", &[2]),
        ("\"都の検索\"", &[3]),
        ("\"run the tests\"", &[4]),
        ("\"running the tests\"", &[]),
        ("wrong -\"that is\"", &[1]),
        ("\"that is\" \"not wrong\"", &[2]),
    ];
    for _ in 0..2 {
        for (query, expected) in cases {
            assert_eq!(typed(&store, query, SearchMode::FullText).await.0, expected, "{query}");
        }
        for mode in [SearchMode::Hybrid, SearchMode::Semantic] {
            assert_eq!(typed(&store, "\"run the tests\"", mode).await.0, [4], "{mode}");
        }
        store.storage.update_index().await.unwrap();
    }
}

/// Whether few or many messages with the words of a phrase have it, all of those are found.
pub async fn a_phrase_is_found_among_many_messages_with_its_words(store: Store) {
    const MANY: u32 = 300;
    let mut lines: Vec<Line> = (0..MANY).map(|n| lines::user(&format!("n{n} is wrong, is that"))).collect();
    lines.push(lines::user("that is wrong, among much else that is said of it"));
    store.sync_text(&target("s"), lines).await;
    for _ in 0..2 {
        let (found, notices) = typed(&store, "\"that is wrong\"", SearchMode::FullText).await;
        assert_eq!((found, notices.len()), (vec![MANY], 0), "{notices:?}");
        let (found, notices) = typed(&store, "\"wrong is that\"", SearchMode::FullText).await;
        assert_eq!((found.len(), notices.len()), (MANY as usize, 0), "{notices:?}");
        store.storage.update_index().await.unwrap();
    }
}

/// Terms are found by each kind of pattern, whichever messages are indexed: those in the most texts first, up to the
/// limit.
pub async fn terms_are_found_by_patterns(store: Store) {
    let indexed = ["conn1 connect", "reconnect connect"];
    store.sync_text(&target("s"), indexed.map(lines::user).to_vec()).await;
    store.storage.update_index().await.unwrap();
    let newer = ["conn2 connect 全文検索", "conn2 lost"];
    store.sync_from(&target("s"), 2, newer.map(lines::user).to_vec()).await.unwrap();
    let cases: [(TermPattern, &[&str]); 6] = [
        (TermPattern::Whole("connect".to_owned()), &["connect"]),
        (TermPattern::Whole("conn".to_owned()), &[]),
        (TermPattern::Prefix("conn".to_owned()), &["connect", "conn2", "conn1"]),
        (TermPattern::Suffix("connect".to_owned()), &["connect", "reconnect"]),
        (TermPattern::Infix("con".to_owned()), &["connect", "conn2", "conn1", "reconnect"]),
        (TermPattern::Prefix("検".to_owned()), &["検索"]),
    ];
    let patterns: Vec<TermPattern> = cases.iter().map(|(pattern, _)| pattern.clone()).collect();
    for _ in 0..2 {
        for limit in [10, 2] {
            let found = store.backend.terms(&patterns, limit).await.unwrap();
            assert_eq!(found.len(), cases.len());
            for ((pattern, expected), found) in cases.iter().zip(found) {
                assert_eq!(found, expected[..expected.len().min(limit)], "{pattern:?}");
            }
        }
        store.storage.update_index().await.unwrap();
    }
}

/// Terms with a typo are found. Only Cosmos DB can't find them, and reports this.
pub async fn terms_with_a_typo_are_found_or_refused(store: Store) {
    store.sync_text(&target("s"), vec![lines::user("connect")]).await;
    store.storage.update_index().await.unwrap();
    store.sync_from(&target("s"), 1, vec![lines::user("convect heat")]).await.unwrap();
    let typed = "conect".to_owned();
    let meant = ["connect", "connects", "heat"].map(str::to_owned).into();
    let patterns =
        [TermPattern::Whole(typed.clone()), TermPattern::OneTypo(typed), TermPattern::AnyOf(meant)];
    for _ in 0..2 {
        match store.backend.terms(&patterns, 10).await {
            Ok(found) => assert_eq!(found, [vec![], vec!["connect", "convect"], vec!["connect", "heat"]]),
            Err(error) => {
                assert_eq!((store.backend.info().name, error.kind()), ("cosmos", ErrorKind::Unsupported));
            }
        }
        store.storage.update_index().await.unwrap();
    }
}

/// Once the index is updated, the terms of a deleted session are gone.
pub async fn terms_of_deleted_sessions_are_gone(store: Store) {
    store.sync_text(&target("kept"), vec![lines::user("zwang")]).await;
    store.sync_text(&target("gone"), vec![lines::user("zugzwang")]).await;
    store.storage.update_index().await.unwrap();
    store.sync_from(&target("gone"), 1, vec![lines::user("zwischenzug")]).await.unwrap();
    let prefix = [TermPattern::Prefix("z".to_owned())];
    let terms = async || store.backend.terms(&prefix, 10).await.unwrap().remove(0);
    assert_eq!(terms().await, ["zugzwang", "zwang", "zwischenzug"]);
    assert!(store.backend.delete_session(&target("gone").key).await.unwrap());
    store.storage.update_index().await.unwrap();
    assert_eq!(terms().await, ["zwang"]);
}
