//! Sessions that are pulled from another store.

use std::{collections::BTreeMap, sync::Arc};

use amplifier_session_testkit::prelude::*;

use super::exchange::{
    ana_id, assert_has_all, events, other_store, pull, push, rows, superseded, texts, try_push,
};

on_both_stores![
    a_pull_takes_everything_once,
    a_pull_that_follows_hides_what_was_removed,
    a_pull_that_follows_keeps_what_is_written_meanwhile,
    sessions_of_a_renamed_user_are_hidden_and_not_deleted,
    a_version_that_is_used_again_after_a_backup_is_not_mistaken,
    what_two_machines_add_reaches_both,
    random_edits_lose_nothing,
];

/// Another machine gets everything, and then nothing. It sends nothing back.
async fn a_pull_takes_everything_once(store: Store) {
    let (laptop, server) = (other_store().await, other_store().await);
    let other = OtherStore::new(server.storage.clone());
    for session in ["a", "b", "c", "d"] {
        store.sync(&target(session), texts(0..4)).await;
        store.sync_events(&target(session), events(0..3)).await;
    }
    push(&store, &other).await;
    other.take_bytes();
    assert_eq!((pull(&store, &other).await.unchanged, other.take_bytes()), (4, 0));
    let report = pull(&laptop, &other).await;
    assert_eq!((report.sessions, report.messages, report.events), (4, 16, 12));
    for session in ["a", "b", "c", "d"] {
        assert_eq!(rows(&laptop, &target(session)).await, rows(&store, &target(session)).await);
    }
    other.take_bytes();
    assert_eq!((pull(&laptop, &other).await.unchanged, other.take_bytes()), (4, 0));
    push(&laptop, &other).await;
    store.sync_from(&target("b"), 4, texts([4])).await.unwrap();
    assert_eq!(push(&store, &other).await.messages, 1);
    other.take_bytes();
    let report = pull(&laptop, &other).await;
    assert_eq!((report.sessions, report.messages), (1, 1));
    assert!(other.take_bytes() < 3_000);
}

/// Only a pull that follows the other store hides rows and sessions, and only those that came from there.
async fn a_pull_that_follows_hides_what_was_removed(store: Store) {
    let (laptop, server) = (other_store().await, other_store().await);
    let other = OtherStore::new(server.storage.clone());
    for session in ["a", "b", "c"] {
        store.sync(&target(session), texts(0..4)).await;
    }
    push(&store, &other).await;
    pull(&laptop, &other).await;
    laptop.sync(&target("own"), texts(0..2)).await;
    server.storage.ingestion().rewind(&target("a").key, &RewindOptions::to_turn(1)).await.unwrap();
    for session in ["b", "c"] {
        assert!(server.backend.delete_session(&target(session).key).await.unwrap());
    }
    pull(&laptop, &other).await;
    let counts = async || {
        let mut counts = Vec::new();
        for session in ["a", "b", "own"] {
            counts.push(rows(&laptop, &target(session)).await.0.len());
        }
        counts
    };
    assert_eq!(counts().await, [4, 4, 2]);
    let follow = async |options: PullOptions| {
        laptop.storage.exchange().pull(&other, &options.with_follow(true), &|_| {}).await.unwrap()
    };
    // The rewind was seen, but not followed, by the pull before.
    server
        .storage
        .sessions()
        .update_session(&target("a").key, &SessionEdit::default().set_name("x"))
        .await
        .unwrap();
    let report = follow(PullOptions::new(ana_id())).await;
    assert_eq!((report.hidden.len(), report.removed.len()), (2, 0));
    assert_eq!(counts().await, [2, 0, 2]);
    assert_eq!(superseded(&laptop, &target("b")).await.len(), 4);
    assert_eq!(superseded(&laptop, &target("a")).await.len(), 2);
    let report = follow(PullOptions::new(ana_id()).with_mirror_deletes(true)).await;
    assert_eq!((report.hidden.len(), report.removed.len()), (0, 2));
    // A session of this store stays, also if the other one had it too.
    push(&laptop, &other).await;
    let edit = SessionEdit::default().set_name("y");
    server.storage.sessions().update_session(&target("own").key, &edit).await.unwrap();
    follow(PullOptions::new(ana_id())).await;
    assert!(server.backend.delete_session(&target("own").key).await.unwrap());
    let report = follow(PullOptions::new(ana_id()).with_mirror_deletes(true)).await;
    assert_eq!((report.hidden.len(), report.removed.len()), (0, 0));
    assert_eq!(rows(&laptop, &target("own")).await.0.len(), 2);
}

