//! Events: lines in and out, their fields, large payloads, ids.

use amplifier_session_core::{
    ErrorKind,
    backend::{SessionChange, meta, prelude::*},
    events::{CHUNKED_ABOVE, SUMMARIES},
    model::{Level, RawJson, StoredEvent, Timestamp},
    storage::{EventDetail, EventLine, EventLines, Extent, SessionStorage, StorageSettings, SyncLines},
};
use serde_json::{Value, json};

use super::{
    Subject, samples,
    store::{Store, kind, range, raw, scope, target, target_of},
};
use crate::lines::{self, Line};

fn numbered(count: u32) -> Vec<Line> {
    (0..count).map(|n| lines::logger_event(&format!("event:{n}"))).collect()
}

fn with_id(id: &str) -> Line {
    lines::logger_event("e").with("event_id", json!(id))
}

/// An event whose `data` has `bytes` bytes or a little more, of text that does not compress to nothing.
fn sized(bytes: usize) -> Line {
    let mut random = samples::Random(bytes as u64);
    let mut text = String::new();
    while text.len() < bytes {
        text.push_str(&random.words(20, 1_000_000));
    }
    lines::logger_event("llm:response").data(json!({"content": text}))
}

/// Event lines come back byte for byte, small ones and those of any size.
pub async fn lines_come_back_byte_for_byte(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let mut samples = samples::awkward_events();
    for bytes in [0, 5_000, 300_000, CHUNKED_ABOVE as usize, 1_300_000] {
        samples.push(("a size", sized(bytes).raw()));
    }
    let broken =
        [&b"{\"event\":\"large\",\"data\":\"\xff\\ud800"[..], &b"x".repeat(500_000), b"\"}"].concat();
    samples.push(("large and no UTF-8", RawJson::new(broken)));
    store.sync_events(&target("s"), samples.iter().map(|(_, line)| line.clone()).collect()).await;
    for handle in [store, Store::open_again(subject).await] {
        let events = handle.events(&target("s")).await;
        assert_eq!(events.len(), samples.len());
        for (event, (name, line)) in events.iter().zip(&samples) {
            assert_eq!(event.raw.as_ref(), Some(line), "{name}");
            assert!(event.event.synced_at.is_some(), "{name}");
            let large = event.event.data_size_bytes > CHUNKED_ABOVE;
            assert_eq!((event.event.is_chunked, event.event.chunk_count.is_some()), (large, large), "{name}");
        }
        assert!(events.iter().any(|event| event.event.is_chunked));
    }
}

/// Events are read without their lines unless these are asked for.
pub async fn lines_come_only_when_asked_for(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    store.sync_events(&target("s"), vec![sized(10), sized(500_000)]).await;
    store.backend.reset_counts();
    let (scope, session) = (scope(&target("s")), target("s").key.session_id);
    let events = store.storage.get_event_lines(&scope, &session, EventLines::default()).await.unwrap();
    assert_eq!(events.len(), 2);
    assert!(events.iter().all(|event| event.raw.is_none()));
    assert_eq!(store.backend.calls(crate::Operation::EventPayloads), 0);
    assert!(serde_json::to_string(&events).unwrap().len() < 5_000);
}

/// The fields of an event are those of its line, in each of the three envelopes.
pub async fn fields_come_from_each_envelope(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let data = json!({"tool_name": "bash", "model": "m", "provider": "p", "error_type": "Timeout", "duration_ms": 5});
    let at = "2026-01-05T10:00:00.5+02:00";
    let events = vec![
        lines::logger_event("tool:result")
            .at(at)
            .with("lvl", json!("ERROR"))
            .with("turn", json!(3))
            .data(data.clone()),
        lines::hook_event("tool:result").at(at).data(data.clone()),
        lines::context_event("tool:result").at(at).data(data),
    ];
    store.sync_events(&target("s"), events).await;
    let events = store.events(&target("s")).await;
    for (sequence, line) in events.iter().enumerate() {
        let event = &line.event;
        assert_eq!(event.ts, Timestamp::parse("2026-01-05T08:00:00.5Z").unwrap());
        assert_eq!((event.event_type.as_str(), event.tool_name.as_deref()), ("tool:result", Some("bash")));
        assert_eq!((event.model.as_deref(), event.provider.as_deref()), (Some("m"), Some("p")));
        assert_eq!((event.error_type.as_deref(), event.ts_estimated), (Some("Timeout"), false));
        assert_eq!(
            (event.summary.get("duration_ms"), event.summary.get("has_error")),
            (Some(&json!(5)), Some(&json!(true)))
        );
        assert_eq!(event.sequence as usize, sequence);
        assert_eq!(event.event_id, format!("s_evt_{sequence}"));
        assert!(event.data_size_bytes > 0);
    }
    assert_eq!((events[0].event.level, events[0].event.turn), (Level::Error, Some(3)));
    assert_eq!((events[1].event.level, events[1].event.turn), (Level::Info, None));
}

