//! Statistics, compared with known counts.

use amplifier_session_testkit::prelude::*;

on_both_stores![
    sessions_are_counted_by_project_and_bundle,
    events_tools_and_models_are_counted,
    costs_are_summed_exactly,
    costs_that_cannot_be_read_are_counted,
    a_model_has_one_row,
    tool_calls_are_in_transcripts_without_events,
    days_without_activity_are_listed,
    rows_are_counted_by_their_utc_day,
    statistics_cover_the_requested_sessions,
    statistics_cover_the_requested_period,
    invalid_token_numbers_count_as_zero,
    an_empty_store_counts_nothing,
];

/// An hour on day `n` of January.
pub(super) fn at(day: u32, hour: u32) -> String {
    format!("2026-01-{day:02}T{hour:02}:00:00Z")
}

pub(super) fn day(n: u32) -> Option<Timestamp> {
    Some(time(&at(n, 0)))
}

pub(super) fn event(name: &str, day: u32, data: Value) -> Line {
    lines::logger_event(name).data(data).at(at(day, 12))
}

fn anas_shop() -> IngestTarget {
    target_of("ana", "shop", "a")
}

/// Fills three sessions of two users.
async fn fill(store: &Store) {
    let used = |model: &str, provider: Value, input: u64, output: u64, cost: f64| {
        json!({"model": model, "provider": provider,
            "usage": {"input_tokens": input, "output_tokens": output, "cache_read": 5, "cache_write": 2, "cost": cost}})
    };
    let bash = json!({"tool_name": "bash"});
    let target = anas_shop();
    let transcript = vec![
        lines::user("q1").at(at(1, 10)),
        lines::assistant("a1").at(at(1, 11)),
        lines::tool("out").at(at(1, 12)),
        lines::user("q2").at(at(2, 23)),
    ];
    store.sync(&target, transcript).await;
    let events = vec![
        event("llm:request", 1, json!({"model": "m1", "provider": "p1"})),
        event("llm:response", 1, used("m1", json!("p1"), 100, 10, 0.25)),
        event("tool:pre", 1, bash.clone()),
        event("tool:post", 1, bash.clone()),
        event("tool:pre", 2, bash.clone()),
        event("tool:error", 2, json!({"tool_name": "bash", "error_type": "Timeout"})),
        event("llm:response", 2, used("m1", json!("p1"), 50, 5, 0.5)),
        event("llm:response", 2, used("m2", json!(null), 7, 3, 0.125)).with("lvl", "ERROR".into()),
    ];
    store.sync_events(&target, events).await;
    store.sync_metadata(&target, r#"{"bundle":"x","tags":["red"]}"#).await;

    let target = target_of("ana", "blog", "b");
    store.sync(&target, vec![lines::user("q").at(at(3, 1)), lines::system("rules").at(at(3, 2))]).await;
    let grep = json!({"tool_name": "grep"});
    let events = vec![
        event("tool:call", 3, grep.clone()),
        event("tool:call", 3, grep.clone()),
        event("tool:result", 3, json!({"tool_name": "grep", "error": "it broke"})),
        event("lint:done", 3, json!({"tool_name": "lint"})),
        event("plain", 3, json!({})),
    ];
    store.sync_events(&target, events).await;

    let target = target_of("ben", "shop", "a");
    store.sync(&target, vec![lines::user("q").at(at(2, 1))]).await;
    store.sync_events(&target, vec![event("llm:response", 2, used("m1", json!("p1"), 1, 1, 1.0))]).await;
}

pub(super) async fn statistics(store: &Store, scope: Scope, options: StatisticsOptions) -> Statistics {
    store.storage.statistics().get_statistics(&scope, &options).await.unwrap()
}

pub(super) fn all() -> StatisticsOptions {
    StatisticsOptions::default()
}

/// Sessions, messages, turns, events.
pub(super) fn counts(counts: &SessionStatistics) -> [u64; 4] {
    [counts.sessions, counts.messages, counts.turns, counts.events]
}

/// Calls, input and output tokens, cache reads and cache writes.
pub(super) fn tokens(usage: &Usage) -> [u64; 5] {
    [usage.calls, usage.input_tokens, usage.output_tokens, usage.cache_read_tokens, usage.cache_write_tokens]
}

pub(super) fn cost(usage: &Usage) -> String {
    usage.cost.to_string()
}

pub(super) fn event_types(statistics: &Statistics) -> Vec<(&str, u64, u64)> {
    statistics.event_types.iter().map(|one| (one.event_type.as_str(), one.events, one.failures)).collect()
}

fn tools(statistics: &Statistics) -> Vec<(&str, u64, u64)> {
    statistics.tools.iter().map(|one| (one.tool.as_str(), one.uses, one.failures)).collect()
}

/// Sessions, messages, user messages, events.
fn days(statistics: &Statistics) -> Vec<(&str, [u64; 4])> {
    let of = statistics.days.iter();
    of.map(|one| (one.day.as_str(), [one.sessions, one.messages, one.user_messages, one.events])).collect()
}

/// Sessions are counted in total, by project and by bundle, the largest group first.
async fn sessions_are_counted_by_project_and_bundle(store: Store) {
    fill(&store).await;
    let found = statistics(&store, Scope::Everyone, all()).await;
    assert_eq!(counts(&found.totals), [3, 7, 4, 14]);
    let projects: Vec<_> =
        found.projects.iter().map(|group| (group.of.as_str(), counts(&group.counts))).collect();
    assert_eq!(projects, [("shop", [2, 5, 3, 9]), ("blog", [1, 2, 1, 5])]);
    let bundles: Vec<_> =
        found.bundles.iter().map(|group| (group.of.as_deref(), counts(&group.counts))).collect();
    assert_eq!(bundles, [(None, [2, 3, 2, 6]), (Some("x"), [1, 4, 2, 8])]);
    assert_eq!(found.projects[0].last_updated, time(&at(2, 23)));
    let storage = &store.storage;
    assert_eq!(
        found.totals,
        storage.sessions().get_session_statistics(&Scope::Everyone, None).await.unwrap()
    );
    for (project, expected) in [("shop", [1, 4, 2, 8]), ("none", [0; 4])] {
        let project = ProjectSlug::new(project).unwrap();
        let found = storage.sessions().get_session_statistics(&ana(), Some(&project)).await.unwrap();
        assert_eq!(counts(&found), expected, "{project}");
    }
}

/// Events are counted by type with their failures, model calls with tokens and cost. A tool call counts once, although
/// it has an event at its start and at its end.
async fn events_tools_and_models_are_counted(store: Store) {
    fill(&store).await;
    let expected = [
        ("llm:response", 3, 1),
        ("tool:call", 2, 0),
        ("tool:pre", 2, 0),
        ("lint:done", 1, 0),
        ("llm:request", 1, 0),
        ("plain", 1, 0),
        ("tool:error", 1, 1),
        ("tool:post", 1, 0),
        ("tool:result", 1, 1),
    ];
    assert_eq!(event_types(&statistics(&store, ana(), all()).await), expected);
    let found = statistics(&store, Scope::Everyone, all()).await;
    assert_eq!(tools(&found), [("bash", 2, 1), ("grep", 2, 1), ("lint", 1, 0)]);
    let models: Vec<_> = found
        .models
        .iter()
        .map(|of| {
            (of.model.as_str(), of.provider.as_deref(), tokens(&of.usage), cost(&of.usage), of.failures)
        })
        .collect();
    let expected =
        [("m1", Some("p1"), [3, 151, 16, 15, 6], "1.75", 0), ("m2", None, [1, 7, 3, 5, 2], "0.125", 1)];
    assert_eq!(models, expected.map(|(a, b, c, cost, e)| (a, b, c, cost.to_owned(), e)));
    assert_eq!((tokens(&found.usage), cost(&found.usage).as_str()), ([4, 158, 19, 20, 8], "1.875"));
    let ben = statistics(&store, scope(&target_of("ben", "p", "s")), all()).await;
    assert!(tools(&ben).is_empty());
}

/// Costs are summed exactly, whether logs write them as numbers or as text. Totals, models, days, weeks and months
/// agree.
async fn costs_are_summed_exactly(store: Store) {
    let costs = [
        json!("0.4724725"),
        json!(0.1),
        json!("0.20"),
        json!("0.083880"),
        json!(null),
        json!("free"),
        json!(3),
    ];
    let lines = costs.into_iter().zip(1..).map(|(cost, day)| {
        let model = if day % 2 == 0 { json!("m") } else { json!(null) };
        event("llm:response", day, json!({"model": model, "usage": {"input_tokens": 1, "cost_usd": cost}}))
    });
    store.sync_events(&target("a"), lines.collect()).await;
    let found = statistics(&store, ana(), all()).await;
    assert_eq!((found.usage.calls, cost(&found.usage).as_str()), (7, "3.8563525"));
    let sum = |usages: Vec<Usage>| usages.iter().map(|usage| usage.cost).sum::<Cost>();
    assert_eq!(sum(found.models.iter().map(|of| of.usage).collect()), found.usage.cost);
    assert_eq!(sum(found.days.iter().map(|of| of.usage).collect()), found.usage.cost);
    assert_eq!(sum(found.weeks.iter().map(|of| of.usage).collect()), found.usage.cost);
    assert_eq!(sum(found.months.iter().map(|of| of.usage).collect()), found.usage.cost);
    let of_models: Vec<_> = found.models.iter().map(|of| (of.model.as_str(), cost(&of.usage))).collect();
    assert_eq!(of_models, [("unknown", "3.6724725".to_owned()), ("m", "0.18388".to_owned())]);
}

/// A cost that is no number, is negative, or has a comma or a currency sign is counted as unreadable, and is no amount.
async fn costs_that_cannot_be_read_are_counted(store: Store) {
    let costs = [
        json!("0.5"),
        json!("0.0000000000000000005"),
        json!("0.0000000000000000005"),
        json!(-1),
        json!("-0.25"),
        json!("1,50"),
        json!("$1.50"),
        json!("2 €"),
        json!("free"),
        json!(true),
        json!(null),
        json!(0),
    ];
    let response = |cost: Value| json!({"model": "m", "usage": {"input_tokens": 1, "cost_usd": cost}});
    let mut lines: Vec<Line> =
        costs.into_iter().zip(1..).map(|(cost, day)| event("llm:response", day, response(cost))).collect();
    lines.push(event(
        "llm:response",
        20,
        json!({"model": "m", "cost": "much", "usage": {"input_tokens": 1}}),
    ));
    lines.push(event("tool:post", 20, json!({"tool_name": "t", "cost": "much"})));
    store.sync_events(&target("a"), lines).await;
    let usage = statistics(&store, ana(), all()).await.usage;
    assert_eq!((usage.calls, usage.priced_calls, usage.unreadable_costs), (13, 4, 8));
    assert_eq!(cost(&usage), "0.500000000000000001");
    assert!(usage.has_partial_cost());
}

/// A model has one row, with or without a provider before its name, and whichever providers events name.
async fn a_model_has_one_row(store: Store) {
    let call = |model: &str, provider: Value, day| {
        let usage = json!({"input_tokens": 1});
        event("llm:response", day, json!({"model": model, "provider": provider, "usage": usage}))
    };
    let lines = vec![
        call("m", json!(null), 1),
        call("anthropic/m", json!("anthropic"), 2),
        call("openrouter/anthropic/m", json!("openrouter"), 3),
        call("m/", json!("p"), 4),
    ];
    store.sync_events(&target("a"), lines).await;
    let found = statistics(&store, ana(), all()).await;
    let models: Vec<_> =
        found.models.iter().map(|of| (of.model.as_str(), of.provider.as_deref(), of.usage.calls)).collect();
    assert_eq!(models, [("m", Some("anthropic, openrouter"), 3), ("m/", Some("p"), 1)]);
}

/// In a session without events, the uses of tools are the calls in its transcript, each once.
async fn tool_calls_are_in_transcripts_without_events(store: Store) {
    let call = |id: &str, tool: &str| json!({"id": id, "function": {"name": tool, "arguments": "{}"}});
    let block = |id: &str, tool: &str| json!({"type": "tool_call", "id": id, "name": tool, "input": {}});
    let answers = |prompt: &str| {
        vec![
            lines::user(prompt).at(at(1, 10)),
            lines::assistant("a")
                .with("tool_calls", json!([call("1", "bash"), call("2", "grep")]))
                .at(at(1, 11)),
            lines::assistant("b")
                .with("content", json!([block("3", "bash")]))
                .with("tool_calls", json!([call("3", "bash")]))
                .at(at(2, 11)),
        ]
    };
    store.sync(&target("no events"), answers("q")).await;
    // The events of this one are counted, and nothing else.
    store.sync(&target("events"), answers("another q")).await;
    store.sync_events(&target("events"), vec![event("tool:pre", 1, json!({"tool_name": "bash"}))]).await;
    assert_eq!(tools(&statistics(&store, ana(), all()).await), [("bash", 3, 0), ("grep", 1, 0)]);
    let second = all().with_period(day(2), day(3));
    assert_eq!(tools(&statistics(&store, ana(), second).await), [("bash", 1, 0)]);
}

/// Days without activity are listed between days with activity. Weeks and months are sums of days.
async fn days_without_activity_are_listed(store: Store) {
    let line = |time: &str| lines::user("q").at(time);
    store.sync(&target("a"), vec![line("2026-01-30T08:00:00Z"), line("2026-02-02T08:00:00Z")]).await;
    let found = statistics(&store, ana(), all()).await;
    let days: Vec<_> = found.days.iter().map(|of| (of.day.as_str(), of.messages)).collect();
    assert_eq!(days, [("2026-01-30", 1), ("2026-01-31", 0), ("2026-02-01", 0), ("2026-02-02", 1)]);
    let periods =
        |of: &[PeriodStatistics]| of.iter().map(|of| (of.period.clone(), of.messages)).collect::<Vec<_>>();
    assert_eq!(periods(&found.weeks), [("2026-W05".to_owned(), 1), ("2026-W06".to_owned(), 1)]);
    assert_eq!(periods(&found.months), [("2026-01".to_owned(), 1), ("2026-02".to_owned(), 1)]);
}

/// Messages and events are counted by their day in UTC, in order of days.
async fn rows_are_counted_by_their_utc_day(store: Store) {
    fill(&store).await;
    let found = statistics(&store, Scope::Everyone, all()).await;
    let expected = [("2026-01-01", [1, 3, 1, 4]), ("2026-01-02", [1, 2, 2, 5]), ("2026-01-03", [1, 2, 1, 5])];
    assert_eq!(days(&found), expected);
    let usage: Vec<_> = found.days.iter().map(|day| (tokens(&day.usage), cost(&day.usage))).collect();
    let expected = [([1, 100, 10, 5, 2], "0.25"), ([3, 58, 9, 15, 6], "1.625"), ([0; 5], "0")];
    assert_eq!(usage, expected.map(|(tokens, cost)| (tokens, cost.to_owned())));
    // In UTC, whatever the offset in a line.
    let line = lines::user("late").at("2026-01-09T23:30:00-02:00");
    store.sync(&target("offset"), vec![line]).await;
    let found = statistics(&store, ana(), all()).await;
    assert_eq!(days(&found).last(), Some(&("2026-01-10", [1, 1, 1, 0])));
}

/// Statistics cover the requested scope and the sessions that match the filter.
async fn statistics_cover_the_requested_sessions(store: Store) {
    fill(&store).await;
    let of = async |scope: Scope, sessions: SessionFilter| {
        let found = statistics(&store, scope, all().with_sessions(sessions)).await;
        let in_lists: [u64; 3] = [
            found.projects.iter().map(|group| group.counts.sessions).sum(),
            found.days.iter().map(|day| day.messages).sum(),
            found.event_types.iter().map(|one| one.events).sum(),
        ];
        assert_eq!(in_lists, [found.totals.sessions, found.totals.messages, found.totals.events]);
        counts(&found.totals)
    };
    let none = SessionFilter::default;
    let project = |name: &str| none().with_project(ProjectSlug::new(name).unwrap());
    let session = |id: &str| none().with_session(SessionId::new(id).unwrap());
    assert_eq!(of(ana(), none()).await, [2, 6, 3, 13]);
    assert_eq!(of(scope(&target_of("ben", "p", "s")), none()).await, [1, 1, 1, 1]);
    assert_eq!(of(scope(&target_of("nobody", "p", "s")), none()).await, [0; 4]);
    assert_eq!(of(ana(), project("shop")).await, [1, 4, 2, 8]);
    assert_eq!(of(Scope::Everyone, project("shop")).await, [2, 5, 3, 9]);
    assert_eq!(of(ana(), session("b")).await, [1, 2, 1, 5]);
    assert_eq!(of(Scope::Everyone, session("a")).await, [2, 5, 3, 9]);
    assert_eq!(of(Scope::Everyone, none().with_bundle("x".to_owned())).await, [1, 4, 2, 8]);
    assert_eq!(of(Scope::Everyone, none().with_tags(["red"])).await, [1, 4, 2, 8]);
    assert_eq!(of(Scope::Everyone, none().with_min_turns(2)).await, [1, 4, 2, 8]);
    assert_eq!(of(ana(), project("nowhere")).await, [0; 4]);
}

/// A period limits statistics to sessions that were active in it, counted completely, and to days within it.
async fn statistics_cover_the_requested_period(store: Store) {
    fill(&store).await;
    let of = async |since, until| statistics(&store, Scope::Everyone, all().with_period(since, until)).await;

    let second = of(day(2), day(3)).await;
    assert_eq!(counts(&second.totals), [2, 5, 3, 9]);
    assert_eq!(days(&second), [("2026-01-02", [1, 2, 2, 5])]);
    assert_eq!(event_types(&second), [("llm:response", 3, 1), ("tool:error", 1, 1), ("tool:pre", 1, 0)]);
    assert_eq!(tools(&second), [("bash", 1, 1)]);

    let from_second = of(day(2), None).await;
    assert_eq!(counts(&from_second.totals), [3, 7, 4, 14]);
    assert_eq!(days(&from_second).len(), 2);
    let before_second = of(None, day(2)).await;
    assert_eq!(counts(&before_second.totals), [1, 4, 2, 8]);
    assert_eq!(days(&before_second), [("2026-01-01", [1, 3, 1, 4])]);
    let never = of(day(8), None).await;
    assert_eq!((counts(&never.totals), days(&never).len()), ([0; 4], 0));
}

/// Invalid numbers of tokens count as 0.
async fn invalid_token_numbers_count_as_zero(store: Store) {
    let lines = [json!(-5), json!("7"), json!(null), json!([1]), json!(2.9)].map(|n| {
        event("llm:response", 1, json!({"model": "m", "usage": {"input_tokens": n, "output_tokens": 1}}))
    });
    store.sync_events(&target("a"), lines.to_vec()).await;
    let found = statistics(&store, ana(), all()).await;
    assert_eq!(tokens(&found.models[0].usage), [5, 2, 5, 0, 0]);
}

/// An empty store or session has counts of 0.
async fn an_empty_store_counts_nothing(store: Store) {
    assert_eq!(statistics(&store, Scope::Everyone, all()).await, Statistics::default());
    assert_eq!(statistics(&store, ana(), all().with_period(day(1), day(2))).await, Statistics::default());
    let metadata = RawJson::from(r#"{"created":"2026-01-05T08:00:00Z"}"#);
    store.storage.ingestion().sync_session_metadata(&target("a"), metadata).await.unwrap();
    let found = statistics(&store, ana(), all()).await;
    assert_eq!(counts(&found.totals), [1, 0, 0, 0]);
    assert_eq!(days(&found), [("2026-01-05", [1, 0, 0, 0])]);
    assert!(found.event_types.is_empty() && found.tools.is_empty() && found.models.is_empty());
}
