//! The rules of the [`StorageBackend`] trait about counting rows and finding events.

use std::collections::BTreeMap;

use amplifier_session_core::{
    Scope,
    backend::{
        EventCount, EventCounter, MessageCount, RowSpan, SequenceRange, SessionRows, Usage, prelude::*,
    },
    model::{ContentType, ContentTypes, Event, Message, Role, SessionKey, Timestamp},
    search::{EventFilter, SearchFilter, SessionFilter},
    storage::IngestTarget,
};
use serde_json::json;

use super::{
    Subject, samples,
    store::{Store, range, scope, target, target_of},
};
use crate::lines::{self, Line};

/// A time of day `n` of January, so many hours in.
fn at(day: u64, hour: u64) -> String {
    format!("2026-01-{day:02}T{hour:02}:30:00Z")
}

/// Event lines of many kinds, the same for the same seed. Costs are sums of powers of two, so that the order in
/// which they are added makes no difference.
fn events(seed: u64, count: usize) -> Vec<Line> {
    let mut random = samples::Random(seed);
    let mut pick = |names: &[&'static str]| names[random.below(names.len() as u64) as usize];
    (0..count)
        .map(|n| {
            let kind = pick(&["llm:request", "llm:response", "tool:pre", "tool:post", "plain"]);
            let mut data = json!({"model": pick(&["m1", "m2"]), "provider": pick(&["p1", "it's %"])});
            if kind.starts_with("tool") {
                data =
                    json!({"tool_name": pick(&["bash", "read_file"]), "error": pick(&["", "", "it broke"])});
            } else if kind == "llm:response" {
                data["usage"] = json!({"input_tokens": n, "output": 2 * n, "cache_read": 3, "cache_write": 1,
                    "cost": n as f64 * 0.25});
            }
            let line =
                lines::logger_event(kind).data(data).with("lvl", pick(&["INFO", "WARN", "ERROR"]).into());
            line.at(&at(1 + n as u64 % 3, n as u64 % 24))
        })
        .collect()
}

fn messages(count: usize) -> Vec<Line> {
    let line = |n: usize| match n % 4 {
        0 => lines::user(&format!("question {n}")),
        1 => lines::thinking(&format!("thought {n}"), &format!("answer {n}")),
        2 => lines::tool(&format!("output {n}")),
        _ => lines::system("rules"),
    };
    (0..count).map(|n| line(n).at(&at(1 + n as u64 % 3, n as u64 % 24))).collect()
}

/// Three sessions of two users, with messages and events.
async fn fill(store: &Store) -> [IngestTarget; 3] {
    let targets =
        [target_of("ana", "shop", "a"), target_of("ana", "blog", "b"), target_of("ben", "shop", "a")];
    for (n, target) in targets.iter().enumerate() {
        store.sync(target, messages(14 + n)).await;
        store.sync_events(target, events(n as u64, 30 + n)).await;
    }
    targets
}

/// All that is stored of these sessions.
async fn all_rows(store: &Store, targets: &[&IngestTarget]) -> (Vec<Message>, Vec<Event>) {
    let (mut messages, mut events) = (Vec::new(), Vec::new());
    for target in targets {
        messages.extend(store.messages(target).await);
        events.extend(store.events(target).await.into_iter().map(|line| line.event));
    }
    (messages, events)
}

/// The rows of a session are told as they are: how many, how far, from when to when.
pub async fn session_rows_tell_what_is_stored(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let [a, _, ben] = fill(&store).await;
    for target in [&a, &ben] {
        let (messages, events) = all_rows(&store, &[target]).await;
        let mut expected = SessionRows::default();
        messages.iter().for_each(|message| expected.messages.add(message.sequence, message.ts));
        events.iter().for_each(|event| expected.events.add(event.sequence, event.ts));
        expected.vectors = store.vectors(target).await.len() as u64;
        expected.synced_at = messages.iter().map(|message| message.synced_at).max();
        assert_eq!(store.backend.session_rows(&target.key).await.unwrap(), expected);
        assert_eq!(expected.messages.last_sequence, Some(messages.len() as u32 - 1));
        assert!(expected.vectors > 0 && expected.messages.first_ts < expected.messages.last_ts);
    }
    let owing = target("owing");
    let sync = amplifier_session_core::storage::SyncLines::whole(super::store::raw(messages(8)));
    store.storage_with(None).sync_transcript_lines(&owing, sync).await.unwrap();
    let rows = store.backend.session_rows(&owing.key).await.unwrap();
    assert_eq!((rows.vectors, rows.owing_vectors, rows.events), (0, 6, RowSpan::default()));
    let unknown = store.backend.session_rows(&target("unknown").key).await.unwrap();
    assert_eq!(unknown, SessionRows::default());
}

/// All of the texts that have vectors, page by page as a caller reads them.
async fn vector_types(store: &Store, key: &SessionKey, limit: usize) -> Vec<(u32, ContentTypes)> {
    let (mut all, mut start) = (Vec::new(), 0);
    loop {
        let page = store.backend.vector_types(0, key, SequenceRange { start, limit }).await.unwrap();
        assert!(page.len() <= limit);
        let Some((last, _)) = page.last() else { return all };
        start = last + 1;
        all.extend(page);
    }
}

/// Which texts have vectors is listed in order of sequence, a page at a time; messages without any are left out.
pub async fn texts_with_vectors_are_listed_in_order(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let target = target("s");
    store.sync(&target, messages(30)).await;
    let of = |types: &[ContentType]| types.iter().copied().collect::<ContentTypes>();
    let types = |n: u32| match n % 4 {
        0 => of(&[ContentType::UserQuery]),
        1 => of(&[ContentType::AssistantResponse, ContentType::AssistantThinking]),
        _ => of(&[ContentType::ToolOutput]),
    };
    let expected: Vec<_> = (0..30).filter(|n| n % 4 != 3).map(|n| (n, types(n))).collect();
    for limit in [1, 5, 100] {
        assert_eq!(vector_types(&store, &target.key, limit).await, expected);
    }
    let page = store.backend.vector_types(0, &target.key, range(3, 1)).await.unwrap();
    assert_eq!(page, [(4, of(&[ContentType::UserQuery]))]);
    assert!(store.backend.vector_types(0, &target.key, range(30, 10)).await.unwrap().is_empty());
    let unknown = super::store::target("unknown").key;
    assert!(store.backend.vector_types(0, &unknown, range(0, 10)).await.unwrap().is_empty());
}

fn in_order(mut counts: Vec<EventCount>) -> Vec<EventCount> {
    counts.sort_by(|a, b| a.group.cmp(&b.group));
    counts
}

/// Events are counted as if one by one, with what they tell of usage; scope and filter hold.
pub async fn events_are_counted_as_one_by_one(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let [a, b, ben] = fill(&store).await;
    let time = |text: &str| Timestamp::parse(text).unwrap();
    let none = EventFilter::default;
    let filters = [
        none(),
        none().with_category("tool".to_owned()),
        none().with_model("m1".to_owned()).with_provider("it's %".to_owned()),
        none().with_since(time("2026-01-02T00:00:00Z")).with_until(time("2026-01-03T00:00:00Z")),
        none().with_event_type("unheard of".to_owned()),
    ];
    for filter in filters {
        let scopes = [(scope(&a), vec![&a, &b]), (Scope::Everyone, vec![&a, &b, &ben])];
        for (scope, targets) in scopes {
            let (_, events) = all_rows(&store, &targets).await;
            let mut counter = EventCounter::default();
            events.iter().filter(|event| filter.admits(event)).for_each(|event| counter.add(event));
            let counted = store.backend.count_events(&scope, &filter).await.unwrap();
            assert_eq!(in_order(counted), counter.into_counts(), "{filter:?}");
        }
    }
    let shop = SessionFilter::default().with_project(a.project_slug.clone());
    let counted = store.backend.count_events(&scope(&a), &none().with_sessions(shop)).await.unwrap();
    assert_eq!(counted.iter().map(|count| count.events).sum::<u64>(), 30);
}

/// What events tell of usage is summed up to the largest number there is.
pub async fn sums_of_tokens_do_not_overflow(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let line = |tokens: u64, model: &str| {
        lines::logger_event("llm:response")
            .data(json!({"model": model, "usage": {"input_tokens": tokens, "output_tokens": 1}}))
    };
    let (large, largest) = (9_000_000_000_000_000_000, u64::MAX);
    let lines =
        vec![line(large, "large"), line(large, "large"), line(largest, "most"), line(largest, "most")];
    store.sync_events(&target("s"), lines).await;
    let counts = store.backend.count_events(&Scope::Everyone, &EventFilter::default()).await.unwrap();
    let usage: BTreeMap<_, _> =
        counts.into_iter().map(|count| (count.group.model.unwrap(), count.usage)).collect();
    let of = |model: &str| -> Usage { usage[model] };
    assert_eq!((of("large").calls, of("large").output_tokens), (2, 2));
    assert_eq!(of("large").input_tokens, 2 * large);
    assert_eq!(of("most").input_tokens, u64::MAX);
}

/// Messages are counted by day and role; scope and filter hold.
pub async fn messages_are_counted_by_day_and_role(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let [a, b, ben] = fill(&store).await;
    let none = SearchFilter::default;
    let filters = [
        none(),
        none().with_role(Role::Tool),
        none().with_since(Timestamp::parse("2026-01-02T00:00:00Z").unwrap()),
        none().with_until(Timestamp::parse("2026-01-02T00:00:00Z").unwrap()).with_role(Role::User),
    ];
    for filter in filters {
        let scopes = [(scope(&ben), vec![&ben]), (Scope::Everyone, vec![&a, &b, &ben])];
        for (scope, targets) in scopes {
            let (messages, _) = all_rows(&store, &targets).await;
            let mut expected: BTreeMap<(String, &str), u64> = BTreeMap::new();
            for message in messages.iter().filter(|message| filter.admits_message(message.role, message.ts)) {
                *expected.entry((message.ts.day(), message.role.as_str())).or_default() += 1;
            }
            let counted = store.backend.count_messages(&scope, &filter).await.unwrap();
            let key = |count: &MessageCount| (count.day.clone(), count.role.as_str());
            let found: BTreeMap<_, _> = counted.iter().map(|count| (key(count), count.messages)).collect();
            assert_eq!(found.len(), counted.len());
            assert_eq!(found, expected, "{filter:?}");
        }
    }
    let session = none().with_session(target("b").key.session_id);
    let counted = store.backend.count_messages(&Scope::Everyone, &session).await.unwrap();
    assert_eq!(counted.iter().map(|count| count.messages).sum::<u64>(), 15);
}

/// A store says where it is, itself first.
pub async fn a_store_says_where_it_is(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    store.sync(&target("s"), messages(4)).await;
    let places = store.backend.info().places;
    assert_eq!(places[0].what, "store");
    assert!(places.iter().all(|place| ["store", "index"].contains(&place.what)), "{places:?}");
    assert!(places.iter().all(|place| !place.location.is_empty()), "{places:?}");
    assert_eq!(places.iter().filter(|place| place.what == "store").count(), 1);
}
