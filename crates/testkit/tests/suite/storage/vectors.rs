//! Vectors: made for every text, pending after a failure, never of the wrong text, never of two models.

use amplifier_session_testkit::{
    conformance::generations::{of_ana, other},
    prelude::*,
};

on_both_stores![
    every_text_has_its_vector,
    a_long_text_has_a_vector_for_each_chunk,
    a_shorter_text_leaves_no_stale_chunk,
    tool_output_is_embedded_up_to_its_limit,
    a_provider_that_fails_midway_leaves_no_partial_message,
    a_failed_embedding_is_retried_by_the_next_sync,
    a_text_that_cannot_be_embedded_fails_alone,
    a_service_that_fails_on_every_text_leaves_them_pending,
    vectors_made_before_a_failure_are_kept,
    vectors_of_another_model_are_refused,
    vectors_are_made_once_there_is_a_provider,
    a_failing_model_does_not_claim_the_store,
    a_claim_without_vectors_is_replaced,
    a_search_reports_how_many_messages_have_no_vectors,
];

fn every_kind() -> Vec<Line> {
    vec![
        lines::user("a question"),
        lines::thinking("a thought", "an answer"),
        lines::tool("an output"),
        lines::tool_result("a result"),
        lines::system("a rule"),
    ]
}

/// A small model: texts above 40 tokens are cut into chunks of at most 20.
fn small() -> FakeEmbedding {
    FakeEmbedding::new().with_limits(EmbeddingLimits {
        chunk_threshold_tokens: 40,
        chunk_target_tokens: 20,
        batch_texts: 3,
        batch_tokens: 50,
        concurrent_calls: 1,
    })
}

/// Every text of a message has a vector. System messages have none.
async fn every_text_has_its_vector(store: Store) {
    store.sync(&target("s"), every_kind()).await;
    let vectors = store.vectors(&target("s")).await;
    let expected = [
        (0, ContentType::UserQuery, "a question"),
        (1, ContentType::AssistantResponse, "an answer"),
        (1, ContentType::AssistantThinking, "a thought"),
        (2, ContentType::ToolOutput, "an output"),
        (3, ContentType::ToolOutput, "a result"),
    ];
    assert_eq!(vectors.len(), expected.len());
    for ((sequence, record), (of, content_type, text)) in vectors.iter().zip(expected) {
        assert_eq!((*sequence, record.text), (of, content_type.into()));
        assert!(is_kept(&record.vector, &store.embedding.vector(text)), "{text}");
    }
    for (_, record) in &vectors {
        record.validate(&store.storage.vectors().embedding_space().await.unwrap().unwrap()).unwrap();
    }
    let states = store.messages(&target("s")).await.into_iter().map(|message| message.vectors);
    // The vector of the turn was not asked for.
    let (turn, stored, nothing) = (VectorState::TurnPending, VectorState::Stored, VectorState::Nothing);
    assert!(states.eq([turn, stored, stored, stored, nothing]));
}

/// A long text has a vector for each chunk. The span of a chunk is the text that was embedded.
async fn a_long_text_has_a_vector_for_each_chunk(store: Store) {
    let store = store.with_embedding(small());
    let text = (0..60).map(|n| format!("Satz {n} über café 👍 und Größe.")).collect::<Vec<_>>().join(" ");
    store.sync(&target("s"), vec![lines::user(&text), lines::user("short")]).await;
    let vectors = store.vectors(&target("s")).await;
    let chunks: Vec<_> =
        vectors.iter().filter(|(sequence, _)| *sequence == 0).map(|(_, record)| record).collect();
    assert!(chunks.len() > 10);
    let characters: Vec<char> = text.chars().collect();
    for (index, chunk) in chunks.iter().enumerate() {
        assert_eq!((chunk.chunk_index as usize, chunk.total_chunks as usize), (index, chunks.len()));
        assert!(chunk.token_count > 0 && chunk.token_count <= 20);
        let source: String = characters[chunk.span_start as usize..chunk.span_end as usize].iter().collect();
        assert!(is_kept(&chunk.vector, &store.embedding.vector(&source)), "{source}");
        assert!(store.embedding.texts().contains(&source));
    }
    assert_eq!(store.rows(&target("s")).await.vectors, chunks.len() as u64 + 1);
    assert!(store.pending(&target("s")).await.is_empty());
}

