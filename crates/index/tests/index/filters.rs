//! Filters alone and combined, in the index, in the tail, and in both.

use amplifier_session_core::{
    Scope, Viewer,
    model::{
        ContentType, ContentTypes, ProjectSlug, Role, Session, SessionId, Timestamp, UserId, Visibility,
    },
    search::{SearchFilter, SessionFilter},
};
use amplifier_session_index::{SearchIndex, WhenBusy};
use serde_json::json;

use super::{
    model::{Numbers, check_text, check_vectors, text_query, vector_query},
    store::{Place, Store},
};

const PLACES: [Place; 6] = [
    Place { user: "ana", project: "shop", session: "s-1" },
    Place { user: "ana", project: "shop", session: "s-2" },
    Place { user: "ana", project: "blog", session: "s-3" },
    // The same session id of another user is another session.
    Place { user: "ben", project: "shop", session: "s-1" },
    Place { user: "ben", project: "wiki", session: "s-4" },
    Place { user: "zoe", project: "solo", session: "s-5" },
];

/// Writes messages of every role and vectors of every content type, distributed unevenly over the places.
fn fill(store: &Store, keys: std::ops::Range<u64>) {
    let mut numbers = Numbers(keys.start + 7);
    for key in keys {
        let place = PLACES[(numbers.below(36) as f64).sqrt() as usize].clone();
        let (text, vector) = (numbers.text(12), numbers.vector(24));
        let role = Role::ALL[(key % 5) as usize];
        let content_type = ContentType::EMBEDDED[(key % 4) as usize];
        let ts = numbers.below(100) as i64;
        store.write(|write| {
            write.message(key, place.clone(), role, ts, json!({"role": role.as_str(), "content": text}));
            write.vector(key, place, content_type, ts, vector);
        });
    }
}

/// Sets what the index does not contain: the visibility and the fields of the sessions.
fn describe(store: &Store) {
    let facts: [fn(&mut Session); 6] = [
        |s| (s.tags, s.turn_count) = (vec!["red".into(), "blue".into()], 3),
        |s| (s.visibility, s.team_ids) = (Visibility::Team, vec!["core".into(), "docs".into()]),
        |s| (s.bundle, s.turn_count) = (Some("big".into()), 8),
        |s| s.visibility = Visibility::Public,
        |s| (s.visibility, s.org_id, s.tags) = (Visibility::Org, Some("acme".into()), vec!["red".into()]),
        // Not shared, whatever the other fields are.
        |s| (s.org_id, s.team_ids) = (Some("acme".into()), vec!["core".into()]),
    ];
    store.write(|write| PLACES.iter().zip(facts).for_each(|(place, facts)| write.session(place, facts)));
}

fn viewer(name: &str) -> Viewer {
    Viewer::new(UserId::new(name).unwrap())
}

fn scopes() -> Vec<Scope> {
    let user = |name| Scope::User(UserId::new(name).unwrap());
    vec![
        Scope::Everyone,
        user("ana"),
        user("ben"),
        user("zoe"),
        user("nobody"),
        viewer("ana").with_org(Some("acme".into())).into(),
        viewer("zoe").with_teams(["core"]).into(),
        viewer("nobody").into(),
    ]
}

fn filters() -> Vec<SearchFilter> {
    let none = SearchFilter::default;
    let project = |name| ProjectSlug::new(name).unwrap();
    let session = |name| SessionId::new(name).unwrap();
    let at = Timestamp::from_micros;
    let sessions = SessionFilter::default;
    vec![
        none(),
        none().with_project(project("shop")),
        none().with_project(project("solo")),
        none().with_project(project("none")),
        none().with_session(session("s-1")),
        none().with_session(session("s-4")),
        none().with_project(project("blog")).with_session(session("s-1")),
        none().with_role(Role::User),
        none().with_role(Role::Developer),
        none().with_since(at(50)),
        none().with_until(at(50)),
        none().with_since(at(20)).with_until(at(30)).with_project(project("shop")),
        none().with_since(at(80)).with_until(at(20)),
        none().with_sessions(sessions().with_tags(["red"])),
        none().with_sessions(sessions().with_tags(["red", "blue"])).with_role(Role::User),
        none().with_sessions(sessions().with_tags(["green"])),
        none().with_sessions(sessions().with_bundle("big".to_owned())),
        none().with_sessions(sessions().with_min_turns(3).with_max_turns(7)),
        none().with_sessions(sessions().with_max_turns(3).with_project(project("shop"))).with_until(at(70)),
        none().with_sessions(sessions().with_tags(["red"]).with_session(session("s-1"))),
    ]
}

fn content_types() -> Vec<ContentTypes> {
    let some = [ContentType::UserQuery, ContentType::System].into_iter().collect();
    vec![ContentTypes::embedded(), some, ContentTypes::NONE]
}

