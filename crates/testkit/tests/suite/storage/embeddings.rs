//! Vectors supplied by the caller.

use amplifier_session_testkit::prelude::*;

on_both_stores![
    supplied_vectors_are_found,
    supplied_vectors_are_scaled_to_unit_length,
    invalid_supplied_vectors_are_refused,
    vectors_of_another_space_are_refused,
    supplied_vectors_replace_those_of_the_message,
    texts_that_have_vectors_are_listed,
    a_changed_line_loses_its_supplied_vectors,
    vectors_are_accepted_only_for_existing_sessions,
    vectors_can_be_supplied_with_lines,
    supplied_chunks_keep_their_spans,
    lines_with_invalid_vectors_are_not_stored,
];

/// The space of [`amplifier_session_testkit::FakeEmbedding`].
fn space() -> EmbeddingSpace {
    EmbeddingSpace { model: "fake-words".to_owned(), dimensions: 64 }
}

fn of(sequence: u32, vectors: &[(ContentType, Vec<f32>)]) -> MessageEmbeddings {
    let none = MessageEmbeddings::new(sequence);
    vectors.iter().fold(none, |of, (content_type, vector)| of.with_vector(*content_type, vector.clone()))
}

fn messages() -> Vec<Line> {
    vec![
        lines::user("where is the basket"),
        lines::thinking("a deep thought", "on the table"),
        lines::system("rules"),
        lines::tool("a listing"),
    ]
}

/// The vectors of the texts of the first two messages.
fn embeddings(store: &Store) -> Vec<MessageEmbeddings> {
    let vector = |text: &str| store.embedding.vector(text);
    let (thinking, response) = (ContentType::AssistantThinking, ContentType::AssistantResponse);
    let answer = [(thinking, vector("a deep thought")), (response, vector("on the table"))];
    vec![of(0, &[(ContentType::UserQuery, vector("where is the basket"))]), of(1, &answer)]
}

async fn near(storage: &SessionStorage, vector: Vec<f32>) -> Vec<u32> {
    let options = VectorSearchOptions::new(vector).with_min_similarity(0.9);
    sequences(&storage.search().vector_search(&ana(), &options).await.unwrap().results)
}

/// Supplied vectors are found by vector without a provider, and by meaning with a provider of the same space.
async fn supplied_vectors_are_found(store: Store) {
    store.sync_text(&target("s"), messages()).await;
    let alone = store.storage_with(None);
    assert_eq!(
        alone.ingestion().store_embeddings(&target("s").key, &space(), embeddings(&store)).await.unwrap(),
        3
    );
    assert_eq!(store.storage.vectors().embedding_space().await.unwrap(), Some(space()));
    assert_eq!(store.pending(&target("s")).await, [3]);
    for round in 0..2 {
        for storage in [&alone, &store.again().await.storage] {
            assert_eq!(near(storage, store.embedding.vector("a deep thought")).await, [1], "{round}");
            assert_eq!(near(storage, store.embedding.vector("where is the basket")).await, [0], "{round}");
        }
        let options = meaning("on the table").with_min_similarity(0.9);
        let found = store.search(&target("s"), &options).await.results;
        assert_eq!((sequences(&found), found[0].span), (vec![1], (0, 12)), "{round}");
        store.storage.update_index().await.unwrap();
    }
    assert_eq!(store.embedding.texts(), ["on the table", "on the table"]);
}

/// A supplied vector is stored as one chunk of the whole text, scaled to unit length.
async fn supplied_vectors_are_scaled_to_unit_length(store: Store) {
    store.sync_text(&target("s"), messages()).await;
    let unit = store.embedding.vector("where is the basket");
    for factor in [1.0, 1_000.0, 1e-20, 1e30] {
        let scaled: Vec<f32> = unit.iter().map(|x| x * factor).collect();
        let embedding = of(0, &[(ContentType::UserQuery, scaled)]);
        store
            .storage
            .ingestion()
            .store_embeddings(&target("s").key, &space(), vec![embedding])
            .await
            .unwrap();
        let vectors = store.vectors(&target("s")).await;
        assert_eq!(vectors.len(), 1, "{factor}");
        let (sequence, record) = &vectors[0];
        assert_eq!((*sequence, record.chunk_index, record.total_chunks), (0, 0, 1));
        assert_eq!((record.span_start, record.span_end), (0, 19));
        assert!(is_kept(&record.vector, &unit), "{factor}");
    }
}