/// A text that becomes shorter leaves no chunk behind.
async fn a_shorter_text_leaves_no_stale_chunk(store: Store) {
    let store = store.with_embedding(small());
    let long = "a sentence of several words. ".repeat(50);
    store.sync(&target("s"), vec![lines::user(&long), lines::user(&long)]).await;
    let before = store.rows(&target("s")).await.vectors;
    store.sync(&target("s"), vec![lines::user("short now"), lines::user(&long)]).await;
    let vectors = store.vectors(&target("s")).await;
    assert_eq!(vectors.iter().filter(|(sequence, _)| *sequence == 0).count(), 1);
    assert_eq!(store.rows(&target("s")).await.vectors, before / 2 + 1);
}

/// Tool results are embedded up to the configured length. Full text covers all of them.
async fn tool_output_is_embedded_up_to_its_limit(store: Store) {
    let settings = StorageSettings::default().with_tool_output_chars(20);
    let storage = store.storage.clone().with_settings(settings);
    let lines =
        vec![lines::tool("twenty characters, then farbehind"), lines::user("a text of more than twenty")];
    storage.ingestion().sync_transcript_lines(&target("s"), SyncLines::whole(raw(lines))).await.unwrap();
    assert_eq!(store.embedding.texts(), ["twenty characters, t", "a text of more than twenty"]);
    assert_eq!(store.find(&target("s"), "farbehind").await, [0]);
}

/// If a provider fails midway, each message has all of its vectors or none.
async fn a_provider_that_fails_midway_leaves_no_partial_message(store: Store) {
    let store = store.with_embedding(small());
    let lines = || {
        (0..30).map(|n| lines::thinking(&format!("thought{n}"), &format!("answer{n}"))).collect::<Vec<_>>()
    };
    store.embedding.fail_on(Some("thought17"));
    store.sync(&target("s"), lines()).await;
    let pending = store.pending(&target("s")).await;
    assert!(pending.contains(&17));
    let vectors = store.vectors(&target("s")).await;
    assert_eq!(vectors.len(), 2 * (30 - pending.len()));
    assert!(vectors.iter().all(|(sequence, _)| !pending.contains(sequence)));
    store.embedding.fail_on(None);
    store.sync(&target("s"), lines()).await;
    let vectors = store.vectors(&target("s")).await;
    assert_eq!((vectors.len(), store.pending(&target("s")).await.len()), (60, 0));
    for (sequence, record) in vectors {
        let kind = if record.text == ContentType::AssistantThinking.into() { "thought" } else { "answer" };
        let text = format!("{kind}{sequence}");
        assert!(is_kept(&record.vector, &store.embedding.vector(&text)), "{text}");
    }
}

/// If embedding fails or the response is wrong, the message is stored and found by full text, and its vectors are
/// pending. The next sync makes them.
async fn a_failed_embedding_is_retried_by_the_next_sync(store: Store) {
    let wrong = [Answer::TooFew, Answer::TooMany, Answer::WrongDimensions, Answer::NotFinite];
    for answer in std::iter::once(None).chain(wrong.map(Some)) {
        store.embedding.fail_always(answer.is_none());
        store.embedding.answer_with(answer.unwrap_or_default());
        store.sync(&target("s"), every_kind()).await;
        let rows = store.rows(&target("s")).await;
        assert_eq!((rows.messages.count, rows.vectors, rows.pending_vectors), (5, 0, 4), "{answer:?}");
        assert_eq!(store.pending(&target("s")).await, [0, 1, 2, 3], "{answer:?}");
        assert_eq!(store.find(&target("s"), "question thought").await, [0, 1]);
        let report = store.embed().await;
        assert!(report.failure.is_some() && report.total() == 0, "{answer:?}");
    }
    // The same lines again: only pending vectors are written.
    store.embedding.answer_with(Answer::Right);
    let before = store.stored(&target("s")).await;
    assert_eq!(store.sync(&target("s"), every_kind()).await, IngestReport::default());
    assert_eq!(store.stored(&target("s")).await.session, before.session);
    assert!(store.pending(&target("s")).await.is_empty());
    assert_eq!(store.vectors(&target("s")).await.len(), 5);
    assert_eq!(store.search(&target("s"), &meaning("question")).await.results[0].sequence, 0);
}

