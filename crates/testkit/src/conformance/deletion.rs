//! Deletion: no read returns a deleted session or anything in it.

use super::sessions::check_unknown;
use crate::prelude::*;

/// A session whose names are unique, so that any trace of it is visible in an answer.
fn target(name: &str) -> IngestTarget {
    target_of("ana", &format!("{name}-project"), &format!("{name}-session"))
}

/// Fills a session and shares it with everyone. Every session contains the word `needle`.
async fn fill(store: &Store, name: &str) {
    let target = target(name);
    let metadata = json!({"name": format!("{name} name"), "bundle": format!("{name}-bundle"),
        "description": format!("{name} text"), "tags": [format!("{name}-tag")]});
    store.sync_metadata(&target, &metadata.to_string()).await;
    let answer = format!("the needle of {name}");
    let transcript =
        vec![lines::user(&format!("needle {name}")), lines::thinking(&answer, &answer), lines::tool(&answer)];
    store.sync(&target, transcript).await;
    let events = vec![
        lines::logger_event(&format!("{name}:event")).with("event_id", format!("{name}-id").into()),
        lines::logger_event("tool:pre").data(json!({"tool_name": format!("{name}-tool")})),
        lines::logger_event("llm:response").data(
            json!({"model": format!("{name}-model"), "usage": {"input_tokens": 7}, "x": "x".repeat(300_000)}),
        ),
    ];
    store.sync_events(&target, events).await;
    store.storage.sessions().share_session(&target.key, &Sharing::public()).await.unwrap();
}

/// The answers of all reads that span sessions: for the owner, for another user, and for everyone.
async fn all_answers(store: &Store) -> String {
    let (storage, backend) = (&store.storage, &store.backend);
    let viewer = Viewer::new(target_of("ben", "p", "s").key.user_id);
    let mut answers = String::new();
    for scope in [ana(), Scope::Visible(viewer), Scope::Everyone] {
        let mut say = |answer: &dyn std::fmt::Debug| answers.push_str(&format!("{answer:?}\n"));
        say(&backend.list_sessions(&SessionQuery::new(scope.clone())).await.unwrap());
        say(&backend.session_names(&scope).await.unwrap());
        for options in [words("needle"), meaning("needle"), SearchOptions::new("needle")] {
            let options = options.with_message(true).with_limit(100);
            // Without the notices: the way in which results were found may change meanwhile.
            say(&storage.search().search_transcripts(&scope, &options).await.unwrap().results);
        }
        say(&backend.search_events(&scope, &EventSearchOptions::default()).await.unwrap());
        say(&backend.count_events(&scope, &EventFilter::default()).await.unwrap());
        let messages = backend.count_messages(&scope, &SearchFilter::default()).await.unwrap();
        let vectors = backend.count_vectors(&scope).await.unwrap().embeddable;
        say(&(messages.iter().map(|count| count.messages).sum::<u64>(), vectors));
    }
    answers
}

async fn delete(store: &Store, target: &IngestTarget) {
    assert!(store.backend.delete_session(&target.key).await.unwrap());
}

/// A deleted session is not returned by any read, before or after the index is updated.
pub async fn no_read_returns_a_deleted_session(store: Store) {
    fill(&store, "kept").await;
    let without = all_answers(&store).await;
    fill(&store, "gone").await;
    store.storage.update_index().await.unwrap();
    assert!(all_answers(&store).await.contains("gone"));
    delete(&store, &target("gone")).await;
    let id = ["gone-id".to_owned()];
    for round in 0..2 {
        for handle in [&store, &store.again().await] {
            let answers = all_answers(handle).await;
            let left: Vec<&str> = answers.lines().filter(|answer| answer.contains("gone")).collect();
            assert!(left.is_empty(), "{round} {left:?}");
            assert_eq!(answers.lines().count(), without.lines().count());
            check_unknown(&*handle.backend, &target("gone").key).await;
            let found = handle.backend.find_events(&target("gone").key.user_id, &id).await.unwrap();
            assert!(found.is_empty());
        }
        store.storage.update_index().await.unwrap();
    }
}

