//! Searches by a vector of the caller.

use amplifier_session_testkit::prelude::*;

on_both_stores![
    a_result_carries_its_similarity,
    the_length_of_the_vector_makes_no_difference,
    filters_apply_before_vectors_are_ranked,
    the_minimum_similarity_applies,
    copies_rank_side_by_side,
    a_message_is_ranked_by_its_nearest_chunk,
    options_out_of_range_are_errors,
    a_store_without_vectors_returns_no_results,
];

fn near(store: &Store, text: &str) -> VectorSearchOptions {
    VectorSearchOptions::new(store.embedding.vector(text))
}

/// Searches the sessions of ana without a provider.
async fn search(store: &Store, options: &VectorSearchOptions) -> SearchResults {
    store.storage_with(None).search().vector_search(&ana(), options).await.unwrap()
}

/// A result has the fields of a semantic result. Its score is the similarity, and no provider is called.
async fn a_result_carries_its_similarity(store: Store) {
    let texts = ["a green apple", "a red pear", "one table"];
    store.sync(&target("s"), texts.map(lines::user).to_vec()).await;
    let semantic = store.search(&target("s"), &meaning("a green apple")).await;
    store.embedding.reset_counts();
    let answer = search(&store, &near(&store, "a green apple").with_message(true)).await;
    assert_eq!((answer.mode, store.embedding.calls()), (SearchMode::Semantic, 0));
    assert_eq!(semantic.mode, answer.mode);
    assert_eq!((answer.results.len(), sequences(&answer.results)), (3, sequences(&semantic.results)));
    let best = &answer.results[0];
    assert_eq!((best.sequence, best.source, best.text_score), (0, SearchSource::Semantic, None));
    assert_eq!((best.snippet.as_str(), best.span, best.user_id.as_str()), ("a green apple", (0, 13), "ana"));
    assert_eq!(best.message.as_ref().unwrap()["content"], "a green apple");
    for (result, semantic) in answer.results.iter().zip(&semantic.results) {
        assert_eq!(result.source, semantic.source);
        assert!((result.similarity.unwrap() - semantic.similarity.unwrap()).abs() < 1e-4);
        assert!((result.score - result.similarity.unwrap().max(0.0)).abs() < 1e-6);
        let exact =
            dot(&store.embedding.vector(texts[0]), &store.embedding.vector(texts[result.sequence as usize]));
        assert!((result.similarity.unwrap() - exact).abs() < 1e-4);
    }
    assert!(answer.results.windows(2).all(|pair| pair[0].score >= pair[1].score));
    assert!(search(&store, &near(&store, "a green apple")).await.results[0].message.is_none());
}

/// The length of the query vector makes no difference.
async fn the_length_of_the_vector_makes_no_difference(store: Store) {
    let texts = ["a green apple", "a red pear", "the red table"];
    store.sync(&target("s"), texts.map(lines::user).to_vec()).await;
    let unit = search(&store, &near(&store, "red pear")).await.results;
    for factor in [1e-18, 0.5, 7.0, 1e30] {
        let vector = store.embedding.vector("red pear").iter().map(|x| x * factor).collect();
        let results = search(&store, &VectorSearchOptions::new(vector)).await.results;
        assert_eq!(sequences(&results), sequences(&unit), "{factor}");
        assert!(results.iter().zip(&unit).all(|(a, b)| (a.score - b.score).abs() < 1e-4), "{factor}");
    }
}

/// Content types, filter and scope apply before ranking.
async fn filters_apply_before_vectors_are_ranked(store: Store) {
    let crowd: Vec<_> = (0..60).map(|_| lines::user("the asked words")).collect();
    store.sync(&target("crowd"), crowd.clone()).await;
    store.sync(&target_of("ben", "shop", "rare"), crowd).await;
    let rare = target_of("ana", "blog", "rare");
    store.sync(&rare, vec![lines::thinking("far away", "something else"), lines::tool("an output")]).await;
    let options = || near(&store, "the asked words");
    let filter = SearchFilter::default;
    let cases: [(VectorSearchOptions, &[u32]); 6] = [
        (options().with_content_types(only(ContentType::AssistantThinking)), &[0]),
        (options().with_content_types(only(ContentType::ToolOutput)), &[1]),
        (options().with_content_types(only(ContentType::System)), &[]),
        (options().with_filter(filter().with_project(rare.project_slug)), &[0, 1]),
        (options().with_filter(filter().with_session(rare.key.session_id)), &[0, 1]),
        (options().with_filter(filter().with_role(Role::Tool)), &[1]),
    ];
    for (options, expected) in cases {
        let mut found = sequences(&search(&store, &options).await.results);
        found.sort_unstable();
        assert_eq!(found, expected, "{options:?}");
    }
    let everyone =
        store.storage.search().vector_search(&Scope::Everyone, &options().with_limit(1_000)).await.unwrap();
    assert_eq!(everyone.results.len(), 122);
}