/// A summary keeps its numbers and texts, and never holds a payload.
pub async fn summaries_hold_no_payload(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let secret = "the secret payload ".repeat(50);
    let data = json!({"content": secret, "data": secret, "messages": [secret], "full_response": secret, "model": "it's \"m\"",
        "usage": {"input_tokens": 12_345_678_901_u64, "output_tokens": 3, "cost": 0.125}});
    store.sync_events(&target("s"), vec![lines::logger_event("llm:response").data(data)]).await;
    let summary = Value::Object(store.events(&target("s")).await.remove(0).event.summary);
    assert!(!summary.to_string().contains("secret"));
    assert_eq!(
        summary["usage"],
        json!({"input_tokens": 12_345_678_901_u64, "output_tokens": 3, "cost": 0.125})
    );
    assert_eq!(summary["model"], "it's \"m\"");
}

/// The same events a second time change nothing.
pub async fn the_same_sync_twice_changes_nothing(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let lines = || vec![with_id("given"), sized(500_000), lines::logger_event("no id")];
    let report = store.sync_events(&target("s"), lines()).await;
    assert_eq!((report.created, report.events_written), (true, 3));
    let (stored, events) = (store.stored(&target("s")).await, store.events(&target("s")).await);
    store.backend.reset_counts();
    assert_eq!(store.sync_events(&target("s"), lines()).await, Default::default());
    assert_eq!(
        store.sync_events_from(&target("s"), 1, lines().split_off(1)).await.unwrap(),
        Default::default()
    );
    assert_eq!(store.backend.writes(), 0);
    assert_eq!((store.stored(&target("s")).await, store.events(&target("s")).await), (stored, events));
}

/// A changed line changes that event alone, whatever form its payload had before.
pub async fn a_changed_line_changes_that_event_alone(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let mut lines = vec![sized(10), sized(900_000), sized(10_000), sized(20)];
    store.sync_events(&target("s"), lines.clone()).await;
    for (changed, bytes) in [(1, 30), (0, 700_000), (2, 500_000), (2, 1_000_000), (1, 6_000)] {
        let before = store.events(&target("s")).await;
        lines[changed] = sized(bytes);
        let report = store.sync_events(&target("s"), lines.clone()).await;
        assert_eq!((report.events_written, report.events_removed), (1, 0));
        let after = store.events(&target("s")).await;
        for (sequence, (before, after)) in before.iter().zip(&after).enumerate() {
            assert_eq!(before == after, sequence != changed);
            assert_eq!(after.raw, Some(lines[sequence].clone().raw()));
        }
    }
}

/// The whole log removes the tail; lines from a start sequence on remove nothing.
pub async fn the_whole_log_removes_the_tail(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    store.sync_events(&target("s"), numbered(20)).await;
    let before = store.events(&target("s")).await;
    let changed = vec![lines::logger_event("changed").with("event_id", json!("given"))];
    let report = store.sync_events_from(&target("s"), 3, changed).await.unwrap();
    assert_eq!((report.events_written, report.events_removed), (1, 0));
    assert_eq!(store.stored(&target("s")).await.session.event_count, 20);
    let report = store.sync_events(&target("s"), numbered(3)).await;
    assert_eq!((report.events_written, report.events_removed), (0, 17));
    assert_eq!(store.events(&target("s")).await, before[..3]);
    assert_eq!(store.stored(&target("s")).await.session.event_count, 3);
    assert!(store.backend.event_payloads(&target("s").key, &[3, 10]).await.unwrap().is_empty());
    let ids = ["given".to_owned(), "s_evt_10".to_owned()];
    assert!(store.backend.find_events(&target("s").key.user_id, &ids).await.unwrap().is_empty());
}

/// Lines may follow on the last one; beyond that there would be a gap, which is refused.
pub async fn a_gap_is_refused(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    assert_eq!(kind(store.sync_events_from(&target("s"), 1, numbered(1)).await), ErrorKind::Validation);
    store.sync_events_from(&target("s"), 0, numbered(2)).await.unwrap();
    assert_eq!(kind(store.sync_events_from(&target("s"), 3, numbered(1)).await), ErrorKind::Validation);
    store.sync_events_from(&target("s"), 2, numbered(1)).await.unwrap();
    let sequences: Vec<_> =
        store.events(&target("s")).await.iter().map(|event| event.event.sequence).collect();
    assert_eq!(sequences, [0, 1, 2]);
}

