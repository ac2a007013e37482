//! Events: lines, fields, large payloads and ids.

use amplifier_session_testkit::{
    conformance::events::{sized, with_id},
    prelude::*,
};

on_both_stores![
    fields_come_from_each_envelope,
    the_whole_log_removes_the_tail,
    ids_that_look_derived_are_not_taken,
    settings_limit_what_is_stored_of_events,
    omitted_event_data_can_be_added_later,
    summaries_of_other_rules_are_remade,
    calls_that_a_program_made_by_itself_tell_nothing_about_the_session,
    a_page_of_events_out_of_range_is_refused,
];

fn numbered(count: u32) -> Vec<Line> {
    (0..count).map(|n| lines::logger_event(&format!("event:{n}"))).collect()
}

/// The fields of an event are read from its line, in each of the three envelopes.
async fn fields_come_from_each_envelope(store: Store) {
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

/// Syncing the whole log removes events after its end. Syncing from a start sequence removes nothing.
async fn the_whole_log_removes_the_tail(store: Store) {
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

/// An id in a line is ignored if it looks like a derived one or is invalid.
async fn ids_that_look_derived_are_not_taken(store: Store) {
    let long = "x".repeat(300);
    let lines = ["s_evt_2", "", "other_evt_7", "a\nb", &long].map(with_id);
    store.sync_events(&target("s"), lines.to_vec()).await;
    let ids: Vec<_> =
        store.events(&target("s")).await.into_iter().map(|event| event.event.event_id).collect();
    assert_eq!(ids, ["s_evt_0", "s_evt_1", "s_evt_2", "s_evt_3", "s_evt_4"]);
}

/// Settings can reduce what is stored to the fields of events, or to no events at all.
async fn settings_limit_what_is_stored_of_events(store: Store) {
    let sync = async |session: &str, detail: EventDetail| {
        let storage = store.storage.clone().with_settings(StorageSettings::default().with_events(detail));
        let lines = SyncLines::whole(raw(vec![sized(10), sized(500_000)]));
        storage.ingestion().sync_event_lines(&target(session), lines).await.unwrap().events_written
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

    // Stored events stay.
    assert_eq!(sync("summary", EventDetail::None).await, 0);
    assert_eq!(store.events(&target("summary")).await, events);
}

/// Rewriting events under fuller settings stores the omitted parts.
async fn omitted_event_data_can_be_added_later(store: Store) {
    let lines =
        raw(vec![sized(10), sized(500_000), lines::logger_event("e").with("event_id", json!("given"))]);
    let summary = StorageSettings::default().with_events(EventDetail::Summary);
    let storage = store.storage.clone().with_settings(summary);
    storage.ingestion().sync_event_lines(&target("s"), SyncLines::whole(lines.clone())).await.unwrap();
    let before = store.events(&target("s")).await;

    let mut ingest = store.storage.ingestion().ingest(target("s")).await.unwrap();
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

/// The summaries of a store that were made by other rules are remade before it is written to. Nothing else of the
/// events changes.
async fn summaries_of_other_rules_are_remade(store: Store) {
    let lines = vec![
        lines::logger_event("llm:response")
            .data(json!({"model": "m", "usage": {"input_tokens": 5, "cost_usd": "0.25"}})),
        lines::logger_event("llm:request").data(json!({"messages": [1, 2, 3]})),
        lines::logger_event("tool:error").data(json!({"tool_name": "t", "error": {"message": "boom"}})),
    ];
    store.sync_events(&target("s"), lines).await;
    let events = store.events(&target("s")).await;
    // The summary under the old rules.
    let payload = store.backend.event_payloads(&target("s").key, &[0]).await.unwrap().remove(0).1;
    let mut event = events[0].event.clone();
    event.summary =
        json!({"model": "m", "has_error": false, "usage": {"input_tokens": 5}}).as_object().unwrap().clone();
    store.write(&target("s"), |change| change.events.put = vec![StoredEvent { event, payload }]).await;
    let now = amplifier_session_core::events::SUMMARIES.to_string();
    assert!(store.backend.replace_meta(meta::SUMMARIES, &now, "1").await.unwrap());
    assert_ne!(store.events(&target("s")).await, events);

    SessionStorage::new(store.backend.clone()).rederivation().rederive().await.unwrap();
    assert_eq!(store.events(&target("s")).await, events);
    assert_eq!(store.backend.meta().await.unwrap().get(meta::SUMMARIES), Some(&now));
}

/// A call that a program made by itself, for example to name the session, gives the session neither a model nor a time,
/// even if its events are the only ones with a model. Its cost counts.
async fn calls_that_a_program_made_by_itself_tell_nothing_about_the_session(store: Store) {
    let naming = |event: &str, field: &str| {
        let mut data = json!({"model": "small", field: "naming"});
        if event == "llm:response" {
            data["usage"] = json!({"input_tokens": 5, "cost_usd": "0.25"});
        }
        lines::logger_event(event).at("2026-01-05T09:30:00Z").data(data)
    };
    let request =
        lines::logger_event("llm:request").at("2026-01-05T08:00:01Z").data(json!({"model": "large"}));
    let prompt =
        lines::logger_event("prompt:submit").at("2026-01-05T08:00:00Z").data(json!({"prompt": "Why?"}));
    let background = [
        naming("llm:request", "purpose"),
        naming("llm:response", "purpose"),
        naming("llm:response", "origin_module"),
    ];
    let of_session = async || {
        let session = store.stored(&target("s")).await.session;
        (session.model, session.created, session.updated)
    };
    let (begun, ended) = (time("2026-01-05T08:00:00Z"), time("2026-01-05T08:00:01Z"));
    store.sync(&target("s"), vec![lines::user("Why?"), lines::assistant("So.")]).await;
    let mut events = vec![prompt];
    events.extend(background.clone());
    store.sync_events(&target("s"), events.clone()).await;
    assert_eq!(of_session().await, (None, begun, begun));
    events.push(request);
    store.sync_events(&target("s"), events.clone()).await;
    assert_eq!(of_session().await, (Some("large".to_owned()), begun, ended));
    // The times of the stored events are read, too.
    events.extend(background);
    store.sync_events(&target("s"), events).await;
    assert_eq!(of_session().await, (Some("large".to_owned()), begun, ended));
    let times: Vec<_> = store.messages(&target("s")).await.iter().map(|message| message.ts).collect();
    assert!(times.iter().all(|ts| *ts <= ended), "{times:?}");
    let statistics =
        store.storage.statistics().get_statistics(&ana(), &StatisticsOptions::default()).await.unwrap();
    // Lines that are appended again count once.
    assert_eq!(statistics.usage.cost.to_string(), "0.5");
}

/// Page lengths of zero and above the limit are refused, and the error names the field.
async fn a_page_of_events_out_of_range_is_refused(store: Store) {
    store.sync_events(&target("s"), numbered(101)).await;
    for limit in [0, 10_001, usize::MAX] {
        let options = EventSearchOptions::default().with_limit(limit);
        let error = store.storage.reading().search_events(&Scope::Everyone, &options).await.unwrap_err();
        assert_eq!((error.kind(), error.field()), (ErrorKind::Validation, Some(ErrorField::Limit)));
    }
    let page = store.storage.reading().search_events(&ana(), &EventSearchOptions::default()).await.unwrap();
    assert_eq!(page.len(), 100);
}
