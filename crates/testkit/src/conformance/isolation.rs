//! Users apart: nobody sees or changes what is another's, also where ids are the same.

use amplifier_session_core::{
    Scope,
    backend::{SessionQuery, prelude::*},
    model::{RawJson, UserId},
    search::{SearchMode, SearchOptions, SessionFilter},
    storage::IngestTarget,
};

use super::{
    Subject,
    store::{Store, meaning, range, scope, target, target_of, words},
};
use crate::lines;

/// Names of users that a store might take for something else than plain text.
const AWKWARD_USERS: [&str; 10] =
    ["a", "A", "a%", "a_b", "axb", "o'brien\"; --", "a b", "ana@example.com", "アナ", "a/s"];

async fn fill(store: &Store, target: &IngestTarget) {
    let user = &target.key.user_id;
    store
        .sync(
            target,
            vec![
                lines::user("a shared word"),
                lines::thinking("a shared thought", &format!("said by {user}")),
            ],
        )
        .await;
    store.sync_events(target, vec![lines::logger_event("e").data(user.as_str().into())]).await;
}

/// Two users with the same session id have two sessions: messages, events, vectors, metadata.
pub async fn the_same_session_id_of_two_users_is_two_sessions(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let (ana, ben) = (target_of("ana", "shop", "same"), target_of("ben", "shop", "same"));
    fill(&store, &ana).await;
    let before = (
        store.stored(&ana).await,
        store.messages(&ana).await,
        store.events(&ana).await,
        store.vectors(&ana).await,
    );

    fill(&store, &ben).await;
    store.storage.sync_session_metadata(&ben, RawJson::from(r#"{"name":"ben's"}"#)).await.unwrap();
    store.sync(&ben, vec![lines::user("ben's own"), lines::user("and"), lines::user("more")]).await;
    store.sync_events(&ben, vec![lines::logger_event("x"), lines::logger_event("y")]).await;
    let after = (
        store.stored(&ana).await,
        store.messages(&ana).await,
        store.events(&ana).await,
        store.vectors(&ana).await,
    );
    assert_eq!(after, before);
    assert_eq!((store.messages(&ben).await.len(), store.events(&ben).await.len()), (3, 2));
    assert_eq!(store.vectors(&ben).await.len(), 3);
    assert_eq!(store.messages(&ben).await[0].id(), store.messages(&ana).await[0].id());

    assert!(
        store.storage.delete_session(&ben.key.user_id, &ben.project_slug, &ben.key.session_id).await.unwrap()
    );
    let after = (
        store.stored(&ana).await,
        store.messages(&ana).await,
        store.events(&ana).await,
        store.vectors(&ana).await,
    );
    assert_eq!(after, before);
    assert!(store.messages(&ben).await.is_empty());
    assert_eq!(store.find(&ana, "shared").await, [0, 1]);
}

/// A search finds what is in scope, in every mode; everyone's scope holds it all.
pub async fn searches_stay_in_scope(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let targets = ["ana", "ben"].map(|user| target_of(user, "shop", "same"));
    for target in &targets {
        fill(&store, target).await;
    }
    for options in [words("shared word"), meaning("shared word"), SearchOptions::new("shared word")] {
        for target in &targets {
            let results = store.search(target, &options).await.results;
            assert_eq!(results.len(), 2, "{}", options.mode);
            assert!(results.iter().all(|result| result.user_id == target.key.user_id));
        }
        let results = store.storage.search_transcripts(&Scope::Everyone, &options).await.unwrap().results;
        assert_eq!(results.len(), 4, "{}", options.mode);
        let stranger = Scope::User(UserId::new("nobody").unwrap());
        assert!(store.storage.search_transcripts(&stranger, &options).await.unwrap().results.is_empty());
    }
    let ben = words("said").with_mode(SearchMode::Hybrid);
    assert!(
        store.search(&targets[0], &ben).await.results.iter().all(|result| !result.snippet.contains("ben"))
    );
}

/// A filter on a session id narrows to that session of each user in scope.
pub async fn a_filter_on_a_session_stays_in_scope(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    for user in ["ana", "ben"] {
        for session in ["same", "other"] {
            fill(&store, &target_of(user, "shop", session)).await;
        }
    }
    let filter =
        amplifier_session_core::search::SearchFilter::default().with_session(target("same").key.session_id);
    for options in [words("shared word"), meaning("shared word")] {
        let options = options.with_filter(filter.clone());
        let results = store.search(&target("same"), &options).await.results;
        assert_eq!(results.len(), 2);
        assert!(results.iter().all(|r| r.user_id.as_str() == "ana" && r.session_id.as_str() == "same"));
        let results = store.storage.search_transcripts(&Scope::Everyone, &options).await.unwrap().results;
        assert_eq!(results.len(), 4);
        assert!(results.iter().all(|result| result.session_id.as_str() == "same"));
    }
}

/// What is owed, and how far files were read, is each user's own.
pub async fn owed_vectors_and_sync_states_are_each_users_own(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let targets = ["ana", "ben"].map(|user| target_of(user, "shop", "same"));
    store.embedding.fail_always(true);
    for target in &targets {
        fill(&store, target).await;
        let mut ingest = store.storage.ingest(target.clone()).await.unwrap();
        ingest.set_sync_state(format!("state of {}", target.key.user_id));
        ingest.commit().await.unwrap();
    }
    store.embedding.fail_always(false);
    let report = store.storage.embed_owed(&targets[0].key.user_id, None).await.unwrap();
    assert_eq!(report.messages, 2);
    assert_eq!((store.owing(&targets[0]).await, store.owing(&targets[1]).await), (vec![], vec![0, 1]));
    for target in &targets {
        let states = store.backend.sync_states(&target.key.user_id, None, 10).await.unwrap();
        assert_eq!(states, [(target.key.session_id.clone(), format!("state of {}", target.key.user_id))]);
    }
}

/// Names of users and projects are plain text: no character of them is a pattern, a quote or an end.
pub async fn names_are_plain_text(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    for user in AWKWARD_USERS {
        fill(&store, &target_of(user, user, "s")).await;
    }
    for user in AWKWARD_USERS {
        let target = target_of(user, user, "s");
        assert_eq!(store.messages(&target).await.len(), 2, "{user}");
        assert_eq!(store.events(&target).await.len(), 1, "{user}");
        let query = || SessionQuery::new(scope(&target));
        assert_eq!(store.storage.search_sessions(&query()).await.unwrap().len(), 1, "{user}");
        let of_project = SessionFilter::default().with_project(target.project_slug.clone());
        let of_project = SessionQuery::new(Scope::Everyone).with_filter(of_project);
        assert_eq!(store.storage.search_sessions(&of_project).await.unwrap().len(), 1, "{user}");
        let filter =
            amplifier_session_core::search::SearchFilter::default().with_project(target.project_slug.clone());
        for options in [words("shared"), meaning("shared")] {
            let results = store.search(&target, &options).await.results;
            assert_eq!(results.len(), 2, "{user}");
            assert!(results.iter().all(|result| result.user_id == target.key.user_id));
            let options = options.with_filter(filter.clone());
            let results = store.storage.search_transcripts(&Scope::Everyone, &options).await.unwrap().results;
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

/// Sessions whose names run together in one text are still two: `a` + `bs` and `ab` + `s`.
pub async fn names_do_not_run_together(subject: &dyn Subject) {
    let store = Store::open(subject).await;
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
