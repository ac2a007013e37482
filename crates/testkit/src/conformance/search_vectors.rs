//! Semantic search.

use amplifier_session_core::{
    ErrorKind,
    backend::{VectorQuery, prelude::*},
    embedding::EmbeddingLimits,
    model::{ContentType, ContentTypes, ProjectSlug},
    search::{SearchFilter, SearchMode, SearchSource},
};

use super::{
    Subject, samples,
    store::{Store, kind, meaning, scope, sequences, target, target_of},
};
use crate::{FakeEmbedding, lines};

fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

fn nearest(store: &Store, query: &str, limit: usize) -> VectorQuery {
    VectorQuery {
        scope: scope(&target("s")),
        filter: SearchFilter::default(),
        content_types: ContentTypes::embedded(),
        vector: store.embedding.vector(query),
        generation: 0,
        limit,
    }
}

/// What is near in meaning comes first, with its similarity, and says that it was found so.
pub async fn the_nearest_message_comes_first(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let texts = ["the weather in spring", "tuning the connection pool", "a pool", "apples and pears"];
    store.sync(&target("s"), texts.map(lines::user).to_vec()).await;
    let answer = store.search(&target("s"), &meaning("connection pool tuning")).await;
    assert_eq!(answer.mode, SearchMode::Semantic);
    let best = &answer.results[0];
    assert_eq!((best.sequence, best.source, best.text_score), (1, SearchSource::Semantic, None));
    let expected = dot(&store.embedding.vector("connection pool tuning"), &store.embedding.vector(texts[1]));
    assert!((best.similarity.unwrap() - expected).abs() < 1e-4);
    assert_eq!(answer.results[1].sequence, 2);
}

/// Semantic search agrees with a comparison of everything: recall of the top 10 of at least 0.99.
pub async fn it_agrees_with_brute_force(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let mut random = samples::Random(3);
    let texts: Vec<String> = (0..600).map(|_| random.words(8, 400)).collect();
    for (n, texts) in texts.chunks(200).enumerate() {
        store.sync(&target(&format!("s{n}")), texts.iter().map(|text| lines::user(text)).collect()).await;
        if n == 1 {
            store.storage.update_index().await.unwrap();
        }
    }
    let vectors: Vec<Vec<f32>> = texts.iter().map(|text| store.embedding.vector(text)).collect();
    let (mut found, mut asked) = (0, 0);
    for _ in 0..25 {
        let query = random.words(4, 400);
        let vector = store.embedding.vector(&query);
        let mut exact: Vec<(f32, usize)> = vectors.iter().map(|v| dot(&vector, v)).zip(0..).collect();
        exact.sort_by(|a, b| b.0.total_cmp(&a.0));
        let results = store.search(&target("s0"), &meaning(&query)).await.results;
        let place = |n: usize| (format!("s{}", n / 200), (n % 200) as u32);
        let expected: Vec<_> = exact[..10].iter().map(|(_, n)| place(*n)).collect();
        found +=
            results.iter().filter(|r| expected.contains(&(r.session_id.to_string(), r.sequence))).count();
        asked += 10;
    }
    assert!(found as f64 >= 0.99 * f64::from(asked), "{found} of {asked}");
}

/// Candidates are nearest first, with their exact similarity, span and vector, up to the limit.
pub async fn candidates_are_exact(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let mut random = samples::Random(5);
    let texts: Vec<String> = (0..80).map(|_| random.words(6, 100)).collect();
    store.sync(&target("s"), texts.iter().map(|text| lines::user(text)).collect()).await;
    store.storage.update_index().await.unwrap();
    for limit in [1, 10, 1_000] {
        let query = nearest(&store, "word1 word2 word3", limit);
        let candidates = store.backend.vector_candidates(&query).await.unwrap().items;
        assert_eq!(candidates.len(), limit.min(80));
        assert!(candidates.windows(2).all(|pair| pair[0].similarity >= pair[1].similarity));
        for candidate in &candidates {
            let text = &texts[candidate.place.sequence as usize];
            assert_eq!(candidate.vector, store.embedding.vector(text));
            assert!((candidate.similarity - dot(&query.vector, &candidate.vector)).abs() < 1e-4);
            assert_eq!((candidate.span_start, candidate.span_end), (0, text.chars().count() as u32));
            assert_eq!(candidate.content_type, ContentType::UserQuery);
        }
    }
}

/// A filter narrows before the ranking: what it leaves is found, however far from the query and however
/// little.
pub async fn filters_narrow_before_the_ranking(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let near = (0..150).map(|_| lines::user("the asked words")).collect();
    store.sync(&target_of("ana", "crowd", "crowd"), near).await;
    store
        .sync(&target_of("ben", "crowd", "crowd"), (0..150).map(|_| lines::user("the asked words")).collect())
        .await;
    let far = vec![lines::user("something else"), lines::user("far away"), lines::assistant("unlike it")];
    store.sync(&target_of("ana", "rare", "rare"), far).await;
    store.storage.update_index().await.unwrap();
    let filters = [
        SearchFilter::default().with_project(ProjectSlug::new("rare").unwrap()),
        SearchFilter::default().with_session(target("rare").key.session_id),
    ];
    for filter in filters {
        let options = meaning("the asked words").with_filter(filter);
        let mut found = sequences(&store.search(&target("rare"), &options).await.results);
        found.sort_unstable();
        assert_eq!(found, [0, 1, 2]);
    }
}

