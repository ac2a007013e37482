//! Isolation of users: no user reads or changes data of another, even if ids are the same.

use crate::prelude::*;

/// Session ids are any names of folders: sessions whose ids differ only in unusual characters are distinct, and each is
/// written, read, listed by a prefix, searched and deleted.
pub async fn session_ids_are_literal(store: Store) {
    let ids =
        ["daily standup", "daily+standup", "daily%20standup", "naïve-1", "a|b#4", "#1 ? 100%", "ÿ\u{10ffff}"];
    for id in ids {
        store.sync(&target(id), vec![lines::user(&format!("needle of {id}"))]).await;
        store.sync_events(&target(id), vec![lines::logger_event("e")]).await;
    }
    store.storage.update_index().await.unwrap();
    let query = |prefix: &str| SessionQuery::new(ana()).with_id_prefix(Some(prefix.to_owned()));
    for (n, id) in ids.into_iter().enumerate() {
        let target = target(id);
        assert_eq!(store.stored(&target).await.session.session_id.as_str(), id);
        assert_eq!(store.messages(&target).await[0].content(), json!(format!("needle of {id}")));
        assert_eq!(store.events(&target).await.len(), 1, "{id}");
        assert_eq!(store.vectors(&target).await.len(), 1, "{id}");
        let filter = SearchFilter::default().with_session(target.key.session_id.clone());
        for options in [words("needle"), meaning("needle")] {
            let found = store.search(&target, &options.with_filter(filter.clone())).await.results;
            assert_eq!(found.len(), 1, "{id}");
        }
        let beginning: String = id.chars().take(2).collect();
        let listed = store.listed(&query(&beginning)).await;
        assert!(listed.contains(&format!("ana/{id}")), "{id}: {listed:?}");
        assert!(store.backend.delete_session(&target.key).await.unwrap(), "{id}");
        let left = store.storage.sessions().search_sessions(&SessionQuery::new(ana())).await.unwrap();
        assert_eq!(left.len(), ids.len() - n - 1, "{id}");
    }
}

/// User names that a store might not take literally.
const AWKWARD_USERS: [&str; 10] =
    ["a", "A", "a%", "a_b", "axb", "o'brien\"; --", "a b", "ana@example.com", "アナ", "a/s"];

async fn fill(store: &Store, target: &IngestTarget) {
    let said = format!("said by {}", target.key.user_id);
    store.sync(target, vec![lines::user("a shared word"), lines::thinking("a shared thought", &said)]).await;
    store.sync_events(target, vec![lines::logger_event("e").data(said.into())]).await;
}

