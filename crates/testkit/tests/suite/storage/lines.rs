//! Rules for both transcripts and event logs.

use amplifier_session_testkit::{conformance::messages::numbered as messages, prelude::*};

on_both_stores![
    the_same_sync_twice_changes_nothing,
    a_gap_is_refused,
    a_bad_line_is_named_and_nothing_is_stored,
    rows_are_read_in_pages,
    events_end_at_a_number_of_bytes,
    a_missing_time_is_estimated_once,
    messages_and_events_are_independent,
];

fn events(count: u32) -> Vec<Line> {
    (0..count).map(|n| lines::logger_event(&format!("event:{n}"))).collect()
}

/// Repeating a sync changes nothing: no write, no embedding, no version and no time.
async fn the_same_sync_twice_changes_nothing(store: Store) {
    let messages = vec![
        lines::user("no time"),
        lines::thinking("hm", "an answer"),
        lines::tool("out"),
        lines::system("rules"),
        lines::tool_call("bash", json!({"command": "ls"})),
    ];
    let large = lines::logger_event("large").data(json!({"content": "x".repeat(500_000)}));
    let events =
        vec![lines::logger_event("e").with("event_id", json!("given")), large, lines::logger_event("e")];
    let report = store.sync(&target("s"), messages.clone()).await;
    assert_eq!((report.created, report.messages_written), (true, 5));
    let counted: Vec<_> = report.messages_by_content_type.into_iter().collect();
    assert_eq!(counted, ContentType::ALL.map(|content_type| (content_type, 1)));
    let report = store.sync_events(&target("s"), events.clone()).await;
    assert_eq!((report.created, report.events_written), (false, 3));
    let before = store.everything(&target("s")).await;
    store.backend.reset_counts();
    store.embedding.reset_counts();

    let nothing = IngestReport::default();
    assert_eq!(store.sync(&target("s"), messages.clone()).await, nothing);
    assert_eq!(store.sync_events(&target("s"), events.clone()).await, nothing);
    for start in [0, 2] {
        let (messages, events) = (messages[start..].to_vec(), events[start..].to_vec());
        assert_eq!(store.sync_from(&target("s"), start as u32, messages).await.unwrap(), nothing);
        assert_eq!(store.sync_events_from(&target("s"), start as u32, events).await.unwrap(), nothing);
    }
    assert_eq!((store.backend.writes(), store.embedding.calls()), (0, 0));
    assert_eq!(store.everything(&target("s")).await, before);
}

/// Lines may be appended directly after the last one. A gap is refused.
async fn a_gap_is_refused(store: Store) {
    let refused = async |start: u32| {
        let of_messages = store.sync_from(&target("s"), start, messages(1)).await;
        let of_events = store.sync_events_from(&target("s"), start, events(1)).await;
        for error in [of_messages.unwrap_err(), of_events.unwrap_err()] {
            assert_eq!(
                (error.kind(), error.field()),
                (ErrorKind::Validation, Some(ErrorField::StartSequence))
            );
        }
    };
    refused(1).await;
    assert_eq!(store.backend.get_session(&target("s").key).await.unwrap(), None);
    store.sync(&target("s"), messages(3)).await;
    store.sync_events(&target("s"), events(3)).await;
    refused(4).await;
    refused(u32::MAX).await;
    store.sync_from(&target("s"), 3, messages(1)).await.unwrap();
    store.sync_events_from(&target("s"), 3, events(1)).await.unwrap();
    let rows = store.rows(&target("s")).await;
    assert_eq!((rows.messages.last_sequence, rows.events.last_sequence), (Some(3), Some(3)));
}

