//! Events, superseded lines and secrets.

use amplifier_session_api::operations::{
    events::EventsRequest,
    ignore_secrets::{IgnoreSecretsRequest, IgnoredChange},
    purge_secrets::{PurgePreviewRequest, PurgeSecretsRequest},
    secrets::SecretsRequest,
    superseded_events::SupersededEventsRequest,
    superseded_messages::{SupersededMessagesRequest, SupersededMessagesResponse},
    superseded_sessions::SupersededSessionsRequest,
};
use amplifier_session_core::content::Redaction;
use amplifier_session_testkit::WordRedactor;

use super::*;
use amplifier_session_api::filter::RequestFilter;

const SESSION: &str = "first-1";

/// A store with a session of three events, of which the second has a secret.
async fn with_events() -> SessionStorage {
    let redactor = Arc::new(WordRedactor::new(["hunter2"]));
    let storage = storage().await.with_redactor(Redaction::Remote, redactor);
    let target = target_of("ana", "shop", SESSION);
    let events = ["llm:request", "tool:post", "llm:response"];
    let events = events.into_iter().enumerate().map(|(second, name)| {
        let text = if name == "tool:post" { "hunter2" } else { "no secret" };
        lines::logger_event(name).at(format!("2026-01-05T08:00:0{second}Z")).data(json!({"output": text}))
    });
    storage.ingestion().sync_event_lines(&target, whole(events.collect())).await.unwrap();
    storage
}

/// Stores the files of the session again, without their last lines.
async fn lose_last_lines(storage: &SessionStorage) {
    let mut ingest = storage.ingestion().ingest(target_of("ana", "shop", SESSION)).await.unwrap();
    let (message, event) = (stored_message(storage).await, stored_event(storage).await);
    let seen = Timestamp::from_micros(0);
    ingest.begin_transcript(0).await.unwrap();
    ingest.transcript_line(message, seen).await.unwrap();
    ingest.supersede(LineKind::Message, &Remaining::default());
    ingest.end_transcript(Extent::Whole);
    ingest.begin_events(0).await.unwrap();
    ingest.event_line(event, seen).await.unwrap();
    ingest.supersede(LineKind::Event, &Remaining::default());
    ingest.end_events(Extent::Whole);
    ingest.commit().await.unwrap();
}

/// The first line of the transcript.
async fn stored_message(storage: &SessionStorage) -> RawJson {
    let (scope, id) = (Scope::User(user("ana")), SessionId::new(SESSION).unwrap());
    let messages = storage.reading().readable_transcript_lines(&scope, &id, None, 1).await.unwrap().rows;
    messages[0].raw.clone()
}

/// The first line of the event log.
async fn stored_event(storage: &SessionStorage) -> RawJson {
    let (scope, id) = (Scope::User(user("ana")), SessionId::new(SESSION).unwrap());
    let lines = EventLines::default().with_limit(1).with_payload(true);
    let events = storage.reading().get_event_lines(&scope, &id, lines).await.unwrap();
    events[0].raw.clone().unwrap()
}

#[tokio::test]
async fn pages_of_events_follow_each_other() {
    let (storage, caller, now) = (with_events().await, ana_asks(), now());
    let api = api(&storage, &caller, &now);
    let mut request = EventsRequest { limit: 2, full: true, ..EventsRequest::default() };
    let mut seen = Vec::new();
    loop {
        assert_written_and_read(&request);
        let response = api.events(&request).await.unwrap().response;
        assert_read_and_written(&response);
        assert!(response.events.iter().all(|found| found.line.is_some()));
        seen.extend(response.events.into_iter().map(|found| (found.event.event_type, found.address)));
        request.after = response.end.next;
        assert_eq!(response.end.has_more, request.after.is_some());
        if request.after.is_none() {
            break;
        }
    }
    let expected =
        [("llm:response", "first-1_evt_2"), ("tool:post", "first-1_evt_1"), ("llm:request", "first-1_evt_0")];
    assert_eq!(seen, expected.map(|(name, address)| (name.to_owned(), address.to_owned())));
}

