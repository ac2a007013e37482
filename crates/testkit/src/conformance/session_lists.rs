//! Lists of sessions: order, pages and filters.

use crate::prelude::*;

fn query() -> SessionQuery {
    SessionQuery::new(ana()).with_limit(1_000)
}

fn none() -> SessionFilter {
    SessionFilter::default()
}

fn project(name: &str) -> SessionFilter {
    none().with_project(ProjectSlug::new(name).unwrap())
}

fn repository(text: &str) -> Repository {
    Repository::new(text).unwrap()
}

fn texts(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// The ids of the sessions that match a query, sorted.
async fn found(store: &Store, query: SessionQuery) -> Vec<String> {
    let sessions = store.storage.sessions().search_sessions(&query).await.unwrap();
    let mut ids: Vec<String> = sessions.iter().map(|session| session.session_id.to_string()).collect();
    ids.sort();
    ids
}

/// The whole list, read in pages of `limit`.
async fn in_pages(store: &Store, query: &SessionQuery, limit: usize) -> Vec<Session> {
    let (mut query, mut paged) = (query.clone().with_limit(limit), Vec::new());
    loop {
        let page = store.storage.sessions().search_sessions(&query).await.unwrap();
        query = query.with_after(page.last().map(SessionCursor::from));
        let is_last = page.len() < limit;
        paged.extend(page);
        if is_last {
            return paged;
        }
    }
}

/// Sessions are listed by their last change, newest first, then by user and id. Pages add up to the whole list, also if
/// times are equal.
pub async fn sessions_are_listed_newest_first_in_pages(store: Store) {
    let (early, late) = (time("2026-01-05T08:00:00.000001Z"), time("2026-01-05T08:00:00.000002Z"));
    let (mut of_late, mut of_early) = (Vec::new(), Vec::new());
    for user in ["ana", "ben"] {
        for n in 0..12 {
            let updated = if n % 2 == 0 { early } else { late };
            let target = target_of(user, "p", &format!("s{n:02}"));
            store.create(&target, |session| session.updated = updated).await;
            let of = if n % 2 == 0 { &mut of_early } else { &mut of_late };
            of.push(format!("{user}/s{n:02}"));
        }
    }
    let all = [of_late, of_early].concat();
    let own: Vec<String> = all.iter().filter(|name| name.starts_with("ana")).cloned().collect();
    for (scope, expected) in [(Scope::Everyone, all), (ana(), own)] {
        let query = SessionQuery::new(scope);
        assert_eq!(store.listed(&query).await, expected);
        let whole = store.storage.sessions().search_sessions(&query).await.unwrap();
        for limit in [1, 8, expected.len()] {
            assert_eq!(in_pages(&store, &query, limit).await, whole, "{limit}");
        }
        assert!(store.listed(&query.with_limit(0)).await.is_empty());
    }
}

/// Each condition works alone.
pub async fn each_list_condition_works_alone(store: Store) {
    let parent = |id: &str| Some(SessionId::new(id).unwrap());
    // Created and last changed on these days.
    let days = |session: &mut Session, from: u32, to: u32| {
        (session.created, session.updated) = (day(from), day(to));
    };
    let blog = target_of("ana", "blog", "a");
    store.create(&blog, |s| (s.bundle, s.turn_count) = (Some("bundle:x".to_owned()), 1)).await;
    store.create(&target("b"), |s| (s.tags, s.turn_count) = (texts(&["red", "blue"]), 5)).await;
    store.create(&target("c"), |s| (s.tags, s.turn_count) = (texts(&["blue"]), 9)).await;
    store.create(&target("d"), |s| s.bundle = Some("bundle".to_owned())).await;
    store.create(&target("p1"), |s| s.parent_id = parent("a")).await;
    store.create(&target("p2"), |s| (s.parent_id, s.forked_from_turn) = (parent("a"), Some(2))).await;
    store.create(&target("p3"), |s| s.parent_id = parent("p1")).await;
    store.create(&target("t1"), |s| days(s, 11, 19)).await;
    store.create(&target("t2"), |s| days(s, 11, 13)).await;
    store.create(&target("t3"), |s| days(s, 14, 15)).await;
    store.create(&target("t4"), |s| days(s, 17, 19)).await;
    let of = |filter: SessionFilter| query().with_filter(filter);
    let active = |since: u32, until: u32| query().active_in(Some(day(since)), Some(day(until)));
    let cases = [
        (query(), "a b c d p1 p2 p3 t1 t2 t3 t4"),
        (of(project("blog")), "a"),
        (of(project("Blog")), ""),
        (of(none().with_session(target("c").key.session_id)), "c"),
        (of(none().with_bundle("bundle:x".to_owned())), "a"),
        (of(none().with_bundle("bundle".to_owned())), "d"),
        (of(none().with_tags(["blue"])), "b c"),
        (of(none().with_tags(["blue", "red"])), "b"),
        (of(none().with_tags(["blue", "blue"])), "b c"),
        (of(none().with_tags(["blue", "green"])), ""),
        (of(none().with_min_turns(5)), "b c"),
        (of(none().with_max_turns(5).with_min_turns(1)), "a b"),
        (of(none().with_min_turns(9).with_max_turns(1)), ""),
        (of(none().with_min_turns(9).with_max_turns(u32::MAX)), "c"),
        (query().with_parent(parent("a")), "p1 p2"),
        (query().with_parent(parent("p1")), "p3"),
        (query().with_parent(parent("A")), ""),
        (query().with_since(Some(day(15))), "t1 t3 t4"),
        (query().with_until(Some(day(15))).with_since(Some(day(2))), "t2"),
        (active(14, 16), "t1 t3"),
        (active(16, 17), "t1"),
        (active(13, 14), "t1 t2"),
        (query().active_in(Some(day(15)), None), "t1 t3 t4"),
        (query().active_in(Some(day(2)), Some(day(12))), "t1 t2"),
        (query().active_in(None, Some(day(1))), ""),
        (query().active_in(Some(time("2026-01-19T00:00:00.000001Z")), None), ""),
    ];
    for (query, expected) in cases {
        assert_eq!(found(&store, query.clone()).await.join(" "), expected, "{query:?}");
    }
}

/// Of the given sessions, the list contains those that exist and are in scope, and no other session with one of the ids
/// or users.
pub async fn given_sessions_are_listed(store: Store) {
    for (user, id) in [("ana", "a"), ("ana", "b"), ("ana", "c"), ("ben", "a"), ("ben", "b"), ("cem", "c")] {
        store.create(&target_of(user, "shop", id), |_| {}).await;
    }
    let key = |user: &str, id: &str| target_of(user, "shop", id).key;
    let keys = [key("ana", "a"), key("ben", "b"), key("ana", "c"), key("ana", "x"), key("dan", "a")];
    let query = |scope| SessionQuery::new(scope).with_keys(keys.clone());
    assert_eq!(store.listed(&query(Scope::Everyone)).await, ["ana/a", "ana/c", "ben/b"]);
    assert_eq!(store.listed(&query(Scope::Everyone).with_limit(2)).await, ["ana/a", "ana/c"]);
    assert_eq!(store.listed(&query(ana())).await, ["ana/a", "ana/c"]);
    assert!(store.listed(&SessionQuery::new(ana()).with_keys([])).await.is_empty());
}

/// Excluded sessions are not listed, and pages are filled with others.
pub async fn excluded_sessions_are_not_listed(store: Store) {
    for n in 0..9 {
        store.create(&target(&format!("s{n}")), |_| {}).await;
    }
    let mut query = query();
    query.without = vec![target("s1").key, target("s4").key, target_of("ben", "shop", "s2").key];
    let expected = ["s0", "s2", "s3", "s5", "s6", "s7", "s8"];
    assert_eq!(found(&store, query.clone()).await, expected);
    assert_eq!(in_pages(&store, &query, 3).await.len(), expected.len());
}

/// Bundles, tags and id prefixes are literal and case-sensitive.
pub async fn list_filters_compare_names_literally(store: Store) {
    let names = [
        "a",
        "A",
        "a_b",
        "axb",
        "a%",
        "%",
        "o'brien",
        "\"quoted\"",
        "[\"a\"]",
        "a,b",
        "a\\",
        "é",
        "e\u{301}",
        "🦀",
    ];
    for (n, name) in names.iter().enumerate() {
        let (bundle, tags) = (Some((*name).to_owned()), texts(&[name, "all"]));
        store.create(&target(&format!("s{n:02}")), |s| (s.bundle, s.tags) = (bundle, tags)).await;
    }
    // The setters of the filter compose names; a backend compares what it gets.
    let by_bundle = |name: &str| {
        let mut filter = none();
        filter.bundle = Some(name.to_owned());
        query().with_filter(filter)
    };
    let by_tags = |tags: &[&str]| {
        let mut filter = none();
        filter.tags = texts(tags);
        query().with_filter(filter)
    };
    for (n, name) in names.iter().enumerate() {
        let expected = [format!("s{n:02}")];
        assert_eq!(found(&store, by_bundle(name)).await, expected, "{name}");
        assert_eq!(found(&store, by_tags(&[name, "all"])).await, expected, "{name}");
    }
    for name in ["", "al", "all\",\"", "_", "*", "b", "a\0"] {
        assert!(found(&store, by_tags(&[name])).await.is_empty(), "{name:?}");
        assert!(found(&store, by_bundle(name)).await.is_empty(), "{name:?}");
    }
    for id in ["a_b", "axb", "A_B", "b"] {
        store.create(&target(id), |_| {}).await;
    }
    let by_prefix = async |text: &str| found(&store, query().with_id_prefix(Some(text.to_owned()))).await;
    assert_eq!(by_prefix("a_").await, ["a_b"]);
    assert_eq!(by_prefix("A").await, ["A_B"]);
    assert_eq!(by_prefix("a").await, ["a_b", "axb"]);
    for text in ["%", "_", "a%", "*", "a*", "[a]", "a\\", "é", "a_bc"] {
        assert!(by_prefix(text).await.is_empty(), "{text}");
    }
    assert_eq!(by_prefix("").await.len(), names.len() + 4);
}

/// Titles and descriptions are searched for words, including parts of longer words, ignoring case and accents. All
/// words must match.
pub async fn titles_and_descriptions_are_searched(store: Store) {
    let sessions = [
        ("cafe", "Café Payments", "Retries of the GATEWAY", ""),
        ("decomposed", "cafe\u{301}", "ÜBERSICHT: straße", ""),
        ("ligature", "\u{fb01}le “Quoted”…", "", ""),
        ("marks", "100% of a_b", "\"it's\" [done]\\", ""),
        ("prompt", "", "", "Fix the basket"),
        ("blank", " ", "", "Cup of tea"),
        ("named", "Other", "", "hidden basket"),
    ];
    let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    for (id, name, description, prompt) in sessions {
        let fill = |s: &mut Session| {
            (s.name, s.description, s.first_prompt) = (some(name), some(description), some(prompt));
        };
        store.create(&target(id), fill).await;
    }
    let cases = [
        ("café", "cafe decomposed"),
        ("CAFE", "cafe decomposed"),
        ("pay gateway", "cafe"),
        ("pay refund", ""),
        ("übersicht", "decomposed"),
        ("uber", "decomposed"),
        ("file quoted", "ligature"),
        ("quoted", "ligature"),
        ("basket", "prompt"),
        ("tea", "blank"),
        ("0% a_b", "marks"),
        ("[done]\\", "marks"),
        ("\"it's\"", "marks"),
        ("a%b", ""),
        ("%%", ""),
        ("d_ne", ""),
        ("*", ""),
        ("'; --", ""),
        (" \n", "blank cafe decomposed ligature marks named prompt"),
    ];
    for (text, expected) in cases {
        let found = found(&store, query().with_text(Some(text.to_owned()))).await;
        assert_eq!(found.join(" "), expected, "{text}");
    }
}

/// Conditions combine, and the pages of a filtered list add up to the whole list in its order.
pub async fn list_conditions_combine(store: Store) {
    let mut random = Random(11);
    let mut sessions = Vec::new();
    for n in 0..60 {
        let project = *random.one(&["shop", "blog"]);
        let fill = |session: &mut Session| {
            session.created = day(1 + random.below(5) as u32);
            session.updated = day(5 + random.below(4) as u32);
            session.bundle = random.one(&[None, Some("x".to_owned()), Some("y".to_owned())]).clone();
            session.tags = texts(&["red", "blue", "green"]);
            session.tags.retain(|_| random.below(3) > 0);
            session.turn_count = random.below(6) as u32;
            session.name = Some(format!("Café {}", random.words(2, 4)));
            session.repository =
                random.one(&[None, Some("acme.org/app"), Some("acme.org/web")]).map(repository);
            session.parent_id = (random.below(3) == 0).then(|| SessionId::new("s00").unwrap());
        };
        sessions.push(store.create(&target_of("ana", project, &format!("s{n:02}")), fill).await);
    }
    let queries = [
        query().with_filter(project("shop").with_tags(["red"]).with_min_turns(2)),
        query().with_filter(none().with_bundle("x".to_owned()).with_max_turns(4)).with_since(Some(day(6))),
        query().with_filter(none().with_tags(["red", "blue"])).active_in(Some(day(6)), Some(day(4))),
        query().with_text(Some("cafe word1".to_owned())).with_until(Some(day(8))),
        query().with_filter(none().with_repositories([repository("acme.org/app")])),
        query()
            .with_filter(
                project("shop").with_repositories([repository("acme.org/app"), repository("acme.org/web")]),
            )
            .with_until(Some(day(8))),
        query().with_filter(project("shop")).with_parent(Some(SessionId::new("s00").unwrap())),
        query().with_filter(none().with_min_turns(1)).with_id_prefix(Some("s1".to_owned())),
    ];
    for query in queries {
        let mut expected: Vec<&Session> = sessions.iter().filter(|session| query.admits(session)).collect();
        expected.sort_by_key(|session| (std::cmp::Reverse(session.updated), session.key()));
        assert!((3..60).contains(&expected.len()), "{}: {query:?}", expected.len());
        for limit in [1, 4, 1_000] {
            let paged = in_pages(&store, &query, limit).await;
            assert!(paged.iter().eq(expected.iter().copied()), "{query:?}");
        }
    }
}
