//! Finding what is near to a vector that the caller has.

use amplifier_session_core::{
    ErrorKind, Scope,
    embedding::EmbeddingLimits,
    model::{ContentType, ContentTypes, Role},
    search::{SearchFilter, SearchMode, SearchResults, SearchSource, VectorSearchOptions},
};

use super::{
    Subject, samples,
    store::{Store, kind, scope, sequences, target, target_of},
};
use crate::{FakeEmbedding, lines};

fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

fn near(store: &Store, text: &str) -> VectorSearchOptions {
    VectorSearchOptions::new(store.embedding.vector(text))
}

/// Searches in what ana has, without a provider.
async fn search(store: &Store, options: &VectorSearchOptions) -> SearchResults {
    store.storage_with(None).vector_search(&scope(&target("s")), options).await.unwrap()
}

fn only(content_type: ContentType) -> ContentTypes {
    [content_type].into_iter().collect()
}

/// The order is that of a comparison with everything, before, amid and after indexing.
pub async fn the_order_is_that_of_brute_force(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let mut random = samples::Random(17);
    let texts: Vec<String> = (0..150).map(|_| random.words(8, 200)).collect();
    let queries: Vec<String> = (0..6).map(|_| random.words(4, 200)).collect();
    for (n, part) in texts.chunks(50).enumerate() {
        let lines = part.iter().map(|text| lines::user(text)).collect();
        store.sync_from(&target("s"), n as u32 * 50, lines).await.unwrap();
        let vectors: Vec<Vec<f32>> =
            texts[..(n + 1) * 50].iter().map(|text| store.embedding.vector(text)).collect();
        for query in &queries {
            let asked = store.embedding.vector(query);
            let mut exact: Vec<f32> = vectors.iter().map(|vector| dot(&asked, vector)).collect();
            exact.sort_by(|a, b| b.total_cmp(a));
            for limit in [1, 10, 40] {
                let results = search(&store, &near(&store, query).with_limit(limit)).await.results;
                assert_eq!(results.len(), limit);
                for (result, exact) in results.iter().zip(&exact) {
                    let similarity = result.similarity.unwrap();
                    assert!((similarity - exact).abs() < 1e-4, "{similarity} {exact}");
                    let own = dot(&asked, &vectors[result.sequence as usize]);
                    assert!((similarity - own).abs() < 1e-4, "{similarity} {own}");
                }
            }
        }
        if n == 0 {
            store.storage.update_index().await.unwrap();
        }
    }
}

/// A result says what a semantic one says; its score is the similarity, and no provider is asked for anything.
pub async fn a_result_carries_its_similarity(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    store.sync(&target("s"), ["a green apple", "a red pear", "one table"].map(lines::user).to_vec()).await;
    store.embedding.reset_counts();
    let answer = search(&store, &near(&store, "a green apple").with_message(true)).await;
    assert_eq!((answer.mode, store.embedding.calls()), (SearchMode::Semantic, 0));
    assert_eq!(answer.results.len(), 3);
    let best = &answer.results[0];
    assert_eq!((best.sequence, best.source, best.text_score), (0, SearchSource::Semantic, None));
    assert_eq!((best.snippet.as_str(), best.span, best.user_id.as_str()), ("a green apple", (0, 13), "ana"));
    assert_eq!(best.message.as_ref().unwrap()["content"], "a green apple");
    for result in &answer.results {
        assert!((result.score - result.similarity.unwrap().max(0.0)).abs() < 1e-6);
    }
    assert!(answer.results.windows(2).all(|pair| pair[0].score >= pair[1].score));
    assert!((best.score - 1.0).abs() < 1e-4);
    assert!(search(&store, &near(&store, "a green apple")).await.results[0].message.is_none());
}

/// A vector of any length is as good as one of unit length.
pub async fn the_length_of_the_vector_makes_no_difference(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let texts = ["a green apple", "a red pear", "the red table"];
    store.sync(&target("s"), texts.map(lines::user).to_vec()).await;
    let unit = search(&store, &near(&store, "red pear")).await.results;
    for factor in [1e-18, 0.5, 7.0, 1e30] {
        let vector = store.embedding.vector("red pear").iter().map(|x| x * factor).collect();
        let results = search(&store, &VectorSearchOptions::new(vector)).await.results;
        assert_eq!(sequences(&results), sequences(&unit), "{factor}");
        for (result, unit) in results.iter().zip(&unit) {
            assert!((result.score - unit.score).abs() < 1e-4, "{factor}");
        }
    }
}

/// Content types, filter and scope narrow what is compared, before the ranking.
pub async fn what_is_compared_is_narrowed(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let crowd: Vec<_> = (0..150).map(|_| lines::user("the asked words")).collect();
    store.sync(&target("crowd"), crowd.clone()).await;
    store.sync(&target_of("ben", "shop", "rare"), crowd).await;
    let rare = vec![lines::thinking("far away", "something else"), lines::tool("an output")];
    store.sync(&target_of("ana", "blog", "rare"), rare).await;
    for _ in 0..2 {
        let of = async |options: VectorSearchOptions| {
            let mut found = sequences(&search(&store, &options).await.results);
            found.sort_unstable();
            found
        };
        let options = || near(&store, "the asked words");
        let filter = SearchFilter::default;
        assert_eq!(of(options().with_content_types(only(ContentType::AssistantThinking))).await, [0]);
        assert_eq!(of(options().with_content_types(only(ContentType::ToolOutput))).await, [1]);
        assert!(of(options().with_content_types(only(ContentType::System))).await.is_empty());
        let blog = filter().with_project(target_of("ana", "blog", "x").project_slug);
        assert_eq!(of(options().with_filter(blog)).await, [0, 1]);
        let rare = filter().with_session(target("rare").key.session_id);
        assert_eq!(of(options().with_filter(rare)).await, [0, 1]);
        assert_eq!(of(options().with_filter(filter().with_role(Role::Tool))).await, [1]);
        let everyone =
            store.storage.vector_search(&Scope::Everyone, &options().with_limit(1_000)).await.unwrap();
        assert_eq!(everyone.results.len(), 302);
        store.storage.update_index().await.unwrap();
    }
}