/// A bad line is named, and the call stores nothing.
pub async fn a_bad_line_is_named_and_nothing_is_stored(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    for bad in ["", "{", "[]", "{}", "{\"event\":\"\"}", "{\"event\":\"x\"} {}"] {
        let lines = vec![lines::logger_event("good").raw(), RawJson::from(bad)];
        let error = store.sync_events_from(&target("s"), 0, lines).await.unwrap_err();
        assert_eq!((error.kind(), error.context("line")), (ErrorKind::Validation, Some("2")), "{bad:?}");
    }
    assert_eq!(store.backend.get_session(&target("s").key).await.unwrap(), None);
}

/// Events are read behind a sequence and up to a limit, however small the store's pages, with lines or
/// without.
pub async fn events_are_read_in_parts(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    store.sync_events(&target("s"), numbered(40)).await;
    for payload in [false, true] {
        let read = async |after: Option<u32>, limit: usize| {
            let lines = EventLines::default().after(after).with_limit(limit).with_payload(payload);
            let session = target("s").key.session_id;
            let events = store.storage.get_event_lines(&scope(&target("s")), &session, lines).await.unwrap();
            assert!(events.iter().all(|event| event.raw.is_some() == payload));
            events.iter().map(|event| event.event.sequence).collect::<Vec<_>>()
        };
        assert_eq!(read(None, 25).await, (0..25).collect::<Vec<_>>());
        assert_eq!(read(Some(24), 100).await, (25..40).collect::<Vec<_>>());
        assert!(read(Some(39), 10).await.is_empty());
        assert!(read(None, 0).await.is_empty());
    }
    assert_eq!(store.backend.event_digests(&target("s").key, range(39, 10)).await.unwrap().len(), 1);
}

/// An id that a line gives is the event's, unless another event of the user has it: then it gets a derived
/// one.
pub async fn event_ids_are_unique_to_a_user(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let ids = async |target: &_| {
        store.events(target).await.iter().map(|e| e.event.event_id.clone()).collect::<Vec<_>>()
    };
    let (a, b, ben) = (target("a"), target("b"), target_of("ben", "p", "a"));
    store.sync_events(&a, vec![with_id("one"), with_id("one"), with_id("two")]).await;
    store.sync_events(&b, vec![with_id("two"), with_id("three")]).await;
    store.sync_events(&ben, vec![with_id("one"), with_id("two")]).await;
    assert_eq!(ids(&a).await, ["one", "a_evt_1", "two"]);
    assert_eq!(ids(&b).await, ["b_evt_0", "three"]);
    assert_eq!(ids(&ben).await, ["one", "two"]);

    // Also when an event takes the id of one that changes in the same write.
    store.sync_events(&a, vec![with_id("two"), with_id("one"), with_id("new")]).await;
    let mut found = ids(&a).await;
    found.sort();
    found.dedup();
    assert_eq!(found.len(), 3);
    let all: Vec<String> = [ids(&a).await, ids(&b).await].concat();
    assert_eq!(store.backend.find_events(&a.key.user_id, &all).await.unwrap().len(), 5);
}

/// An id that looks like a derived one, or is no id, is not taken from a line.
pub async fn ids_that_look_derived_are_not_taken(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let lines = vec![
        with_id("s_evt_2"),
        with_id(""),
        with_id("other_evt_7"),
        with_id("a\nb"),
        with_id(&"x".repeat(300)),
    ];
    store.sync_events(&target("s"), lines).await;
    let ids: Vec<_> =
        store.events(&target("s")).await.into_iter().map(|event| event.event.event_id).collect();
    assert_eq!(ids, ["s_evt_0", "s_evt_1", "s_evt_2", "s_evt_3", "s_evt_4"]);
}

/// By configuration, only the fields of events are kept, or no events at all.
pub async fn less_of_events_is_kept_when_wanted(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let sync = async |session: &str, detail: EventDetail| {
        let storage = store.storage.clone().with_settings(StorageSettings::default().with_events(detail));
        let lines = SyncLines::whole(raw(vec![sized(10), sized(500_000)]));
        storage.sync_event_lines(&target(session), lines).await.unwrap().events_written
    };
    assert_eq!(sync("summary", EventDetail::Summary).await, 2);
    let events = store.events(&target("summary")).await;
    assert_eq!(events.len(), 2);
    for event in &events {
        assert_eq!((event.raw.as_ref(), event.event.is_chunked), (None, false));
        assert_eq!(
            (event.event.event_type.as_str(), event.event.data_size_bytes > 0),
            ("llm:response", true)
        );
    }
    assert_eq!(sync("summary", EventDetail::Summary).await, 0);
    assert_eq!(sync("none", EventDetail::None).await, 0);
    assert!(store.events(&target("none")).await.is_empty());

    // What was kept before stays.
    assert_eq!(sync("summary", EventDetail::None).await, 0);
    assert_eq!(store.events(&target("summary")).await, events);
}