/// Deleting a session does not hide the same words in other sessions.
pub async fn the_same_words_in_other_sessions_are_still_found(store: Store) {
    for name in ["gone", "kept"] {
        fill(&store, name).await;
    }
    let bens = target_of("ben", "gone-project", "gone-session");
    store.sync(&bens, vec![lines::user("needle of ben")]).await;
    store.storage.update_index().await.unwrap();
    delete(&store, &target("gone")).await;
    for _ in 0..2 {
        for options in [words("needle"), meaning("needle"), SearchOptions::new("needle")] {
            let options = options.with_limit(100);
            let found =
                store.storage.search().search_transcripts(&Scope::Everyone, &options).await.unwrap().results;
            let mut places: Vec<_> =
                found.iter().map(|r| (r.user_id.as_str(), r.session_id.as_str(), r.sequence)).collect();
            places.sort_unstable();
            let kept = (0..3).map(|sequence| ("ana", "kept-session", sequence));
            assert!(places.into_iter().eq(kept.chain([("ben", "gone-session", 0)])), "{}", options.mode);
        }
        store.storage.update_index().await.unwrap();
    }
    let events = store
        .storage
        .reading()
        .search_events(&Scope::Everyone, &EventSearchOptions::default())
        .await
        .unwrap();
    assert_eq!(events.len(), 3);
    assert_eq!(store.events(&target("kept")).await.len(), 3);
}

/// A session that is created again after its deletion starts private, unedited and empty.
pub async fn a_recreated_session_starts_empty(store: Store) {
    fill(&store, "again").await;
    let edited = [SessionField::Name].into();
    store.write(&target("again"), |change| change.session.edited = edited).await;
    store.storage.update_index().await.unwrap();
    delete(&store, &target("again")).await;
    store.sync(&target("again"), vec![lines::user("a fresh start")]).await;
    let stored = store.stored(&target("again")).await;
    assert!(stored.metadata_files.is_empty() && stored.session.edited.is_empty());
    assert_eq!((stored.session.name, stored.session.bundle, stored.session.shared_at), (None, None, None));
    let viewer = Scope::Visible(Viewer::new(target_of("ben", "p", "s").key.user_id));
    assert!(store.storage.sessions().search_sessions(&SessionQuery::new(viewer)).await.unwrap().is_empty());
    assert!(store.find(&target("again"), "needle").await.is_empty());
    assert_eq!(store.find(&target("again"), "fresh").await, [0]);
    assert!(store.events(&target("again")).await.is_empty());
}

/// The sessions of a user that are remembered as deleted.
async fn remembered(store: &Store, user: &UserId) -> Vec<String> {
    let deleted = store.backend.deleted_sessions(user).await.unwrap();
    deleted.into_iter().map(|id| id.to_string()).collect()
}

/// Deleted sessions of a user are listed by session id until they are written again. Deleting a missing session is not
/// recorded.
pub async fn deletions_are_remembered(store: Store) {
    let ana = target("x").key.user_id;
    assert!(remembered(&store, &ana).await.is_empty());
    for name in ["b", "a", "c"] {
        store.sync(&target(name), vec![lines::user("hello")]).await;
    }
    let bens = target_of("ben", "a-project", "a-session");
    store.sync(&bens, vec![lines::user("hello")]).await;
    for name in ["b", "a"] {
        assert!(store.backend.delete_session(&target(name).key).await.unwrap());
        // Repeated, as after a lost response.
        assert!(!store.backend.delete_session(&target(name).key).await.unwrap());
    }
    assert!(!store.backend.delete_session(&target("missing").key).await.unwrap());
    for handle in [&store, &store.again().await] {
        assert_eq!(remembered(handle, &ana).await, ["a-session", "b-session"]);
        assert!(remembered(handle, &bens.key.user_id).await.is_empty());
    }
    store.sync(&target("a"), vec![lines::user("here again")]).await;
    assert_eq!(remembered(&store, &ana).await, ["b-session"]);
    assert!(store.backend.delete_session(&target("a").key).await.unwrap());
    assert_eq!(remembered(&store, &ana).await, ["a-session", "b-session"]);
}

