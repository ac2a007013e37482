//! Rebuilding vectors: partly, after a failure, and estimates of the effort.

use std::sync::Arc;

use amplifier_session_testkit::{
    conformance::generations::{fill, finds_by_meaning, of_ana, other, rebuild},
    prelude::*,
};

on_both_stores![
    a_failed_rebuild_resumes_where_it_stopped,
    another_rebuild_replaces_the_first,
    one_session_or_project_can_be_rebuilt,
    an_estimate_counts_what_would_be_sent,
];

/// A failed rebuild changes nothing for searches. The next call makes only the remaining vectors.
async fn a_failed_rebuild_resumes_where_it_stopped(store: Store) {
    fill(&store).await;
    let model = Arc::new(other());
    let new = store.storage.clone().with_embedding(Some(model.clone()));
    store.sync(&target("u"), vec![lines::user("a bad melon")]).await;
    model.fail_on(Some("melon"));
    assert!(rebuild(&new).await.failure.is_some());
    assert!(finds_by_meaning(&store.storage).await);
    let hybrid = new.search().search_transcripts(&ana(), &SearchOptions::new("apple")).await.unwrap();
    assert_eq!(hybrid.mode, SearchMode::FullText);
    assert!(fell_back_to_full_text(&hybrid), "{:?}", hybrid.notices);
    assert!(hybrid.notices[0].contains("is not complete"), "{:?}", hybrid.notices);

    let status = new.vectors().vector_status(&Scope::Everyone).await.unwrap();
    let next = status.next.unwrap();
    assert_eq!(next.space.model, "other-words");
    assert_eq!(next.counts.messages + next.counts.pending, 7);
    assert!(next.counts.pending > 0);
    model.fail_on(None);
    let report = rebuild(&new).await;
    assert!(report.failure.is_none());
    assert_eq!(report.messages, next.counts.pending);
    assert!(finds_by_meaning(&new).await);
}

/// A rebuild with a third model replaces an unfinished one.
async fn another_rebuild_replaces_the_first(store: Store) {
    fill(&store).await;
    let second = other();
    second.fail_on(Some("pear"));
    assert!(rebuild(&store.storage_with(Some(second))).await.failure.is_some());
    let third = store.storage_with(Some(FakeEmbedding::new().with_model("third")));
    assert!(rebuild(&third).await.failure.is_none());
    assert!(finds_by_meaning(&third).await);
    let status = third.vectors().vector_status(&Scope::Everyone).await.unwrap();
    assert_eq!((status.next, status.leftover_vectors), (None, 0));
    assert_eq!(status.current.unwrap().counts.messages, 6);
}

/// One session or one project can be rebuilt, but not with another model.
async fn one_session_or_project_can_be_rebuilt(store: Store) {
    fill(&store).await;
    store.sync(&target_of("ana", "garden", "g"), vec![lines::user("a rose")]).await;
    let session = of_ana().with_session(Some(target("t").key.session_id));
    let project = of_ana()
        .with_filter(SessionFilter::default().with_project(target_of("ana", "garden", "g").project_slug));
    for (of, messages) in [(&session, 2), (&project, 1)] {
        let report = store.storage.vectors().rebuild(of, &mut |_| {}).await.unwrap();
        assert_eq!((report.messages, report.failure.is_none()), (messages, true));
        let with_other = store.storage_with(Some(other()));
        assert_eq!(kind(with_other.vectors().rebuild(of, &mut |_| {}).await), ErrorKind::Validation);
    }
    assert_eq!(Generations::of(&store.backend.meta().await.unwrap()).next, None);
    let without = store.storage_with(None);
    assert_eq!(kind(without.vectors().rebuild(&of_ana(), &mut |_| {}).await), ErrorKind::Unsupported);
    assert_eq!(kind(without.vectors().backfill(&of_ana(), &mut |_| {}).await), ErrorKind::Unsupported);
}

/// An estimate counts texts, tokens and calls, of pending or of all messages, and sends nothing.
async fn an_estimate_counts_what_would_be_sent(store: Store) {
    fill(&store).await;
    let without = store.storage_with(None);
    store.sync_text(&target("t"), vec![lines::user("one two three"), lines::system("x")]).await;
    store.embedding.reset_counts();
    let pending = store.storage.vectors().estimate_embedding(&of_ana(), EstimateOf::Pending).await.unwrap();
    assert_eq!((pending.messages, pending.texts, pending.tokens, pending.calls), (1, 1, 3, 1));
    let all = store.storage.vectors().estimate_embedding(&of_ana(), EstimateOf::Everything).await.unwrap();
    assert_eq!((all.texts, all.tokens, all.calls), (3, 9, 1));
    assert_eq!(store.embedding.calls(), 0);
    assert_eq!(
        kind(without.vectors().estimate_embedding(&of_ana(), EstimateOf::Pending).await),
        ErrorKind::Unsupported
    );
}
