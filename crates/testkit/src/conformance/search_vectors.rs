//! Semantic search.

use crate::prelude::*;

/// Semantic search agrees with brute force, whichever messages are indexed: the recall of the top 10 is at least 0.99.
pub async fn semantic_search_agrees_with_brute_force(store: Store) {
    let mut random = Random(3);
    let texts: Vec<String> = (0..400).map(|_| random.words(8, 400)).collect();
    for (n, texts) in texts.chunks(200).enumerate() {
        store.sync(&target(&format!("s{n}")), texts.iter().map(|text| lines::user(text)).collect()).await;
        if n == 0 {
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
        let query = VectorQuery {
            scope: ana(),
            filter: SearchFilter::default(),
            content_types: ContentTypes::embedded(),
            tools: Vec::new(),
            turns: false,
            vector,
            generation: 0,
            limit: 10,
        };
        let results = store.backend.vector_candidates(&query).await.unwrap().items;
        let expected: Vec<_> = exact[..10].iter().map(|(_, n)| (format!("s{}", n / 200), n % 200)).collect();
        let place = |found: &VectorCandidate| {
            (found.message_ref.session.session_id.to_string(), found.message_ref.sequence as usize)
        };
        found += results.iter().filter(|result| expected.contains(&place(result))).count();
        asked += 10;
    }
    assert!(found as f64 >= 0.99 * f64::from(asked), "{found} of {asked}");
}

/// Candidates are nearest first, with exact similarity, span and vector, up to the limit.
pub async fn candidates_are_exact(store: Store) {
    let mut random = Random(5);
    let texts: Vec<String> = (0..80).map(|_| random.words(6, 100)).collect();
    store.sync(&target("s"), texts.iter().map(|text| lines::user(text)).collect()).await;
    store.storage.update_index().await.unwrap();
    for limit in [1, 10, 1_000] {
        let query = VectorQuery {
            scope: ana(),
            filter: SearchFilter::default(),
            content_types: ContentTypes::embedded(),
            tools: Vec::new(),
            turns: false,
            vector: store.embedding.vector("word1 word2 word3"),
            generation: 0,
            limit,
        };
        let candidates = store.backend.vector_candidates(&query).await.unwrap().items;
        assert_eq!(candidates.len(), limit.min(80));
        assert!(candidates.windows(2).all(|pair| pair[0].similarity >= pair[1].similarity));
        for candidate in &candidates {
            let text = &texts[candidate.message_ref.sequence as usize];
            assert!(is_kept(&candidate.vector, &store.embedding.vector(text)), "{text}");
            assert!((candidate.similarity - dot(&query.vector, &candidate.vector)).abs() < 1e-4);
            assert_eq!((candidate.span_start, candidate.span_end), (0, text.chars().count() as u32));
            assert_eq!(candidate.content_type, ContentType::UserQuery);
        }
    }
}

/// The old vectors of changed and removed messages are not found.
pub async fn vectors_of_changed_and_removed_messages_are_not_found(store: Store) {
    store.sync(&target("s"), ["alpha", "beta", "gamma"].map(lines::user).to_vec()).await;
    store.storage.update_index().await.unwrap();
    store.sync(&target("s"), ["delta", "beta"].map(lines::user).to_vec()).await;
    let near = async |query: &str| {
        let options = meaning(query).with_min_similarity(0.9);
        sequences(&store.search(&target("s"), &options).await.results)
    };
    for _ in 0..2 {
        assert_eq!((near("alpha").await, near("gamma").await), (vec![], vec![]));
        assert_eq!((near("delta").await, near("beta").await), (vec![0], vec![1]));
        store.storage.update_index().await.unwrap();
    }
}

/// Vectors made through one handle are searched at once through every handle.
pub async fn vectors_of_another_handle_are_searched_at_once(store: Store) {
    let again = store.again().await;
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
