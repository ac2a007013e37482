//! Events: lines, large payloads, ids, times and counts.

use std::collections::BTreeMap;

use amplifier_session_core::events::CHUNKED_ABOVE;

use super::messages::near_a_quarter;
use crate::prelude::*;

/// An event with this id in its line.
pub fn with_id(id: &str) -> Line {
    lines::logger_event("e").with("event_id", json!(id))
}

/// An event whose `data` has at least `bytes` bytes of text that does not compress to almost nothing.
pub fn sized(bytes: usize) -> Line {
    let mut random = Random(bytes as u64);
    let mut text = String::new();
    while text.len() < bytes {
        text.push_str(&random.words(20, 1_000_000));
    }
    lines::logger_event("llm:response").data(json!({"content": text}))
}

/// Event lines of any size come back byte for byte.
pub async fn lines_come_back_byte_for_byte(store: Store) {
    let mut samples = samples::awkward_events();
    for bytes in [0, 5_000, 300_000, CHUNKED_ABOVE as usize, 1_300_000] {
        samples.push(("a size", sized(bytes).raw()));
    }
    let broken =
        [&b"{\"event\":\"large\",\"data\":\"\xff\\ud800"[..], &b"x".repeat(500_000), b"\"}"].concat();
    samples.push(("large and no UTF-8", RawJson::new(broken)));
    store.sync_events(&target("s"), samples.iter().map(|(_, line)| line.clone()).collect()).await;
    for handle in [store.again().await, store] {
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

/// An event with only the required fields.
fn bare(sequence: u32) -> Event {
    let IngestTarget { key, host_id, project_slug } = target("s");
    Event {
        event_id: format!("s_evt_{sequence}"),
        user_id: key.user_id,
        host_id,
        project_slug,
        session_id: key.session_id,
        sequence,
        event_type: "e".to_owned(),
        ts: time("1969-07-20T20:17:40Z"),
        ts_estimated: true,
        turn: None,
        level: Level::Info,
        tool_name: None,
        error_type: None,
        model: None,
        provider: None,
        summary: serde_json::Map::new(),
        is_chunked: false,
        chunk_count: None,
        data_size_bytes: 0,
        synced_at: Some(day(1)),
        digest: Digest::of(b"x"),
    }
}

/// All fields of an event and every form of its payload come back as they were stored.
pub async fn all_fields_of_an_event_come_back(store: Store) {
    let text = |text: &str| Some(text.to_owned());
    let summary = json!({"usage": {"input_tokens": 12_345_678_901_u64, "cost": "0.125"}, "duration_ms": 1.5,
        "tool_names": ["it's \"bash\""], "has_error": true, "nothing": null});
    let full = Event {
        event_id: "given 'id'".to_owned(),
        event_type: "llm:é \"x\"".to_owned(),
        ts: time("2026-01-05T08:00:00.000001Z"),
        ts_estimated: false,
        turn: Some(3),
        tool_name: text("o'brien\0"),
        error_type: text("multi\nline"),
        model: text("m%"),
        provider: text("é🦀"),
        summary: summary.as_object().cloned().unwrap_or_default(),
        is_chunked: true,
        chunk_count: Some(2),
        data_size_bytes: 5_000_000_000,
        digest: Digest::of(b"y"),
        ..bare(0)
    };
    let levels = Level::ALL.into_iter().zip(1..).map(|(level, n)| Event { level, ..bare(n) });
    let events: Vec<Event> = std::iter::once(full).chain(levels).collect();
    let forms = [
        Payload::Chunks(vec![vec![0, 255], vec![], vec![7; 300_000]]),
        Payload::None,
        Payload::Plain(b"{\xff}".to_vec()),
        Payload::Zstd(vec![0; 3]),
    ];
    let payloads: Vec<(u32, Payload)> = (0..).zip(forms.iter().cycle().take(events.len()).cloned()).collect();
    let stored = events.iter().zip(&payloads);
    let put: Vec<_> = stored
        .map(|(event, (_, payload))| StoredEvent { event: event.clone(), payload: payload.clone() })
        .collect();
    store.create(&target("s"), |_| {}).await;
    store.write(&target("s"), |change| change.events.put = put).await;
    for handle in [store.again().await, store] {
        let id = &target("s").key.session_id;
        let read = handle.storage.reading().get_event_lines(&ana(), id, EventLines::default()).await.unwrap();
        assert!(read.iter().map(|line| &line.event).eq(&events));
        let wanted: Vec<u32> = (0..events.len() as u32 + 3).collect();
        let mut read = handle.backend.event_payloads(&target("s").key, &wanted).await.unwrap();
        read.sort_by_key(|(sequence, _)| *sequence);
        assert_eq!(read, payloads);
    }
}

/// A changed line changes only its own event, whatever form the old payload had.
pub async fn a_changed_line_changes_only_its_event(store: Store) {
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

/// An event keeps the id in its line, unless another event of the user already has it. In that case, it gets a derived
/// id.
pub async fn event_ids_are_unique_to_a_user(store: Store) {
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

    // Even if an event takes the id of one that changes in the same write.
    store.sync_events(&a, vec![with_id("two"), with_id("one"), with_id("new")]).await;
    let mut found = ids(&a).await;
    found.sort();
    found.dedup();
    assert_eq!(found.len(), 3);
    let all: Vec<String> = [ids(&a).await, ids(&b).await].concat();
    assert_eq!(store.backend.find_events(&a.key.user_id, &all).await.unwrap().len(), 5);
}

/// Events are found by id in all sessions of the user.
pub async fn events_are_found_by_id(store: Store) {
    store.sync_events(&target("a"), vec![with_id("one"), with_id("two")]).await;
    store.sync_events(&target("b"), vec![with_id("three")]).await;
    store.sync_events(&target_of("ben", "p", "a"), vec![with_id("four")]).await;
    let ids = ["one", "three", "four", "b_evt_0", "%"].map(str::to_owned);
    let mut found = store.backend.find_events(&target("a").key.user_id, &ids).await.unwrap();
    found.sort();
    let event = |session: &str| MessageRef::new(target(session).key, 0);
    assert_eq!(found, [("one".to_owned(), event("a")), ("three".to_owned(), event("b"))]);
}

/// The times of events agree with their fields, in order and in pages.
pub async fn event_times_agree_with_event_fields(store: Store) {
    let calls = ["toolu_1", "call 'two'"].map(|id| json!({"tool_name": "bash", "tool_call_id": id}));
    let [first, second] = calls;
    let lines = vec![
        lines::logger_event("prompt:submit").at("2026-01-05T08:00:00Z").data(json!({"prompt": "Why?"})),
        lines::logger_event("llm:response").at("2026-01-05T08:00:01Z").data(json!({"model": "m1"})),
        lines::logger_event("tool:pre").at("2026-01-05T08:00:02Z").data(first),
        lines::hook_event("tool:post").at("2026-01-05T08:00:03Z").data(second),
        lines::logger_event("cleanup:store_end").at("no time"),
        lines::logger_event("llm:response").data(json!({"model": "m2", "purpose": "session-naming"})),
    ];
    store.sync_events(&target("s"), lines).await;
    let mut events = Vec::new();
    loop {
        let range = range(events.len() as u32, 2);
        let page = store.backend.event_states(&target("s").key, range, true).await.unwrap();
        if page.is_empty() {
            break;
        }
        let digests = store.backend.event_states(&target("s").key, range, false).await.unwrap();
        assert!(page.iter().map(|state| state.digest).eq(digests.iter().map(|state| state.digest)));
        assert!(digests.iter().all(|state| state.time.is_none()));
        events.extend(page.into_iter().filter_map(|state| state.time));
    }
    let stored = store.events(&target("s")).await;
    let expected: Vec<EventTime> = stored.into_iter().map(|line| EventTime::from(line.event)).collect();
    assert_eq!(events, expected);
    let ids: Vec<_> = events.iter().map(|event| event.tool_call_id.as_deref()).collect();
    assert_eq!(ids, [None, None, Some("toolu_1"), Some("call 'two'"), None, None]);
    assert_eq!(events[1].model.as_deref(), Some("m1"));
    assert!(events[0].prompt_digest.is_some() && events[1].prompt_digest.is_none());
    assert!(events[4].ts_estimated && !events[3].ts_estimated);
    let background: Vec<_> =
        events.iter().filter(|event| event.is_background).map(|event| event.sequence).collect();
    assert_eq!(background, [5]);
}

/// Event lines of many kinds, the same for the same seed, with usage in every form that logs have.
fn of_many_kinds(seed: u64, count: usize) -> Vec<Line> {
    let mut random = Random(seed);
    let costs = [
        json!("0.4724725"),
        json!(0.1),
        json!("free"),
        json!(null),
        json!(3),
        json!("0.0000000000000000005"),
    ];
    let tokens = [json!(5), json!(-5), json!("7"), json!(null), json!([1]), json!(2.9), json!(1_u64 << 53)];
    let kinds =
        ["llm:request", "llm:response", "content_block:end", "llm:response:debug", "tool:pre", "plain"];
    let mut line = |n: usize| {
        let kind = *random.one(&kinds);
        let mut data = json!({"model": random.one(&["m1", "m2"]), "provider": random.one(&["p1", "it's %"])});
        match kind {
            "tool:pre" => {
                data = json!({"tool_name": random.one(&["bash", "read"]), "error": random.one(&["", "it broke"])});
            }
            "llm:response" | "content_block:end" | "llm:response:debug" => {
                data["usage"] = json!({"input_tokens": random.one(&tokens), "output_tokens": 2 * n,
                    "cache_read": 3, "cache_write": 1, "cost_usd": random.one(&costs)});
            }
            _ => {}
        }
        let level = *random.one(&["INFO", "WARN", "ERROR"]);
        lines::logger_event(kind).data(data).with("lvl", level.into()).at(near_a_quarter(n as u32))
    };
    (0..count).map(&mut line).collect()
}

fn in_order(mut counts: CountedEvents) -> CountedEvents {
    counts.groups.sort_by(|a, b| a.group.cmp(&b.group));
    counts.sessions.sort_by(|a, b| (&a.session, &a.of_session).cmp(&(&b.session, &b.of_session)));
    counts
}

/// Event counts and usage equal those of counting one by one, for every scope and filter. A model call counts once,
/// whether or not the filter matches its response.
pub async fn event_counts_equal_brute_force(store: Store) {
    let targets = [target("a"), target_of("ana", "blog", "b"), target_of("ben", "shop", "a"), target("c")];
    let no_response = |line: &Line| !line.clone().raw().to_text().contains("\"llm:response\"");
    for (n, target) in targets.iter().enumerate() {
        let mut lines = of_many_kinds(n as u64, 40 + n);
        // In some sessions, no response has usage.
        lines.retain(|line| n < 2 || no_response(line));
        store.sync_events(target, lines).await;
    }
    let none = EventFilter::default;
    let shop = SessionFilter::default().with_project(targets[0].project_slug.clone());
    let filters = [
        none(),
        none().with_category("tool".to_owned()),
        none().with_category("content_block".to_owned()),
        none().with_model("m1".to_owned()).with_provider("it's %".to_owned()),
        none().with_since(day(2)).with_until(day(3)),
        none().with_event_type("unheard of".to_owned()),
        none().with_sessions(shop),
    ];
    let mut usages = 0;
    for filter in filters {
        for (scope, is_own) in [(ana(), true), (Scope::Everyone, false)] {
            let (mut counter, mut answered) = (EventCounter::default(), Vec::new());
            for target in targets.iter().filter(|target| !is_own || target.key.user_id.as_str() == "ana") {
                let session = store.stored(target).await.session;
                for EventLine { event, .. } in store.events(target).await {
                    if event.event_type == RESPONSE && Usage::of(&event.summary).calls > 0 {
                        answered.push(target.key.clone());
                    }
                    if filter.admits(&event) && filter.sessions.admits(&session) {
                        counter.add(&event);
                    }
                }
            }
            counter.set_answered(answered);
            let expected = counter.into_counts();
            usages += expected.groups.iter().filter(|count| count.once.usage.calls > 0).count();
            let counted = store.backend.count_events(&scope, &filter).await.unwrap();
            assert_eq!(in_order(counted), expected, "{filter:?}");
        }
    }
    assert!(usages > 30, "{usages}");
}

/// A line that is in the same log again counts once, and so does a call that several lines report. Equal lines without
/// an id in whole seconds may be different events. Lines of other sessions are not compared.
pub async fn what_a_log_has_twice_counts_once(store: Store) {
    let event = |name: &str, time: &str, data: Value| lines::logger_event(name).at(time).data(data);
    let (early, late) = ("2026-01-01T12:00:00.250000Z", "2026-01-01T12:00:00Z");
    let call = |request: &str, cost: Value| {
        let usage = json!({"input_tokens": 10, "cost_usd": cost});
        event("llm:response", early, json!({"model": "m", "request_id": request, "usage": usage}))
    };
    let of_provider =
        event("provider:response", early, json!({"usage": {"input_tokens": 10, "cost_usd": 0.5}}));
    let call_id = event("tool:pre", late, json!({"tool_name": "bash", "tool_call_id": "1"}));
    let other = event("child:end", early, json!({"session_id": "child"}));
    let some = vec![call("r1", json!("0.5")), call_id, event("note", late, json!({})), of_provider, other];
    let more = vec![call("r1", json!(null)), call("r2", json!(0.25))];
    for session in ["a", "b"] {
        store.sync_events(&target(session), [some.clone(), some.clone(), more.clone()].concat()).await;
    }
    let counts = store.backend.count_events(&ana(), &EventFilter::default()).await.unwrap();
    let found: BTreeMap<_, _> = counts
        .groups
        .iter()
        .map(|EventCount { group, once, left_out }| {
            let tally = |of: &Tally| (of.events, of.usage.calls, of.usage.cost.to_string());
            (group.event_type.as_str(), (tally(once), tally(left_out), group.of_session.as_deref()))
        })
        .collect();
    let tally = |events, calls, cost: &str| (events, calls, cost.to_owned());
    let nothing = |events| tally(events, 0, "0");
    let expected = [
        ("child:end", (nothing(2), nothing(2), Some("child"))),
        ("llm:response", (tally(6, 4, "1.5"), tally(2, 4, "1"), None)),
        ("note", (nothing(4), nothing(0), None)),
        ("provider:response", (nothing(2), nothing(2), None)),
        ("tool:pre", (nothing(2), nothing(2), None)),
    ];
    assert_eq!(found, BTreeMap::from(expected));
    let sessions = in_order(counts).sessions;
    let of_session =
        |of: &SessionUsage| (of.session.session_id.to_string(), of.usage.calls, of.usage.cost.to_string());
    assert_eq!(
        sessions.iter().map(of_session).collect::<Vec<_>>(),
        ["a", "b"].map(|session| (session.to_owned(), 2, "0.75".to_owned()))
    );
}

/// Sums of tokens saturate.
pub async fn token_sums_saturate(store: Store) {
    let line = |tokens: u64, model: &str| {
        let data = json!({"model": model, "usage": {"input_tokens": tokens, "output_tokens": 1}});
        lines::logger_event("llm:response").data(data)
    };
    let (large, largest) = (9_000_000_000_000_000_000, u64::MAX);
    let lines = [line(large, "large"), line(largest, "most")];
    let later = lines.clone().map(|line| line.at("2026-01-05T08:05:00Z"));
    store.sync_events(&target("s"), [lines, later].concat()).await;
    let counts = store.backend.count_events(&Scope::Everyone, &EventFilter::default()).await.unwrap();
    let usage: BTreeMap<_, _> =
        counts.groups.into_iter().map(|count| (count.group.model.unwrap(), count.once.usage)).collect();
    assert_eq!((usage["large"].calls, usage["large"].output_tokens), (2, 2));
    assert_eq!(usage["large"].input_tokens, 2 * large);
    assert_eq!(usage["most"].input_tokens, u64::MAX);
}