/// Two users with the same session id have two sessions, with separate messages, events, vectors and metadata.
pub async fn the_same_session_id_of_two_users_is_two_sessions(store: Store) {
    let (ana, ben) = (target_of("ana", "shop", "same"), target_of("ben", "shop", "same"));
    fill(&store, &ana).await;
    let before = store.everything(&ana).await;

    fill(&store, &ben).await;
    store.sync_metadata(&ben, r#"{"name":"ben's"}"#).await;
    store.sync(&ben, vec![lines::user("ben's own"), lines::user("and"), lines::user("more")]).await;
    store.sync_events(&ben, vec![lines::logger_event("x"), lines::logger_event("y")]).await;
    assert_eq!(store.everything(&ana).await, before);
    let (_, (messages, events, vectors)) = store.everything(&ben).await;
    assert_eq!((messages.len(), events.len(), vectors.len()), (3, 2, 3));
    assert_eq!(messages[0].id(), before.1.0[0].id());

    assert!(store.backend.delete_session(&ben.key).await.unwrap());
    assert_eq!(store.everything(&ana).await, before);
    assert!(store.messages(&ben).await.is_empty());
    assert_eq!(store.find(&ana, "shared").await, [0, 1]);
}

/// Searches stay in scope in every mode. A session filter matches that session id of each user in scope.
pub async fn searches_stay_in_scope(store: Store) {
    for user in ["ana", "ben"] {
        for session in ["same", "other"] {
            fill(&store, &target_of(user, "shop", session)).await;
        }
    }
    let same = SearchFilter::default().with_session(target("same").key.session_id);
    for options in [words("shared word"), meaning("shared word"), SearchOptions::new("shared word")] {
        for (filter, each) in [(SearchFilter::default(), 4), (same.clone(), 2)] {
            let options = options.clone().with_filter(filter);
            for (user, expected) in [("ana", each), ("ben", each), ("nobody", 0)] {
                let results = store.search(&target_of(user, "shop", "same"), &options).await.results;
                assert_eq!(results.len(), expected, "{user} {}", options.mode);
                assert!(results.iter().all(|result| result.user_id.as_str() == user));
            }
            let results =
                store.storage.search().search_transcripts(&Scope::Everyone, &options).await.unwrap().results;
            assert_eq!(results.len(), 2 * each, "{}", options.mode);
            assert!(each == 4 || results.iter().all(|result| result.session_id.as_str() == "same"));
        }
    }
}

/// Pending vectors and sync states are kept per user.
pub async fn pending_vectors_and_sync_states_are_kept_per_user(store: Store) {
    let targets = ["ana", "ben"].map(|user| target_of(user, "shop", "same"));
    store.embedding.fail_always(true);
    for target in &targets {
        fill(&store, target).await;
        let state = StoredSyncState::of(format!("state of {}", target.key.user_id));
        store.write(target, |change| change.sync_state = Some(state)).await;
    }
    store.embedding.fail_always(false);
    assert_eq!(store.embed().await.messages, 2);
    assert_eq!((store.pending(&targets[0]).await, store.pending(&targets[1]).await), (vec![], vec![0, 1]));
    for target in &targets {
        let states = store.backend.sync_states(&target.key.user_id, None, 10).await.unwrap();
        let state = StoredSyncState::of(format!("state of {}", target.key.user_id));
        assert_eq!(states, [(target.key.session_id.clone(), state)]);
    }
}

/// Names of users and projects are literal: no character is a pattern, a quote or a terminator.
pub async fn user_and_project_names_are_literal(store: Store) {
    for user in AWKWARD_USERS {
        fill(&store, &target_of(user, user, "s")).await;
    }
    for user in AWKWARD_USERS {
        let target = target_of(user, user, "s");
        assert_eq!(store.messages(&target).await.len(), 2, "{user}");
        assert_eq!(store.events(&target).await.len(), 1, "{user}");
        let query = || SessionQuery::new(scope(&target));
        assert_eq!(store.storage.sessions().search_sessions(&query()).await.unwrap().len(), 1, "{user}");
        let of_project = SessionFilter::default().with_project(target.project_slug.clone());
        let of_project = SessionQuery::new(Scope::Everyone).with_filter(of_project);
        assert_eq!(store.storage.sessions().search_sessions(&of_project).await.unwrap().len(), 1, "{user}");
        let filter = SearchFilter::default().with_project(target.project_slug.clone());
        for options in [words("shared"), meaning("shared")] {
            let results = store.search(&target, &options).await.results;
            assert_eq!(results.len(), 2, "{user}");
            assert!(results.iter().all(|result| result.user_id == target.key.user_id));
            let options = options.with_filter(filter.clone());
            let results =
                store.storage.search().search_transcripts(&Scope::Everyone, &options).await.unwrap().results;
            assert_eq!(results.len(), 2, "{user}");
            assert!(results.iter().all(|result| result.project == target.project_slug));
        }
    }
    let gone = target_of("a%", "a%", "s");
    assert!(store.backend.delete_session(&gone.key).await.unwrap());
    for user in AWKWARD_USERS.into_iter().filter(|user| *user != "a%") {
        assert_eq!(store.messages(&target_of(user, user, "s")).await.len(), 2, "{user}");
    }
}

/// Sessions whose keys are equal when concatenated are distinct, such as `a` + `bs` and `ab` + `s`.
pub async fn keys_that_concatenate_to_the_same_text_are_distinct(store: Store) {
    let pairs = [("a", "b_s"), ("a_b", "s"), ("a", "b"), ("a_b_s", "x")];
    for (n, (user, session)) in pairs.into_iter().enumerate() {
        store.sync(&target_of(user, "p", session), vec![lines::user(&format!("text {n}"))]).await;
        store.sync_events(&target_of(user, "p", session), vec![lines::logger_event(&n.to_string())]).await;
    }
    for (n, (user, session)) in pairs.into_iter().enumerate() {
        let target = target_of(user, "p", session);
        assert_eq!(store.messages(&target).await[0].content(), format!("text {n}"));
        assert_eq!(store.events(&target).await[0].event.event_type, n.to_string());
        assert_eq!(store.backend.read_messages(&target.key, range(0, 10)).await.unwrap().len(), 1);
        assert_eq!(store.vectors(&target).await.len(), 1);
    }
}
