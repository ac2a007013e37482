//! Requests reach no more than their caller may read and change.

use amplifier_session_api::{
    opening::other_user,
    operations::{
        delete::DeleteRequest, edit::EditRequest, events::EventsRequest, statistics::StatisticsRequest,
    },
};

use super::*;

const SESSION: &str = "first-1";

/// A store in which ben shares a session with the id of one of ana's.
async fn with_same_id() -> SessionStorage {
    let storage = storage().await;
    for name in ["ana", "ben"] {
        let target = target_of(name, "shop", SESSION);
        if name == "ben" {
            let line = whole(vec![lines::user("the connection pool of ben is exhausted")]);
            storage.ingestion().sync_transcript_lines(&target, line).await.unwrap();
            storage.sessions().share_session(&target.key, &Sharing::public()).await.unwrap();
        }
        let event = lines::logger_event("llm:request").at("2026-01-05T08:00:00Z");
        storage.ingestion().sync_event_lines(&target, whole(vec![event])).await.unwrap();
    }
    storage
}

#[tokio::test]
async fn a_request_about_one_session_has_nothing_of_another_user_with_its_id() {
    let (storage, now) = (with_same_id().await, now());
    let caller = ana_asks().with_reach(Reach::Visible);
    let api = api(&storage, &caller, &now);
    let (scope, session) = (Reach::Visible, Some(SESSION.to_owned()));
    let request = StatisticsRequest { scope, session: session.clone(), ..StatisticsRequest::default() };
    assert_eq!(api.statistics(&request).await.unwrap().response.statistics.totals.sessions, 1);
    let request = EventsRequest { scope, session: session.clone(), ..EventsRequest::default() };
    let found = api.events(&request).await.unwrap().response.events;
    assert!(found.len() == 1 && found[0].event.user_id == user("ana"), "{found:?}");
    for (words, session) in [("pool", session), ("pool session:first-1", None)] {
        let mut request = by_words(words);
        (request.query.scope, request.query.session) = (scope, session);
        let found = api.search(&request).await.unwrap().response.results;
        assert!(found.iter().all(|message| message.result.user_id == user("ana")), "{found:?}");
        assert_eq!(found.len(), 2);
    }
}

#[tokio::test]
async fn the_owner_of_a_store_is_named_only_to_those_who_may_read_everything() {
    let storage = storage().await;
    storage.users().pin_user(&user("ben")).await.unwrap();
    for (caller, known) in [(ana_asks(), None), (ana_asks().with_reach(Reach::All), Some(user("ben")))] {
        let notice = other_user(&storage, &caller).await.unwrap();
        assert!(
            matches!(&notice, Some(Notice::StoreOfOtherUser { owner, .. }) if *owner == known),
            "{notice:?}"
        );
    }
    assert_eq!(other_user(&storage, &ApiCaller::new(user("ben"))).await.unwrap(), None);
}

#[tokio::test]
async fn a_list_of_no_sessions_is_refused() {
    let (storage, caller, now) = (storage().await, ana_asks(), now());
    let request = RecentRequest { limit: 0, ..RecentRequest::default() };
    let refused = api(&storage, &caller, &now).recent(&request).await.unwrap_err();
    assert!(matches!(refused, ApiError::Invalid(InvalidRequest::NothingToList)), "{refused}");
}

#[test]
fn a_change_with_an_unknown_field_is_refused() {
    let unknown = r#"{"session_ids":["first-1"],"dry_run":true}"#;
    assert!(serde_json::from_str::<DeleteRequest>(unknown).is_err());
    let unknown = r#"{"session":"first-1","title":"x"}"#;
    assert!(serde_json::from_str::<EditRequest>(unknown).is_err());
}
