//! Generations of vectors: rebuilding them while the old ones are searched, and texts that cannot be embedded.

use crate::prelude::*;

/// Another model, with other dimensions.
pub fn other() -> FakeEmbedding {
    FakeEmbedding::new().with_model("other-words").with_dimensions(48)
}

/// All vectors of ana.
pub fn of_ana() -> VectorsOf {
    VectorsOf::user(target("s").key.user_id)
}

/// Rebuilds all vectors.
pub async fn rebuild(storage: &SessionStorage) -> EmbedReport {
    storage.vectors().rebuild(&of_ana(), &mut |_| {}).await.unwrap()
}

async fn generations(store: &Store) -> Generations {
    Generations::of(&store.backend.meta().await.unwrap())
}

/// Fills three sessions of two users, each with two messages to embed.
pub async fn fill(store: &Store) {
    for (user, session) in [("ana", "s"), ("ana", "t"), ("ben", "s")] {
        let lines = vec![lines::user("a red apple"), lines::assistant("a green pear")];
        store.sync(&target_of(user, "shop", session), lines).await;
    }
}

/// Whether semantic search finds the messages that [`fill`] stored.
pub async fn finds_by_meaning(storage: &SessionStorage) -> bool {
    let found = storage.search().search_transcripts(&ana(), &meaning("apple")).await;
    found.is_ok_and(|found| found.results.first().is_some_and(|first| first.sequence == 0))
}

/// Searches use the old model until the new vectors of all users are complete, and then the new model.
pub async fn a_rebuild_with_another_model_is_searched_once_it_is_complete(store: Store) {
    fill(&store).await;
    let new = store.storage_with(Some(other()));
    assert!(finds_by_meaning(&store.storage).await && !finds_by_meaning(&new).await);

    let report = rebuild(&new).await;
    assert!(report.failure.is_none());
    assert_eq!((report.messages, report.total()), (6, 6));
    assert!(finds_by_meaning(&new).await && !finds_by_meaning(&store.storage).await);
    let of_ben = new
        .search()
        .search_transcripts(&scope(&target_of("ben", "shop", "s")), &meaning("pear"))
        .await
        .unwrap();
    assert_eq!(of_ben.results[0].sequence, 1);
    assert_eq!(new.vectors().embedding_space().await.unwrap().unwrap().dimensions, 48);
    let held = generations(&store).await;
    assert_eq!((held.current_number(), held.next), (1, None));

    // A second rebuild, back to the first model.
    assert!(rebuild(&store.storage).await.failure.is_none());
    assert!(finds_by_meaning(&store.storage).await);
    assert_eq!(generations(&store).await.current_number(), 2);
}

/// A message that is added or changed during a rebuild gets vectors of both generations.
pub async fn messages_written_during_a_rebuild_are_part_of_it(store: Store) {
    fill(&store).await;
    let model = std::sync::Arc::new(other());
    let new = store.storage.clone().with_embedding(Some(model.clone()));
    model.fail_on(Some("pear"));
    assert!(rebuild(&new).await.failure.is_some());
    store.sync(&target("s"), vec![lines::user("a blue plum"), lines::assistant("a green fig")]).await;
    store.embed().await;
    let plum = store.search(&target("s"), &meaning("plum")).await;
    assert_eq!(sequences(&plum.results)[0], 0);
    model.fail_on(None);
    assert!(rebuild(&new).await.failure.is_none());
    for (word, sequence) in [("plum", 0), ("fig", 1)] {
        let found = new.search().search_transcripts(&ana(), &meaning(word)).await.unwrap();
        assert_eq!(found.results[0].sequence, sequence, "{word}");
        assert_eq!(found.results[0].session_id, target("s").key.session_id);
    }
}

/// Rebuilding with the current model ends a rebuild with another one.
pub async fn an_abandoned_rebuild_leaves_nothing(store: Store) {
    fill(&store).await;
    let model = std::sync::Arc::new(other());
    let new = store.storage.clone().with_embedding(Some(model.clone()));
    store.sync(&target("u"), vec![lines::user("a bad melon")]).await;
    model.fail_on(Some("melon"));
    assert!(rebuild(&new).await.failure.is_some());
    assert!(rebuild(&store.storage).await.failure.is_none());
    assert!(finds_by_meaning(&store.storage).await);
    let status = store.storage.vectors().vector_status(&Scope::Everyone).await.unwrap();
    assert_eq!((status.next, status.leftover_vectors), (None, 0));
    // A later rebuild with the other model starts from the beginning.
    model.fail_on(None);
    model.reset_counts();
    assert_eq!(rebuild(&new).await.messages, 7);
    assert!(finds_by_meaning(&new).await);
}

/// During a rebuild with the same model, searches use the old vectors of a message until it has new ones.
pub async fn vectors_are_rebuilt_with_the_same_model(store: Store) {
    fill(&store).await;
    store.embedding.reset_counts();
    store.embedding.fail_on(Some("pear"));
    let report = rebuild(&store.storage).await;
    assert!(report.failure.is_some());
    assert!(finds_by_meaning(&store.storage).await);
    let green = store.search(&target("s"), &meaning("green")).await;
    assert_eq!(sequences(&green.results)[0], 1);
    store.embedding.fail_on(None);
    let before = report.messages;
    let report = rebuild(&store.storage).await;
    assert!(report.failure.is_none());
    assert_eq!(before + report.messages, 4);
    assert!(store.pending(&target("s")).await.is_empty());
    assert_eq!(rebuild(&store.storage).await.messages, 4);
    assert_eq!(store.vectors(&target("s")).await.len(), 2);
}

