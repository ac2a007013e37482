//! The operations on a store in memory.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

mod answers;
mod days;
mod files;
mod lines_of_sessions;
mod queries;
mod reading;
mod rights;
mod rows;
mod store;

use std::{fmt::Debug, sync::Arc};

use amplifier_session_api::{
    AccessRight, Api, ApiAnswer, ApiCaller, ApiError, CallerPlace, FieldProblem, FoundKind, InvalidRequest,
    Notice, Reach,
    budget::{AnswerLimits, Portion},
    filter::RequestFilter,
    operations::{
        recent::RecentRequest, search::SearchRequest, sessions::SessionsRequest, timeline::TimelineRequest,
    },
    query::QueryRequest,
};
use amplifier_session_testkit::{lines, prelude::*};
use jiff::Zoned;
use serde::{Serialize, de::DeserializeOwned};

/// A store with three sessions of ana and one of ben.
async fn storage() -> SessionStorage {
    let storage = SessionStorage::new(Arc::new(MemoryBackend::new()));
    for (user, project, session) in [
        ("ana", "shop", "first-1"),
        ("ana", "shop", "second-1"),
        ("ana", "bakery", "third-1"),
        ("ben", "shop", "fourth-1"),
    ] {
        // Equal texts would be one result.
        let text = vec![
            lines::user(&format!("why is the connection pool of {session} exhausted")),
            lines::assistant(&format!("the connection pool of {session} has one connection")),
        ];
        let target = target_of(user, project, session);
        storage.ingestion().sync_transcript_lines(&target, whole(text)).await.unwrap();
    }
    storage
}

fn now() -> Zoned {
    "2026-04-04T15:30:00+02:00[Europe/Zurich]".parse().unwrap()
}

fn ana_asks() -> ApiCaller {
    ApiCaller::new(user("ana"))
}

fn api<'a>(storage: &'a SessionStorage, caller: &'a ApiCaller, now: &'a Zoned) -> Api<'a> {
    Api { storage, caller, now, place: CallerPlace::Elsewhere }
}

fn by_words(query: &str) -> SearchRequest {
    let query =
        QueryRequest { query: query.to_owned(), mode: SearchMode::FullText, ..QueryRequest::default() };
    SearchRequest { query, ..SearchRequest::default() }
}

/// Checks that `value` is the same after it was written as JSON and read again.
#[track_caller]
fn assert_written_and_read<T: Serialize + DeserializeOwned + PartialEq + Debug>(value: &T) {
    let json = serde_json::to_string(value).unwrap();
    assert_eq!(&serde_json::from_str::<T>(&json).unwrap(), value, "{json}");
}

/// Checks that `value` is the same text after it was written as JSON and read again.
#[track_caller]
fn assert_read_and_written<T: Serialize + DeserializeOwned>(value: &T) {
    let json = serde_json::to_string(value).unwrap();
    assert_eq!(serde_json::to_string(&serde_json::from_str::<T>(&json).unwrap()).unwrap(), json);
}

#[tokio::test]
async fn requests_and_responses_can_be_written_and_read() {
    let (storage, caller, now) = (storage().await, ana_asks(), now());
    let api = api(&storage, &caller, &now);
    let search =
        SearchRequest { by_session: true, explain: true, full: true, ..by_words("pool project:shop") };
    assert_written_and_read(&search);
    let answer = api.search(&search).await.unwrap();
    assert_eq!(answer.response.results.len(), 4);
    assert_written_and_read(&answer.response);
    assert_written_and_read(&answer.notices);
    let superseded = api.search_superseded(&by_words("pool")).await.unwrap();
    assert_written_and_read(&superseded.response);
    let timeline = TimelineRequest { query: by_words("pool").query, by: Some(PeriodUnit::Week) };
    assert_written_and_read(&timeline);
    let counted = api.timeline(&timeline).await.unwrap().response;
    assert_eq!(counted.timeline.matches, 6);
    assert_written_and_read(&counted);
    for tree in [false, true] {
        let request = SessionsRequest { tree, short_ids: true, ..SessionsRequest::default() };
        assert_written_and_read(&request);
        let listed = api.sessions(&request).await.unwrap().response;
        assert_eq!((listed.count(), listed.has_more), (3, false));
        assert_written_and_read(&listed);
    }
    let filter = RequestFilter { since: Some("2020-01-01".to_owned()), ..RequestFilter::default() };
    let recent = RecentRequest { filter, short_ids: true, ..RecentRequest::default() };
    assert_written_and_read(&recent);
    let active = api.recent(&recent).await.unwrap().response;
    assert_eq!((active.projects.len(), active.users.is_none()), (2, true));
    assert_written_and_read(&active);
}

