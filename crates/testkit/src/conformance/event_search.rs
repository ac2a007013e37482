//! Event searches and their filters.

use crate::prelude::*;

/// A minute of the hour. There are few, so that many events have the same time.
fn minute(n: u32) -> Timestamp {
    time(&format!("2026-01-05T08:{n:02}:00Z"))
}

/// Random event lines, the same for the same seed. Some names are substrings of others.
fn random_events(seed: u64, count: usize) -> Vec<Line> {
    let mut random = Random(seed);
    let mut pick = |names: &[&'static str]| *random.one(names);
    let mut lines = Vec::new();
    for n in 0..count as u32 {
        let data = match pick(&["tool", "model", "nothing"]) {
            "tool" => {
                json!({"tool_name": pick(&["bash", "Bash", "read_file"]), "secret": format!("payload {n}")})
            }
            "model" => json!({"model": pick(&["claude-1", "claude-1.5"]), "provider": pick(&["a", "b"])}),
            _ => json!({"error_type": pick(&["Timeout", "TimeoutError"])}),
        };
        let kind = pick(&["llm:request", "llm:response", "tool:pre", "tools:pre", "plain", "tool:pre:deep"]);
        let level = pick(&["DEBUG", "INFO", "WARN", "ERROR"]);
        lines.push(lines::logger_event(kind).data(data).with("lvl", level.into()).at(minute(n * 3 % 7)));
    }
    lines
}

fn targets() -> [IngestTarget; 4] {
    [("ana", "shop", "a"), ("ana", "blog", "b"), ("ben", "shop", "a"), ("ana", "shop", "c")]
        .map(|(user, project, session)| target_of(user, project, session))
}

/// Four sessions of two users that differ in every field of the filter.
async fn fill(store: &Store) {
    for (n, target) in targets().iter().enumerate() {
        store.sync_events(target, random_events(n as u64 + 1, 40)).await;
    }
    let [a, b, ben, _] = targets();
    store.sync_metadata(&a, r#"{"bundle":"x","tags":["red","blue"]}"#).await;
    store.sync_metadata(&b, r#"{"tags":["red"]}"#).await;
    store.sync_text(&ben, vec![lines::user("one"), lines::user("two")]).await;
}

/// Every stored event with its session, newest first: by time, owner, session and sequence, all descending.
async fn all_events(store: &Store) -> Vec<(Session, Event)> {
    let mut events = Vec::new();
    for target in targets() {
        let session = store.stored(&target).await.session;
        events.extend(store.events(&target).await.into_iter().map(|line| (session.clone(), line.event)));
    }
    events.sort_by_key(|(_, event)| std::cmp::Reverse(EventCursor::from(event)));
    events
}

/// All events of a scope that match a filter, read in pages of `limit`.
async fn in_pages(store: &Store, scope: &Scope, filter: EventFilter, limit: usize) -> Vec<Event> {
    let mut options = EventSearchOptions::new(filter).with_limit(limit);
    let mut paged: Vec<Event> = Vec::new();
    loop {
        let page = store.storage.reading().search_events(scope, &options).await.unwrap();
        assert!(page.len() <= limit);
        options = options.with_after(page.last().map(EventCursor::from));
        let is_last = page.len() < limit;
        paged.extend(page);
        if is_last {
            return paged;
        }
    }
}

async fn all_of(store: &Store, filter: EventFilter) -> Vec<Event> {
    in_pages(store, &Scope::Everyone, filter, 10_000).await
}

fn none() -> EventFilter {
    EventFilter::default()
}

fn of_sessions(sessions: SessionFilter) -> EventFilter {
    none().with_sessions(sessions)
}

fn project(name: &str) -> SessionFilter {
    SessionFilter::default().with_project(ProjectSlug::new(name).unwrap())
}

/// Each field of a filter alone, and some combinations.
fn filters() -> Vec<EventFilter> {
    let text = |text: &str| text.to_owned();
    let sessions = SessionFilter::default;
    let mut filters = vec![
        none(),
        none().with_event_type(text("tool:pre")),
        none().with_event_type(text("tool")),
        none().with_category(text("tool")),
        none().with_tool(text("bash")),
        none().with_model(text("claude-1")),
        none().with_provider(text("b")),
        none().with_error_type(text("Timeout")),
        none().with_since(minute(3)),
        none().with_until(minute(3)),
        of_sessions(project("shop")),
        of_sessions(project("sho")),
        of_sessions(sessions().with_session(target("a").key.session_id)),
        of_sessions(sessions().with_bundle(text("x"))),
        of_sessions(sessions().with_tags(["red"])),
        of_sessions(sessions().with_tags(["red", "blue"])),
        of_sessions(sessions().with_min_turns(2)),
        of_sessions(sessions().with_max_turns(1)),
        none().with_category(text("tool")).with_level(Level::Error),
        none().with_event_type(text("tool:pre")).with_tool(text("bash")).with_since(minute(2)),
        none().with_model(text("claude-1")).with_provider(text("a")).with_until(minute(5)),
        none().with_category(text("llm")).with_since(minute(3)).with_until(minute(4)),
        of_sessions(project("shop")).with_error_type(text("Timeout")).with_level(Level::Warn),
        none().with_since(minute(5)).with_until(minute(2)),
        none().with_event_type(text("llm:request")).with_category(text("tool")),
    ];
    filters.extend(Level::ALL.map(|level| none().with_level(level)));
    filters
}

/// A filtered event search returns the same events in the same order as filtering all events one by one.
pub async fn every_event_filter_equals_brute_force(store: Store) {
    fill(&store).await;
    let events = all_events(&store).await;
    let mut sizes = std::collections::BTreeSet::new();
    for filter in filters() {
        for scope in [Scope::Everyone, ana(), scope(&target_of("nobody", "p", "s"))] {
            let is_wanted = |(session, event): &&(Session, Event)| {
                scope.allows(session) && filter.sessions.admits(session) && filter.admits(event)
            };
            let expected: Vec<Event> =
                events.iter().filter(is_wanted).map(|(_, event)| event.clone()).collect();
            sizes.insert(expected.len());
            let found = in_pages(&store, &scope, filter.clone(), 10_000).await;
            assert_eq!(found, expected, "{scope:?} {filter:?}");
        }
    }
    assert!(sizes.len() > 15, "the filters do not distinguish anything: {sizes:?}");
    // Filters use the current session.
    let [a, _, _, c] = targets();
    store.storage.sessions().update_session(&c.key, &SessionEdit::default().add_tags(["red"])).await.unwrap();
    store
        .storage
        .sessions()
        .update_session(&a.key, &SessionEdit::default().remove_tags(["red"]))
        .await
        .unwrap();
    let red = all_of(&store, of_sessions(SessionFilter::default().with_tags(["red"]))).await;
    assert_eq!(red.len(), 80);
    assert!(red.iter().all(|event| event.session_id.as_str() != "a"));
}

/// Pages of any length add up to the whole list, without duplicates or gaps, even if all events have the same time.
pub async fn event_pages_add_up_to_the_whole_list(store: Store) {
    fill(&store).await;
    let same: Vec<Line> = (0..10).map(|n| lines::logger_event(&format!("same:{n}"))).collect();
    for target in &targets()[..3] {
        store.sync_events_from(target, 40, same.clone()).await.unwrap();
    }
    for (scope, filter) in [(Scope::Everyone, none()), (ana(), none().with_category("same".to_owned()))] {
        let whole = in_pages(&store, &scope, filter.clone(), 10_000).await;
        assert!(whole.len() >= 20);
        for limit in [7, 30, whole.len()] {
            assert_eq!(in_pages(&store, &scope, filter.clone(), limit).await, whole, "{limit}");
        }
    }
    let mut without = EventSearchOptions::new(none());
    let first = store.storage.reading().search_events(&ana(), &without).await.unwrap().remove(0);
    without.without = vec![EventCursor::from(&first).event];
    assert!(!store.storage.reading().search_events(&ana(), &without).await.unwrap().contains(&first));
}

/// Events are found by the words of their errors and summaries. All words must match, regardless of case, as whole
/// words or within longer ones. Such searches are ordered, paged and counted like others.
pub async fn events_are_found_by_their_text(store: Store) {
    let failed = json!({"tool_name": "bash", "result": {"success": false, "error": {"message": "Connection reset by peer"}}});
    let events = [
        ("tool:post", failed),
        ("llm:error", json!({"error": "CONNECTION refused: 100% of \"retries\" used", "model": "m1"})),
        ("llm:error", json!({"error": {"type": "Café", "message": "réset the connections"}})),
        ("tool:post", json!({"tool_name": "bash", "output": "connection reset"})),
        ("llm:response", json!({"error_message": "no connection", "usage": {"input_tokens": 1}})),
    ];
    let events =
        (0..).zip(events).map(|(n, (name, data))| lines::logger_event(name).data(data).at(minute(n)));
    store.sync_events(&target("s"), events.collect()).await;
    let bens = lines::logger_event("llm:error").data(json!({"error": "connection"}));
    store.sync_events(&target_of("ben", "p", "s"), vec![bens]).await;
    let filter = |words: &str| none().with_text(words.to_owned());
    let cases: [(&str, &[u32]); 6] = [
        ("connection", &[4, 2, 1, 0]),
        ("Reset CONNECTION", &[2, 0]),
        ("cafe", &[2]),
        ("m1 100% \"retries\"", &[1]),
        ("bash", &[3, 0]),
        ("connection nowhere", &[]),
    ];
    for (words, expected) in cases {
        let found = in_pages(&store, &ana(), filter(words), 100).await;
        assert_eq!(found.iter().map(|event| event.sequence).collect::<Vec<_>>(), expected, "{words}");
    }
    let whole = all_of(&store, filter("connection")).await;
    assert_eq!(in_pages(&store, &Scope::Everyone, filter("connection"), 2).await, whole);
    let narrower = filter("connection").with_event_type("llm.error".to_owned());
    assert_eq!(all_of(&store, narrower.with_error_type("Café".to_owned())).await.len(), 1);
    let counts = store.backend.count_events(&Scope::Everyone, &filter("connection")).await.unwrap();
    assert_eq!(counts.groups.iter().map(|count| count.once.events).sum::<u64>(), 5);
    assert_eq!(counts.groups.iter().map(|count| count.once.usage.calls).sum::<u64>(), 1);
}

/// Filters compare names literally and in full: no character is a pattern, a quote or a terminator.
pub async fn event_filters_compare_names_literally(store: Store) {
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
        let data = json!({"tool_name": name, "model": name, "provider": name, "error_type": name});
        lines::logger_event(&format!("x:{name}")).data(data)
    });
    store.sync_events(&target("a"), lines.to_vec()).await;
    for (n, name) in (0..).zip(names) {
        let name = || name.to_owned();
        let filters = [
            none().with_event_type(format!("x:{}", name())),
            none().with_tool(name()),
            none().with_model(name()),
            none().with_provider(name()),
            none().with_error_type(name()),
        ];
        for filter in filters {
            let found = all_of(&store, filter.clone()).await;
            assert_eq!(found.iter().map(|event| event.sequence).collect::<Vec<u32>>(), [n], "{filter:?}");
        }
        assert!(all_of(&store, none().with_category(name())).await.is_empty());
    }
}

/// The category is the part of the type before the first colon. It is compared literally.
pub async fn the_category_is_the_type_before_the_colon(store: Store) {
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
        // Older writers used a dot; the store has a colon instead.
        "llm.old",
    ];
    store.sync_events(&target("a"), types.map(lines::logger_event).to_vec()).await;
    let cases: [(&str, &[u32]); 12] = [
        ("llm", &[0, 1, 2, 10]),
        ("llmx", &[3]),
        ("l_m", &[4]),
        ("l%", &[5]),
        ("", &[7]),
        ("LLM", &[8]),
        ("é", &[9]),
        ("ll", &[]),
        ("llm:", &[]),
        ("llm:request", &[]),
        ("%", &[]),
        ("*", &[]),
    ];
    for (category, expected) in cases {
        let found = all_of(&store, none().with_category(category.to_owned())).await;
        assert!(found.iter().all(|event| event.category() == category));
        let mut found: Vec<u32> = found.iter().map(|event| event.sequence).collect();
        found.sort_unstable();
        assert_eq!(found, expected, "{category}");
    }
}

