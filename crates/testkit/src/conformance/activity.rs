//! Who and what was active in a period.

use amplifier_session_core::{
    Scope,
    model::{Session, Timestamp},
    storage::Activity,
};

use super::{
    Subject,
    store::{Store, scope, target, target_of},
};
use crate::lines;

fn day(n: u32) -> Timestamp {
    Timestamp::parse(&format!("2026-01-{n:02}T00:00:00Z")).unwrap()
}

/// User, project, session, first and last day.
const SESSIONS: [(&str, &str, &str, u32, u32); 6] = [
    ("ana", "shop", "long", 1, 20),
    ("ana", "shop", "early", 1, 3),
    ("ana", "blog", "late", 15, 18),
    ("ben", "shop", "long", 8, 12),
    ("ben", "shop", "same", 8, 12),
    ("eve", "club", "point", 10, 10),
];

/// The sessions, each with two messages, at its beginning and at its end, and one event.
async fn fill(store: &Store) {
    for (user, project, session, first, last) in SESSIONS {
        let target = target_of(user, project, session);
        let created =
            Session::new(target.key.clone(), target.host_id.clone(), target.project_slug.clone(), day(first));
        store.storage.create_session(created).await.unwrap();
        let (first, last) = (day(first).to_string(), day(last).to_string());
        store.sync(&target, vec![lines::user("first").at(&first), lines::user("last").at(&last)]).await;
        store.sync_events(&target, vec![lines::logger_event("e").at(&first)]).await;
    }
}

/// What is told of an activity: of whom, sessions, messages, events, across how many, from when to when.
fn told<T: ToString>(activity: &[Activity<T>]) -> Vec<String> {
    let told = activity.iter().map(|a| {
        let (first, last) = (a.first.day(), a.last.day());
        format!(
            "{} {}/{}/{} {} {}..{}",
            a.of.to_string(),
            a.sessions,
            a.messages,
            a.events,
            a.across,
            &first[8..],
            &last[8..]
        )
    });
    told.collect()
}

/// Users are listed with what they did, the latest first.
pub async fn users_are_listed_with_what_they_did(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    assert!(store.storage.list_users(&Scope::Everyone, None, None).await.unwrap().is_empty());
    fill(&store).await;
    let users = async |scope: Scope, since: Option<u32>, until: Option<u32>| {
        told(&store.storage.list_users(&scope, since.map(day), until.map(day)).await.unwrap())
    };
    let all = users(Scope::Everyone, None, None).await;
    assert_eq!(all, ["ana 3/6/3 2 01..20", "ben 2/4/2 1 08..12", "eve 1/2/1 1 10..10"]);
    assert_eq!(users(scope(&target("x")), None, None).await, ["ana 3/6/3 2 01..20"]);
    assert!(users(scope(&target_of("nobody", "p", "s")), None, None).await.is_empty());
}

/// Projects are listed with what was done in them, the latest first.
pub async fn projects_are_listed_with_what_was_done_in_them(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    fill(&store).await;
    let projects = async |scope: Scope, since: Option<u32>, until: Option<u32>| {
        told(&store.storage.list_projects(&scope, since.map(day), until.map(day)).await.unwrap())
    };
    let all = projects(Scope::Everyone, None, None).await;
    assert_eq!(all, ["shop 4/8/4 2 01..20", "blog 1/2/1 1 15..18", "club 1/2/1 1 10..10"]);
    let anas = projects(scope(&target("x")), None, None).await;
    assert_eq!(anas, ["shop 2/4/2 1 01..20", "blog 1/2/1 1 15..18"]);
    let moved = target_of("ana", "club", "long");
    store.sync(&moved, vec![lines::user("moved").at("2026-01-19T00:00:00Z")]).await;
    let anas = projects(scope(&moved), None, None).await;
    assert_eq!(anas[0], "club 1/1/1 1 01..20");
}

/// A session counts in every period in which it was active: also one that began before and ended after it.
pub async fn sessions_count_in_every_period_they_were_active(subject: &dyn Subject) {
    let store = Store::open(subject).await;
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
        let active: Vec<_> = SESSIONS.iter().filter(|(.., first, last)| was_active(*first, *last)).collect();
        let (since, until) = (since.map(day), until.map(day));
        let users = store.storage.list_users(&Scope::Everyone, since, until).await.unwrap();
        let projects = store.storage.list_projects(&Scope::Everyone, since, until).await.unwrap();
        for user in ["ana", "ben", "eve"] {
            let expected = active.iter().filter(|(of, ..)| *of == user).count() as u64;
            let found = users.iter().find(|activity| activity.of.as_str() == user);
            assert_eq!(found.map_or(0, |activity| activity.sessions), expected, "{user} {since:?} {until:?}");
        }
        for project in ["shop", "blog", "club"] {
            let expected = active.iter().filter(|(_, of, ..)| *of == project).count() as u64;
            let found = projects.iter().find(|activity| activity.of.as_str() == project);
            assert_eq!(
                found.map_or(0, |activity| activity.sessions),
                expected,
                "{project} {since:?} {until:?}"
            );
        }
        assert!(users.iter().all(|activity| activity.sessions > 0 && activity.across > 0));
    }
}