#[tokio::test]
async fn events_that_are_not_found_are_explained() {
    let (storage, caller, now) = (with_events().await, ana_asks(), now());
    let api = api(&storage, &caller, &now);
    let filter = RequestFilter { project: Some("shoop".to_owned()), ..RequestFilter::default() };
    let request = EventsRequest { event_type: Some("llm".to_owned()), filter, ..EventsRequest::default() };
    let notices = api.events(&request).await.unwrap().notices;
    let [nothing, incomplete, unknown] = notices.as_slice() else { panic!("{notices:?}") };
    assert!(matches!(nothing, Notice::NothingFound { what: FoundKind::Event, .. }), "{nothing:?}");
    assert!(matches!(incomplete, Notice::IncompleteEventType { .. }), "{incomplete:?}");
    assert!(matches!(unknown, Notice::UnknownProject { .. }), "{unknown:?}");
    let request = EventsRequest { after: Some("first".to_owned()), ..EventsRequest::default() };
    let failed = request.check(&now).unwrap_err();
    assert!(matches!(failed, ApiError::Invalid(InvalidRequest::NotACursor { .. })), "{failed}");
}

#[tokio::test]
async fn superseded_lines_are_listed() {
    let (storage, caller, now) = (with_events().await, ana_asks(), now());
    lose_last_lines(&storage).await;
    let api = api(&storage, &caller, &now);
    let listed = api.superseded_sessions(&SupersededSessionsRequest::default()).await.unwrap().response;
    assert_written_and_read(&listed);
    assert_eq!((listed.count, listed.sessions[0].messages, listed.sessions[0].events), (1, 1, 2));
    let request = SupersededMessagesRequest::new(SESSION);
    assert_written_and_read(&request);
    let shown: SupersededMessagesResponse = api.superseded_messages(&request).await.unwrap().response;
    assert_read_and_written(&shown);
    assert_eq!((shown.messages.len(), shown.has_more_after), (1, false));
    let message = &shown.messages[0];
    assert!(message.how.superseded, "{message:?}");
    assert_eq!((message.message.sequence, message.message.role), (1, Role::Assistant));
    let request = SupersededEventsRequest { limit: 1, full: true, ..SupersededEventsRequest::default() };
    assert_written_and_read(&request);
    let events = api.superseded_events(&request).await.unwrap().response;
    assert_read_and_written(&events);
    assert_eq!((events.events.len(), events.events[0].event.sequence, events.has_more), (1, 1, true));
    let session = Some(SESSION.to_owned());
    let request = SupersededEventsRequest { session, from: 2, ..SupersededEventsRequest::default() };
    let events = api.superseded_events(&request).await.unwrap().response;
    assert_eq!((events.events.len(), events.events[0].event.sequence, events.has_more), (1, 2, false));
}

#[tokio::test]
async fn secrets_are_listed_ignored_and_purged() {
    let (storage, now) = (with_events().await, now());
    let caller = ana_asks().with_rights([AccessRight::Read, AccessRight::Write, AccessRight::Admin]);
    let api = api(&storage, &caller, &now);
    let request = SecretsRequest { short_ids: true, ..SecretsRequest::default() };
    assert_written_and_read(&request);
    let mut progress = Vec::new();
    let found =
        api.secrets(&request, &mut |searched, all| progress.push((searched, all))).await.unwrap().response;
    assert_eq!(progress, [(1, 3), (2, 3), (3, 3)]);
    assert_eq!((found.searched, found.count, found.ignored), (3, 1, 0));
    let address = found.sessions[0].secrets[0].address.clone();
    assert_eq!(address, "first-1_evt_1");
    assert_read_and_written(&found);

    let ignore = async |ignore| {
        let request = IgnoreSecretsRequest { address: address.clone(), ignore };
        let response = api.ignore_secrets(&request).await.unwrap().response;
        let json = serde_json::to_value(&response).unwrap();
        (response.change, response.found, json)
    };
    let (change, at_address, json) = ignore(true).await;
    assert_eq!((change, at_address), (IgnoredChange::Ignored(1), 1));
    assert_eq!(json, json!({"address": "first-1_evt_1", "ignored": 1, "found": 1}));
    let purge = PurgePreviewRequest { address: address.clone() };
    assert_written_and_read(&purge);
    assert_eq!(api.purge_secrets_preview(&purge).await.unwrap().response.secrets.len(), 0);
    assert_eq!(ignore(false).await.0, IgnoredChange::Unignored(1));

    let preview = api.purge_secrets_preview(&purge).await.unwrap().response;
    assert_eq!((preview.secrets.len(), preview.lines.len()), (1, 1));
    let confirmed = PurgeSecretsRequest::from(preview);
    assert_written_and_read(&confirmed);
    let unconfirmed = PurgeSecretsRequest { lines: Vec::new(), ..confirmed.clone() };
    assert_eq!(api.purge_secrets(&unconfirmed).await.unwrap().response.purged, 0);
    assert_eq!(api.purge_secrets(&confirmed).await.unwrap().response.purged, 1);
    assert_eq!(api.secrets(&request, &mut |_, _| {}).await.unwrap().response.count, 0);
}