fn check_all(index: &SearchIndex, store: &Store) {
    let mut numbers = Numbers(99);
    for scope in scopes() {
        for filter in filters() {
            for content_types in content_types() {
                let mut text = text_query("w0 w1 w2 w40");
                (text.scope, text.filter, text.content_types) =
                    (scope.clone(), filter.clone(), content_types);
                check_text(index, store, &text, true);
                let mut vectors = vector_query(numbers.vector(24));
                (vectors.scope, vectors.filter, vectors.content_types) =
                    (scope.clone(), filter.clone(), content_types);
                check_vectors(index, store, &vectors);
            }
        }
    }
}

#[test]
fn filters_hold_in_tail_and_index() {
    let (store, dir) = (Store::new(1), tempfile::tempdir().unwrap());
    let index = SearchIndex::open(dir.path());
    fill(&store, 0..150);
    describe(&store);
    check_all(&index, &store);
    index.fold(&mut store.rows(), WhenBusy::Skip).unwrap();
    check_all(&index, &store);
    fill(&store, 150..300);
    check_all(&index, &store);
    index.fold(&mut store.rows(), WhenBusy::Skip).unwrap();
    check_all(&index, &store);
}

#[test]
fn few_results_are_the_best_of_the_filtered() {
    let (store, dir) = (Store::new(1), tempfile::tempdir().unwrap());
    let index = SearchIndex::open(dir.path());
    fill(&store, 0..400);
    describe(&store);
    index.fold(&mut store.rows(), WhenBusy::Skip).unwrap();
    for scope in scopes() {
        let mut query = text_query("w0 w1 w2 w40");
        query.scope = scope;
        let all = check_text(&index, &store, &query, true);
        query.limit = 5;
        let few = index.text_candidates(&mut store.rows(), &query).unwrap();
        assert_eq!(few.hits.len(), 5.min(all.hits.len()));
        for (few, all) in few.hits.iter().zip(&all.hits) {
            assert!((few.score - all.score).abs() < 1e-3);
        }
    }
}

/// Searches, compares with the model, and returns the numbers of texts and vectors found.
fn found(index: &SearchIndex, store: &Store, scope: &Scope, filter: &SearchFilter) -> (usize, usize) {
    let mut text = text_query("w0 w1 w2 w40");
    (text.scope, text.filter) = (scope.clone(), filter.clone());
    let mut vectors = vector_query(Numbers(5).vector(24));
    (vectors.scope, vectors.filter, vectors.limit) = (scope.clone(), filter.clone(), 1_000);
    (check_text(index, store, &text, true).hits.len(), check_vectors(index, store, &vectors).hits.len())
}

#[test]
fn filters_use_current_sessions() {
    let (store, dir) = (Store::new(1), tempfile::tempdir().unwrap());
    let index = SearchIndex::open(dir.path());
    fill(&store, 0..150);
    index.fold(&mut store.rows(), WhenBusy::Skip).unwrap();
    fill(&store, 150..200);
    let none = SearchFilter::default();
    let tagged = none.clone().with_sessions(SessionFilter::default().with_tags(["red"]));
    let stranger: Scope = viewer("stranger").into();
    assert_eq!(found(&index, &store, &stranger, &none), (0, 0));
    assert_eq!(found(&index, &store, &Scope::Everyone, &tagged), (0, 0));

    // This writes no message, and there is no fold.
    store.write(|write| write.session(&PLACES[3], |s| s.visibility = Visibility::Public));
    let shared = found(&index, &store, &stranger, &none);
    assert!(shared.0 > 0 && shared.1 > 0);
    store.write(|write| write.session(&PLACES[3], |s| s.tags = vec!["red".into()]));
    assert_eq!(found(&index, &store, &Scope::Everyone, &tagged), shared);
    store.write(|write| write.session(&PLACES[3], |s| s.visibility = Visibility::Private));
    assert_eq!(found(&index, &store, &stranger, &none), (0, 0));
    assert!(found(&index, &store, &Scope::Everyone, &none) > shared);
}

#[test]
fn a_reused_session_key_belongs_to_its_new_owner() {
    let (store, dir) = (Store::new(1), tempfile::tempdir().unwrap());
    let index = SearchIndex::open(dir.path());
    let (gone, new) = (Place { user: "ana", ..PLACES[0] }, Place { user: "zoe", ..PLACES[5] });
    let put = |key, place: &Place| {
        store.write(|write| write.put(key, place.clone(), "w0 w1", Numbers(key).vector(24)));
    };
    put(1, &gone);
    put(2, &PLACES[4]);
    index.fold(&mut store.rows(), WhenBusy::Skip).unwrap();
    store.write(|write| {
        write.remove(1);
        write.reuse_session(&gone, &new);
        write.session(&new, |session| session.visibility = Visibility::Public);
    });
    for _ in 0..2 {
        assert_eq!(found(&index, &store, &viewer("stranger").into(), &SearchFilter::default()), (0, 0));
        index.fold(&mut store.rows(), WhenBusy::Skip).unwrap();
    }
    put(3, &new);
    assert_eq!(found(&index, &store, &viewer("stranger").into(), &SearchFilter::default()), (1, 1));
}