/// Results below the minimum similarity are omitted, also in a semantic search.
async fn the_minimum_similarity_applies(store: Store) {
    let texts = ["alpha beta", "alpha", "gamma delta", "alpha beta gamma"];
    store.sync(&target("s"), texts.map(lines::user).to_vec()).await;
    for (least, expected) in [(-1.0, 4), (0.5, 3), (0.999, 1)] {
        let by_vector = search(&store, &near(&store, "alpha beta").with_min_similarity(least)).await.results;
        let by_meaning =
            store.search(&target("s"), &meaning("alpha beta").with_min_similarity(least)).await.results;
        for found in [by_vector, by_meaning] {
            assert_eq!((found.len(), found[0].sequence), (expected, 0), "{least}");
            assert!(found.iter().all(|result| result.similarity.unwrap() >= least));
        }
    }
}

/// Copies of the nearest message rank next to it: diversity does not apply.
async fn copies_rank_side_by_side(store: Store) {
    let texts = ["alpha beta", "alpha gamma", "alpha beta", "delta", "alpha beta", "alpha beta"];
    store.sync(&target("s"), texts.map(lines::user).to_vec()).await;
    let found = search(&store, &near(&store, "alpha beta")).await.results;
    let mut first = sequences(&found[..4]);
    first.sort_unstable();
    assert_eq!(first, [0, 2, 4, 5]);
    assert!(found[..4].iter().all(|result| result.score > 0.999));
    assert_eq!(found[4].sequence, 1);
}

/// A message is one result, with its nearest chunk and the span of that chunk. The chunks of a few long messages do not
/// hide other messages.
async fn a_message_is_ranked_by_its_nearest_chunk(store: Store) {
    let store = store.with_embedding(FakeEmbedding::new().with_chunks(40, 20));
    let filler = "Viele Wörter über dies und das. ".repeat(30);
    let text = format!("{filler}Der goldene Anker liegt im Hafen. {filler}");
    store.sync(&target("s"), vec![lines::user("something short"), lines::user(&text)]).await;
    assert!(store.rows(&target("s")).await.vectors > 20);
    let results = store.search(&target("s"), &meaning("goldene Anker Hafen")).await.results;
    assert_eq!(sequences(&results), [1, 0]);
    let (start, end) = results[0].span;
    let chunk: String = text.chars().skip(start as usize).take((end - start) as usize).collect();
    assert!(chunk.contains("goldene Anker") && chunk.chars().count() < 200, "{chunk}");
    assert!(results[0].snippet.contains("goldene Anker"), "{}", results[0].snippet);

    let long = "the asked words ".repeat(1_000);
    let mut lines = vec![lines::user(&long), lines::thinking(&format!("{long}, again"), "something else")];
    lines.extend((0..4).map(|n| lines::user(&format!("far away {n}"))));
    store.sync(&target("s"), lines).await;
    assert!(store.rows(&target("s")).await.vectors > 250);
    let results = search(&store, &near(&store, "the asked words").with_limit(5)).await.results;
    let found: std::collections::BTreeSet<u32> = sequences(&results).into_iter().collect();
    assert_eq!((results.len(), found.len()), (5, 5));
    let mut first = sequences(&results[..2]);
    first.sort_unstable();
    assert_eq!(first, [0, 1]);
}

/// A vector that cannot be compared and options out of range are refused and named.
async fn options_out_of_range_are_errors(store: Store) {
    store.sync(&target("s"), vec![lines::user("a text")]).await;
    let good = store.embedding.vector("a text");
    let of = |vector: &[f32]| VectorSearchOptions::new(vector.to_vec());
    let with = |x: f32| of(&[&[x], &good[1..]].concat());
    let refused = [
        (of(&good[1..]), ErrorField::Vector),
        (of(&[good.as_slice(), &[0.5]].concat()), ErrorField::Vector),
        (of(&[]), ErrorField::Vector),
        (of(&[0.0; 64]), ErrorField::Vector),
        (with(f32::NAN), ErrorField::Vector),
        (with(f32::NEG_INFINITY), ErrorField::Vector),
        (of(&good).with_limit(0), ErrorField::Limit),
        (of(&good).with_limit(1_001), ErrorField::Limit),
        (of(&good).with_min_similarity(1.5), ErrorField::MinSimilarity),
        (of(&good).with_min_similarity(f32::NAN), ErrorField::MinSimilarity),
        (of(&good).with_content_types(ContentTypes::NONE), ErrorField::ContentTypes),
    ];
    for (options, field) in refused {
        let error = store.storage.search().vector_search(&ana(), &options).await.unwrap_err();
        assert_eq!((error.kind(), error.field()), (ErrorKind::Validation, Some(field)));
    }
    assert_eq!(search(&store, &of(&good)).await.results.len(), 1);
}

/// A store without vectors returns no results. Neither does a query without any word that the model knows.
async fn a_store_without_vectors_returns_no_results(store: Store) {
    let options = near(&store, "basket");
    for _ in 0..2 {
        assert!(search(&store, &options).await.results.is_empty());
        assert!(store.search(&target("s"), &meaning("basket")).await.results.is_empty());
        store.sync_text(&target("s"), vec![lines::user("a basket")]).await;
    }
    store.sync(&target("s"), vec![lines::user("a basket")]).await;
    for query in ["?!", "", "  \n"] {
        assert!(store.search(&target("s"), &meaning(query)).await.results.is_empty(), "{query:?}");
    }
    let zero = VectorSearchOptions::new(vec![0.0; 3]);
    assert_eq!(
        kind(store.storage.search().vector_search(&Scope::Everyone, &zero).await),
        ErrorKind::Validation
    );
}
