//! Statistics, compared with known counts.

use amplifier_session_testkit::prelude::*;

on_both_stores![
    sessions_are_counted_by_project_and_bundle,
    events_tools_and_models_are_counted,
    costs_are_summed_exactly,
    costs_that_cannot_be_read_are_counted,
    a_model_has_one_row,
    copies_of_a_session_count_once,
    similar_sessions_are_no_copies,
    events_of_a_session_with_a_log_count_there,
    tool_calls_are_in_transcripts_without_events,
    a_model_call_counts_once,
    days_without_activity_are_listed,
    rows_are_counted_by_their_utc_day,
    statistics_cover_the_requested_sessions,
    statistics_cover_the_requested_period,
    invalid_token_numbers_count_as_zero,
    an_empty_store_counts_nothing,
];

/// An hour on day `n` of January.
fn at(day: u32, hour: u32) -> String {
    format!("2026-01-{day:02}T{hour:02}:00:00Z")
}

fn day(n: u32) -> Option<Timestamp> {
    Some(time(&at(n, 0)))
}

fn event(name: &str, day: u32, data: Value) -> Line {
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

async fn statistics(store: &Store, scope: Scope, options: StatisticsOptions) -> Statistics {
    store.storage.get_statistics(&scope, &options).await.unwrap()
}

fn all() -> StatisticsOptions {
    StatisticsOptions::default()
}

/// Sessions, messages, turns, events.
fn counts(counts: &SessionStatistics) -> [u64; 4] {
    [counts.sessions, counts.messages, counts.turns, counts.events]
}

/// Calls, input and output tokens, cache reads and cache writes.
fn tokens(usage: &Usage) -> [u64; 5] {
    [usage.calls, usage.input_tokens, usage.output_tokens, usage.cache_read_tokens, usage.cache_write_tokens]
}

fn cost(usage: &Usage) -> String {
    usage.cost.to_string()
}

fn event_types(statistics: &Statistics) -> Vec<(&str, u64, u64)> {
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
    assert_eq!(found.totals, storage.get_session_statistics(&Scope::Everyone, None).await.unwrap());
    for (project, expected) in [("shop", [1, 4, 2, 8]), ("none", [0; 4])] {
        let project = ProjectSlug::new(project).unwrap();
        let found = storage.get_session_statistics(&ana(), Some(&project)).await.unwrap();
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

/// A transcript with two turns, and the log with their calls, which cost 0.50. `session` is the id in the log.
fn two_turns(session: &str) -> (Vec<Line>, Vec<Line>) {
    let transcript = vec![
        lines::user("fix the tests").at(at(1, 10)),
        lines::assistant("which?").at(at(1, 11)),
        lines::user("all of them").at(at(2, 10)),
        lines::assistant("done").at(at(2, 11)),
    ];
    let call = |n: u32| {
        let data = json!({"model": "m", "usage": {"input_tokens": 10, "cost_usd": "0.25"}, "raw": {"id": n}});
        event("llm:response", n, data).with("session_id", session.into())
    };
    (transcript, vec![call(1), event("tool:pre", 1, json!({"tool_name": "bash"})), call(2)])
}

/// What forks, forks of forks and copies have of another session counts once, in whatever order they were stored and
/// however it is known that they are copies. A session by itself has all of it.
async fn copies_of_a_session_count_once(store: Store) {
    let more = |n: u32| {
        let data = json!({"model": "m", "usage": {"input_tokens": 1, "cost_usd": "0.125"}});
        (lines::user(&format!("more {n}")).at(at(n, 10)), event("llm:response", n, data))
    };
    let put = async |id: &str, transcript: Vec<Line>, events: Vec<Line>, metadata: &str| {
        store.sync(&target(id), transcript).await;
        store.sync_events(&target(id), events).await;
        if !metadata.is_empty() {
            store.sync_metadata(&target(id), metadata).await;
        }
    };
    // The fork of the fork comes first. Its host wrote the lines in another form, and its own session in the log.
    let (transcript, events) = two_turns("fork of fork");
    let other_form = transcript.iter().map(|line| line.clone().with("kept", json!(true))).collect::<Vec<_>>();
    let (line, call) = more(6);
    let metadata = r#"{"fork":{"source_session_id":"fork","through_user_turn":2}}"#;
    put("fork of fork", [other_form, vec![line]].concat(), [events, vec![call]].concat(), metadata).await;
    let (transcript, events) = two_turns("original");
    put("original", transcript.clone(), events.clone(), "").await;
    let ((line, call), metadata) =
        (more(5), r#"{"fork":{"source_session_id":"original","before_user_turn":3}}"#);
    put("fork", [transcript.clone(), vec![line]].concat(), [events.clone(), vec![call]].concat(), metadata)
        .await;
    put("plain copy", transcript.clone(), events.clone(), "").await;

    let found = statistics(&store, ana(), all()).await;
    assert_eq!((tokens(&found.usage)[0], cost(&found.usage).as_str()), (4, "0.75"));
    assert_eq!(counts(&found.totals), [4, 6, 4, 5]);
    assert_eq!(counts(&found.projects[0].counts), [4, 6, 4, 5]);
    assert_eq!(event_types(&found), [("llm:response", 4, 0), ("tool:pre", 1, 0)]);
    assert_eq!(found.days.iter().map(|day| day.messages).sum::<u64>(), 6);
    let left_out = found.left_out;
    assert_eq!([left_out.sessions, left_out.messages, left_out.turns, left_out.events], [3, 12, 6, 9]);
    assert_eq!((left_out.usage.calls, cost(&left_out.usage).as_str()), (6, "1.5"));

    // In a period, and without the original.
    let second = statistics(&store, ana(), all().with_period(day(2), day(3))).await;
    assert_eq!(
        (second.days.iter().map(|day| day.messages).sum::<u64>(), cost(&second.usage).as_str()),
        (2, "0.25")
    );
    for (id, expected) in [("fork", "0.625"), ("fork of fork", "0.625"), ("plain copy", "0.5")] {
        let filter = SessionFilter::default().with_session(SessionId::new(id).unwrap());
        let found = statistics(&store, ana(), all().with_sessions(filter)).await;
        assert_eq!((cost(&found.usage).as_str(), found.left_out), (expected, LeftOut::default()), "{id}");
    }
    store
        .storage
        .delete_session(
            &UserId::new("ana").unwrap(),
            &target("original").project_slug,
            &SessionId::new("original").unwrap(),
        )
        .await
        .unwrap();
    assert_eq!(cost(&statistics(&store, ana(), all()).await.usage), "0.75");
}

/// Sessions that begin with the same words and then differ are no copies.
async fn similar_sessions_are_no_copies(store: Store) {
    let (transcript, events) = two_turns("a");
    store.sync(&target("a"), transcript.clone()).await;
    store.sync_events(&target("a"), events.clone()).await;
    let answer = lines::assistant("another answer").at(at(1, 11));
    store.sync(&target("b"), [transcript[..1].to_vec(), vec![answer]].concat()).await;
    store.sync_events(&target("b"), two_turns("b").1).await;
    // They begin with the same words, and nothing says when.
    for id in ["c", "d"] {
        store.sync(&target(id), vec![lines::user("hello"), lines::assistant("Hello!")]).await;
    }
    // A copy of another user's session is another session.
    store.sync(&target_of("ben", "p", "a"), transcript).await;
    store.sync_events(&target_of("ben", "p", "a"), events).await;
    let found = statistics(&store, Scope::Everyone, all()).await;
    assert_eq!((cost(&found.usage).as_str(), found.totals.messages), ("1.5", 14));
}

/// An event of a sub-agent that is in the log of its parent too counts in its own log, if it has one.
async fn events_of_a_session_with_a_log_count_there(store: Store) {
    let (_, events) = two_turns("child");
    store.sync_events(&target("parent"), events.clone()).await;
    let found = statistics(&store, ana(), all()).await;
    assert_eq!((cost(&found.usage).as_str(), found.left_out.events), ("0.5", 0));
    store.sync_events(&target("child"), events).await;
    let found = statistics(&store, ana(), all()).await;
    assert_eq!((cost(&found.usage).as_str(), found.totals.events, found.left_out.events), ("0.5", 4, 2));
}

/// A model call counts once. The content blocks of a response repeat its usage; they count only in sessions in which no
/// response has usage, and then once for each response.
async fn a_model_call_counts_once(store: Store) {
    let usage = json!({"input_tokens": 100, "output_tokens": 10, "cost_usd": "0.25"});
    let block = |day, index: u32| {
        event("content_block:end", day, json!({"block_index": index, "total_blocks": 3, "usage": usage}))
    };
    let answer = |day| {
        let response = event("llm:response", day, json!({"model": "m", "usage": usage}));
        vec![
            block(day, 0),
            response,
            block(day, 1),
            block(day, 2),
            event("llm:response:debug", day, json!({"usage": usage})),
        ]
    };
    store.sync_events(&target("both"), [answer(1), answer(2)].concat()).await;
    let expected = [2, 200, 20, 0, 0];
    let found = statistics(&store, ana(), all()).await;
    assert_eq!((tokens(&found.usage), cost(&found.usage).as_str()), (expected, "0.5"));
    assert_eq!(found.models.len(), 1);
    assert_eq!(
        event_types(&found),
        [("content_block:end", 6, 0), ("llm:response", 2, 0), ("llm:response:debug", 2, 0)]
    );
    // Whether there is a response depends on the session, and not on the counted events.
    let blocks = EventFilter::default().with_category("content_block".to_owned());
    let counts = store.backend.count_events(&ana(), &blocks).await.unwrap();
    assert!(
        counts.iter().all(|count| count.once.usage.calls == 0)
            && counts.iter().map(|count| count.once.events).sum::<u64>() == 6
    );

    // The same session id of another user, and another session, have only blocks.
    let blocks = || [1, 2].map(|day| [0, 1, 2].map(|index| block(day, index))).concat();
    for target in [target("blocks"), target_of("ben", "p", "both")] {
        store.sync_events(&target, blocks()).await;
    }
    let ben = statistics(&store, scope(&target_of("ben", "p", "x")), all()).await;
    assert_eq!((tokens(&ben.usage), ben.models[0].model.as_str()), (expected, "unknown"));
    let found = statistics(&store, ana(), all()).await;
    assert_eq!((tokens(&found.usage), cost(&found.usage).as_str()), ([4, 400, 40, 0, 0], "1"));
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
    store.storage.sync_session_metadata(&target("a"), metadata).await.unwrap();
    let found = statistics(&store, ana(), all()).await;
    assert_eq!(counts(&found.totals), [1, 0, 0, 0]);
    assert_eq!(days(&found), [("2026-01-05", [1, 0, 0, 0])]);
    assert!(found.event_types.is_empty() && found.tools.is_empty() && found.models.is_empty());
}