/// `backfill` makes pending vectors and retries rejected texts.
pub async fn backfill_retries_failures(store: Store) {
    store.embedding.refuse(Some("poison"));
    store.sync(&target("s"), vec![lines::user("a poisoned apple"), lines::user("a pear")]).await;
    assert_eq!(store.vectors(&target("s")).await.len(), 1);
    let report = store.storage.vectors().backfill(&of_ana(), &mut |_| {}).await.unwrap();
    assert_eq!((report.messages, report.refused), (0, 1));
    store.embedding.refuse(None);
    let report = store.storage.vectors().backfill(&of_ana(), &mut |_| {}).await.unwrap();
    assert_eq!((report.messages, report.refused), (1, 0));
    assert_eq!(store.vectors(&target("s")).await.len(), 2);
    let status = store.storage.vectors().vector_status(&ana()).await.unwrap();
    assert!(status.current.unwrap().counts.failed.is_empty());
    assert_eq!(store.storage.vectors().backfill(&of_ana(), &mut |_| {}).await.unwrap().messages, 0);
}

/// Status counts messages with vectors, pending ones and failures with their reasons, within the scope.
pub async fn vectors_are_counted_by_generation(store: Store) {
    store.embedding.refuse(Some("poison"));
    let lines = vec![lines::user("a pear"), lines::user("poison"), lines::system("be kind")];
    store.sync(&target("s"), lines).await;
    store.sync_text(&target("t"), vec![lines::user("late")]).await;
    store.sync(&target_of("ben", "shop", "b"), vec![lines::user("of ben")]).await;

    let status = store.storage.vectors().vector_status(&ana()).await.unwrap();
    assert_eq!((status.embeddable, status.nothing, status.leftover_vectors), (3, 1, 0));
    let current = status.current.unwrap();
    assert_eq!(current.space.model, "fake-words");
    assert_eq!((current.counts.messages, current.counts.vectors, current.counts.pending), (1, 1, 1));
    let reasons: Vec<_> = current.counts.failed.into_iter().collect();
    assert_eq!(reasons.len(), 1);
    assert!(reasons[0].0.contains("rejects") && reasons[0].1 == 1, "{reasons:?}");
    let all = store.storage.vectors().vector_status(&Scope::Everyone).await.unwrap();
    assert_eq!((all.embeddable, all.current.unwrap().counts.messages), (4, 2));
    let empty = store.storage.vectors().vector_status(&scope(&target_of("eve", "shop", "x"))).await.unwrap();
    assert_eq!((empty.embeddable, empty.nothing), (0, 0));
}

/// Late vectors of a process that did not notice a rebuild are rejected.
pub async fn vectors_of_an_unknown_generation_are_refused(store: Store) {
    fill(&store).await;
    assert!(rebuild(&store.storage_with(Some(other()))).await.failure.is_none());
    let key = &target("s").key;
    for generation in [0, 2] {
        assert_eq!(kind(store.backend.write_vectors(key, generation, vec![]).await), ErrorKind::Validation);
        assert_eq!(kind(store.backend.complete_generation(generation).await), ErrorKind::Validation);
        let query = PendingQuery { generation, ..pending_query(&key.user_id, None, None, 10) };
        assert!(store.backend.messages_pending_vectors(&query).await.unwrap().is_empty());
    }
    assert!(store.backend.complete_generation(1).await.unwrap());
    assert_eq!(store.backend.mark_pending(key, MessagesToEmbed::Failed).await.unwrap(), 0);
    assert_eq!(store.backend.mark_pending(key, MessagesToEmbed::At(vec![1, 7])).await.unwrap(), 1);
    assert_eq!(
        store
            .pending_of(PendingQuery { generation: 1, ..pending_query(&key.user_id, None, None, 10) })
            .await
            .len(),
        1
    );
    assert_eq!(store.backend.mark_pending(key, MessagesToEmbed::All).await.unwrap(), 1);
    assert_eq!(store.backend.mark_pending(key, MessagesToEmbed::All).await.unwrap(), 0);
}

/// A completed rebuild removes the old vectors. Renames and deletions apply to the new ones.
pub async fn a_rebuild_removes_the_previous_generation(store: Store) {
    fill(&store).await;
    let new = store.storage_with(Some(other()));
    assert!(rebuild(&new).await.failure.is_none());
    assert!(store.vectors(&target("s")).await.is_empty());
    let status = new.vectors().vector_status(&Scope::Everyone).await.unwrap();
    assert_eq!((status.leftover_vectors, status.current.unwrap().counts.vectors), (0, 6));
    let (ana, ben) = (target("s").key, target_of("ben", "shop", "s").key);
    let eve = target_of("eve", "shop", "s");
    new.users().rename_user(&ben.user_id, &eve.key.user_id).await.unwrap();
    new.sessions().delete_session(&ana.user_id, &target("s").project_slug, &ana.session_id).await.unwrap();
    let found = new.search().search_transcripts(&scope(&eve), &meaning("apple")).await.unwrap();
    assert_eq!(sequences(&found.results)[0], 0);
    let status = new.vectors().vector_status(&Scope::Everyone).await.unwrap();
    assert_eq!(status.current.unwrap().counts.vectors, 4);
}
