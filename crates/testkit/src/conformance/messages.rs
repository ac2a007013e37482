//! Messages: lines, reads, truncation, counts and times.

use std::collections::{BTreeMap, BTreeSet};

use super::sessions::three_messages;
use crate::prelude::*;

/// User messages, each with a unique word.
pub fn numbered(count: u32) -> Vec<Line> {
    (0..count).map(|n| lines::user(&format!("message number{n}")).at("2026-01-05T08:00:00Z")).collect()
}

/// Lines come back byte for byte, and their text is searchable.
pub async fn lines_come_back_byte_for_byte(store: Store) {
    let samples = samples::awkward_messages();
    let lines: Vec<RawJson> = samples.iter().map(|(_, line)| line.clone()).collect();
    store.sync(&target("s"), lines).await;
    for handle in [store.again().await, store] {
        let messages = handle.messages(&target("s")).await;
        assert_eq!(messages.len(), samples.len());
        for (message, (name, line)) in messages.iter().zip(&samples) {
            assert_eq!(message.raw, *line, "{name}");
            assert_eq!((message.role, message.content()), (Role::User, json!("hello")), "{name}");
        }
        assert_eq!(handle.find(&target("s"), "hello").await.len(), samples.len());
    }
}

/// Lines with other names of roles and other fields come back byte for byte. They have the nearest role, and their text
/// is found and embedded.
pub async fn lines_in_other_formats_come_back_and_are_found(store: Store) {
    let samples = samples::messages_in_other_formats();
    store.sync(&target("s"), samples.iter().map(|(_, line)| line.clone()).collect()).await;
    let messages = store.messages(&target("s")).await;
    assert_eq!(messages.len(), samples.len());
    for (message, (role, line)) in messages.iter().zip(&samples) {
        assert_eq!((message.role, &message.raw), (*role, line));
        let written = line.parse_object().unwrap()["role"].as_str().map(str::to_owned);
        assert_eq!(message.written_role(), written.filter(|written| written != role.as_str()), "{line:?}");
    }
    let all: Vec<u32> = (0..).take(samples.len()).collect();
    assert_eq!(store.find(&target("s"), "pelican").await, all);
    assert!(store.pending(&target("s")).await.is_empty());
    let embedded: BTreeSet<u32> =
        store.vectors(&target("s")).await.into_iter().map(|(sequence, _)| sequence).collect();
    assert_eq!(embedded.into_iter().collect::<Vec<_>>(), all);
    for role in [Role::User, Role::Assistant, Role::Tool] {
        let filter = SearchFilter::default().with_role(role);
        let found = store.search(&target("s"), &words("pelican").with_filter(filter).with_limit(100)).await;
        let mut found = sequences(&found.results);
        found.sort_unstable();
        let expected = messages.iter().filter(|message| message.role == role).map(|message| message.sequence);
        assert_eq!(found, expected.collect::<Vec<_>>(), "{role}");
    }
}

