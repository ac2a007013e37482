//! Generations of vectors: making them anew, beside those that are searched, and texts that can't be embedded.

use amplifier_session_core::{
    ErrorKind, Scope, SessionStorage,
    backend::{OweAgain, meta::Generations, prelude::*},
    search::{SearchMode, SearchOptions},
    storage::{EmbedReport, EstimateOf, SyncLines, VectorsOf},
};

use super::{
    Subject,
    store::{Store, kind, meaning, raw, says_words_alone, scope, sequences, target, target_of},
};
use crate::{FakeEmbedding, lines};

/// Another model, with other dimensions.
fn other() -> FakeEmbedding {
    FakeEmbedding::new().with_model("other-words").with_dimensions(48)
}

fn of_ana() -> VectorsOf {
    VectorsOf::user(target("s").key.user_id)
}

async fn rebuild(storage: &SessionStorage) -> EmbedReport {
    storage.rebuild(&of_ana(), &mut |_| {}).await.unwrap()
}

async fn generations(store: &Store) -> Generations {
    Generations::of(&store.backend.meta().await.unwrap())
}

/// Three sessions of two users, each with two messages to embed.
async fn filled(subject: &dyn Subject) -> Store {
    let store = Store::open(subject).await;
    for (user, session) in [("ana", "s"), ("ana", "t"), ("ben", "s")] {
        let lines = vec![lines::user("a red apple"), lines::assistant("a green pear")];
        store.sync(&target_of(user, "shop", session), lines).await;
        store.storage.embed_owed(&target_of(user, "shop", session).key.user_id, None).await.unwrap();
    }
    store
}

async fn finds_by_meaning(storage: &SessionStorage) -> bool {
    let found = storage.search_transcripts(&scope(&target("s")), &meaning("apple")).await;
    found.is_ok_and(|found| found.results.first().is_some_and(|first| first.sequence == 0))
}

/// Until the new vectors are complete, of all users, searches with the old model go on, and the new one has to wait;
/// then it is the other way round.
pub async fn a_rebuild_with_another_model_is_searched_once_it_is_complete(subject: &dyn Subject) {
    let store = filled(subject).await;
    let new = store.storage_with(Some(other()));
    assert!(finds_by_meaning(&store.storage).await && !finds_by_meaning(&new).await);

    let report = rebuild(&new).await;
    assert!(report.failure.is_none());
    assert_eq!((report.messages, report.total()), (6, 6));
    assert!(finds_by_meaning(&new).await && !finds_by_meaning(&store.storage).await);
    let of_ben =
        new.search_transcripts(&scope(&target_of("ben", "shop", "s")), &meaning("pear")).await.unwrap();
    assert_eq!(of_ben.results[0].sequence, 1);
    assert_eq!(new.embedding_space().await.unwrap().unwrap().dimensions, 48);
    let held = generations(&store).await;
    assert_eq!((held.current_number(), held.next), (1, None));

    // A second one, back to the first model.
    assert!(rebuild(&store.storage).await.failure.is_none());
    assert!(finds_by_meaning(&store.storage).await);
    assert_eq!(generations(&store).await.current_number(), 2);
}

/// A rebuild that fails midway has changed nothing for searches; the next call makes what is left, and only that.
pub async fn a_rebuild_that_breaks_off_goes_on_where_it_was(subject: &dyn Subject) {
    let store = filled(subject).await;
    let model = std::sync::Arc::new(other());
    let new = store.storage.clone().with_embedding(Some(model.clone()));
    store.sync(&target("u"), vec![lines::user("a bad melon")]).await;
    model.fail_on(Some("melon"));
    assert!(rebuild(&new).await.failure.is_some());
    assert!(finds_by_meaning(&store.storage).await);
    let hybrid = new.search_transcripts(&scope(&target("s")), &SearchOptions::new("apple")).await.unwrap();
    assert_eq!(hybrid.mode, SearchMode::FullText);
    assert!(
        says_words_alone(&hybrid) && hybrid.notices[0].contains("still being made"),
        "{:?}",
        hybrid.notices
    );

    let status = new.vector_status(&Scope::Everyone).await.unwrap();
    let next = status.next.unwrap();
    assert_eq!(next.space.model, "other-words");
    assert_eq!(next.counts.messages + next.counts.owing, 7);
    assert!(next.counts.owing > 0);
    model.fail_on(None);
    let report = rebuild(&new).await;
    assert!(report.failure.is_none());
    assert_eq!(report.messages, next.counts.owing);
    assert!(finds_by_meaning(&new).await);
}