#[tokio::test]
async fn a_purge_masks_what_its_preview_showed() {
    let redactor = Arc::new(WordRedactor::new(["hunter2", "harmless"]));
    let (storage, now) = (storage().await.with_redactor(Redaction::Remote, redactor), now());
    let target = target_of("ana", "shop", SESSION);
    let same = || lines::user("hunter2 and harmless").at("2026-01-05T08:00:00Z");
    let turns = vec![same(), lines::assistant("harmless"), same()];
    storage.ingestion().sync_transcript_lines(&target, whole(turns)).await.unwrap();
    let caller = ana_asks().with_rights(AccessRight::ALL);
    let api = api(&storage, &caller, &now);
    let ignore = IgnoreSecretsRequest { address: format!("{SESSION}#1"), ignore: true };
    assert_eq!(api.ignore_secrets(&ignore).await.unwrap().response.found, 1);
    let request = PurgePreviewRequest { address: format!("{SESSION}#0") };
    let preview = api.purge_secrets_preview(&request).await.unwrap().response;
    let of_lines: Vec<_> = preview.secrets.iter().filter_map(|secret| secret.sequence).collect();
    assert_eq!((of_lines, preview.lines.len()), (vec![0, 0, 2, 2], 1));
    let purge = PurgeSecretsRequest::from(preview);
    let beginning = PurgeSecretsRequest { session_id: SessionId::new("first").unwrap(), ..purge.clone() };
    assert!(api.purge_secrets(&beginning).await.is_err(), "an address is not an id");
    assert_eq!(api.purge_secrets(&purge).await.unwrap().response.purged, 4);
    let found = api.secrets(&SecretsRequest::default(), &mut |_, _| {}).await.unwrap().response;
    assert_eq!((found.count, found.ignored), (0, 1));
}

#[tokio::test]
async fn secrets_of_users_with_the_same_session_id_are_those_of_each() {
    let (storage, now) = (with_events().await, now());
    let target = target_of("ben", "shop", SESSION);
    let line = whole(vec![lines::user("hunter2 of ben")]);
    storage.ingestion().sync_transcript_lines(&target, line).await.unwrap();
    storage.sessions().share_session(&target.key, &Sharing::public()).await.unwrap();
    let caller = ana_asks().with_reach(Reach::All);
    for scope in [Reach::Visible, Reach::All] {
        let request = SecretsRequest { scope, ..SecretsRequest::default() };
        let found = api(&storage, &caller, &now).secrets(&request, &mut |_, _| {}).await.unwrap().response;
        let mut owners: Vec<_> = found.sessions.iter().map(|of| (of.user_id.as_str(), of.count)).collect();
        owners.sort_unstable();
        assert_eq!(owners, [("ana", 1), ("ben", 1)], "{scope:?}");
    }
}

#[tokio::test]
async fn findings_are_ignored_only_by_an_administrator() {
    let (storage, now) = (with_events().await, now());
    let writer = ana_asks().with_rights([AccessRight::Read, AccessRight::Write]);
    let request = IgnoreSecretsRequest { address: SESSION.to_owned(), ignore: true };
    let refused = api(&storage, &writer, &now).ignore_secrets(&request).await.unwrap_err();
    assert!(matches!(refused, ApiError::MissingRight(AccessRight::Admin)), "{refused}");
}

#[tokio::test]
async fn secrets_are_changed_only_with_the_right_to_write() {
    let (storage, caller, now) = (with_events().await, ana_asks(), now());
    let api = api(&storage, &caller, &now);
    let preview = PurgePreviewRequest { address: "first-1".to_owned() };
    let session_id = SessionId::new("first-1").unwrap();
    let purge = PurgeSecretsRequest { address: "first-1".to_owned(), session_id, lines: Vec::new() };
    let ignore = IgnoreSecretsRequest { address: "first-1".to_owned(), ignore: true };
    for refused in [
        api.purge_secrets_preview(&preview).await.unwrap_err(),
        api.purge_secrets(&purge).await.unwrap_err(),
        api.ignore_secrets(&ignore).await.unwrap_err(),
    ] {
        assert!(matches!(refused, ApiError::MissingRight(AccessRight::Write)), "{refused}");
    }
}