/// Invalid vectors are refused and named. Then the call stores nothing, and the space of the store does not change.
async fn invalid_supplied_vectors_are_refused(store: Store) {
    store.sync_text(&target("s"), messages()).await;
    let good = store.embedding.vector("x");
    let with = |x: f32| [vec![x], good[1..].to_vec()].concat();
    let of_user = |sequence: u32, vector: Vec<f32>| of(sequence, &[(ContentType::UserQuery, vector)]);
    let refused = [
        (of_user(0, good[1..].to_vec()), ErrorField::Vector),
        (of_user(0, [good.clone(), vec![0.5]].concat()), ErrorField::Vector),
        (of_user(0, Vec::new()), ErrorField::Vector),
        (of_user(0, vec![0.0; 64]), ErrorField::Vector),
        (of_user(0, with(f32::NAN)), ErrorField::Vector),
        (of_user(0, with(f32::INFINITY)), ErrorField::Vector),
        (of_user(4, good.clone()), ErrorField::Sequence),
        (of_user(u32::MAX, good.clone()), ErrorField::Sequence),
        (of_user(1, good.clone()), ErrorField::ContentType),
        (of(0, &[(ContentType::ToolOutput, good.clone())]), ErrorField::ContentType),
        (of(2, &[(ContentType::System, good.clone())]), ErrorField::ContentType),
    ];
    for (bad, field) in refused {
        let label = format!("{field} of {}", bad.sequence);
        for embeddings in [vec![bad.clone()], vec![of_user(0, good.clone()), bad]] {
            let stored =
                store.storage.ingestion().store_embeddings(&target("s").key, &space(), embeddings).await;
            let error = stored.unwrap_err();
            assert_eq!((error.kind(), error.field()), (ErrorKind::Validation, Some(field)), "{label}");
            assert!(error.context("sequence").is_some(), "{label}");
        }
    }
    assert!(store.vectors(&target("s")).await.is_empty());
    assert_eq!(store.pending(&target("s")).await, [0, 1, 3]);
    assert_eq!(store.storage.vectors().embedding_space().await.unwrap(), None);
}

/// A store with vectors of one space refuses those of another.
async fn vectors_of_another_space_are_refused(store: Store) {
    store.sync(&target("s"), messages()).await;
    let before = store.vectors(&target("s")).await;
    let good = store.embedding.vector("x");
    let other_model = (EmbeddingSpace { model: "other".to_owned(), ..space() }, good.clone());
    let shorter = (EmbeddingSpace { dimensions: 63, ..space() }, good[1..].to_vec());
    for (space, vector) in [other_model, shorter] {
        let embedding = of(0, &[(ContentType::UserQuery, vector)]);
        let stored =
            store.storage.ingestion().store_embeddings(&target("s").key, &space, vec![embedding]).await;
        assert_eq!(kind(stored), ErrorKind::Embedding, "{space}");
    }
    assert_eq!(store.vectors(&target("s")).await, before);
    assert_eq!(store.storage.vectors().embedding_space().await.unwrap(), Some(space()));
}

/// Supplied vectors replace all vectors of their messages. Other messages keep theirs.
async fn supplied_vectors_replace_those_of_the_message(store: Store) {
    store.sync(&target("s"), messages()).await;
    store.storage.update_index().await.unwrap();
    let other = store.embedding.vector("entirely different");
    let embedding = of(1, &[(ContentType::AssistantResponse, other.clone())]);
    store.storage.ingestion().store_embeddings(&target("s").key, &space(), vec![embedding]).await.unwrap();
    for _ in 0..2 {
        assert_eq!(near(&store.storage, other.clone()).await, [1]);
        assert!(near(&store.storage, store.embedding.vector("a deep thought")).await.is_empty());
        assert!(near(&store.storage, store.embedding.vector("on the table")).await.is_empty());
        assert_eq!(near(&store.storage, store.embedding.vector("where is the basket")).await, [0]);
        store.storage.update_index().await.unwrap();
    }
}

