//! Lists that have more items than an answer of the server may have.

use amplifier_session_api::{
    AccessRight, Api, ApiCaller, CallerPlace, Reach,
    lines::LinesRequest,
    operations::{
        events::EventsRequest, files::FilesRequest, messages::MessagesRequest,
        session_events::SessionEventsRequest, sessions::SessionsRequest,
        superseded_events::SupersededEventsRequest, superseded_messages::SupersededMessagesRequest,
        superseded_sessions::SupersededSessionsRequest,
    },
    remote::{AnyApi, PagedRequest},
};
use amplifier_session_core::storage::SessionOrder;
use amplifier_session_server::ServerSettings;
use amplifier_session_testkit::{lines, prelude::*};
use jiff::Zoned;
use serde::Serialize;

use crate::{Running, operations::Remote, storage};

/// The session with many files, messages and events.
const LONG: &str = "s00";

/// A store with 25 sessions of ana, of which some are sub-agents of the first. All have superseded lines.
async fn many_sessions() -> SessionStorage {
    let storage = storage().await;
    for at in 0..25 {
        let id = format!("s{at:02}");
        let target = target_of("ana", "shop", &id);
        let count = if id == LONG { 25 } else { 4 };
        store(&storage, &target, count).await;
        store(&storage, &target, 1).await;
        // It has other lines again, with the numbers of superseded ones.
        if id == LONG {
            store(&storage, &target, count + 1).await;
        }
        let parent = if at % 3 == 1 { json!({"parent_id": LONG}) } else { json!({}) };
        let metadata = RawJson::from(parent.to_string().as_str());
        storage.ingestion().sync_session_metadata(&target, metadata).await.unwrap();
    }
    storage
}

/// Stores the files of a session, which have this many lines.
async fn store(storage: &SessionStorage, target: &IngestTarget, count: u32) {
    let seen = Timestamp::from_micros(0);
    let mut ingest = storage.ingestion().ingest(target.clone()).await.unwrap();
    ingest.begin_transcript(0).await.unwrap();
    for at in 0..count {
        let read = lines::tool_call("read_file", json!({"path": format!("{at}.rs"), "of": count}));
        ingest.transcript_line(read.into(), seen).await.unwrap();
    }
    ingest.supersede(LineKind::Message, &Remaining::default());
    ingest.end_transcript(Extent::Whole);
    ingest.begin_events(0).await.unwrap();
    for at in 0..count {
        ingest.event_line(event(at, count), seen).await.unwrap();
    }
    ingest.supersede(LineKind::Event, &Remaining::default());
    ingest.end_events(Extent::Whole);
    ingest.commit().await.unwrap();
}

/// The line of an event of a log with this many.
fn event(at: u32, count: u32) -> RawJson {
    let line = json!({"event": "a:b", "ts": format!("2026-01-05T08:00:{at:02}Z"), "of": count});
    RawJson::from(line.to_string().as_str())
}

/// Checks that a list from a server is that of its store, and returns it.
async fn same<R>(server: &Running, request: R) -> Value
where
    R: PagedRequest<Response: Serialize> + std::fmt::Debug,
{
    let ana = Remote::new(server, "ana", Reach::Own, &AccessRight::ALL);
    let there = ana.api().list(&request).await.unwrap();
    let now: Zoned = "2026-03-29T03:30:00+02:00[Europe/Berlin]".parse().unwrap();
    let caller = ApiCaller::new(user("ana"));
    let api = Api { storage: &server.storage, caller: &caller, now: &now, place: CallerPlace::Elsewhere };
    let here = AnyApi::Here(api).list(&request).await.unwrap();
    let json = |response| serde_json::to_value(response).unwrap();
    let list = json(here.response);
    assert_eq!((json(there.response), there.notices), (list.clone(), here.notices), "{request:?}");
    list
}