/// If a service refuses one of many texts or returns a vector of zeros for it, only that message fails. It is retried
/// on request.
async fn a_text_that_cannot_be_embedded_fails_alone(store: Store) {
    let fail = |session: &str, text: Option<&str>| match session {
        "refused" => store.embedding.refuse(text),
        _ => store.embedding.return_zeros_for(text),
    };
    for (session, why) in
        [("refused", "rejects"), ("zeros", "http://fake.test/v1: the model returned a vector of zeros")]
    {
        fail(session, Some("poison"));
        let mut lines: Vec<Line> = (0..20).map(|n| lines::user(&format!("apple number {n}"))).collect();
        lines[7] = lines::user("a poisoned apple");
        store.sync_text(&target(session), lines).await;
        let report = store.embed().await;
        assert_eq!((report.messages, report.refused, report.failure.is_none()), (19, 1, true), "{session}");
        let sequences = store.vectors(&target(session)).await.into_iter().map(|(sequence, _)| sequence);
        assert!(sequences.eq((0..20).filter(|sequence| *sequence != 7)), "{session}");
        store.embedding.reset_counts();
        store.embed().await;
        assert_eq!((store.embedding.calls(), store.pending(&target(session)).await.len()), (0, 0));
        assert!(store.find(&target(session), "poisoned").await.contains(&7));
        let counts = store.storage.vectors().vector_status(&ana()).await.unwrap().current.unwrap().counts;
        let reasons: Vec<_> = counts.failed.iter().collect();
        assert!(reasons.len() == 1 && reasons[0].0.contains(why) && *reasons[0].1 == 1, "{reasons:?}");
        fail(session, None);
        assert_eq!(store.storage.vectors().backfill(&of_ana(), &mut |_| {}).await.unwrap().messages, 1);
        assert_eq!(store.rows(&target(session)).await.vectors, 20);
    }
}

/// If a service fails on every one of many texts, the texts are not to blame and stay pending.
async fn a_service_that_fails_on_every_text_leaves_them_pending(store: Store) {
    let lines: Vec<Line> = (0..20).map(|n| lines::user(&format!("apple number {n}"))).collect();
    store.sync_text(&target("s"), lines).await;
    for refuses in [true, false] {
        store.embedding.refuse(refuses.then_some("apple"));
        store.embedding.return_zeros_for((!refuses).then_some("apple"));
        let report = store.embed().await;
        assert_eq!((report.messages, report.refused), (0, 0));
        let failure = report.failure.unwrap();
        assert!(refuses || failure.message().starts_with("http://fake.test/v1: "), "{failure}");
        assert_eq!(store.pending(&target("s")).await.len(), 20);
    }
}

/// Vectors of completed batches are kept if a later batch fails.
async fn vectors_made_before_a_failure_are_kept(store: Store) {
    let lines: Vec<Line> = (0..40).map(|n| lines::user(&format!("apple number {n}"))).collect();
    store.sync_text(&target("s"), lines).await;
    store.embedding.fail_on(Some("number 35"));
    for _ in 0..20 {
        let report = store.embed().await;
        assert!(report.failure.is_some());
        if report.messages == 0 {
            break;
        }
    }
    let pending = store.pending(&target("s")).await;
    assert!(pending.len() <= 16 && pending.contains(&35), "{pending:?}");
    let made = store.embedding.texts();
    assert_eq!(made.iter().filter(|text| text.ends_with("number 0")).count(), 1);
}

/// Vectors of another model or length are refused. Full text continues to work, and the store keeps its space.
async fn vectors_of_another_model_are_refused(store: Store) {
    store.sync(&target("s"), every_kind()).await;
    let space = store.storage.vectors().embedding_space().await.unwrap();
    for other in [FakeEmbedding::new().with_model("another"), FakeEmbedding::new().with_dimensions(32)] {
        let storage = store.storage_with(Some(other));
        let lines = SyncLines::starting_at(5, raw(vec![lines::user("a basket")]));
        storage.ingestion().sync_transcript_lines(&target("s"), lines).await.unwrap();
        let report = storage.vectors().embed_pending(&target("s").key.user_id, None).await.unwrap();
        assert_eq!(report.failure.map(|error| error.kind()), Some(ErrorKind::Embedding));
        assert_eq!(store.pending(&target("s")).await, [5]);
        assert_eq!(storage.vectors().embedding_space().await.unwrap(), space);

        assert_eq!(
            kind(storage.search().search_transcripts(&ana(), &meaning("basket")).await),
            ErrorKind::Embedding
        );
        let results =
            storage.search().search_transcripts(&ana(), &SearchOptions::new("basket")).await.unwrap();
        assert_eq!((results.mode, results.results.len()), (SearchMode::FullText, 1));
        assert!(fell_back_to_full_text(&results));
        let results = storage.search().search_transcripts(&ana(), &words("basket")).await.unwrap();
        assert_eq!((results.results.len(), fell_back_to_full_text(&results)), (1, false));
    }
    store.sync_from(&target("s"), 6, vec![lines::user("more")]).await.unwrap();
    assert!(store.pending(&target("s")).await.is_empty());
}