/// The texts of a session that have vectors are listed by sequence.
async fn texts_that_have_vectors_are_listed(store: Store) {
    store.sync_text(&target("s"), messages()).await;
    let listed = async || {
        let target = target("s");
        store.storage.vectors().vector_content_types(&scope(&target), &target.key.session_id).await.unwrap()
    };
    let types = |types: &[ContentType]| types.iter().copied().collect::<ContentTypes>();
    assert!(listed().await.is_empty());
    store.storage.ingestion().store_embeddings(&target("s").key, &space(), embeddings(&store)).await.unwrap();
    let both = types(&[ContentType::AssistantResponse, ContentType::AssistantThinking]);
    assert_eq!(listed().await, [(0, types(&[ContentType::UserQuery])), (1, both)]);
    let embedding = of(1, &[(ContentType::AssistantThinking, store.embedding.vector("x"))]);
    store.storage.ingestion().store_embeddings(&target("s").key, &space(), vec![embedding]).await.unwrap();
    let thinking = types(&[ContentType::AssistantThinking]);
    assert_eq!(listed().await, [(0, types(&[ContentType::UserQuery])), (1, thinking)]);
    let ben = scope(&target_of("ben", "shop", "s"));
    let hidden = store.storage.vectors().vector_content_types(&ben, &target("s").key.session_id).await;
    assert_eq!(kind(hidden), ErrorKind::SessionNotFound);

    let many: Vec<Line> = (0..40).map(|n| lines::user(&format!("message {n}"))).collect();
    store.sync(&target("s"), many).await;
    let expected: Vec<_> = (0..40).map(|n| (n, types(&[ContentType::UserQuery]))).collect();
    assert_eq!(listed().await, expected);
}

/// A sync of the same lines keeps supplied vectors. A changed line loses them.
async fn a_changed_line_loses_its_supplied_vectors(store: Store) {
    store.sync_text(&target("s"), messages()).await;
    let given = store.embedding.vector("given");
    let embeddings = vec![
        of(0, &[(ContentType::UserQuery, given.clone())]),
        of(3, &[(ContentType::ToolOutput, given.clone())]),
    ];
    store.storage.ingestion().store_embeddings(&target("s").key, &space(), embeddings).await.unwrap();
    store.sync_text(&target("s"), messages()).await;
    assert_eq!(near(&store.storage, given.clone()).await, [0, 3]);

    let mut changed = messages();
    changed[0] = lines::user("another question");
    store.sync_text(&target("s"), changed.clone()).await;
    assert_eq!(near(&store.storage, given.clone()).await, [3]);
    assert_eq!(store.pending(&target("s")).await, [0, 1]);
    store.sync(&target("s"), changed).await;
    assert_eq!(near(&store.storage, store.embedding.vector("another question")).await, [0]);
    assert_eq!(near(&store.storage, given).await, [3]);
}

/// Vectors can be supplied only for existing sessions, and do not change another user's session with the same id.
async fn vectors_are_accepted_only_for_existing_sessions(store: Store) {
    store.sync_text(&target_of("ben", "shop", "s"), messages()).await;
    let missing =
        store.storage.ingestion().store_embeddings(&target("s").key, &space(), embeddings(&store)).await;
    assert_eq!(kind(missing), ErrorKind::SessionNotFound);
    store.sync_text(&target("s"), messages()).await;
    store.storage.ingestion().store_embeddings(&target("s").key, &space(), embeddings(&store)).await.unwrap();
    assert_eq!(store.vectors(&target("s")).await.len(), 3);
    assert!(store.vectors(&target_of("ben", "shop", "s")).await.is_empty());
    let nothing = store.storage.ingestion().store_embeddings(&target("s").key, &space(), Vec::new()).await;
    assert_eq!(nothing.unwrap(), 0);
    assert_eq!(store.vectors(&target("s")).await.len(), 3);
}