/// Another process adds a line to a session just before it is deleted: the session is not the other store's any more.
async fn a_pull_that_follows_keeps_what_is_written_meanwhile(store: Store) {
    let (server, target) = (other_store().await, target("s"));
    let other = OtherStore::new(server.storage.clone());
    server.sync(&target, texts(0..4)).await;
    let flaky = Arc::new(FlakyBackend::new(store.backend.clone()));
    let storage = SessionStorage::new(flaky.clone());
    let options = PullOptions::new(ana_id()).with_follow(true).with_mirror_deletes(true);
    storage.exchange().pull(&other, &options, &|_| {}).await.unwrap();
    let stored = store.stored(&target).await;
    let mut change = SessionChange::new(stored.session, Some(stored.version));
    // As a sync of files leaves it.
    change.sync_state = Some(StoredSyncState::of("files"));
    flaky.write_before_deletion(change);
    assert!(server.backend.delete_session(&target.key).await.unwrap());
    let report = storage.exchange().pull(&other, &options, &|_| {}).await.unwrap();
    assert_eq!((report.removed.len(), flaky.calls(Operation::DeleteSession)), (0, 1));
    assert_eq!(rows(&store, &target).await.0.len(), 4);
}

/// The user gets another name on the server, so that the old one has no sessions there. Nobody has deleted them.
async fn sessions_of_a_renamed_user_are_hidden_and_not_deleted(store: Store) {
    let (server, eve) = (other_store().await, user("eve"));
    let other = OtherStore::new(server.storage.clone());
    for session in ["a", "b"] {
        server.sync(&target(session), texts(0..4)).await;
    }
    let options = PullOptions::new(ana_id()).with_follow(true).with_mirror_deletes(true);
    store.storage.exchange().pull(&other, &options, &|_| {}).await.unwrap();
    assert!(server.backend.delete_session(&target("b").key).await.unwrap());
    server.storage.users().rename_user(&ana_id(), &eve).await.unwrap();
    let report = store.storage.exchange().pull(&other, &options, &|_| {}).await.unwrap();
    assert_eq!((report.hidden.len(), report.removed.len()), (2, 0));
    assert_eq!(superseded(&store, &target("a")).await.len(), 4);
    // The name is given back: everything is there again, and what was deleted is deleted here too.
    server.storage.users().rename_user(&eve, &ana_id()).await.unwrap();
    let report = store.storage.exchange().pull(&other, &options, &|_| {}).await.unwrap();
    assert_eq!((report.sessions, report.hidden.len()), (1, 0));
    assert_eq!(rows(&store, &target("a")).await, rows(&server, &target("a")).await);
}

/// The other store was replaced by a backup, and went on differently: another state of the session has the same version.
async fn a_version_that_is_used_again_after_a_backup_is_not_mistaken(store: Store) {
    let (lost, restored, target) = (other_store().await, other_store().await, target("s"));
    for (of, numbers) in [(&lost, 10..11), (&restored, 20..23)] {
        of.backend.put_meta_if_absent(meta::STORE_ID, "0123456789abcdef").await.unwrap();
        of.sync(&target, texts(0..4)).await;
        of.sync_from(&target, 4, texts(numbers)).await.unwrap();
    }
    assert_eq!(lost.stored(&target).await.version, restored.stored(&target).await.version);
    pull(&store, &OtherStore::new(lost.storage.clone())).await;
    let report = pull(&store, &OtherStore::new(restored.storage.clone())).await;
    assert_eq!((report.sessions, report.messages), (1, 3));
    assert_eq!(rows(&store, &target).await, rows(&restored, &target).await);
    assert_has_all(&store, &lost, &target).await;
}