/// Without a provider nothing is embedded. Once there is one, it makes pending vectors in all sessions of the user.
async fn vectors_are_made_once_there_is_a_provider(store: Store) {
    let (without, ben) = (store.storage_with(None), target_of("ben", "p", "a"));
    for target in [target("a"), target("b"), target("c"), ben.clone()] {
        store.sync_text(&target, every_kind()).await;
    }
    assert_eq!(without.vectors().embed_pending(&ben.key.user_id, None).await.unwrap().messages, 0);
    assert_eq!(without.vectors().embedding_space().await.unwrap(), None);

    let SessionKey { user_id, session_id } = target("b").key;
    let report = store.storage.vectors().embed_pending(&user_id, Some(&session_id)).await.unwrap();
    assert_eq!((report.messages, report.total()), (4, 5));
    let report = store.embed().await;
    assert_eq!((report.messages, report.total()), (8, 10));
    assert_eq!(report.vectors.get(&ContentType::ToolOutput), Some(&4));
    assert_eq!(store.embed().await.messages, 0);
    assert_eq!(store.pending(&ben).await, [0, 1, 2, 3]);
}

/// A model that fails before its first vector is stored does not exclude another model.
async fn a_failing_model_does_not_claim_the_store(store: Store) {
    store.embedding.fail_always(true);
    store.sync(&target("s"), vec![lines::user("a red apple")]).await;
    assert!(store.embed().await.failure.is_some());
    assert!(!store.backend.meta().await.unwrap().contains_key(meta::EMBEDDING_SPACE));

    let store = store.with_embedding(other());
    let report = store.embed().await;
    assert!(report.failure.is_none() && report.total() == 1, "{report:?}");
    assert_eq!(store.storage.vectors().embedding_space().await.unwrap().as_ref(), Some(other().space()));
    assert_eq!(sequences(&store.search(&target("s"), &meaning("apple")).await.results), [0]);
}

/// A store that an earlier version claimed for a model, but that has no vectors of it, accepts another model.
async fn a_claim_without_vectors_is_replaced(store: Store) {
    let claim = meta::Generation { space: other().space().clone(), number: 0 };
    store.backend.put_meta_if_absent(meta::EMBEDDING_SPACE, &claim.to_value()).await.unwrap();
    // There are no messages to find, so the search does not fall back to full text.
    let found = store.search(&target("s"), &SearchOptions::new("apple")).await;
    assert_eq!((found.mode, found.notices.len()), (SearchMode::Hybrid, 0));

    store.sync(&target("s"), vec![lines::user("a red apple")]).await;
    assert_eq!(
        store.storage.vectors().embedding_space().await.unwrap().as_ref(),
        Some(store.embedding.space())
    );
    assert_eq!(sequences(&store.search(&target("s"), &meaning("apple")).await.results), [0]);
    // From now on the space is fixed.
    store.sync_text(&target("t"), vec![lines::user("a green pear")]).await;
    assert!(store.with_embedding(other()).embed().await.failure.is_some());
}

/// A search that uses vectors reports how many messages have none. A full-text search does not.
async fn a_search_reports_how_many_messages_have_no_vectors(store: Store) {
    let ben = target_of("ben", "shop", "s");
    store.sync_text(&ben, vec![lines::user("a melon")]).await;
    let missing = async |target: &IngestTarget, query: &str, mode: SearchMode| {
        let options = SearchOptions::new(query).with_mode(mode);
        store.search(target, &options).await.missing_vectors.map(|missing| (missing.messages, missing.of))
    };
    // If no vectors were ever made, all messages are reported.
    assert_eq!(missing(&ben, "plum", SearchMode::Hybrid).await, Some((1, 1)));
    store.sync(&target("s"), vec![lines::user("a red apple"), lines::assistant("a green pear")]).await;
    assert_eq!(missing(&target("s"), "apple", SearchMode::Hybrid).await, None);
    store.sync_text(&target("t"), vec![lines::user("a blue plum"), lines::system("rules")]).await;
    for query in ["apple", "nothing like it"] {
        for mode in [SearchMode::Hybrid, SearchMode::Semantic] {
            assert_eq!(missing(&target("s"), query, mode).await, Some((1, 4)), "{query} {mode}");
        }
    }
    assert_eq!(missing(&target("s"), "apple", SearchMode::FullText).await, None);
    assert_eq!(missing(&ben, "melon", SearchMode::Hybrid).await, Some((1, 1)));
}
