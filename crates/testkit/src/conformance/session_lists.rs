//! Lists of sessions, narrowed by what a session is, says, and when it was active.

use amplifier_session_core::{
    backend::{SessionCursor, SessionQuery},
    model::{ProjectSlug, Session, SessionId, Timestamp},
    search::SessionFilter,
};

use super::{
    Subject, samples,
    store::{Store, scope, target, target_of},
};

fn time(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

fn day(n: u64) -> Timestamp {
    time(&format!("2026-01-{n:02}T00:00:00Z"))
}

fn query() -> SessionQuery {
    SessionQuery::new(scope(&target("x"))).with_limit(1_000)
}

fn none() -> SessionFilter {
    SessionFilter::default()
}

fn texts(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// A session of ana, from day 1 on, to be changed by `fill`.
async fn put(store: &Store, id: &str, fill: impl FnOnce(&mut Session)) {
    let target = target(id);
    let mut session = Session::new(target.key, target.host_id, target.project_slug, day(1));
    fill(&mut session);
    store.storage.create_session(session).await.unwrap();
}

/// The ids of the sessions that a query finds, in order of ids.
async fn found(store: &Store, query: SessionQuery) -> Vec<String> {
    let sessions = store.storage.search_sessions(&query).await.unwrap();
    let mut ids: Vec<String> = sessions.iter().map(|session| session.session_id.to_string()).collect();
    ids.sort();
    ids
}

/// Bundle, tags and turns narrow a list. Of several tags a session must carry all.
pub async fn each_filter_narrows_the_list(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    put(&store, "a", |s| (s.bundle, s.turn_count) = (Some("bundle:x".to_owned()), 1)).await;
    put(&store, "b", |s| (s.tags, s.turn_count) = (texts(&["red", "blue"]), 5)).await;
    put(&store, "c", |s| (s.tags, s.turn_count) = (texts(&["blue"]), 9)).await;
    put(&store, "d", |s| s.bundle = Some("bundle".to_owned())).await;
    let of = async |filter: SessionFilter| found(&store, query().with_filter(filter)).await;
    assert_eq!(of(none()).await, ["a", "b", "c", "d"]);
    assert_eq!(of(none().with_bundle("bundle:x".to_owned())).await, ["a"]);
    assert_eq!(of(none().with_bundle("bundle".to_owned())).await, ["d"]);
    assert_eq!(of(none().with_tags(["blue"])).await, ["b", "c"]);
    assert_eq!(of(none().with_tags(["blue", "red"])).await, ["b"]);
    assert_eq!(of(none().with_tags(["blue", "blue"])).await, ["b", "c"]);
    assert!(of(none().with_tags(["blue", "green"])).await.is_empty());
    assert_eq!(of(none().with_min_turns(5)).await, ["b", "c"]);
    assert_eq!(of(none().with_max_turns(5)).await, ["a", "b", "d"]);
    assert_eq!(of(none().with_min_turns(2).with_max_turns(8)).await, ["b"]);
    assert!(of(none().with_min_turns(9).with_max_turns(1)).await.is_empty());
    assert_eq!(of(none().with_min_turns(0).with_max_turns(u32::MAX)).await.len(), 4);
    assert_eq!(of(none().with_session(SessionId::new("c").unwrap())).await, ["c"]);
}

/// Bundles and tags are plain text, compared in full: nothing in them is a pattern, and case counts.
pub async fn bundles_and_tags_are_plain_text(subject: &dyn Subject) {
    let store = Store::open(subject).await;
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
        put(&store, &format!("s{n:02}"), |s| {
            s.bundle = Some((*name).to_owned());
            s.tags = texts(&[name, "all"]);
        })
        .await;
    }
    for (n, name) in names.iter().enumerate() {
        let expected = [format!("s{n:02}")];
        let by_bundle = query().with_filter(none().with_bundle((*name).to_owned()));
        assert_eq!(found(&store, by_bundle).await, expected, "{name}");
        assert_eq!(
            found(&store, query().with_filter(none().with_tags([*name, "all"]))).await,
            expected,
            "{name}"
        );
    }
    for name in ["", "al", "all\",\"", "_", "*", "b", "a\0"] {
        assert!(found(&store, query().with_filter(none().with_tags([name]))).await.is_empty(), "{name:?}");
        let by_bundle = query().with_filter(none().with_bundle(name.to_owned()));
        assert!(found(&store, by_bundle).await.is_empty(), "{name:?}");
    }
}

/// Words are looked for in title and description, as parts of words too; case and accents make no difference, and
/// all words must be there.
pub async fn words_of_title_and_description_are_found(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let named = |name: &str, description: &str| {
        let (name, description) = (Some(name.to_owned()), Some(description.to_owned()));
        move |s: &mut Session| (s.name, s.description) = (name, description)
    };
    put(&store, "cafe", named("Café Payments", "Retries of the GATEWAY")).await;
    put(&store, "decomposed", named("cafe\u{301}", "ÜBERSICHT: straße")).await;
    put(&store, "marks", named("100% of a_b", "\"it's\" [done]\\")).await;
    put(&store, "prompt", |s| s.first_prompt = Some("Fix the basket".to_owned())).await;
    put(&store, "blank", |s| {
        (s.name, s.first_prompt) = (Some(" ".to_owned()), Some("Cup of tea".to_owned()))
    })
    .await;
    put(&store, "named", |s| {
        (s.name, s.first_prompt) = (Some("Other".to_owned()), Some("hidden basket".to_owned()));
    })
    .await;
    let of = async |text: &str| found(&store, query().with_text(Some(text.to_owned()))).await;
    assert_eq!(of("café").await, ["cafe", "decomposed"]);
    assert_eq!(of("CAFE").await, ["cafe", "decomposed"]);
    assert_eq!(of("pay gateway").await, ["cafe"]);
    assert!(of("pay refund").await.is_empty());
    assert_eq!(of("übersicht").await, ["decomposed"]);
    assert_eq!(of("uber").await, ["decomposed"]);
    assert_eq!(of("basket").await, ["prompt"]);
    assert_eq!(of("tea").await, ["blank"]);
    assert_eq!(of("0% a_b").await, ["marks"]);
    assert_eq!(of("[done]\\").await, ["marks"]);
    assert_eq!(of("\"it's\"").await, ["marks"]);
    for text in ["a%b", "axb", "%%", "d_ne", "*", "'; --"] {
        assert!(of(text).await.is_empty(), "{text}");
    }
    assert_eq!(of(" \n").await.len(), 6);
}

/// Sessions that were active in a period are listed: also one that began before it and ended after it.
pub async fn sessions_active_in_a_period_are_listed(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    for (id, created, updated) in [("long", 1, 9), ("early", 1, 3), ("within", 4, 5), ("late", 7, 9)] {
        put(&store, id, |s| (s.created, s.updated) = (day(created), day(updated))).await;
    }
    let of = async |since, until| found(&store, query().active_in(since, until)).await;
    assert_eq!(of(None, None).await.len(), 4);
    assert_eq!(of(Some(day(4)), Some(day(6))).await, ["long", "within"]);
    assert_eq!(of(Some(day(6)), Some(day(7))).await, ["long"]);
    assert_eq!(of(Some(day(3)), Some(day(4))).await, ["early", "long"]);
    assert_eq!(of(Some(day(5)), None).await, ["late", "long", "within"]);
    assert_eq!(of(None, Some(day(2))).await, ["early", "long"]);
    assert!(of(None, Some(day(1))).await.is_empty());
    assert!(of(Some(time("2026-01-09T00:00:00.000001Z")), None).await.is_empty());
}

/// The sessions that come from another are listed by that one's id.
pub async fn children_of_a_session_are_listed(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let parent = |id: &str| Some(SessionId::new(id).unwrap());
    put(&store, "top", |_| {}).await;
    put(&store, "one", |s| s.parent_id = parent("top")).await;
    put(&store, "two", |s| (s.parent_id, s.forked_from_turn) = (parent("top"), Some(2))).await;
    put(&store, "grandchild", |s| s.parent_id = parent("one")).await;
    put(&store, "orphan", |s| s.parent_id = parent("gone")).await;
    let of = async |id: &str| found(&store, query().with_parent(parent(id))).await;
    assert_eq!(of("top").await, ["one", "two"]);
    assert_eq!(of("one").await, ["grandchild"]);
    assert_eq!(of("gone").await, ["orphan"]);
    assert!(of("two").await.is_empty() && of("TOP").await.is_empty());
}

/// Sessions of all sorts, the same in every run.
fn random_sessions() -> Vec<Session> {
    let mut random = samples::Random(11);
    let sessions = (0..60).map(|n| {
        let target = target_of("ana", ["shop", "blog"][random.below(2) as usize], &format!("s{n:02}"));
        let created = day(1 + random.below(5));
        let mut session = Session::new(target.key, target.host_id, target.project_slug, created);
        session.updated = day(5 + random.below(4));
        session.bundle = [None, Some("x".to_owned()), Some("y".to_owned())][random.below(3) as usize].clone();
        session.tags = ["red", "blue", "green"].map(str::to_owned).to_vec();
        session.tags.retain(|_| random.below(3) > 0);
        session.turn_count = random.below(6) as u32;
        session.name = Some(format!("Café {}", random.words(2, 4)));
        session.parent_id = (random.below(3) == 0).then(|| SessionId::new("s00").unwrap());
        session
    });
    sessions.collect()
}

/// Conditions hold together, and the pages of a narrowed list make the whole list, in its order.
pub async fn filters_of_lists_hold_together(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let sessions = random_sessions();
    for session in &sessions {
        store.storage.create_session(session.clone()).await.unwrap();
    }
    let shop = none().with_project(ProjectSlug::new("shop").unwrap());
    let queries = [
        query().with_filter(shop.clone().with_tags(["red"]).with_min_turns(2)),
        query().with_filter(none().with_bundle("x".to_owned()).with_max_turns(4)).with_since(Some(day(6))),
        query().with_filter(none().with_tags(["red", "blue"])).active_in(Some(day(6)), Some(day(4))),
        query().with_text(Some("cafe word1".to_owned())).with_until(Some(day(8))),
        query().with_filter(shop).with_parent(Some(SessionId::new("s00").unwrap())),
        query().with_filter(none().with_min_turns(1)).with_id_prefix(Some("s1".to_owned())),
    ];
    for query in queries {
        let mut expected: Vec<&Session> = sessions.iter().filter(|session| query.admits(session)).collect();
        expected.sort_by_key(|session| (std::cmp::Reverse(session.updated), session.key()));
        assert!((3..60).contains(&expected.len()), "{}: {query:?}", expected.len());
        for limit in [1, 4, 1_000] {
            let (mut query, mut paged) = (query.clone().with_limit(limit), Vec::new());
            loop {
                let page = store.storage.search_sessions(&query).await.unwrap();
                query = query.with_after(page.last().map(SessionCursor::from));
                let is_last = page.len() < limit;
                paged.extend(page);
                if is_last {
                    break;
                }
            }
            assert!(paged.iter().eq(expected.iter().copied()), "{query:?}");
        }
    }
}