/// Results below the least similarity are left out.
pub async fn the_least_similarity_holds(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let texts = ["alpha beta", "alpha", "gamma delta", "alpha beta gamma"];
    store.sync(&target("s"), texts.map(lines::user).to_vec()).await;
    let of = async |least: f32| {
        search(&store, &near(&store, "alpha beta").with_min_similarity(least)).await.results
    };
    assert_eq!(of(-1.0).await.len(), 4);
    let near = of(0.5).await;
    assert!(!near.is_empty() && near.len() < 4);
    assert!(near.iter().all(|result| result.similarity.unwrap() >= 0.5));
    assert_eq!(sequences(&of(0.999).await), [0]);
}

/// Copies of the nearest message stand beside it: nothing is moved for the sake of variety.
pub async fn copies_stand_side_by_side(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let texts = ["alpha beta", "alpha gamma", "alpha beta", "delta", "alpha beta", "alpha beta"];
    store.sync(&target("s"), texts.map(lines::user).to_vec()).await;
    let found = search(&store, &near(&store, "alpha beta")).await.results;
    let mut first = sequences(&found[..4]);
    first.sort_unstable();
    assert_eq!(first, [0, 2, 4, 5]);
    assert!(found[..4].iter().all(|result| result.score > 0.999));
    assert_eq!(found[4].sequence, 1);
}

/// A message is one result, by its nearest chunk, and the chunks of a few long ones do not hide the others.
pub async fn the_nearest_chunk_stands_for_its_message(subject: &dyn Subject) {
    let limits = EmbeddingLimits {
        chunk_threshold_tokens: 40,
        chunk_target_tokens: 20,
        batch_texts: 16,
        batch_tokens: 10_000,
        concurrent_calls: 1,
    };
    let store = Store::open_with(subject, FakeEmbedding::new().with_limits(limits)).await;
    let long = "the asked words ".repeat(1_000);
    let mut lines = vec![lines::user(&long), lines::thinking(&long, "something else")];
    lines.extend((0..4).map(|n| lines::user(&format!("far away {n}"))));
    store.sync(&target("s"), lines).await;
    assert!(store.vectors(&target("s")).await.len() > 250);
    for _ in 0..2 {
        let results = search(&store, &near(&store, "the asked words").with_limit(5)).await.results;
        let mut found = sequences(&results);
        assert_eq!(found.len(), 5);
        found.sort_unstable();
        found.dedup();
        assert_eq!(found.len(), 5);
        let mut first = sequences(&results[..2]);
        first.sort_unstable();
        assert_eq!(first, [0, 1]);
        assert!(results[0].snippet.contains("asked words"));
        store.storage.update_index().await.unwrap();
    }
}

/// A vector that can't be compared, and options out of range, are refused and named.
pub async fn options_out_of_range_are_errors(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    store.sync(&target("s"), vec![lines::user("a text")]).await;
    let good = store.embedding.vector("a text");
    let of = |vector: &[f32]| VectorSearchOptions::new(vector.to_vec());
    let with = |x: f32| of(&[&[x], &good[1..]].concat());
    let refused = [
        (of(&good[1..]), "vector"),
        (of(&[good.as_slice(), &[0.5]].concat()), "vector"),
        (of(&[]), "vector"),
        (of(&[0.0; 64]), "vector"),
        (with(f32::NAN), "vector"),
        (with(f32::NEG_INFINITY), "vector"),
        (of(&good).with_limit(0), "limit"),
        (of(&good).with_limit(1_001), "limit"),
        (of(&good).with_min_similarity(1.5), "min_similarity"),
        (of(&good).with_min_similarity(f32::NAN), "min_similarity"),
        (of(&good).with_content_types(ContentTypes::NONE), "content_types"),
    ];
    for (options, field) in refused {
        let error = store.storage.vector_search(&scope(&target("s")), &options).await.unwrap_err();
        assert_eq!((error.kind(), error.context("field")), (ErrorKind::Validation, Some(field)));
    }
    assert_eq!(search(&store, &of(&good)).await.results.len(), 1);
}

/// In a store without vectors nothing is near to anything.
pub async fn nothing_is_near_where_there_is_nothing(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let options = near(&store, "basket");
    assert!(search(&store, &options).await.results.is_empty());
    let sync = amplifier_session_core::storage::SyncLines::whole(vec![lines::user("a basket").raw()]);
    store.storage_with(None).sync_transcript_lines(&target("s"), sync).await.unwrap();
    assert!(search(&store, &options).await.results.is_empty());
    let zero = VectorSearchOptions::new(vec![0.0; 3]);
    assert_eq!(kind(store.storage.vector_search(&Scope::Everyone, &zero).await), ErrorKind::Validation);
}
