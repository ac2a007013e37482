//! Operations about a store and its users.

use amplifier_session_api::{
    AccessRight, ApiError, Reach,
    operations::{
        check_store::{CheckStoreRequest, FindingLevel, StoreFinding},
        gaps::GapsRequest,
        projects::ProjectsRequest,
        statistics::StatisticsRequest,
        store_status::StoreStatusRequest,
        users::{RenameUserRequest, UsersRequest},
        vectors::{EmbedRequest, SessionVectorsRequest, VectorStatusRequest},
    },
    refresh::RefreshSources,
};
use amplifier_session_sync::{RefreshLimits, Refreshed};
use amplifier_session_testkit::AmplifierHome;

use super::*;

#[tokio::test]
async fn what_describes_a_store_can_be_written_and_read() {
    let (storage, now) = (storage().await.with_embedding(Some(Arc::new(FakeEmbedding::new()))), now());
    let caller = ana_asks().with_reach(Reach::All).with_rights(AccessRight::ALL);
    let api = api(&storage, &caller, &now);
    let made = api.make_vectors(&EmbedRequest::default(), &mut |_| {}).await.unwrap().response;
    assert_eq!((made.report.messages, &made.pending_reason), (6, &None));
    let statistics = StatisticsRequest::default();
    assert_written_and_read(&statistics);
    let counted = api.statistics(&statistics).await.unwrap().response;
    assert_eq!((counted.statistics.totals.sessions, counted.vectors.pending_messages), (3, Some(0)));
    assert!(counted.places.is_empty(), "files are named only on their machine: {counted:?}");
    assert_written_and_read(&counted);
    let listed = api.projects(&ProjectsRequest::default()).await.unwrap().response;
    let names: Vec<_> = listed.projects.iter().map(|of| (of.project.as_str(), of.counts.sessions)).collect();
    assert!(names.contains(&("shop", 2)) && names.contains(&("bakery", 1)), "{names:?}");
    assert_written_and_read(&listed);
    let complete = api.gaps(&GapsRequest::default()).await.unwrap().response;
    assert_eq!((complete.sessions, complete.gaps.len()), (3, 0));
    assert_written_and_read(&complete);
    let twice = GapsRequest { sessions: vec!["third".to_owned(); 2], ..GapsRequest::default() };
    assert_eq!(api.gaps(&twice).await.unwrap().response.sessions, 1);
    let status = api.vector_status(&VectorStatusRequest::default()).await.unwrap().response;
    assert_eq!(status.current.as_ref().unwrap().counts.messages, 6);
    assert_written_and_read(&status);
    let request = SessionVectorsRequest { scope: Reach::Own, session: "third".to_owned() };
    let of_session = api.session_vectors(&request).await.unwrap().response;
    assert_eq!(of_session.messages.len(), 2);
    assert!(of_session.messages.iter().all(|message| message.has_vectors.values().any(|has| *has)));
    assert_written_and_read(&of_session);
    let all = EmbedRequest { everything: true, ..EmbedRequest::default() };
    let estimate = api.estimate_vectors(&all, Some(2.0)).await.unwrap().response;
    assert!(estimate.estimate.messages == 6 && estimate.cost.is_some_and(|cost| cost > 0.0), "{estimate:?}");
    assert_written_and_read(&estimate);
    let checked = api.check_store(&CheckStoreRequest::default()).await.unwrap().response;
    let levels: Vec<FindingLevel> = checked.findings.iter().map(StoreFinding::level).collect();
    // The sessions were written after the time of the request.
    assert!(matches!(checked.findings.last(), Some(StoreFinding::FromFuture { .. })), "{checked:?}");
    let ok = FindingLevel::Ok;
    assert_eq!(levels, [ok, ok, ok, FindingLevel::Warning], "{checked:?}");
    assert_written_and_read(&checked);
}

#[tokio::test]
async fn nothing_found_has_its_likely_reasons() {
    let (storage, caller, now) = (storage().await, ana_asks(), now());
    let mut request = StatisticsRequest::default();
    request.filter.bundle = Some("default".to_owned());
    request.filter.project = Some("shopp".to_owned());
    let notices = api(&storage, &caller, &now).statistics(&request).await.unwrap().notices;
    let is_expected = matches!(
        &notices[..],
        [Notice::NothingFound { .. }, Notice::IncompleteBundle { .. }, Notice::UnknownProject { .. }]
    );
    assert!(is_expected, "{notices:?}");
    let mut search = by_words("zeppelin -pool");
    search.query.filter = request.filter;
    let notices = api(&storage, &caller, &now).search_superseded(&search).await.unwrap().notices;
    let is_expected = matches!(
        &notices[..],
        [
            Notice::NothingFound { what: FoundKind::SupersededMessage, .. },
            Notice::LeavesOut { .. },
            Notice::IncompleteBundle { .. },
            Notice::UnknownProject { .. },
        ]
    );
    assert!(is_expected, "{notices:?}");
}

