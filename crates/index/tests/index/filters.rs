//! Each filter alone and with others, in the index, in the tail, and with both.

use amplifier_session_core::{
    Scope,
    model::{ContentType, ContentTypes, ProjectSlug, Role, SessionId, Timestamp, UserId},
    search::SearchFilter,
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

/// Messages of every role and vectors of every content type, spread unevenly over the places.
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

fn scopes() -> Vec<Scope> {
    let user = |name| Scope::User(UserId::new(name).unwrap());
    vec![Scope::Everyone, user("ana"), user("ben"), user("zoe"), user("nobody")]
}

fn filters() -> Vec<SearchFilter> {
    let none = SearchFilter::default;
    let project = |name| ProjectSlug::new(name).unwrap();
    let session = |name| SessionId::new(name).unwrap();
    let at = Timestamp::from_micros;
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