#[tokio::test]
async fn lists_of_a_server_are_those_of_its_store() {
    let few = |settings: &mut ServerSettings| settings.limits.items = 7;
    let server = Running::with(many_sessions().await, few).await;
    let count = |list: &Value, items: &str| list[items].as_array().unwrap().len();
    // Within one answer, exactly one, several, and more than there are.
    for limit in [3, 7, 14, 20, 1_000_000] {
        let session = LONG.to_owned();
        let sessions = SessionsRequest { limit, short_ids: true, ..Default::default() };
        for sort in [SessionOrder::Updated, SessionOrder::Cost, SessionOrder::Messages] {
            let list = same(&server, SessionsRequest { sort, ..sessions.clone() }).await;
            assert_eq!(count(&list, "sessions"), limit.min(28));
        }
        same(&server, SessionsRequest { tree: true, ..sessions }).await;
        let of_events = EventsRequest { limit: limit.min(10_000), full: true, ..Default::default() };
        assert_eq!(count(&same(&server, of_events).await, "events"), limit.min(24 + 26));
        let list =
            same(&server, FilesRequest { session: session.clone(), limit, ..Default::default() }).await;
        assert_eq!(count(&list, "files"), limit.min(26));
        for (from, range) in [(None, true), (Some(2), false)] {
            let (session, limit) = (session.clone(), Some(limit));
            let lines = LinesRequest { scope: Reach::Own, session, from, limit, range };
            same(&server, MessagesRequest { lines: lines.clone(), vectors: true, short_ids: true }).await;
            same(&server, SessionEventsRequest { lines, full: true }).await;
        }
        let lost = SupersededSessionsRequest { limit, short_ids: true, ..Default::default() };
        assert_eq!(count(&same(&server, lost).await, "sessions"), limit.min(25));
        let lost = SupersededMessagesRequest { limit, ..SupersededMessagesRequest::new(LONG) };
        assert!(count(&same(&server, lost).await, "messages") >= limit.min(21));
        let lost = SupersededEventsRequest { limit, full: true, ..Default::default() };
        assert!(count(&same(&server, lost).await, "events") >= limit.min(50));
    }
}

#[tokio::test]
async fn a_long_line_after_others_is_a_page_of_its_own() {
    let small = |settings: &mut ServerSettings| {
        (settings.limits.page, settings.limits.answer) = (20_000, 60_000);
    };
    let storage = storage().await;
    let target = target_of("ana", "shop", LONG);
    let mut ingest = storage.ingestion().ingest(target.clone()).await.unwrap();
    let seen = Timestamp::from_micros(0);
    let sizes = [9_000, 9_000, 50_000, 9_000, 50_000, 50_000];
    ingest.begin_transcript(0).await.unwrap();
    for size in sizes {
        ingest.transcript_line(lines::user(&"x".repeat(size)).into(), seen).await.unwrap();
    }
    ingest.end_transcript(Extent::Whole);
    ingest.begin_events(0).await.unwrap();
    for (at, size) in sizes.into_iter().enumerate() {
        let line = json!({"event": "a:b", "ts": format!("2026-01-05T08:00:0{at}Z"), "data": {"x": "x".repeat(size)}});
        ingest.event_line(RawJson::from(line.to_string().as_str()), seen).await.unwrap();
    }
    ingest.end_events(Extent::Whole);
    ingest.commit().await.unwrap();
    let server = Running::with(storage, small).await;
    let session = LONG.to_owned();
    let lines = LinesRequest { scope: Reach::Own, session, from: None, limit: None, range: false };
    let list =
        same(&server, MessagesRequest { lines: lines.clone(), vectors: false, short_ids: false }).await;
    assert_eq!(list["messages"].as_array().unwrap().len(), 6);
    same(&server, SessionEventsRequest { lines, full: true }).await;
    let list = same(&server, EventsRequest { full: true, ..Default::default() }).await;
    assert_eq!(list["events"].as_array().unwrap().len(), 6);
    store(&server.storage, &target, 1).await;
    same(&server, SupersededMessagesRequest::new(LONG)).await;
    let list = same(&server, SupersededEventsRequest { full: true, ..Default::default() }).await;
    // The first one has changed in its place.
    assert_eq!(list["events"].as_array().unwrap().len(), 5);
}