/// A message that is put, or changed, while a rebuild is under way gets vectors of both generations.
pub async fn messages_that_come_during_a_rebuild_are_part_of_it(subject: &dyn Subject) {
    let store = filled(subject).await;
    let model = std::sync::Arc::new(other());
    let new = store.storage.clone().with_embedding(Some(model.clone()));
    model.fail_on(Some("pear"));
    assert!(rebuild(&new).await.failure.is_some());
    store.sync(&target("s"), vec![lines::user("a blue plum"), lines::assistant("a green fig")]).await;
    store.storage.embed_owed(&target("s").key.user_id, None).await.unwrap();
    let plum = store.search(&target("s"), &meaning("plum")).await;
    assert_eq!(sequences(&plum.results)[0], 0);
    model.fail_on(None);
    assert!(rebuild(&new).await.failure.is_none());
    for (word, sequence) in [("plum", 0), ("fig", 1)] {
        let found = new.search_transcripts(&scope(&target("s")), &meaning(word)).await.unwrap();
        assert_eq!(found.results[0].sequence, sequence, "{word}");
        assert_eq!(found.results[0].session_id, target("s").key.session_id);
    }
}

/// Making the vectors of the current model anew ends a rebuild with another one.
pub async fn a_rebuild_that_is_given_up_leaves_nothing(subject: &dyn Subject) {
    let store = filled(subject).await;
    let model = std::sync::Arc::new(other());
    let new = store.storage.clone().with_embedding(Some(model.clone()));
    store.sync(&target("u"), vec![lines::user("a bad melon")]).await;
    model.fail_on(Some("melon"));
    assert!(rebuild(&new).await.failure.is_some());
    assert!(rebuild(&store.storage).await.failure.is_none());
    assert!(finds_by_meaning(&store.storage).await);
    let status = store.storage.vector_status(&Scope::Everyone).await.unwrap();
    assert_eq!((status.next, status.leftover_vectors), (None, 0));
    // What it had made counts for nothing when the other model is asked for again.
    model.fail_on(None);
    model.reset_counts();
    assert_eq!(rebuild(&new).await.messages, 7);
    assert!(finds_by_meaning(&new).await);
}

/// A rebuild with a third model takes the place of the one that is under way.
pub async fn another_rebuild_takes_the_place_of_the_first(subject: &dyn Subject) {
    let store = filled(subject).await;
    let second = other();
    second.fail_on(Some("pear"));
    assert!(rebuild(&store.storage_with(Some(second))).await.failure.is_some());
    let third = store.storage_with(Some(FakeEmbedding::new().with_model("third")));
    assert!(rebuild(&third).await.failure.is_none());
    assert!(finds_by_meaning(&third).await);
    let status = third.vector_status(&Scope::Everyone).await.unwrap();
    assert_eq!((status.next, status.leftover_vectors), (None, 0));
    assert_eq!(status.current.unwrap().counts.messages, 6);
}

/// With the same model, the old vectors of a message are searched until the new ones are there.
pub async fn vectors_are_made_anew_with_the_same_model(subject: &dyn Subject) {
    let store = filled(subject).await;
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
    assert!(store.owing(&target("s")).await.is_empty());
    assert_eq!(rebuild(&store.storage).await.messages, 4);
    assert_eq!(store.vectors(&target("s")).await.len(), 2);
}

/// One session, or one project; a part of the store can't be made anew with another model.
pub async fn a_part_of_the_store_is_made_anew(subject: &dyn Subject) {
    let store = filled(subject).await;
    store.sync(&target_of("ana", "garden", "g"), vec![lines::user("a rose")]).await;
    let session = of_ana().with_session(Some(target("t").key.session_id));
    let project = of_ana().with_project(Some(target_of("ana", "garden", "g").project_slug));
    for (of, messages) in [(&session, 2), (&project, 1)] {
        let report = store.storage.rebuild(of, &mut |_| {}).await.unwrap();
        assert_eq!((report.messages, report.failure.is_none()), (messages, true));
        let with_other = store.storage_with(Some(other()));
        assert_eq!(kind(with_other.rebuild(of, &mut |_| {}).await), ErrorKind::Validation);
    }
    assert_eq!(generations(&store).await.next, None);
    let without = store.storage_with(None);
    assert_eq!(kind(without.rebuild(&of_ana(), &mut |_| {}).await), ErrorKind::Unsupported);
    assert_eq!(kind(without.backfill(&of_ana(), &mut |_| {}).await), ErrorKind::Unsupported);
}