/// A long message is one result: its nearest chunk, whose span holds the words.
pub async fn the_nearest_chunk_stands_for_its_message(subject: &dyn Subject) {
    let limits = EmbeddingLimits {
        chunk_threshold_tokens: 40,
        chunk_target_tokens: 20,
        batch_texts: 16,
        batch_tokens: 10_000,
        concurrent_calls: 1,
    };
    let store = Store::open_with(subject, FakeEmbedding::new().with_limits(limits)).await;
    let filler = "Viele Wörter über dies und das. ".repeat(30);
    let text = format!("{filler}Der goldene Anker liegt im Hafen. {filler}");
    store.sync(&target("s"), vec![lines::user("something short"), lines::user(&text)]).await;
    assert!(store.backend.session_rows(&target("s").key).await.unwrap().vectors > 20);
    let results = store.search(&target("s"), &meaning("goldene Anker Hafen")).await.results;
    assert_eq!(results.len(), 2);
    let (start, end) = results[0].span;
    assert_eq!(results[0].sequence, 1);
    let chunk: String = text.chars().skip(start as usize).take((end - start) as usize).collect();
    assert!(chunk.contains("goldene Anker") && chunk.chars().count() < 200, "{chunk}");
    assert!(results[0].snippet.contains("goldene Anker"), "{}", results[0].snippet);
}

/// Hits below the least similarity that was asked for are left out.
pub async fn the_least_similarity_holds(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    store
        .sync(
            &target("s"),
            ["alpha beta", "alpha", "gamma delta", "alpha beta gamma"].map(lines::user).to_vec(),
        )
        .await;
    let all = store.search(&target("s"), &meaning("alpha beta").with_min_similarity(-1.0)).await.results;
    assert_eq!(all.len(), 4);
    let near = store.search(&target("s"), &meaning("alpha beta").with_min_similarity(0.5)).await.results;
    assert!(!near.is_empty() && near.len() < 4);
    assert!(near.iter().all(|result| result.similarity.unwrap() >= 0.5));
    let exact = store.search(&target("s"), &meaning("alpha beta").with_min_similarity(0.999)).await.results;
    assert_eq!(sequences(&exact), [0]);
}

/// Without a provider, semantic search is not supported; it says so and does not answer nothing.
pub async fn without_a_provider_it_is_unsupported(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    store.sync(&target("s"), vec![lines::user("a basket")]).await;
    let storage = store.storage_with(None);
    let result = storage.search_transcripts(&scope(&target("s")), &meaning("basket")).await;
    assert_eq!(kind(result), ErrorKind::Unsupported);
}

/// When the query can't be embedded, semantic search is that error.
pub async fn a_failing_provider_is_an_error(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    store.sync(&target("s"), vec![lines::user("a basket")]).await;
    store.embedding.fail_next(1);
    let error = store.storage.search_transcripts(&scope(&target("s")), &meaning("basket")).await.unwrap_err();
    assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Embedding, true));
    assert_eq!(store.search(&target("s"), &meaning("basket")).await.results.len(), 1);
}

/// A store without vectors, and a query of which the model knows no word, have no results.
pub async fn nothing_is_near_where_there_is_nothing(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    assert!(store.search(&target("s"), &meaning("basket")).await.results.is_empty());
    store.sync(&target("s"), vec![lines::user("a basket")]).await;
    for query in ["?!", "", "  \n"] {
        assert!(store.search(&target("s"), &meaning(query)).await.results.is_empty(), "{query:?}");
    }
}

/// What was changed or removed is near to nothing any more.
pub async fn changed_and_removed_messages_are_not_near(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    store.sync(&target("s"), ["alpha", "beta", "gamma"].map(lines::user).to_vec()).await;
    store.storage.update_index().await.unwrap();
    store.sync(&target("s"), ["delta", "beta"].map(lines::user).to_vec()).await;
    let near = async |query: &str| {
        let options = meaning(query).with_min_similarity(0.9);
        sequences(&store.search(&target("s"), &options).await.results)
    };
    assert_eq!((near("alpha").await, near("gamma").await), (vec![], vec![]));
    assert_eq!((near("delta").await, near("beta").await), (vec![0], vec![1]));
    store.storage.update_index().await.unwrap();
    assert_eq!((near("alpha").await, near("gamma").await), (vec![], vec![]));
    assert_eq!((near("delta").await, near("beta").await), (vec![0], vec![1]));
}

/// Vectors that were made through one handle are near at once, through any.
pub async fn vectors_of_another_handle_are_near_at_once(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let again = Store::open_again(subject).await;
    for n in 0..6 {
        let writer = if n % 2 == 0 { &store } else { &again };
        writer.sync_from(&target("s"), n, vec![lines::user(&format!("fresh{n}"))]).await.unwrap();
        for handle in [&store, &again] {
            let options = meaning(&format!("fresh{n}")).with_min_similarity(0.9);
            assert_eq!(sequences(&handle.search(&target("s"), &options).await.results), [n]);
        }
        if n == 3 {
            again.storage.update_index().await.unwrap();
        }
    }
}