/// Searches find events as they are stored now, after they were changed, moved or removed.
pub async fn event_searches_use_current_rows(store: Store) {
    let events = |names: &[&str]| names.iter().map(|name| lines::logger_event(name)).collect::<Vec<_>>();
    store.sync_events(&target("a"), events(&["x:one", "x:two", "x:three"])).await;
    store.sync_events(&target("b"), events(&["x:other"])).await;
    let found = async |filter: EventFilter| {
        let found = all_of(&store, filter).await;
        found.into_iter().map(|event| event.event_type).collect::<Vec<_>>()
    };
    let x = || none().with_category("x".to_owned());
    assert_eq!(found(x()).await, ["x:other", "x:three", "x:two", "x:one"]);
    store.sync_events(&target("a"), events(&["x:one", "y:two"])).await;
    assert_eq!(found(x()).await, ["x:other", "x:one"]);
    store.sync_events(&target_of("ana", "moved", "a"), events(&["x:one", "y:two"])).await;
    assert_eq!(found(of_sessions(project("shop"))).await, ["x:other"]);
    assert_eq!(found(of_sessions(project("moved"))).await, ["y:two", "x:one"]);
    assert!(store.backend.delete_session(&target("a").key).await.unwrap());
    assert_eq!(found(none()).await, ["x:other"]);
}
