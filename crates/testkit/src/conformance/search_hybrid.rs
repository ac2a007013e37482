//! Hybrid search: both ways fused, and diversity.

use amplifier_session_core::{
    backend::prelude::*,
    search::{SearchMode, SearchOptions, SearchResult, SearchSource},
};

use super::{
    Subject,
    store::{Store, says_words_alone, scope, sequences, target},
};
use crate::lines;

/// What both ways find stands above what one of them finds, and each result says how it was found.
pub async fn what_both_ways_find_stands_first(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let mut texts = vec!["the connection pool was tuned", "apples and pears"];
    texts.extend(["other words entirely", "nothing of the kind", "unrelated"]);
    store.sync(&target("s"), texts.into_iter().map(lines::user).collect()).await;
    let answer = store.search(&target("s"), &SearchOptions::new("connection pool")).await;
    assert_eq!((answer.mode, says_words_alone(&answer)), (SearchMode::Hybrid, false));
    let best = &answer.results[0];
    assert_eq!((best.sequence, best.source), (0, SearchSource::Both));
    assert!(best.text_score.unwrap() > 0.0 && best.similarity.unwrap() > 0.3);
    assert!(answer.results[1..].iter().all(|result| result.source == SearchSource::Semantic));
}

/// A message that owes its vectors is found by its words.
pub async fn messages_without_vectors_are_found_by_words(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    store.sync(&target("s"), vec![lines::user("a basket of apples")]).await;
    store.embedding.fail_always(true);
    store.sync_from(&target("s"), 1, vec![lines::user("a basket of pears")]).await.unwrap();
    store.embedding.fail_always(false);
    let results = store.search(&target("s"), &SearchOptions::new("basket pears")).await.results;
    let result = results.iter().find(|result| result.sequence == 1).unwrap();
    assert_eq!((result.source, result.similarity), (SearchSource::FullText, None));
    assert_eq!(results.len(), 2);
}

/// Without a provider, hybrid search runs as full text and says so.
pub async fn without_a_provider_it_is_full_text_and_says_so(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    store.sync(&target("s"), vec![lines::user("a basket"), lines::user("a cup")]).await;
    let storage = store.storage_with(None);
    let answer =
        storage.search_transcripts(&scope(&target("s")), &SearchOptions::new("basket")).await.unwrap();
    assert_eq!((answer.mode, sequences(&answer.results)), (SearchMode::FullText, vec![0]));
    assert!(says_words_alone(&answer));
}

/// When the query can't be embedded, hybrid search runs as full text and says so.
pub async fn a_failing_provider_leaves_full_text(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    store.sync(&target("s"), vec![lines::user("a basket"), lines::user("a cup")]).await;
    store.embedding.fail_always(true);
    let answer = store.search(&target("s"), &SearchOptions::new("basket")).await;
    assert_eq!((answer.mode, sequences(&answer.results)), (SearchMode::FullText, vec![0]));
    assert!(says_words_alone(&answer));
    store.embedding.fail_always(false);
    let answer = store.search(&target("s"), &SearchOptions::new("basket")).await;
    assert_eq!((answer.mode, says_words_alone(&answer)), (SearchMode::Hybrid, false));
}

/// Three copies of the best match, one further match that says something else.
async fn copies(store: &Store) {
    let copy = "tuning the connection pool of the database";
    let other = "why is the connection slow after lunch every day in our office";
    store.sync(&target("s"), [copy, copy, copy, other].map(lines::user).to_vec()).await;
}

async fn ranked(store: &Store, mode: SearchMode, lambda: f32, limit: usize) -> Vec<SearchResult> {
    let options = SearchOptions::new("connection pool database")
        .with_mode(mode)
        .with_mmr_lambda(lambda)
        .with_limit(limit);
    store.search(&target("s"), &options).await.results
}

/// Diversity moves copies of what is chosen down, also when all candidates are returned.
pub async fn copies_move_down(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    copies(&store).await;
    for mode in [SearchMode::Semantic, SearchMode::Hybrid] {
        assert_eq!(sequences(&ranked(&store, mode, 1.0, 10).await), [0, 1, 2, 3], "{mode}");
        for limit in [2, 4, 10] {
            let order = sequences(&ranked(&store, mode, 0.3, limit).await);
            assert_eq!(order[..2], [0, 3], "{mode}, limit {limit}");
            assert_eq!(order.len(), limit.min(4));
        }
    }
}

/// A candidate is compared with everything that is chosen, not with the last one alone: a copy of the first stays
/// behind, though the second is unlike it.
pub async fn the_greatest_similarity_to_what_is_chosen_counts(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let copy = "alpha beta gamma delta";
    let texts = [copy, copy, "alpha epsilon zeta eta", "alpha theta iota kappa lambda my ny omikron"];
    store.sync(&target("s"), texts.map(lines::user).to_vec()).await;
    for limit in [4, 10] {
        let options = SearchOptions::new("alpha").with_mode(SearchMode::Semantic).with_mmr_lambda(0.5);
        let order = sequences(&store.search(&target("s"), &options.with_limit(limit)).await.results);
        assert_eq!(order, [0, 2, 3, 1], "limit {limit}");
    }
}

/// Scores descend and lie within 0 and 1, whatever the weight of diversity.
pub async fn scores_descend_with_diversity(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    copies(&store).await;
    let more = (0..20).map(|n| lines::user(&format!("pool number{n} of the database {}", n % 4))).collect();
    store.sync_from(&target("s"), 4, more).await.unwrap();
    for mode in [SearchMode::FullText, SearchMode::Semantic, SearchMode::Hybrid] {
        for lambda in [0.0, 0.3, 0.7, 1.0] {
            let results = ranked(&store, mode, lambda, 20).await;
            assert_eq!(results.len(), 20, "{mode} {lambda}");
            assert!(results.windows(2).all(|pair| pair[0].score >= pair[1].score), "{mode} {lambda}");
            assert!(results.iter().all(|result| (0.0..=1.0).contains(&result.score)), "{mode} {lambda}");
            let mut places = sequences(&results);
            places.sort_unstable();
            places.dedup();
            assert_eq!(places.len(), 20, "{mode} {lambda}");
        }
    }
}

/// A semantic or hybrid search of a store without any vectors answers with what full text finds.
pub async fn a_store_without_vectors_is_searched_by_words(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    store.embedding.fail_always(true);
    store.sync(&target("s"), vec![lines::user("a basket"), lines::user("a cup")]).await;
    store.embedding.fail_always(false);
    assert_eq!(store.backend.session_rows(&target("s").key).await.unwrap().vectors, 0);
    let answer = store.search(&target("s"), &SearchOptions::new("basket")).await;
    assert_eq!(sequences(&answer.results), [0]);
    assert_eq!(answer.results[0].source, SearchSource::FullText);
}