/// A session goes on in turn on two machines.
async fn what_two_machines_add_reaches_both(store: Store) {
    let (laptop, server, target) = (other_store().await, other_store().await, target("s"));
    let other = OtherStore::new(server.storage.clone());
    store.sync(&target, texts(0..2)).await;
    for round in 1..4_usize {
        push(&store, &other).await;
        pull(&laptop, &other).await;
        let count = rows(&laptop, &target).await.0.len();
        laptop.sync_from(&target, count as u32, texts([count, count + 1])).await.unwrap();
        push(&laptop, &other).await;
        pull(&store, &other).await;
        assert_eq!(rows(&store, &target).await, rows(&laptop, &target).await, "{round}");
        let count = rows(&store, &target).await.0.len();
        store.sync_from(&target, count as u32, texts([count, count + 1])).await.unwrap();
    }
    assert!(superseded(&server, &target).await.is_empty());
}

/// Whatever happens on a machine: after a push, the other store has every line, and the next push sends nothing.
async fn random_edits_lose_nothing(store: Store) {
    for seed in 0..rounds(12, 1_000) {
        let (store, server) = (store.again().await, other_store().await);
        let mut random = Random(seed);
        let other = OtherStore::new(server.storage.clone());
        let ben = target_of("ben", "p", "0");
        server.sync(&ben, texts(0..3)).await;
        let of_ben = rows(&server, &ben).await;
        let target_of_n = |n: usize| target_of("ana", "p", &format!("{seed}-{n}"));
        let mut seen: BTreeMap<usize, usize> = BTreeMap::new();
        for step in 0..14 {
            let n = random.below(3);
            let target = target_of_n(n);
            let (messages, _) = rows(&store, &target).await;
            let fresh = 1_000 * (step + 1);
            match random.below(9) {
                0..=2 => {
                    let start = messages.len();
                    store.sync_from(&target, start as u32, texts(fresh..fresh + 3)).await.unwrap();
                    let count = store.stored(&target).await.session.event_count;
                    store.sync_events_from(&target, count, events(fresh..fresh + 2)).await.unwrap();
                }
                3 if !messages.is_empty() => {
                    let _ = store.storage.ingestion().rewind(&target.key, &RewindOptions::to_turn(1)).await;
                }
                4 => drop(store.sync(&target, texts(fresh..fresh + 4)).await),
                5 if !messages.is_empty() => {
                    let edit = SessionEdit::default().set_name(format!("{step}").as_str()).add_tags(["t"]);
                    store.storage.sessions().update_session(&target.key, &edit).await.unwrap();
                }
                6 if !messages.is_empty() => drop(store.backend.delete_session(&target.key).await.unwrap()),
                7 => {
                    // Another machine adds lines to the other store.
                    let count = rows(&server, &target).await.0.len();
                    let lines = texts(fresh + 500..fresh + 502);
                    server.sync_from(&target, count as u32, lines).await.unwrap();
                }
                _ => {
                    other.break_after(random.below(6_000) as u64);
                    let _ = try_push(&store, &other).await;
                    other.break_after(u64::MAX);
                }
            }
            if random.below(2) == 0 {
                push(&store, &other).await;
                for n in 0..3 {
                    if store.backend.get_session(&target_of_n(n).key).await.unwrap().is_some() {
                        assert_has_all(&server, &store, &target_of_n(n)).await;
                    }
                }
                other.take_bytes();
                push(&store, &other).await;
                assert_eq!(other.take_bytes(), 0, "seed {seed}, step {step}");
            }
            for n in 0..3 {
                let target = target_of_n(n);
                if server.backend.get_session(&target.key).await.unwrap().is_some() {
                    let rows = rows(&server, &target).await;
                    let all = rows.0.len() + rows.1.len() + superseded(&server, &target).await.len();
                    let before = seen.insert(n, all).unwrap_or_default();
                    assert!(all >= before, "seed {seed}, step {step}: {all} of {before} lines");
                }
            }
        }
        assert_eq!(rows(&server, &ben).await, of_ben);
        // The next seed begins with an empty store.
        for n in 0..3 {
            let _ = store.backend.delete_session(&target_of_n(n).key).await.unwrap();
        }
    }
}
