//! When messages were written: what a store keeps of it, and how it is corrected.

use amplifier_session_core::{
    backend::{EventTime, SessionChange, prelude::*},
    model::{Retimed, TimeSource, Timestamp},
    search::SearchFilter,
};
use serde_json::json;

use super::{
    Subject,
    backend_rows::three_messages,
    store::{Store, meaning, range, sequences, target, words},
};
use crate::lines;

fn time(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

/// A message that gets another time keeps its line, its turn, its vectors and their state.
pub async fn a_retimed_message_keeps_everything_else(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let target = target("s");
    store.sync(&target, three_messages()).await;
    let (before, vectors) = (store.messages(&target).await, store.vectors(&target).await);
    let stored = store.stored(&target).await;
    let mut change = SessionChange::new(stored.session, Some(stored.version));
    let (early, late) = (time("2026-01-05T08:00:00.000001Z"), time("2026-01-05T09:00:00Z"));
    change.retimed = vec![
        Retimed { sequence: 2, ts: late, ts_source: TimeSource::Event },
        Retimed { sequence: 0, ts: early, ts_source: TimeSource::Interpolated },
        Retimed { sequence: 3, ts: late, ts_source: TimeSource::Event },
    ];
    store.backend.write_one(change.clone()).await.unwrap();
    let mut expected = before;
    (expected[0].ts, expected[0].ts_source) = (early, TimeSource::Interpolated);
    (expected[2].ts, expected[2].ts_source) = (late, TimeSource::Event);
    assert_eq!(store.messages(&target).await, expected);
    assert_eq!(store.vectors(&target).await, vectors);
    assert_eq!(store.owing(&target).await, [0_u32; 0]);
    let states = store.backend.message_states(&target.key).await.unwrap();
    let states: Vec<_> = states.iter().map(|state| (state.ts, state.ts_source, state.turn)).collect();
    let messages: Vec<_> = expected.iter().map(|m| (m.ts, m.ts_source, m.turn)).collect();
    assert_eq!(states, messages);

    for source in TimeSource::ALL {
        let stored = store.stored(&target).await;
        let mut change = SessionChange::new(stored.session, Some(stored.version));
        change.retimed = vec![Retimed { sequence: 1, ts: early, ts_source: source }];
        store.backend.write_one(change).await.unwrap();
        assert_eq!(store.messages(&target).await[1].ts_source, source);
    }
}

/// Searches by time follow a message that gets another time, also where the index held it before.
pub async fn searches_follow_a_retimed_message(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let target = target("s");
    let lines =
        ["one", "two", "three"].map(|n| lines::user(&format!("basket {n}")).at("2026-01-05T08:00:00Z"));
    store.sync(&target, lines.to_vec()).await;
    store.storage.update_index().await.unwrap();
    let stored = store.stored(&target).await;
    let mut change = SessionChange::new(stored.session, Some(stored.version));
    change.retimed =
        vec![Retimed { sequence: 1, ts: time("2026-01-07T08:00:00Z"), ts_source: TimeSource::Event }];
    store.backend.write_one(change).await.unwrap();
    let boundary = time("2026-01-06T00:00:00Z");
    for is_indexed in [false, true] {
        for options in [words("basket"), meaning("basket two")] {
            let found = async |filter| {
                let answer = store.search(&target, &options.clone().with_filter(filter)).await;
                let mut found = sequences(&answer.results);
                found.sort_unstable();
                found
            };
            assert_eq!(found(SearchFilter::default().with_since(boundary)).await, [1], "{is_indexed}");
            assert_eq!(found(SearchFilter::default().with_until(boundary)).await, [0, 2], "{is_indexed}");
        }
        store.storage.update_index().await.unwrap();
    }
    let days: Vec<_> = {
        let scope = super::store::scope(&target);
        let counts = store.backend.count_messages(&scope, &SearchFilter::default()).await.unwrap();
        counts.into_iter().map(|count| (count.day, count.messages)).collect()
    };
    assert!(days.contains(&("2026-01-07".to_owned(), 1)) && days.contains(&("2026-01-05".to_owned(), 2)));
}

/// What events say of times is what their fields say, in order and in pages.
pub async fn events_tell_times_as_their_fields_do(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let target = target("s");
    let calls = ["toolu_1", "call 'two'"].map(|id| json!({"tool_name": "bash", "tool_call_id": id}));
    let lines = vec![
        lines::logger_event("prompt:submit")
            .at("2026-01-05T08:00:00Z")
            .with("data", json!({"prompt": "Why?"})),
        lines::logger_event("llm:response").at("2026-01-05T08:00:01Z").with("data", json!({"model": "m1"})),
        lines::logger_event("tool:pre").at("2026-01-05T08:00:02Z").with("data", calls[0].clone()),
        lines::hook_event("tool:post").at("2026-01-05T08:00:03Z").with("data", calls[1].clone()),
        lines::logger_event("cleanup:store_end").with("ts", json!("no time")),
    ];
    store.sync_events(&target, lines).await;
    let mut events = Vec::new();
    loop {
        let page = store.backend.event_times(&target.key, range(events.len() as u32, 2)).await.unwrap();
        if page.is_empty() {
            break;
        }
        events.extend(page);
    }
    let stored = store.events(&target).await;
    let expected: Vec<EventTime> = stored.into_iter().map(|line| EventTime::from(line.event)).collect();
    assert_eq!(events, expected);
    let ids: Vec<_> = events.iter().map(|event| event.tool_call_id.as_deref()).collect();
    assert_eq!(ids, [None, None, Some("toolu_1"), Some("call 'two'"), None]);
    assert_eq!(events[1].model.as_deref(), Some("m1"));
    let prompts: Vec<_> = events.iter().map(|event| event.prompt_digest.is_some()).collect();
    assert_eq!(prompts, [true, false, false, false, false]);
    assert_eq!(events[2].ts, time("2026-01-05T08:00:02Z"));
    assert!(events[4].ts_estimated && !events[3].ts_estimated);
    assert!(store.backend.event_times(&target.key, range(5, 10)).await.unwrap().is_empty());
    let unknown = super::store::target("unknown").key;
    assert!(store.backend.event_times(&unknown, range(0, 10)).await.unwrap().is_empty());
}