/// Vectors supplied with lines are stored, and the provider is called only for the other messages.
async fn vectors_can_be_supplied_with_lines(store: Store) {
    let sync = || SyncLines::whole(raw(messages())).with_embeddings(space(), embeddings(&store));
    for _ in 0..2 {
        store.storage.ingestion().sync_transcript_lines(&target("s"), sync()).await.unwrap();
        assert_eq!(store.embedding.texts(), ["a listing"]);
        assert!(store.pending(&target("s")).await.is_empty());
    }
    assert_eq!(near(&store.storage, store.embedding.vector("a deep thought")).await, [1]);
    // Vectors of a later call belong to its own lines.
    let given =
        MessageEmbeddings::new(4).with_vector(ContentType::UserQuery, store.embedding.vector("given"));
    let later = SyncLines::starting_at(4, raw(vec![lines::user("another question")]));
    let later = later.with_embeddings(space(), vec![given]);
    store.storage.ingestion().sync_transcript_lines(&target("s"), later).await.unwrap();
    assert_eq!(store.embedding.texts(), ["a listing"]);
    assert_eq!(near(&store.storage, store.embedding.vector("given")).await, [4]);
}

/// Vectors of chunks chosen by the caller keep their spans, in the order of the text.
async fn supplied_chunks_keep_their_spans(store: Store) {
    let vector = |text: &str| store.embedding.vector(text);
    let given = MessageEmbeddings::new(0)
        .with_chunk(ContentType::UserQuery, (9, 19), vector("the basket"))
        .with_chunk(ContentType::UserQuery, (0, 12), vector("where is the"));
    let sync = SyncLines::whole(raw(messages())).with_embeddings(space(), vec![given]);
    store.storage.ingestion().sync_transcript_lines(&target("s"), sync).await.unwrap();
    let vectors = store.vectors(&target("s")).await;
    let of_first: Vec<_> = vectors.iter().filter(|(sequence, _)| *sequence == 0).collect();
    let spans: Vec<_> = of_first
        .iter()
        .map(|(_, record)| (record.chunk_index, record.total_chunks, record.span_start, record.span_end))
        .collect();
    assert_eq!(spans, [(0, 2, 0, 12), (1, 2, 9, 19)]);
    let options = VectorSearchOptions::new(vector("the basket")).with_min_similarity(0.9);
    let found = store.storage.search().vector_search(&ana(), &options).await.unwrap().results;
    assert_eq!((sequences(&found), found[0].span), (vec![0], (9, 19)));
}

/// Invalid vectors are refused and named before the call stores a line, and the provider is not called.
async fn lines_with_invalid_vectors_are_not_stored(store: Store) {
    let good = || store.embedding.vector("x");
    let chunk = |span| MessageEmbeddings::new(0).with_chunk(ContentType::UserQuery, span, good());
    let both = chunk((0, 5)).with_vector(ContentType::UserQuery, good());
    let refused = [
        (of(0, &[(ContentType::UserQuery, good()[1..].to_vec())]), ErrorField::Vector),
        (of(0, &[(ContentType::UserQuery, vec![0.0; 64])]), ErrorField::Vector),
        (of(0, &[(ContentType::ToolOutput, good())]), ErrorField::ContentType),
        (of(4, &[(ContentType::UserQuery, good())]), ErrorField::Sequence),
        (chunk((0, 20)), ErrorField::Span),
        (chunk((5, 5)), ErrorField::Span),
        (chunk((7, 3)), ErrorField::Span),
        (both, ErrorField::Span),
    ];
    for (bad, field) in refused {
        let sync = SyncLines::whole(raw(messages())).with_embeddings(space(), vec![bad]);
        let error = store.storage.ingestion().sync_transcript_lines(&target("s"), sync).await.unwrap_err();
        assert_eq!((error.kind(), error.field()), (ErrorKind::Validation, Some(field)));
        assert!(error.context("sequence").is_some(), "{field}");
    }
    assert!(store.messages(&target("s")).await.is_empty());
    assert_eq!(
        (store.embedding.calls(), store.storage.vectors().embedding_space().await.unwrap()),
        (0, None)
    );
    // Also if the store has vectors of another model.
    store.sync(&target("t"), messages()).await;
    let other = EmbeddingSpace { model: "other".to_owned(), ..space() };
    let given = vec![of(0, &[(ContentType::UserQuery, good())])];
    let sync = SyncLines::whole(raw(messages())).with_embeddings(other, given);
    assert_eq!(
        kind(store.storage.ingestion().sync_transcript_lines(&target("s"), sync).await),
        ErrorKind::Embedding
    );
    assert!(store.messages(&target("s")).await.is_empty());
}
