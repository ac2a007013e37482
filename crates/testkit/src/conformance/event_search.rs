//! Finding events by what they are about.

use amplifier_session_core::{
    ErrorKind, Scope,
    backend::prelude::*,
    model::{Event, Level, ProjectSlug, RawJson, Timestamp},
    search::{EventCursor, EventFilter, EventSearchOptions, SessionFilter},
    storage::{IngestTarget, SessionEdit},
};
use serde_json::json;

use super::{
    Subject, samples,
    store::{Store, scope, target, target_of},
};
use crate::lines::{self, Line};

/// The names of types, tools, models and providers: one or two of each ask for trouble.
const TYPES: [&str; 7] =
    ["llm:request", "llm:response", "tool:pre", "tool:post", "tools:pre", "plain", "tool:pre:deep"];
const TOOLS: [&str; 4] = ["bash", "Bash", "b%", "read_file"];
const MODELS: [&str; 3] = ["claude-1", "claude-1.5", "gpt"];
const ERRORS: [&str; 3] = ["Timeout", "it's \"broken\"", "TimeoutError"];

fn time(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

/// A minute of one hour; few, so that many events share one.
fn minute(n: u64) -> Timestamp {
    time(&format!("2026-01-05T08:{n:02}:00Z"))
}

/// Event lines of all sorts, the same for the same seed.
fn random_events(seed: u64, count: usize) -> Vec<Line> {
    let mut random = samples::Random(seed);
    let mut pick = |names: &[&'static str]| names[random.below(names.len() as u64) as usize];
    let minutes: Vec<String> = (0..7).map(|n| minute(n).to_string()).collect();
    let mut lines = Vec::new();
    for n in 0..count {
        let data = match pick(&["tool", "model", "nothing"]) {
            "tool" => json!({"tool_name": pick(&TOOLS), "secret": format!("payload {n}")}),
            "model" => json!({"model": pick(&MODELS), "provider": pick(&["anthropic", "openai"])}),
            _ => json!({"error_type": pick(&ERRORS)}),
        };
        let level = pick(&["DEBUG", "INFO", "WARN", "ERROR"]);
        let line = lines::logger_event(pick(&TYPES)).data(data).with("lvl", level.into());
        lines.push(line.at(&minutes[n * 3 % 7]));
    }
    lines
}

fn targets() -> [IngestTarget; 4] {
    [("ana", "shop", "a"), ("ana", "blog", "b"), ("ben", "shop", "a"), ("ana", "shop", "c")]
        .map(|(user, project, session)| target_of(user, project, session))
}

async fn fill(store: &Store) {
    for (n, target) in targets().iter().enumerate() {
        store.sync_events(target, random_events(n as u64 + 1, 40)).await;
    }
}

/// Every event that is stored, newest first: by time, then owner, session and sequence, all descending.
async fn all_events(store: &Store) -> Vec<Event> {
    let mut events = Vec::new();
    for target in targets() {
        events.extend(store.events(&target).await.into_iter().map(|line| line.event));
    }
    let place = |e: &Event| (e.ts, e.user_id.to_string(), e.session_id.to_string(), e.sequence);
    events.sort_by_key(|event| std::cmp::Reverse(place(event)));
    events
}

/// Up to `limit` events, in one page.
async fn search(store: &Store, scope: &Scope, filter: EventFilter, limit: usize) -> Vec<Event> {
    let options = EventSearchOptions::new(filter).with_limit(limit);
    store.storage.search_events(scope, &options).await.unwrap()
}

async fn all_of(store: &Store, filter: EventFilter) -> Vec<Event> {
    search(store, &Scope::Everyone, filter, 10_000).await
}

fn none() -> EventFilter {
    EventFilter::default()
}

/// A filter, and what it means.
type Narrowing = (EventFilter, Box<dyn Fn(&Event) -> bool + Send + Sync>);

/// Each field of the filter with each of its values.
fn narrowings() -> Vec<Narrowing> {
    let mut all: Vec<Narrowing> = Vec::new();
    for name in TYPES.into_iter().chain(["tool", "llm:", "plain:", "tool:pre:"]) {
        all.push((none().with_event_type(name.to_owned()), Box::new(move |e| e.event_type == name)));
    }
    for name in ["llm", "tool", "tools", "plain", "too", "tool:pre", "", "LLM"] {
        let is =
            move |e: &Event| e.event_type.split_once(':').map_or(e.event_type.as_str(), |(c, _)| c) == name;
        all.push((none().with_category(name.to_owned()), Box::new(is)));
    }
    for name in TOOLS.into_iter().chain(["BASH", "ba", ""]) {
        all.push((
            none().with_tool(name.to_owned()),
            Box::new(move |e| e.tool_name.as_deref() == Some(name)),
        ));
    }
    for name in MODELS.into_iter().chain(["claude", ""]) {
        all.push((none().with_model(name.to_owned()), Box::new(move |e| e.model.as_deref() == Some(name))));
    }
    for name in ["anthropic", "openai", "open_i"] {
        let is = move |e: &Event| e.provider.as_deref() == Some(name);
        all.push((none().with_provider(name.to_owned()), Box::new(is)));
    }
    for name in ERRORS.into_iter().chain(["timeout", ""]) {
        let is = move |e: &Event| e.error_type.as_deref() == Some(name);
        all.push((none().with_error_type(name.to_owned()), Box::new(is)));
    }
    for level in Level::ALL {
        all.push((none().with_level(level), Box::new(move |e| e.level == level)));
    }
    for n in [0, 3, 6, 7] {
        all.push((none().with_since(minute(n)), Box::new(move |e| e.ts >= minute(n))));
        all.push((none().with_until(minute(n)), Box::new(move |e| e.ts < minute(n))));
    }
    all
}

/// Events are found by the words of their errors and summaries: all of them, in any case, as parts of longer words; in
/// order, page by page, and counted.
pub async fn events_are_found_by_what_they_say(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let event = |name: &str, n: u64, data: serde_json::Value| {
        lines::logger_event(name).data(data).at(&minute(n).to_string())
    };
    let secret = json!({"tool_name": "bash", "output": "connection reset"});
    let failed = json!({"tool_name": "bash", "result": {"success": false, "error": {"message": "Connection reset by peer"}}});
    let events = vec![
        event("tool:post", 0, failed),
        event(
            "llm:error",
            1,
            json!({"error": "CONNECTION refused: 100% of \"retries\" used", "model": "m1"}),
        ),
        event("llm:error", 2, json!({"error": {"type": "Café", "message": "réset the connections"}})),
        event("tool:post", 3, secret),
        event("llm:response", 4, json!({"error_message": "no connection", "usage": {"input_tokens": 1}})),
    ];
    store.sync_events(&target("s"), events).await;
    store
        .sync_events(&target_of("ben", "p", "s"), vec![event("llm:error", 5, json!({"error": "connection"}))])
        .await;
    let of = async |words: &str| -> Vec<u32> {
        let found = search(&store, &scope(&target("s")), none().with_text(words.to_owned()), 100).await;
        found.iter().map(|event| event.sequence).collect()
    };
    assert_eq!(of("connection").await, [4, 2, 1, 0]);
    assert_eq!(of("Reset CONNECTION").await, [2, 0]);
    assert_eq!(of("cafe").await, [2]);
    assert_eq!(of("m1 100% \"retries\"").await, [1]);
    assert_eq!(of("bash").await, [3, 0]);
    assert_eq!(of("connection nowhere").await, [0_u32; 0]);

    let filter = || none().with_text("connection".to_owned());
    let mut pages = Vec::new();
    let mut after: Option<EventCursor> = None;
    loop {
        let options = EventSearchOptions::new(filter()).with_limit(2).with_after(after.take());
        let page = store.storage.search_events(&Scope::Everyone, &options).await.unwrap();
        after = page.last().map(EventCursor::from);
        let is_end = page.len() < 2;
        pages.extend(page);
        if is_end {
            break;
        }
    }
    assert_eq!(pages, all_of(&store, filter()).await);
    assert_eq!(pages.len(), 5);
    let narrower = filter().with_event_type("llm.error".to_owned()).with_error_type("Café".to_owned());
    assert_eq!(all_of(&store, narrower).await.len(), 1);
    let counts = store.backend.count_events(&Scope::Everyone, &filter()).await.unwrap();
    assert_eq!(counts.iter().map(|count| count.events).sum::<u64>(), 5);
    assert_eq!(counts.iter().map(|count| count.usage.calls).sum::<u64>(), 1);
}

/// Types and categories are asked for with dots or with colons.
pub async fn dots_in_types_are_colons(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let names = ["tool:call", "tool.call", "tool:call.deep", "tools:call"];
    store.sync_events(&target("s"), names.map(lines::logger_event).to_vec()).await;
    let found = async |filter: EventFilter| {
        let mut found: Vec<u32> = all_of(&store, filter).await.iter().map(|event| event.sequence).collect();
        found.sort_unstable();
        found
    };
    for name in ["tool:call", "tool.call"] {
        assert_eq!(found(none().with_event_type(name.to_owned())).await, [0, 1], "{name}");
    }
    assert_eq!(found(none().with_category("tool".to_owned())).await, [0, 1, 2]);
    assert!(found(none().with_category("tool.call".to_owned())).await.is_empty());
}

/// Each filter alone finds what a look at every event finds, in the same order.
pub async fn each_filter_narrows_the_events(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    fill(&store).await;
    let events = all_events(&store).await;
    assert_eq!(all_of(&store, none()).await, events);
    for (filter, is_wanted) in narrowings() {
        let expected: Vec<Event> = events.iter().filter(|event| is_wanted(event)).cloned().collect();
        assert_eq!(all_of(&store, filter.clone()).await, expected, "{filter:?}");
    }
}

/// Filters hold together: what is found passes all of them.
pub async fn filters_of_events_hold_together(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    fill(&store).await;
    let events = all_events(&store).await;
    let shop = SessionFilter::default().with_project(ProjectSlug::new("shop").unwrap());
    let filters = [
        none().with_category("tool".to_owned()).with_level(Level::Error),
        none().with_event_type("tool:pre".to_owned()).with_tool("bash".to_owned()).with_since(minute(2)),
        none().with_model("claude-1".to_owned()).with_provider("openai".to_owned()).with_until(minute(5)),
        none().with_category("llm".to_owned()).with_since(minute(3)).with_until(minute(4)),
        none().with_sessions(shop).with_error_type("Timeout".to_owned()).with_level(Level::Warn),
        none().with_since(minute(5)).with_until(minute(2)),
        none().with_event_type("llm:request".to_owned()).with_category("tool".to_owned()),
    ];
    for (n, filter) in filters.into_iter().enumerate() {
        let project = filter.sessions.project.clone();
        let in_project =
            |event: &Event| project.as_ref().is_none_or(|project| *project == event.project_slug);
        let expected = events.iter().filter(|event| filter.admits(event) && in_project(event));
        let expected: Vec<Event> = expected.cloned().collect();
        assert_eq!(expected.is_empty(), n >= 5, "{filter:?}");
        assert_eq!(all_of(&store, filter.clone()).await, expected, "{filter:?}");
    }
}

/// Names of any characters are plain text, compared in full: nothing in them is a pattern, a quote or an end.
pub async fn names_of_events_are_plain_text(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let names = [
        "a",
        "A",
        "a%",
        "%",
        "_",
        "a_b",
        "axb",
        "'",
        "\"",
        "o'brien\"; --",
        "a\\",
        "[a]",
        "*",
        "a\0b",
        "a b",
        "é",
        "e\u{301}",
        "アナ",
        "🦀",
        "null",
    ];
    let lines = names.map(|name| {
        lines::logger_event(&format!("x:{name}"))
            .data(json!({"tool_name": name, "model": name, "provider": name, "error_type": name}))
    });
    store.sync_events(&target("a"), lines.to_vec()).await;
    for (n, name) in names.iter().enumerate() {
        let name = || (*name).to_owned();
        let filters = [
            none().with_event_type(format!("x:{}", name())),
            none().with_tool(name()),
            none().with_model(name()),
            none().with_provider(name()),
            none().with_error_type(name()),
        ];
        for filter in filters {
            let found = all_of(&store, filter.clone()).await;
            assert_eq!(
                found.iter().map(|event| event.sequence).collect::<Vec<_>>(),
                [n as u32],
                "{filter:?}"
            );
        }
        let nothing = none().with_category(name());
        assert!(all_of(&store, nothing).await.is_empty());
    }
}

/// The category is what stands before the first colon of the type; nothing in it is a pattern.
pub async fn the_category_stands_before_the_colon(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let types = [
        "llm:request",
        "llm:response:x",
        "llm",
        "llmx:y",
        "l_m:x",
        "l%:x",
        "lxm:x",
        ":x",
        "LLM:x",
        "é:ü",
        "llm.old",
    ];
    store.sync_events(&target("a"), types.map(lines::logger_event).to_vec()).await;
    let of = async |category: &str| {
        let found = all_of(&store, none().with_category(category.to_owned())).await;
        assert!(found.iter().all(|event| event.category() == category));
        let mut sequences: Vec<u32> = found.iter().map(|event| event.sequence).collect();
        sequences.sort_unstable();
        sequences
    };
    // The dot of older writers is a colon in the store.
    assert_eq!(of("llm").await, [0, 1, 2, 10]);
    assert_eq!(of("llmx").await, [3]);
    assert_eq!(of("l_m").await, [4]);
    assert_eq!(of("l%").await, [5]);
    assert_eq!(of("").await, [7]);
    assert_eq!(of("LLM").await, [8]);
    assert_eq!(of("é").await, [9]);
    for nothing in ["ll", "llm:", "llm:request", "%", "*"] {
        assert!(of(nothing).await.is_empty(), "{nothing}");
    }
}

/// Pages of any length make the whole list: nothing twice, nothing left out, also where all share one time.
pub async fn pages_of_events_make_the_whole_list(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    fill(&store).await;
    let same: Vec<Line> = (0..30).map(|n| lines::logger_event(&format!("same:{n}"))).collect();
    for target in &targets()[..3] {
        store.sync_events_from(target, 40, same.clone()).await.unwrap();
    }
    let filters = [none(), none().with_category("same".to_owned()), none().with_level(Level::Warn)];
    for scope in [Scope::Everyone, scope(&target("a"))] {
        for filter in &filters {
            let whole = search(&store, &scope, filter.clone(), 10_000).await;
            assert!(whole.len() > 20);
            for limit in [3, 30, whole.len()] {
                let mut options = EventSearchOptions::new(filter.clone()).with_limit(limit);
                let mut paged: Vec<Event> = Vec::new();
                loop {
                    let page = store.storage.search_events(&scope, &options).await.unwrap();
                    assert!(page.len() <= limit);
                    options = options.with_after(page.last().map(EventCursor::from));
                    let is_last = page.len() < limit;
                    paged.extend(page);
                    if is_last {
                        break;
                    }
                }
                assert_eq!(paged, whole, "{limit}");
            }
        }
    }
}

/// A page of nothing and one that is too long are refused, and name the field.
pub async fn a_page_of_events_out_of_range_is_refused(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    fill(&store).await;
    for limit in [0, 10_001, usize::MAX] {
        let options = EventSearchOptions::default().with_limit(limit);
        let error = store.storage.search_events(&Scope::Everyone, &options).await.unwrap_err();
        assert_eq!((error.kind(), error.context("field")), (ErrorKind::Validation, Some("limit")));
    }
    assert_eq!(search(&store, &Scope::Everyone, none(), 1).await.len(), 1);
    let options = EventSearchOptions::default();
    assert_eq!(store.storage.search_events(&Scope::Everyone, &options).await.unwrap().len(), 100);
}

/// A search stays with its scope, its project and its session.
pub async fn a_search_of_events_stays_in_scope(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    fill(&store).await;
    let events = all_events(&store).await;
    let sessions = SessionFilter::default;
    let shop = sessions().with_project(ProjectSlug::new("shop").unwrap());
    let a = sessions().with_session(target("a").key.session_id);
    let of = async |user: &str, filter: SessionFilter| {
        search(&store, &scope(&target_of(user, "x", "x")), none().with_sessions(filter), 10_000).await
    };
    for user in ["ana", "ben", "nobody"] {
        let expect = |wanted: &dyn Fn(&Event) -> bool| {
            let own = events.iter().filter(|event| event.user_id.as_str() == user && wanted(event));
            own.cloned().collect::<Vec<_>>()
        };
        assert_eq!(of(user, sessions()).await, expect(&|_| true), "{user}");
        let in_shop = expect(&|event| event.project_slug.as_str() == "shop");
        assert_eq!(of(user, shop.clone()).await, in_shop, "{user}");
        let in_a = expect(&|event| event.session_id.as_str() == "a");
        assert_eq!(of(user, a.clone()).await, in_a, "{user}");
    }
}

/// Events are narrowed by what their sessions are now: bundle, tags, turns.
pub async fn filters_on_sessions_narrow_the_events(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    fill(&store).await;
    let [a, b, ben, c] = targets();
    for (target, metadata) in [(&a, r#"{"bundle":"x","tags":["red","blue"]}"#), (&b, r#"{"tags":["red"]}"#)] {
        store.storage.sync_session_metadata(target, RawJson::from(metadata)).await.unwrap();
    }
    store.sync(&ben, vec![lines::user("one"), lines::user("two")]).await;
    let of = async |sessions: SessionFilter| {
        let found = all_of(&store, none().with_sessions(sessions)).await;
        let mut names: Vec<String> =
            found.iter().map(|e| format!("{}/{}", e.user_id, e.session_id)).collect();
        assert_eq!(names.len() % 40, 0);
        names.sort();
        names.dedup();
        names
    };
    let sessions = SessionFilter::default;
    assert_eq!(of(sessions().with_bundle("x".to_owned())).await, ["ana/a"]);
    assert_eq!(of(sessions().with_tags(["red"])).await, ["ana/a", "ana/b"]);
    assert_eq!(of(sessions().with_tags(["red", "blue"])).await, ["ana/a"]);
    assert_eq!(of(sessions().with_min_turns(2)).await, ["ben/a"]);
    assert_eq!(of(sessions().with_max_turns(1)).await, ["ana/a", "ana/b", "ana/c"]);
    store.storage.update_session(&c.key, &SessionEdit::default().add_tags(["red"])).await.unwrap();
    store.storage.update_session(&a.key, &SessionEdit::default().remove_tags(["red"])).await.unwrap();
    assert_eq!(of(sessions().with_tags(["red"])).await, ["ana/b", "ana/c"]);
}

/// What is found is what is stored now: events that changed, moved or are gone are not found as they were.
pub async fn events_are_found_as_they_are_now(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let event = |name: &str| lines::logger_event(name);
    store.sync_events(&target("a"), ["x:one", "x:two", "x:three"].map(event).to_vec()).await;
    store.sync_events(&target("b"), vec![event("x:other")]).await;
    let found = async |filter: EventFilter| {
        let found = all_of(&store, filter).await;
        found.into_iter().map(|event| event.event_type).collect::<Vec<_>>()
    };
    let x = || none().with_category("x".to_owned());
    assert_eq!(found(x()).await, ["x:other", "x:three", "x:two", "x:one"]);
    store.sync_events(&target("a"), ["x:one", "y:two"].map(event).to_vec()).await;
    assert_eq!(found(x()).await, ["x:other", "x:one"]);
    store.sync_events(&target_of("ana", "moved", "a"), ["x:one", "y:two"].map(event).to_vec()).await;
    let of = |project: &str| {
        none().with_sessions(SessionFilter::default().with_project(ProjectSlug::new(project).unwrap()))
    };
    assert_eq!(found(of("shop")).await, ["x:other"]);
    assert_eq!(found(of("moved")).await, ["y:two", "x:one"]);
    assert!(store.backend.delete_session(&target("a").key).await.unwrap());
    assert_eq!(found(none()).await, ["x:other"]);
}

/// An event that is found carries fields and summary, and nothing of its payload.
pub async fn no_event_that_is_found_holds_a_payload(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let data = json!({"model": "m", "content": "hidden payload", "messages": ["hidden payload"],
        "large": "hidden payload ".repeat(40_000), "usage": {"input_tokens": 3}});
    store.sync_events(&target("a"), vec![lines::logger_event("llm:response").data(data)]).await;
    let found = all_of(&store, none().with_model("m".to_owned())).await;
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].summary["usage"], json!({"input_tokens": 3}));
    assert!(found[0].is_chunked);
    assert!(!serde_json::to_string(&found).unwrap().contains("hidden"));
}