/// Of many texts the one that the service refuses is found, and no other message suffers.
pub async fn a_refused_text_fails_alone(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    store.embedding.refuse(Some("poison"));
    let mut lines: Vec<_> = (0..20).map(|n| lines::user(&format!("apple number {n}"))).collect();
    lines[7] = lines::user("a poisoned apple");
    let without = store.storage_with(None);
    without.sync_transcript_lines(&target("s"), SyncLines::whole(raw(lines))).await.unwrap();
    let report = store.storage.embed_owed(&target("s").key.user_id, None).await.unwrap();
    assert_eq!((report.messages, report.refused), (19, 1));
    assert!(report.failure.is_none());
    assert!(store.owing(&target("s")).await.is_empty());
    let sequences: Vec<u32> = store.vectors(&target("s")).await.into_iter().map(|(at, _)| at).collect();
    assert_eq!(sequences.len(), 19);
    assert!(!sequences.contains(&7));
    store.embedding.reset_counts();
    store.storage.embed_owed(&target("s").key.user_id, None).await.unwrap();
    assert_eq!(store.embedding.calls(), 0);
    assert_eq!(store.find(&target("s"), "poisoned").await, [7]);
}

/// A service that refuses each of many texts has something against us, not against the texts.
pub async fn a_service_that_refuses_everything_marks_nothing(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    store.embedding.refuse(Some("apple"));
    let lines: Vec<_> = (0..20).map(|n| lines::user(&format!("apple number {n}"))).collect();
    store.storage_with(None).sync_transcript_lines(&target("s"), SyncLines::whole(raw(lines))).await.unwrap();
    let report = store.storage.embed_owed(&target("s").key.user_id, None).await.unwrap();
    assert!(report.failure.is_some());
    assert_eq!((report.messages, report.refused), (0, 0));
    assert_eq!(store.owing(&target("s")).await.len(), 20);
}

/// Batches that came back before another failed are not paid for twice.
pub async fn what_was_made_before_a_failure_is_kept(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let lines: Vec<_> = (0..40).map(|n| lines::user(&format!("apple number {n}"))).collect();
    store.storage_with(None).sync_transcript_lines(&target("s"), SyncLines::whole(raw(lines))).await.unwrap();
    store.embedding.fail_on(Some("number 35"));
    for _ in 0..20 {
        let report = store.storage.embed_owed(&target("s").key.user_id, None).await.unwrap();
        assert!(report.failure.is_some());
        if report.messages == 0 {
            break;
        }
    }
    let owing = store.owing(&target("s")).await;
    assert!(owing.len() <= 16 && owing.contains(&35), "{owing:?}");
    let made: Vec<String> = store.embedding.texts();
    assert_eq!(made.iter().filter(|text| text.ends_with("number 0")).count(), 1);
}

/// `backfill` makes what is owed, and asks once more for what was refused.
pub async fn failures_are_tried_again_when_asked_for(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    store.embedding.refuse(Some("poison"));
    store.sync(&target("s"), vec![lines::user("a poisoned apple"), lines::user("a pear")]).await;
    assert_eq!(store.vectors(&target("s")).await.len(), 1);
    let report = store.storage.backfill(&of_ana(), &mut |_| {}).await.unwrap();
    assert_eq!((report.messages, report.refused), (0, 1));
    store.embedding.refuse(None);
    let report = store.storage.backfill(&of_ana(), &mut |_| {}).await.unwrap();
    assert_eq!((report.messages, report.refused), (1, 0));
    assert_eq!(store.vectors(&target("s")).await.len(), 2);
    let status = store.storage.vector_status(&scope(&target("s"))).await.unwrap();
    assert!(status.current.unwrap().counts.failed.is_empty());
    assert_eq!(store.storage.backfill(&of_ana(), &mut |_| {}).await.unwrap().messages, 0);
}