#[tokio::test]
async fn the_first_user_of_a_store_is_named_to_themselves_and_to_those_who_may_read_everything() {
    let (storage, now) = (storage().await, now());
    storage.users().pin_user(&user("ben")).await.unwrap();
    let own = UsersRequest::default();
    for (caller, is_known) in
        [(ana_asks(), false), (ana_asks().with_reach(Reach::All), true), (ApiCaller::new(user("ben")), true)]
    {
        let found = api(&storage, &caller, &now).users(&own).await.unwrap().response;
        assert_eq!((found.store_user_id.is_some(), found.users.is_none()), (is_known, true), "{caller:?}");
        assert_written_and_read(&found);
    }
    let caller = ana_asks().with_reach(Reach::All);
    let everyone = UsersRequest { scope: Reach::All };
    let found = api(&storage, &caller, &now).users(&everyone).await.unwrap().response;
    assert_eq!((found.counts.sessions, found.users.as_ref().map(Vec::len)), (3, Some(2)));
    assert_written_and_read(&found);
}

#[tokio::test]
async fn only_an_administrator_renames_users_and_makes_all_vectors_again() {
    let (storage, now) = (storage().await.with_embedding(Some(Arc::new(FakeEmbedding::new()))), now());
    let writer = ana_asks().with_rights([AccessRight::Read, AccessRight::Write]);
    let rename = RenameUserRequest { old: user("ben"), new: user("zoe") };
    let refused = api(&storage, &writer, &now).rename_user(&rename).await.unwrap_err();
    assert!(matches!(refused, ApiError::MissingRight(AccessRight::Admin)), "{refused}");
    let all = EmbedRequest { everything: true, ..EmbedRequest::default() };
    let refused = api(&storage, &writer, &now).make_vectors(&all, &mut |_| {}).await.unwrap_err();
    assert!(matches!(refused, ApiError::MissingRight(AccessRight::Admin)), "{refused}");
    let admin = ana_asks().with_rights([AccessRight::Admin]);
    let renamed = api(&storage, &admin, &now).rename_user(&rename).await.unwrap().response;
    assert_eq!(renamed.sessions, 1);
    assert_written_and_read(&renamed);
}

#[tokio::test]
async fn watchers_of_others_are_listed_only_among_those_of_everyone() {
    let (storage, now) = (storage().await, now());
    for name in ["ana", "ben"] {
        let state = json!({
            "root": "/home/x", "user": name, "host": "laptop", "process": 1, "token": name,
            "since": "2026-04-04T12:00:00Z", "seen": "2026-04-04T12:00:00Z", "expires": null,
            "last_sync": null, "backlog": null, "polls": null, "failures": [],
        });
        let key = format!("watcher-{name}");
        storage.backend().put_meta_if_absent(&key, &state.to_string()).await.unwrap();
    }
    let caller = ana_asks().with_reach(Reach::All);
    let api = api(&storage, &caller, &now);
    for (scope, count) in [(Reach::Own, 1), (Reach::Visible, 1), (Reach::All, 2)] {
        let status = api.store_status(&StoreStatusRequest { scope }).await.unwrap().response;
        assert_eq!(status.watchers.len(), count, "{scope:?}");
        assert!(status.watchers.iter().all(|known| !known.running));
        assert_written_and_read(&status);
    }
}

#[tokio::test]
async fn a_refresh_writes_only_into_the_store_of_its_caller() {
    let (home, now) = (AmplifierHome::new().unwrap(), now());
    home.session("shop", "new").unwrap().transcript([lines::user("hello")]).unwrap();
    let sources = RefreshSources {
        roots: vec![home.path().to_owned(), home.path().join("nowhere")],
        captures: None,
        exclude: Vec::new(),
        host: HostId::new("laptop").unwrap(),
        limits: RefreshLimits::default(),
    };
    for (owner, is_taken) in [("ben", false), ("ana", true)] {
        let storage = storage().await;
        storage.users().pin_user(&user(owner)).await.unwrap();
        let reader = ana_asks();
        let refused = api(&storage, &reader, &now).refresh(&sources).await.unwrap_err();
        assert!(matches!(refused, ApiError::MissingRight(AccessRight::Write)), "{refused}");
        let writer = ana_asks().with_rights([AccessRight::Write]);
        let outcome = api(&storage, &writer, &now).refresh(&sources).await.unwrap();
        match outcome {
            Some(Refreshed::Taken { sessions, .. }) => assert_eq!(sessions.len(), 1),
            other => assert!(other.is_none(), "{other:?}"),
        }
        let found = storage.sessions().find_session(&Scope::Everyone, "new").await;
        assert_eq!(found.is_ok(), is_taken, "{found:?}");
    }
}