/// One call deletes many sessions: those that exist, and no others. Nothing remains to be erased.
pub async fn many_sessions_are_deleted_at_once(store: Store) {
    for name in ["a", "b", "c"] {
        fill(&store, name).await;
    }
    let bens = target_of("ben", "a-project", "a-session");
    store.sync(&bens, vec![lines::user("needle of ben")]).await;
    store.storage.update_index().await.unwrap();
    let kept = (store.everything(&target("c")).await, store.everything(&bens).await);
    let keys = ["a", "missing", "b", "a"].map(|name| SessionDeletion::new(target(name).key));
    for expected in [[true, false, true, false], [false; 4]] {
        let Deletion { deleted, remains } = store.backend.delete_sessions(&keys).await;
        assert!(remains.is_empty(), "{remains:?}");
        assert_eq!(deleted.into_iter().collect::<Result<Vec<bool>>>().unwrap(), expected);
        for handle in [&store, &store.again().await] {
            for name in ["a", "b"] {
                check_unknown(&*handle.backend, &target(name).key).await;
            }
            assert_eq!((handle.everything(&target("c")).await, handle.everything(&bens).await), kept);
            assert_eq!(remembered(handle, &target("x").key.user_id).await, ["a-session", "b-session"]);
        }
        assert_eq!(store.find(&target("c"), "needle").await, [0, 1, 2]);
    }
    assert!(store.backend.delete_sessions(&[]).await.deleted.is_empty());
}

/// A deletion that expects a version leaves a session that was written since, with everything in it. The others are
/// deleted.
pub async fn only_the_expected_version_is_deleted(store: Store) {
    for name in ["seen", "written", "kept"] {
        fill(&store, name).await;
    }
    let mut sessions = Vec::new();
    for name in ["written", "missing", "seen"] {
        let stored = store.backend.get_session(&target(name).key).await.unwrap();
        let version = stored.map_or_else(|| Version("1".to_owned()), |stored| stored.version);
        sessions.push(SessionDeletion::new(target(name).key).with_expected(Some(version)));
    }
    let line = lines::user("written meanwhile");
    store.again().await.sync_from(&target("written"), 3, vec![line]).await.unwrap();
    let written = store.everything(&target("written")).await;
    let deleted = store.backend.delete_sessions(&sessions).await.deleted;
    let error = deleted[0].as_ref().unwrap_err();
    assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Conflict, true));
    assert_eq!((deleted[1].as_ref().unwrap(), deleted[2].as_ref().unwrap()), (&false, &true));
    check_unknown(&*store.backend, &target("seen").key).await;
    assert_eq!(store.everything(&target("written")).await, written);
    assert_eq!(remembered(&store, &target("x").key.user_id).await, ["seen-session"]);
    assert_eq!(store.find(&target("written"), "meanwhile").await, [3]);
    let version = store.stored(&target("written")).await.version;
    let again = SessionDeletion::new(target("written").key).with_expected(Some(version));
    assert!(store.backend.delete_version(again).await.unwrap());
    check_unknown(&*store.backend, &target("written").key).await;
}

/// Remembered deletions move with a renamed user. A session that exists under the new name is not listed as deleted.
pub async fn deletions_move_with_a_renamed_user(store: Store) {
    let (ana, eve) = (target("x").key.user_id, target_of("eve", "p", "x").key.user_id);
    let of_eve = |name: &str| target_of("eve", "p", &format!("{name}-session"));
    for name in ["both", "only"] {
        store.sync(&target(name), vec![lines::user("hello")]).await;
        assert!(store.backend.delete_session(&target(name).key).await.unwrap());
    }
    for one in [of_eve("both"), of_eve("own"), target("kept")] {
        store.sync(&one, vec![lines::user("hello")]).await;
    }
    assert!(store.backend.delete_session(&of_eve("own").key).await.unwrap());
    store.storage.users().rename_user(&ana, &eve).await.unwrap();
    assert!(remembered(&store, &ana).await.is_empty());
    assert_eq!(remembered(&store, &eve).await, ["only-session", "own-session"]);
}