/// With, without, failed and why, in the scope that is asked for.
pub async fn vectors_are_counted_by_generation(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    store.embedding.refuse(Some("poison"));
    store
        .sync(&target("s"), vec![lines::user("a pear"), lines::user("poison"), lines::system("be kind")])
        .await;
    let without = store.storage_with(None);
    let late = SyncLines::whole(raw(vec![lines::user("late")]));
    without.sync_transcript_lines(&target("t"), late).await.unwrap();
    store.sync(&target_of("ben", "shop", "b"), vec![lines::user("of ben")]).await;

    let status = store.storage.vector_status(&scope(&target("s"))).await.unwrap();
    assert_eq!((status.embeddable, status.nothing, status.leftover_vectors), (3, 1, 0));
    let current = status.current.unwrap();
    assert_eq!(current.space.model, "fake-words");
    assert_eq!((current.counts.messages, current.counts.vectors, current.counts.owing), (1, 1, 1));
    let reasons: Vec<_> = current.counts.failed.into_iter().collect();
    assert_eq!(reasons.len(), 1);
    assert!(reasons[0].0.contains("refuses") && reasons[0].1 == 1, "{reasons:?}");
    let all = store.storage.vector_status(&Scope::Everyone).await.unwrap();
    assert_eq!((all.embeddable, all.current.unwrap().counts.messages), (4, 2));
    let empty = store.storage.vector_status(&scope(&target_of("eve", "shop", "x"))).await.unwrap();
    assert_eq!((empty.embeddable, empty.nothing), (0, 0));
}

/// What is late, from a process that does not know that the vectors were made anew, is not mixed with them.
pub async fn vectors_of_an_unknown_generation_are_refused(subject: &dyn Subject) {
    let store = filled(subject).await;
    assert!(rebuild(&store.storage_with(Some(other()))).await.failure.is_none());
    let key = &target("s").key;
    for generation in [0, 2] {
        assert_eq!(kind(store.backend.write_vectors(key, generation, vec![]).await), ErrorKind::Validation);
        let completed = store.backend.complete_generation(generation).await;
        assert_eq!(kind(completed), ErrorKind::Validation);
        let query = super::store::owing_query(&key.user_id, None, None, 10);
        let query = amplifier_session_core::backend::OwingQuery { generation, ..query };
        assert!(store.backend.messages_owing_vectors(&query).await.unwrap().is_empty());
    }
    assert!(store.backend.complete_generation(1).await.unwrap());
    assert_eq!(store.backend.owe_vectors(key, OweAgain::Failed).await.unwrap(), 0);
    assert_eq!(store.backend.owe_vectors(key, OweAgain::All).await.unwrap(), 2);
    assert_eq!(store.backend.owe_vectors(key, OweAgain::All).await.unwrap(), 0);
}

/// Texts, tokens and calls, of what is owed or of everything; nothing is sent.
pub async fn an_estimate_counts_what_would_be_sent(subject: &dyn Subject) {
    let store = filled(subject).await;
    let without = store.storage_with(None);
    let late = SyncLines::whole(raw(vec![lines::user("one two three"), lines::system("x")]));
    without.sync_transcript_lines(&target("t"), late).await.unwrap();
    store.embedding.reset_counts();
    let owed = store.storage.estimate_embedding(&of_ana(), EstimateOf::Owed).await.unwrap();
    assert_eq!((owed.messages, owed.texts, owed.tokens, owed.calls), (1, 1, 3, 1));
    let all = store.storage.estimate_embedding(&of_ana(), EstimateOf::Everything).await.unwrap();
    assert_eq!((all.texts, all.tokens, all.calls), (3, 9, 1));
    assert_eq!(store.embedding.calls(), 0);
    assert_eq!(kind(without.estimate_embedding(&of_ana(), EstimateOf::Owed).await), ErrorKind::Unsupported);
}

/// The vectors of before are gone when the new ones are searched; a renamed user and a deleted session have theirs.
pub async fn a_rebuild_leaves_no_word_of_the_generation_before(subject: &dyn Subject) {
    let store = filled(subject).await;
    let new = store.storage_with(Some(other()));
    assert!(rebuild(&new).await.failure.is_none());
    assert!(store.vectors(&target("s")).await.is_empty());
    let status = new.vector_status(&Scope::Everyone).await.unwrap();
    assert_eq!((status.leftover_vectors, status.current.unwrap().counts.vectors), (0, 6));
    let (ana, ben) = (target("s").key, target_of("ben", "shop", "s").key);
    let eve = target_of("eve", "shop", "s");
    new.rename_user(&ben.user_id, &eve.key.user_id).await.unwrap();
    new.delete_session(&ana.user_id, &target("s").project_slug, &ana.session_id).await.unwrap();
    let found = new.search_transcripts(&scope(&eve), &meaning("apple")).await.unwrap();
    assert_eq!(sequences(&found.results)[0], 0);
    let status = new.vector_status(&Scope::Everyone).await.unwrap();
    assert_eq!(status.current.unwrap().counts.vectors, 4);
}
