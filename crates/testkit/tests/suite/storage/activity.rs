//! The users and projects that were active in a period.

use std::collections::BTreeMap;

use amplifier_session_testkit::prelude::*;

on_both_stores![
    users_and_projects_are_listed_with_their_activity,
    sessions_count_in_every_period_they_were_active,
];

/// User, project, session, first and last day.
const SESSIONS: [(&str, &str, &str, u32, u32); 6] = [
    ("ana", "shop", "long", 1, 20),
    ("ana", "shop", "early", 1, 3),
    ("ana", "blog", "late", 15, 18),
    ("ben", "shop", "long", 8, 12),
    ("ben", "shop", "same", 8, 12),
    ("eve", "club", "point", 10, 10),
];

/// Creates the sessions, each with one event and with a message at its beginning and one at its end.
async fn fill(store: &Store) {
    for (user, project, session, first, last) in SESSIONS {
        let target = target_of(user, project, session);
        store.create(&target, |session| session.created = day(first)).await;
        store
            .sync_text(&target, vec![lines::user("first").at(day(first)), lines::user("last").at(day(last))])
            .await;
        store.sync_events(&target, vec![lines::logger_event("e").at(day(first))]).await;
    }
}

/// An activity as text: name, numbers of sessions, messages, events and others, first and last time.
fn shown<T: ToString>(activity: &[Activity<T>]) -> Vec<String> {
    let shown = activity.iter().map(|a| {
        let counts = format!("{}/{}/{} {}", a.sessions, a.messages, a.events, a.across);
        format!(
            "{} {counts} {}..{}",
            a.of.to_string(),
            &a.first.to_string()[8..10],
            &a.last.to_string()[8..10]
        )
    });
    shown.collect()
}

/// Users and projects are listed with their activity, the latest first.
async fn users_and_projects_are_listed_with_their_activity(store: Store) {
    let users = async |scope: Scope| {
        shown(&store.storage.sessions().list_users(SessionQuery::new(scope)).await.unwrap())
    };
    let projects = async |scope: Scope| {
        shown(&store.storage.sessions().list_projects(SessionQuery::new(scope)).await.unwrap())
    };
    assert!(users(Scope::Everyone).await.is_empty());
    fill(&store).await;
    let all = ["ana 3/6/3 2 01..20", "ben 2/4/2 1 08..12", "eve 1/2/1 1 10..10"];
    assert_eq!(users(Scope::Everyone).await, all);
    assert_eq!(users(ana()).await, all[..1]);
    assert!(users(scope(&target_of("nobody", "p", "s"))).await.is_empty());

    let all = ["shop 4/8/4 2 01..20", "blog 1/2/1 1 15..18", "club 1/2/1 1 10..10"];
    assert_eq!(projects(Scope::Everyone).await, all);
    assert_eq!(projects(ana()).await, ["shop 2/4/2 1 01..20", "blog 1/2/1 1 15..18"]);
    let moved = target_of("ana", "club", "long");
    store.sync_text(&moved, vec![lines::user("moved").at(day(19))]).await;
    assert_eq!(projects(ana()).await[0], "club 1/1/1 1 01..20");
}

/// A session counts in every period in which it was active, also if it began before the period and ended after it.
async fn sessions_count_in_every_period_they_were_active(store: Store) {
    fill(&store).await;
    let periods = [
        (None, None),
        (Some(4), Some(8)),
        (Some(5), Some(6)),
        (Some(10), Some(11)),
        (Some(13), None),
        (None, Some(2)),
        (Some(3), Some(4)),
        (Some(21), None),
        (None, Some(1)),
        (Some(11), Some(9)),
    ];
    for (since, until) in periods {
        let was_active = |first: u32, last: u32| {
            since.is_none_or(|since| last >= since) && until.is_none_or(|until| first < until)
        };
        let (mut by_user, mut by_project) = (BTreeMap::new(), BTreeMap::new());
        for (user, project, _, first, last) in SESSIONS {
            if was_active(first, last) {
                *by_user.entry(user.to_owned()).or_default() += 1_u64;
                *by_project.entry(project.to_owned()).or_default() += 1_u64;
            }
        }
        let (since, until) = (since.map(day), until.map(day));
        let query = SessionQuery::new(Scope::Everyone).active_in(since, until);
        let users = store.storage.sessions().list_users(query.clone()).await.unwrap();
        let projects = store.storage.sessions().list_projects(query).await.unwrap();
        let users = users.iter().map(|activity| (activity.of.to_string(), activity.sessions));
        let projects = projects.iter().map(|activity| (activity.of.to_string(), activity.sessions));
        assert_eq!(users.collect::<BTreeMap<_, _>>(), by_user, "{since:?} {until:?}");
        assert_eq!(projects.collect::<BTreeMap<_, _>>(), by_project, "{since:?} {until:?}");
    }
}