/// A call with a bad line stores nothing, and the error names the line.
async fn a_bad_line_is_named_and_nothing_is_stored(store: Store) {
    let bad_messages = [
        "",
        "{",
        "[]",
        "null",
        r#"{"content":"x"}"#,
        r#"{"role":"robot"}"#,
        r#"{"role":1}"#,
        r#"{"role":" "}"#,
    ];
    let bad_events = ["", "{", "[]", "{}", r#"{"event":""}"#, r#"{"event":"x"} {}"#];
    let refused = async || {
        for bad in bad_messages {
            let lines = vec![lines::user("changed").raw(), RawJson::from(bad), lines::user("good").raw()];
            let error = store.sync_from(&target("s"), 0, lines).await.unwrap_err();
            assert_eq!((error.kind(), error.context("line")), (ErrorKind::Validation, Some("2")), "{bad:?}");
        }
        for bad in bad_events {
            let lines = vec![lines::logger_event("changed").raw(), RawJson::from(bad)];
            let error = store.sync_events_from(&target("s"), 0, lines).await.unwrap_err();
            assert_eq!((error.kind(), error.context("line")), (ErrorKind::Validation, Some("2")), "{bad:?}");
        }
    };
    refused().await;
    assert_eq!(store.backend.get_session(&target("s").key).await.unwrap(), None);
    store.sync(&target("s"), messages(2)).await;
    let before = store.everything(&target("s")).await;
    refused().await;
    assert_eq!(store.everything(&target("s")).await, before);
}

/// Rows are read after a sequence and up to a limit, whatever the page size of the store. Events are read with or
/// without their lines.
async fn rows_are_read_in_pages(store: Store) {
    store.sync_text(&target("s"), messages(40)).await;
    store.sync_events(&target("s"), events(40)).await;
    let session = target("s").key.session_id;
    let cases: [(Option<u32>, usize, std::ops::Range<u32>); 6] = [
        (None, 25, 0..25),
        (Some(24), 100, 25..40),
        (Some(0), 1, 1..2),
        (Some(39), 10, 0..0),
        (Some(u32::MAX), 10, 0..0),
        (None, 0, 0..0),
    ];
    for (after, limit, expected) in cases {
        let messages =
            store.storage.reading().get_transcript_lines(&ana(), &session, after, limit).await.unwrap();
        assert!(messages.iter().map(|message| message.sequence).eq(expected.clone()), "{after:?} {limit}");
        for payload in [false, true] {
            store.backend.reset_counts();
            let lines = EventLines::default().after(after).with_limit(limit).with_payload(payload);
            let events = store.storage.reading().get_event_lines(&ana(), &session, lines).await.unwrap();
            assert!(
                events.iter().map(|event| event.event.sequence).eq(expected.clone()),
                "{after:?} {limit}"
            );
            assert!(events.iter().all(|event| event.raw.is_some() == payload));
            assert!(payload || store.backend.calls(Operation::EventPayloads) == 0);
        }
    }
}

/// Events are read up to a number of bytes, whatever the page size of the store, and at least one.
async fn events_end_at_a_number_of_bytes(store: Store) {
    store.sync_events(&target("s"), events(40)).await;
    let session = target("s").key.session_id;
    let read = async |most: Option<u64>| {
        let lines = EventLines::default().with_limit(100).with_payload(true).with_max_bytes(most);
        store.storage.reading().get_event_lines(&ana(), &session, lines).await.unwrap()
    };
    let sizes: Vec<u64> = read(None).await.iter().map(|line| line.event.data_size_bytes).collect();
    for count in [1, 8, 30, 40] {
        let bytes: u64 = sizes.iter().take(count).sum();
        assert_eq!(read(Some(bytes)).await.len(), count);
        assert_eq!(read(Some(bytes - 1)).await.len(), (count - 1).max(1));
    }
}

/// A line without a time gets the time at which it was first seen, is marked as estimated, and keeps that time.
async fn a_missing_time_is_estimated_once(store: Store) {
    let sync = async |texts: &[&str], seen: u32| {
        let messages = raw(texts.iter().map(|text| lines::user(text)).collect());
        let event = |text: &&str| RawJson::from(json!({"event": text, "ts": "noon"}).to_string().as_str());
        let of_messages = SyncLines::whole(messages).with_seen(day(seen));
        store.storage.ingestion().sync_transcript_lines(&target("s"), of_messages).await.unwrap();
        let of_events = SyncLines::whole(texts.iter().map(event).collect()).with_seen(day(seen));
        store.storage.ingestion().sync_event_lines(&target("s"), of_events).await.unwrap();
    };
    sync(&["a", "b"], 1).await;
    sync(&["a", "b", "a"], 2).await;
    let messages = store.messages(&target("s")).await;
    let times = messages.iter().map(|message| (message.ts, message.ts_estimated()));
    let expected = [(day(1), true), (day(1), true), (day(2), true)];
    assert!(times.eq(expected));
    let events = store.events(&target("s")).await;
    assert!(events.iter().map(|event| (event.event.ts, event.event.ts_estimated)).eq(expected));

    // A message that moves or changes its turn keeps the time at which it was first seen.
    sync(&["new", "a", "newer", "b", "a"], 3).await;
    let messages = store.messages(&target("s")).await;
    assert!(messages.iter().map(|message| message.ts).eq([3, 1, 3, 1, 2].map(day)));
}

/// Syncing events does not change messages, and vice versa.
async fn messages_and_events_are_independent(store: Store) {
    store.sync(&target("s"), messages(2)).await;
    store.sync_events(&target("s"), events(5)).await;
    let (before, stored) = (store.messages(&target("s")).await, store.events(&target("s")).await);
    store.sync_events(&target("s"), Vec::<Line>::new()).await;
    assert_eq!(store.messages(&target("s")).await, before);
    store.sync_events(&target("s"), events(5)).await;
    store.sync(&target("s"), Vec::<Line>::new()).await;
    let lines = |events: &[EventLine]| events.iter().map(|event| event.raw.clone()).collect::<Vec<_>>();
    assert_eq!(lines(&store.events(&target("s")).await), lines(&stored));
    let session = store.stored(&target("s")).await.session;
    assert_eq!((session.message_count, session.event_count), (0, 5));
}