#[tokio::test]
async fn a_request_reaches_only_what_its_caller_may_read() {
    let (storage, now) = (storage().await, now());
    let everyone = SessionsRequest { scope: Reach::All, ..SessionsRequest::default() };
    let caller = ana_asks();
    let refused = api(&storage, &caller, &now).sessions(&everyone).await.unwrap_err();
    assert!(matches!(refused, ApiError::BeyondReach { .. }), "{refused}");
    let caller = ana_asks().with_rights([AccessRight::Write]);
    let refused = api(&storage, &caller, &now).search(&by_words("pool")).await.unwrap_err();
    assert!(matches!(refused, ApiError::MissingRight(AccessRight::Read)), "{refused}");
    let caller = ana_asks().with_reach(Reach::All);
    let listed = api(&storage, &caller, &now).sessions(&everyone).await.unwrap();
    assert_eq!(listed.response.count(), 4);
}

#[tokio::test]
async fn other_users_are_named_only_to_those_who_may_read_their_sessions() {
    let (storage, now) = (storage().await, now());
    let zoe = ApiCaller::new(user("zoe"));
    let request = SessionsRequest::default();
    let nothing = |notices: &[Notice]| {
        matches!(notices.first(), Some(Notice::NothingFound { what: FoundKind::Session, nearest: None }))
    };
    let notices = api(&storage, &zoe, &now).sessions(&request).await.unwrap().notices;
    assert!(nothing(&notices) && notices.len() == 1, "{notices:?}");
    let zoe = zoe.with_reach(Reach::All);
    let notices = api(&storage, &zoe, &now).sessions(&request).await.unwrap().notices;
    assert!(nothing(&notices), "{notices:?}");
    assert!(matches!(notices.last(), Some(Notice::OnlyOthersHaveSessions { .. })), "{notices:?}");
}

#[tokio::test]
async fn folders_of_another_machine_are_absolute() {
    let (storage, caller, now) = (storage().await, ana_asks(), now());
    let api = api(&storage, &caller, &now);
    for folder in [".", "~/shop", "../shop"] {
        let mut request = by_words(&format!("pool project:{folder}"));
        let answer = api.search(&request).await.unwrap();
        let problem = FieldProblem::RelativeFolder { folder: folder.to_owned() };
        let text = format!("project:{folder}");
        assert!(answer.notices.contains(&Notice::UnmetField { text, problem }), "{:?}", answer.notices);
        assert!(answer.response.results.is_empty());
        request.query = QueryRequest { query: "pool".to_owned(), ..QueryRequest::default() };
        request.query.filter.project = Some(folder.to_owned());
        let refused = api.search(&request).await.unwrap_err();
        assert!(matches!(refused, ApiError::Invalid(InvalidRequest::RelativeFolder { .. })), "{refused}");
    }
}

#[tokio::test]
async fn a_portion_has_the_first_sessions_and_cuts_the_last() {
    let (storage, caller, now) = (storage().await, ana_asks(), now());
    let request = SearchRequest { by_session: true, full: true, ..by_words("pool") };
    let found = api(&storage, &caller, &now).search(&request).await.unwrap().response;
    assert_eq!((found.items().count, found.results.len()), (3, 6));
    let limits = AnswerLimits { max_chars: Some(100), budget: Some(1_000) };
    let part = found.portion(Portion { items: 2, last_chars: Some(10) }, limits);
    let groups = part.groups.as_ref().unwrap();
    let shown: Vec<(usize, usize)> = groups.iter().map(|group| (group.results.len(), group.more)).collect();
    assert_eq!((shown, part.results.len(), part.left_out), (vec![(2, 0), (1, 1)], 3, Some(1)));
    let cut = &groups[1].results[0];
    assert!(cut.result.snippet.chars().count() == 11 && cut.truncated.is_some(), "{cut:?}");
    let whole = found.portion(Portion::all(3), AnswerLimits::default());
    assert_eq!(whole, found);
}

#[test]
fn a_mistake_is_found_without_a_store() {
    let mut request = by_words("pool");
    request.query.filter.since = Some("someday".to_owned());
    let failed = request.check(&now()).unwrap_err();
    assert_eq!(failed.to_string(), r#""someday" is not a date"#);
    let request = SessionsRequest { limit: 0, ..SessionsRequest::default() };
    assert!(matches!(request.check(&now()), Err(ApiError::Invalid(InvalidRequest::NothingToList))));
}
