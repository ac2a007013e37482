//! Verification: correct rows are found to be correct, even after rows were replaced and removed.

use super::{events::sized, generations::of_ana};
use crate::prelude::*;

/// Checks that a session equals the data derived from it.
pub async fn assert_is_clean(store: &Store, target: &IngestTarget) -> SessionCheck {
    let check = store.storage.verification().check_session(&store.stored(target).await).await.unwrap();
    assert_eq!(check.differences, [], "{target:?}");
    assert!(
        check.is_clean()
            && store
                .storage
                .verification()
                .missing_rows(&store.stored(target).await.session)
                .await
                .unwrap()
                .is_empty()
    );
    check
}

async fn assert_index_is_clean(store: &Store) -> IndexCheck {
    let check = store.backend.check_index().await.unwrap();
    assert_eq!(check.problems, []);
    assert_eq!(check.problem_count, 0);
    check
}

fn conversation(turns: usize) -> Vec<Line> {
    let turn = |n: usize| {
        [
            lines::user(&format!("why does step {n} fail?")),
            lines::thinking("it may be the cache", &format!("step {n} needs a lock")),
            lines::tool_call("bash", json!({"command": "make"})),
            lines::tool("made"),
        ]
    };
    (0..turns).flat_map(turn).collect()
}

/// Fills sessions of two users with messages of all kinds and with large events.
async fn fill(store: &Store) {
    for (user, session) in [("ana", "s"), ("ana", "t"), ("ben", "s")] {
        let target = target_of(user, "shop", session);
        store.sync(&target, conversation(12)).await;
        store.sync_events(&target, vec![sized(10), sized(600_000), sized(20_000), sized(900_000)]).await;
    }
    store.storage.update_index().await.unwrap();
}

/// A store that was filled, and changed in every way, has no differences. The index contains the same as the rows.
pub async fn a_store_equals_what_is_derived_from_it(store: Store) {
    let awkward = target("awkward");
    fill(&store).await;
    store.sync(&awkward, samples::awkward_messages().into_iter().map(|(_, line)| line).collect()).await;
    store.sync_events(&awkward, samples::awkward_events().into_iter().map(|(_, line)| line).collect()).await;
    for handle in [&store.again().await, &store] {
        for (user, session) in [("ana", "s"), ("ana", "t"), ("ben", "s"), ("ana", "awkward")] {
            let check = assert_is_clean(handle, &target_of(user, "shop", session)).await;
            if session != "awkward" {
                assert_eq!((check.messages, check.events, check.vectors), (48, 4, 48));
            }
        }
        assert_index_is_clean(handle).await;
    }

    // Shorter, with other lines, and with other pieces.
    let s = target("s");
    store.sync(&s, conversation(5)).await;
    store.sync_events(&s, vec![sized(700_000), sized(30)]).await;
    store.sync_text(&target("t"), conversation(14)).await;
    store.backend.delete_session(&awkward.key).await.unwrap();
    let check = assert_is_clean(&store, &s).await;
    assert_eq!((check.messages, check.events, check.vectors), (20, 2, 20));
    assert_eq!(assert_is_clean(&store, &target("t")).await.pending_vectors, 6);
    for step in 0..2 {
        assert_index_is_clean(&store).await;
        assert_eq!(stray_rows(&store, &s.key).await, [], "{step}");
        assert_eq!(stray_rows(&store, &awkward.key).await, [], "{step}");
        assert_eq!(store.backend.remove_stray_rows(&s.key).await.unwrap(), 0);
        store.storage.update_index().await.unwrap();
    }
    assert_eq!(store.backend.stray_rows(&s.key.user_id, None).await.unwrap(), []);
    assert_eq!(stray_rows(&store, &target("unknown").key).await, []);
}

async fn stray_rows(store: &Store, key: &SessionKey) -> Vec<StrayRows> {
    store.backend.stray_rows(&key.user_id, Some(&key.session_id)).await.unwrap()
}

/// A rebuilt index equals the rows, and finds the same results.
pub async fn a_rebuilt_index_equals_the_rows(store: Store) {
    fill(&store).await;
    let found = store.find(&target("s"), "lock cache").await;
    assert!(!found.is_empty());
    store.backend.update_index(IndexUpdate::Rebuild).await.unwrap();
    let check = assert_index_is_clean(&store).await;
    assert_eq!(check.newer, 0);
    assert_eq!(store.find(&target("s"), "lock cache").await, found);
}

/// Rows that are newer than the index do not count as a difference.
pub async fn an_index_behind_the_rows_is_no_difference(store: Store) {
    fill(&store).await;
    store.sync(&target("later"), conversation(2)).await;
    store.sync(&target("s"), conversation(3)).await;
    assert_index_is_clean(&store).await;
}

/// Failures are listed with their messages and reasons, in order, for the given session and generation.
pub async fn failures_of_vectors_are_listed(store: Store) {
    store.embedding.refuse(Some("poison"));
    let lines = ["poison", "a pear", "more poison"].map(lines::user).to_vec();
    store.sync(&target("s"), lines).await;
    let failures = store.backend.vector_failures(0, &target("s").key).await.unwrap();
    assert_eq!(failures.iter().map(|(sequence, _)| *sequence).collect::<Vec<_>>(), [0, 2]);
    assert!(failures.iter().all(|(_, reason)| !reason.is_empty()));
    assert_eq!(store.backend.vector_failures(1, &target("s").key).await.unwrap(), []);
    assert_eq!(store.backend.vector_failures(0, &target("other").key).await.unwrap(), []);
    // A text that was rejected is not missing.
    let check = assert_is_clean(&store, &target("s")).await;
    assert_eq!((check.vectors, check.pending_vectors), (1, 0));
    store.embedding.refuse(None);
    store.storage.vectors().backfill(&of_ana(), &mut |_| {}).await.unwrap();
    assert_eq!(store.backend.vector_failures(0, &target("s").key).await.unwrap(), []);
}