/// Invalid Unicode is kept in the line, and replaced by U+FFFD in the searched text.
pub async fn invalid_unicode_is_kept_and_does_not_break_searches(store: Store) {
    let lines = [
        RawJson::new(b"{\"role\":\"user\",\"content\":\"before\xff after\"}".to_vec()),
        RawJson::from(r#"{"role":"user","content":"before\ud800 after"}"#),
        RawJson::from(r#"{"role":"user","content":"before\u0000 after"}"#),
    ];
    store.sync(&target("s"), lines.to_vec()).await;
    let messages = store.messages(&target("s")).await;
    assert!(messages.iter().map(|message| &message.raw).eq(&lines));
    let contents: Vec<_> = messages.iter().map(Message::content).collect();
    assert_eq!(contents, ["before\u{FFFD} after", "before\u{FFFD} after", "before\0 after"]);
    for word in ["before", "after"] {
        assert_eq!(store.find(&target("s"), word).await, [0, 1, 2], "{word}");
    }
    assert!(store.pending(&target("s")).await.is_empty());
}

/// A large message is stored completely, and its last word is found.
pub async fn a_large_message_is_stored_completely(store: Store) {
    let text = format!("{} lastword", "filler text, ".repeat(160_000));
    store.sync(&target("s"), vec![lines::tool(&text), lines::user("small")]).await;
    assert_eq!(store.messages(&target("s")).await[0].content(), json!(text));
    assert_eq!(store.find(&target("s"), "lastword").await, [0]);
}

/// All fields of a message come back as they were stored.
pub async fn all_fields_of_a_message_come_back(store: Store) {
    let (mut expected, mut states) = (Vec::new(), Vec::new());
    store.create(&target("s"), |_| {}).await;
    for (n, role) in Role::ALL.into_iter().enumerate() {
        let ts_source = TimeSource::ALL[n];
        let raw = lines::message(role.as_str(), json!("text")).raw();
        let turn = (n > 0).then_some(n as u32);
        let (ts, synced_at) = (time("2026-01-05T08:00:00.000001Z"), time("1969-07-20T20:17:40Z"));
        let SessionKey { user_id, session_id } = target("s").key;
        let digest = Digest::of(raw.as_bytes());
        let vectors = if n < 3 { VectorState::Pending } else { VectorState::Nothing };
        let IngestTarget { host_id, project_slug, .. } = target("s");
        let sequence = n as u32;
        states.push(MessageState { digest, turn, ts, ts_source });
        expected.push(Message {
            user_id,
            host_id,
            project_slug,
            session_id,
            sequence,
            role,
            turn,
            ts,
            ts_source,
            synced_at,
            vectors,
            digest,
            raw,
        });
    }
    store.write(&target("s"), |change| change.messages.put.clone_from(&expected)).await;
    assert_eq!(store.again().await.messages(&target("s")).await, expected);
    assert_eq!(store.backend.message_states(&target("s").key).await.unwrap(), states);
    assert_eq!(store.pending(&target("s")).await, [0, 1, 2]);
}

/// A long session has each of its messages and vectors once.
pub async fn a_long_session_is_complete(store: Store) {
    store.sync(&target("s"), numbered(300)).await;
    let messages = store.messages(&target("s")).await;
    assert!(messages.iter().map(|message| message.sequence).eq(0..300));
    let vectors = store.vectors(&target("s")).await;
    assert!(vectors.iter().map(|(sequence, _)| *sequence).eq(0..300));
    assert!(vectors.iter().all(|(_, record)| record.text == ContentType::UserQuery.into()));
    assert_eq!(store.find(&target("s"), "number299").await, [299]);
}

/// Rows are read in order from a start sequence. A page may be shorter than requested, but is empty only at the end.
pub async fn rows_are_read_in_order_from_a_start_sequence(store: Store) {
    let (key, count) = (target("s").key, 25);
    store.sync_text(&target("s"), numbered(count)).await;
    store.sync_events(&target("s"), (0..count).map(|n| lines::logger_event(&n.to_string())).collect()).await;
    let all = store.events(&target("s")).await;
    assert_eq!(store.backend.message_states(&key).await.unwrap().len(), 25);
    for start in [0, 1, 7, 24, 25, 1_000] {
        let expected: Vec<u32> = (start..count).take(10).collect();
        let messages = store.backend.read_messages(&key, range(start, 10)).await.unwrap();
        let events = store.backend.read_events(&key, range(start, 10)).await.unwrap();
        let digests = store.backend.event_digests(&key, range(start, 10)).await.unwrap();
        assert!(expected.starts_with(&messages.iter().map(|m| m.sequence).collect::<Vec<_>>()));
        assert!(expected.starts_with(&events.iter().map(|e| e.sequence).collect::<Vec<_>>()));
        let digest = |sequence: &u32| all[*sequence as usize].event.digest;
        assert!(expected.iter().map(digest).collect::<Vec<_>>().starts_with(&digests));
        let lengths = [messages.len(), events.len(), digests.len()];
        assert!(lengths.iter().all(|length| (*length == 0) == expected.is_empty()));
    }
}

/// Messages of several sessions are read by reference. Missing ones are skipped.
pub async fn messages_are_read_by_reference(store: Store) {
    for session in ["a", "b"] {
        store.sync(&target(session), (0..12).map(|n| lines::user(&format!("{session}{n}"))).collect()).await;
    }
    let message_refs = [("a", 11), ("b", 0), ("a", 0), ("a", 12), ("c", 0)];
    let message_refs = message_refs.map(|(session, sequence)| MessageRef::new(target(session).key, sequence));
    let mut found = store.backend.messages_at(&message_refs).await.unwrap();
    found.sort_by_key(Message::message_ref);
    let contents: Vec<_> = found.iter().map(Message::content).collect();
    assert_eq!(contents, ["a0", "a11", "b0"]);
}

/// Rows are truncated before new ones are put, including rows at and beyond the truncated length. Truncating messages
/// keeps the events, and vice versa.
pub async fn rows_are_truncated_before_they_are_put(store: Store) {
    let target = target("s");
    store.sync(&target, numbered(20)).await;
    let event = |n: u32| lines::logger_event("e").with("event_id", format!("id-{n}").into());
    store.sync_events(&target, (0..20).map(event).collect()).await;
    let (messages, events) = (store.messages(&target).await, store.events(&target).await);

    let put = messages[5..7].to_vec();
    store.write(&target, |change| change.messages = RowChange { put, truncate: Some(5) }).await;
    let left: Vec<_> = store.messages(&target).await.into_iter().map(|m| (m.sequence, m.raw)).collect();
    assert!(left.into_iter().eq(messages[..7].iter().map(|m| (m.sequence, m.raw.clone()))));
    assert_eq!(store.events(&target).await, events);
    assert!(store.vectors(&target).await.iter().map(|(sequence, _)| *sequence).eq(0..5));
    assert_eq!(store.rows(&target).await.vectors, 5);
    assert!(store.find(&target, "number7 number19").await.is_empty());

    let payloads = store.backend.event_payloads(&target.key, &[5, 6]).await.unwrap().into_iter();
    let stored =
        |(at, payload): (u32, Payload)| StoredEvent { event: events[at as usize].event.clone(), payload };
    let put = payloads.map(stored).collect();
    store.write(&target, |change| change.events = RowChange { put, truncate: Some(5) }).await;
    assert_eq!(store.events(&target).await, events[..7]);
    assert_eq!(store.rows(&target).await.messages.count, 7);
    assert_eq!(store.backend.event_payloads(&target.key, &[3, 7]).await.unwrap().len(), 1);
    let ids = ["id-6".to_owned(), "id-7".to_owned()];
    assert_eq!(store.backend.find_events(&target.key.user_id, &ids).await.unwrap().len(), 1);
}

/// A message with a new time keeps its line, turn, vectors and vector state.
pub async fn a_retimed_message_keeps_everything_else(store: Store) {
    let target = target("s");
    store.sync(&target, three_messages()).await;
    let (mut expected, vectors) = (store.messages(&target).await, store.vectors(&target).await);
    let (early, late) = (time("2026-01-05T08:00:00.000001Z"), time("2026-01-05T09:00:00Z"));
    let retimed = [
        Retimed { sequence: 2, ts: late, ts_source: TimeSource::Event },
        Retimed { sequence: 0, ts: early, ts_source: TimeSource::Interpolated },
        Retimed { sequence: 3, ts: late, ts_source: TimeSource::Event },
    ];
    store.write(&target, |change| change.retimed = retimed.to_vec()).await;
    (expected[0].ts, expected[0].ts_source) = (early, TimeSource::Interpolated);
    (expected[2].ts, expected[2].ts_source) = (late, TimeSource::Event);
    assert_eq!(store.messages(&target).await, expected);
    assert_eq!(store.vectors(&target).await, vectors);
    assert_eq!(store.pending(&target).await, [0_u32; 0]);
    let states = store.backend.message_states(&target.key).await.unwrap();
    let states: Vec<_> = states.iter().map(|state| (state.ts, state.ts_source, state.turn)).collect();
    let messages: Vec<_> = expected.iter().map(|m| (m.ts, m.ts_source, m.turn)).collect();
    assert_eq!(states, messages);
    for ts_source in TimeSource::ALL {
        let retimed = vec![Retimed { sequence: 1, ts: early, ts_source }];
        store.write(&target, |change| change.retimed = retimed).await;
        assert_eq!(store.messages(&target).await[1].ts_source, ts_source);
    }
}

/// Searches and counts by time use the new time of a message, even if it was already indexed.
pub async fn searches_use_the_new_time_of_a_message(store: Store) {
    let target = target("s");
    let lines = ["one", "two", "three"].map(|n| lines::user(&format!("basket {n}")).at(day(5)));
    store.sync(&target, lines.to_vec()).await;
    store.storage.update_index().await.unwrap();
    let retimed = vec![Retimed { sequence: 1, ts: day(7), ts_source: TimeSource::Event }];
    store.write(&target, |change| change.retimed = retimed).await;
    for is_indexed in [false, true] {
        for options in [words("basket"), meaning("basket two")] {
            let found = async |filter| {
                let answer = store.search(&target, &options.clone().with_filter(filter)).await;
                let mut found = sequences(&answer.results);
                found.sort_unstable();
                found
            };
            assert_eq!(found(SearchFilter::default().with_since(day(6))).await, [1], "{is_indexed}");
            assert_eq!(found(SearchFilter::default().with_until(day(6))).await, [0, 2], "{is_indexed}");
        }
        store.storage.update_index().await.unwrap();
    }
    let counts = store.backend.count_messages(&scope(&target), &SearchFilter::default()).await.unwrap();
    let mut times: Vec<_> = counts.into_iter().map(|count| (count.quarter, count.messages)).collect();
    times.sort();
    assert_eq!(times, [(day(5), 2), (day(7), 1)]);
}

/// A time at the beginning or the end of a quarter of an hour, on one of three days.
pub fn near_a_quarter(n: u32) -> Timestamp {
    let micros = [0, 899_999_999, 900_000_000, 84_599_999_999][n as usize / 3 % 4];
    Timestamp::from_micros(day(1 + n % 3).as_micros() + micros)
}

/// Messages are counted by quarter of an hour and role, within scope and filter.
pub async fn messages_are_counted_by_time_and_role(store: Store) {
    let targets =
        [target_of("ana", "shop", "a"), target_of("ana", "blog", "b"), target_of("ben", "shop", "a")];
    for (n, target) in targets.iter().enumerate() {
        let roles = ["user", "assistant", "tool", "system"];
        let line = |n: u32| lines::message(roles[n as usize % 4], json!("text")).at(near_a_quarter(n));
        store.sync_text(target, (0..14 + n as u32).map(line).collect()).await;
    }
    let none = SearchFilter::default;
    let [_, b, ben] = &targets;
    let filters = [
        none(),
        none().with_role(Role::Tool),
        none().with_since(day(2)),
        none().with_until(day(2)).with_role(Role::User),
        none().with_session(b.key.session_id.clone()),
        none().with_project(ben.project_slug.clone()).with_since(day(1)),
    ];
    for filter in filters {
        for (scope, targets) in
            [(scope(ben), &targets[2..]), (ana(), &targets[..2]), (Scope::Everyone, &targets)]
        {
            let mut expected: BTreeMap<(Timestamp, &str), u64> = BTreeMap::new();
            for target in targets {
                let session = store.stored(target).await.session;
                for message in store.messages(target).await {
                    if filter.sessions.admits(&session) && filter.admits_message(message.role, message.ts) {
                        *expected.entry((message.ts.quarter_hour(), message.role.as_str())).or_default() += 1;
                    }
                }
            }
            let counted = store.backend.count_messages(&scope, &filter).await.unwrap();
            let key = |count: &MessageCount| (count.quarter, count.role.as_str());
            let found: BTreeMap<_, _> = counted.iter().map(|count| (key(count), count.messages)).collect();
            assert_eq!((found.len(), &found), (counted.len(), &expected), "{filter:?}");
        }
    }
}