/// Events of which less was kept are completed when they are written anew under fuller settings.
pub async fn what_was_left_out_can_be_made_up_for(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let lines =
        raw(vec![sized(10), sized(500_000), lines::logger_event("e").with("event_id", json!("given"))]);
    let summary = StorageSettings::default().with_events(EventDetail::Summary);
    let storage = store.storage.clone().with_settings(summary);
    storage.sync_event_lines(&target("s"), SyncLines::whole(lines.clone())).await.unwrap();
    let before = store.events(&target("s")).await;

    let mut ingest = store.storage.ingest(target("s")).await.unwrap();
    ingest.begin_events(0).await.unwrap();
    ingest.rewrite_events();
    for line in &lines {
        ingest.event_line(line.clone(), Timestamp::from_micros(0)).await.unwrap();
    }
    ingest.end_events(Extent::Whole);
    assert_eq!(ingest.commit().await.unwrap().events_written, 3);
    let after = store.events(&target("s")).await;
    assert!(after.iter().map(|event| event.raw.as_ref()).eq(lines.iter().map(Some)));
    let ids =
        |events: &[EventLine]| events.iter().map(|event| event.event.event_id.clone()).collect::<Vec<_>>();
    assert_eq!(ids(&after), ids(&before));
}

/// A line without a time gets the one at which it was first seen, is marked so, and keeps it.
pub async fn a_missing_time_is_estimated_once(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let sync = async |count: usize, seen: &str| {
        let lines = [RawJson::from(r#"{"event":"x"}"#), RawJson::from(r#"{"event":"x","ts":"noon"}"#)];
        let lines = SyncLines::whole(lines[..count].to_vec()).with_seen(Timestamp::parse(seen).unwrap());
        store.storage.sync_event_lines(&target("s"), lines).await.unwrap();
    };
    sync(1, "2026-01-05T08:00:00Z").await;
    sync(2, "2026-01-06T08:00:00Z").await;
    let events = store.events(&target("s")).await;
    let times: Vec<_> =
        events.iter().map(|event| (event.event.ts.to_string(), event.event.ts_estimated)).collect();
    let expected =
        ["2026-01-05T08:00:00.000000Z", "2026-01-06T08:00:00.000000Z"].map(|ts| (ts.to_owned(), true));
    assert_eq!(times, expected);
}

/// Events do not touch messages, nor messages events.
pub async fn events_and_messages_do_not_touch_each_other(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    store.sync(&target("s"), vec![lines::user("a"), lines::user("b")]).await;
    store.sync_events(&target("s"), numbered(5)).await;
    let (messages, events) = (store.messages(&target("s")).await, store.events(&target("s")).await);
    store.sync(&target("s"), Vec::<Line>::new()).await;
    assert_eq!(store.events(&target("s")).await, events);
    store.sync(&target("s"), vec![lines::user("a"), lines::user("b")]).await;
    store.sync_events(&target("s"), Vec::<Line>::new()).await;
    let now = store.messages(&target("s")).await;
    assert!(now.iter().map(|message| &message.raw).eq(messages.iter().map(|message| &message.raw)));
    let session = store.stored(&target("s")).await.session;
    assert_eq!((session.message_count, session.event_count), (2, 0));
}

/// A store whose summaries were made by other rules is brought up to those of the library before it is written to; what
/// else is stored of the events stays as it is.
pub async fn summaries_of_other_rules_are_made_anew(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let lines = vec![
        lines::logger_event("llm:response")
            .data(json!({"model": "m", "usage": {"input_tokens": 5, "cost_usd": "0.25"}})),
        lines::logger_event("llm:request").data(json!({"messages": [1, 2, 3]})),
        lines::logger_event("tool:error").data(json!({"tool_name": "t", "error": {"message": "boom"}})),
    ];
    store.sync_events(&target("s"), lines).await;
    let events = store.events(&target("s")).await;
    // As the rules before had it.
    let stored = store.stored(&target("s")).await;
    let mut change = SessionChange::new(stored.session.clone(), Some(stored.version));
    let payload = store.backend.event_payloads(&target("s").key, &[0]).await.unwrap().remove(0).1;
    let mut event = events[0].event.clone();
    event.summary =
        json!({"model": "m", "has_error": false, "usage": {"input_tokens": 5}}).as_object().unwrap().clone();
    change.events.put.push(StoredEvent { event, payload });
    store.backend.write_one(change).await.unwrap();
    let now = SUMMARIES.to_string();
    assert!(store.backend.replace_meta(meta::SUMMARIES, &now, "1").await.unwrap());
    assert_ne!(store.events(&target("s")).await, events);

    SessionStorage::new(store.backend.clone()).renew().await.unwrap();
    assert_eq!(store.events(&target("s")).await, events);
    assert_eq!(store.backend.meta().await.unwrap().get(meta::SUMMARIES), Some(&now));
}
