//! Sessions and projects by cost, messages and duration.

use amplifier_session_testkit::prelude::*;

use super::statistics::{all, statistics};

on_both_stores![
    sessions_are_sorted_before_they_are_limited,
    projects_have_the_sums_of_their_sessions,
    costs_of_sessions_add_up_to_the_statistics,
];

/// A session with messages, each `minutes` after the one before, and a call for each cost.
async fn put(store: &Store, project: &str, id: &str, messages: u32, minutes: i64, costs: &[Value]) {
    let target = target_of("ana", project, id);
    let at = |n: u32| Timestamp::from_micros(day(5).as_micros() + i64::from(n) * minutes * 60_000_000);
    let message = |n: u32| lines::user(&format!("{id} {n}")).at(at(n));
    store.create(&target, |session| session.created = day(5)).await;
    store.sync_text(&target, (0..messages).map(message).collect()).await;
    let call = |(n, cost): (u32, &Value)| {
        let data = json!({"model": "m", "usage": {"input_tokens": 1, "cost_usd": cost}});
        lines::logger_event("llm:response").data(data).at(at(n % messages)).with("n", json!(n))
    };
    store.sync_events(&target, (0..).zip(costs).map(call).collect()).await;
}

async fn fill(store: &Store) {
    put(store, "shop", "a", 2, 60, &[json!("0.5"), json!("0.25")]).await;
    put(store, "shop", "b", 5, 1, &[]).await;
    put(store, "blog", "c", 3, 90, &[json!("0.05"), json!(null)]).await;
    put(store, "blog", "d", 1, 0, &[json!(0)]).await;
    put(store, "wiki", "e", 4, 10, &[json!("much"), json!(null)]).await;
}

async fn sorted(store: &Store, order: SessionOrder, limit: usize) -> Vec<SortedSession> {
    let query = SessionQuery::new(ana()).with_limit(limit);
    store.storage.statistics().sorted_sessions(query, order).await.unwrap()
}

fn ids(sessions: &[SortedSession]) -> String {
    sessions.iter().map(|of| of.session.session_id.as_str()).collect()
}

/// The first sessions of an order are the first of all. A session without a known cost is after one that cost nothing.
async fn sessions_are_sorted_before_they_are_limited(store: Store) {
    fill(&store).await;
    // Equal ones are in order of their last change, like the whole list by that.
    for (order, expected) in [
        (SessionOrder::Updated, "caebd"),
        (SessionOrder::Cost, "acdeb"),
        (SessionOrder::Messages, "becad"),
        (SessionOrder::Duration, "caebd"),
    ] {
        for limit in [100, 5, 3, 1, 0] {
            let found = sorted(&store, order, limit).await;
            assert_eq!(ids(&found), expected[..limit.min(5)], "{order} {limit}");
        }
    }
    let costs: Vec<Option<String>> = sorted(&store, SessionOrder::Cost, 5)
        .await
        .iter()
        .map(|of| of.usage.unwrap().known_cost().map(|cost| cost.to_string()))
        .collect();
    assert_eq!(
        costs,
        [Some("0.75"), Some("0.05"), Some("0"), None, None].map(|cost| cost.map(str::to_owned))
    );
    assert_eq!(sorted(&store, SessionOrder::Duration, 1).await[0].usage, None);
    let shop = SessionFilter::default().with_project(target_of("ana", "shop", "a").project_slug);
    let query = SessionQuery::new(ana()).with_filter(shop).with_limit(1);
    let found = store.storage.statistics().sorted_sessions(query, SessionOrder::Messages).await.unwrap();
    assert_eq!(ids(&found), "b");
}

/// Projects are sorted by what their sessions have together, and each has its first sessions in the same order.
async fn projects_have_the_sums_of_their_sessions(store: Store) {
    fill(&store).await;
    for (order, expected) in [
        (SessionOrder::Updated, "blog:c shop:a wiki:e"),
        (SessionOrder::Cost, "shop:a blog:c wiki:e"),
        (SessionOrder::Messages, "shop:b blog:c wiki:e"),
        (SessionOrder::Duration, "blog:c shop:a wiki:e"),
    ] {
        let query = SessionQuery::new(ana()).with_limit(1);
        let found = store.storage.statistics().sorted_projects(query, order).await.unwrap();
        let shown: Vec<String> =
            found.iter().map(|of| format!("{}:{}", of.project, ids(&of.sessions))).collect();
        assert_eq!(shown.join(" "), expected, "{order}");
        let messages: u64 = found.iter().map(|of| of.messages).sum();
        assert_eq!(messages, 15);
    }
    let query = SessionQuery::new(ana()).with_limit(3);
    let found = store.storage.statistics().sorted_projects(query, SessionOrder::Cost).await.unwrap();
    let blog = &found[1];
    assert_eq!((ids(&blog.sessions).as_str(), blog.duration_seconds), ("cd", 3 * 3_600));
    assert_eq!(blog.usage.unwrap().known_cost().unwrap().to_string(), "0.05");
    assert_eq!(found[2].usage.unwrap().known_cost(), None);
}

/// What a fork has of another session counts for one of them.
async fn costs_of_sessions_add_up_to_the_statistics(store: Store) {
    fill(&store).await;
    let transcript = [
        lines::user("fix the tests").at("2026-01-06T08:00:00.5Z"),
        lines::assistant("which?").at("2026-01-06T08:01:00.5Z"),
        lines::user("all of them").at("2026-01-06T08:02:00.5Z"),
    ];
    let call = |time: &str, cost: &str| {
        let data = json!({"model": "m", "usage": {"input_tokens": 1, "cost_usd": cost}});
        lines::logger_event("llm:response").data(data).at(time)
    };
    let first = call("2026-01-06T08:00:30.5Z", "2");
    for (id, created) in [("original", 6), ("fork", 7)] {
        store.create(&target(id), |session| session.created = day(created)).await;
    }
    store.sync(&target("original"), transcript.to_vec()).await;
    store.sync_events(&target("original"), vec![first.clone()]).await;
    store
        .sync(
            &target("fork"),
            [&transcript[..], &[lines::user("more").at("2026-01-07T08:00:00.5Z")]].concat(),
        )
        .await;
    store.sync_events(&target("fork"), vec![first, call("2026-01-07T08:01:00.5Z", "0.125")]).await;
    let found = sorted(&store, SessionOrder::Cost, 100).await;
    let usage = |of: &SortedSession| of.usage.unwrap();
    let sum: Cost = found.iter().map(|of| usage(of).cost).sum();
    assert_eq!(sum, statistics(&store, ana(), all()).await.usage.cost);
    let costs: Vec<String> =
        found.iter().take(3).map(|of| format!("{} {}", of.session.session_id, usage(of).cost)).collect();
    assert_eq!(costs, ["original 2", "a 0.75", "fork 0.125"]);
}
