//! Random histories of a store and its index against the model.

use amplifier_session_core::{
    Scope, Viewer,
    model::{ContentType, Role, UserId, Visibility},
    search::SessionFilter,
};
use amplifier_session_index::{SearchIndex, WhenBusy};
use proptest::prelude::*;
use serde_json::json;

use super::{
    model::{Numbers, check_text, check_vectors, text_query, vector_query},
    store::{Place, Store},
};

const PLACES: [Place; 3] = [
    Place { user: "ana", project: "shop", session: "s-1" },
    Place { user: "ana", project: "blog", session: "s-2" },
    Place { user: "ben", project: "shop", session: "s-1" },
];

#[derive(Debug, Clone)]
enum Operation {
    Put { key: u64, place: usize, role: usize },
    Remove { key: u64 },
    Fold { which: usize },
    Describe { place: usize, visibility: usize, tags: usize },
    Search { which: usize, scope: usize, tags: usize },
    Reopen { which: usize },
    Delete,
}

fn operation() -> impl Strategy<Value = Operation> {
    let key = 0..30u64;
    prop_oneof![
        8 => (key.clone(), 0..3usize, 0..5usize).prop_map(|(key, place, role)| Operation::Put { key, place, role }),
        3 => key.prop_map(|key| Operation::Remove { key }),
        2 => (0..2usize).prop_map(|which| Operation::Fold { which }),
        3 => (0..3usize, 0..4usize, 0..3usize)
            .prop_map(|(place, visibility, tags)| Operation::Describe { place, visibility, tags }),
        6 => (0..2usize, 0..4usize, 0..3usize)
            .prop_map(|(which, scope, tags)| Operation::Search { which, scope, tags }),
        1 => (0..2usize).prop_map(|which| Operation::Reopen { which }),
        1 => Just(Operation::Delete),
    ]
}

const TAGS: [&[&str]; 3] = [&[], &["red"], &["blue", "red"]];
const VISIBILITIES: [Visibility; 4] =
    [Visibility::Private, Visibility::Team, Visibility::Org, Visibility::Public];

fn scope(number: usize) -> Scope {
    let user = |name| UserId::new(name).unwrap();
    match number {
        0 => Scope::Everyone,
        1 => Scope::User(user("ana")),
        2 => Viewer::new(user("ben")).with_teams(["core"]).into(),
        _ => Viewer::new(user("zoe")).with_org(Some("acme".into())).into(),
    }
}

fn run(operations: Vec<Operation>, seed: u64) {
    let (store, dir) = (Store::new(1), tempfile::tempdir().unwrap());
    let mut numbers = Numbers(seed);
    let mut indexes = [SearchIndex::open(dir.path()), SearchIndex::open(dir.path())];
    for operation in operations {
        match operation {
            Operation::Put { key, place, role } => store.write(|write| {
                let (place, role) = (PLACES[place].clone(), Role::ALL[role]);
                let line = json!({"role": role.as_str(), "content": numbers.text(8)});
                write.message(key, place.clone(), role, 0, line);
                write.vector(key, place, ContentType::EMBEDDED[(key % 4) as usize], 0, numbers.vector(8));
            }),
            Operation::Remove { key } => store.remove(key),
            Operation::Fold { which } => {
                let folded = indexes[which].fold(&mut store.rows(), WhenBusy::Skip).unwrap();
                assert!(!folded.busy);
                let status = indexes[1 - which].status();
                let revision = (store.state().revision > 0).then_some(store.state().revision);
                assert_eq!(status.text.map(|of| of.revision), revision);
                assert_eq!(status.vectors.map(|of| of.revision), revision);
            }
            Operation::Describe { place, visibility, tags } => store.write(|write| {
                write.session(&PLACES[place], |session| {
                    session.visibility = VISIBILITIES[visibility];
                    session.tags = TAGS[tags].iter().map(|tag| (*tag).to_owned()).collect();
                    (session.org_id, session.team_ids) = (Some("acme".into()), vec!["core".into()]);
                });
            }),
            Operation::Search { which, scope: number, tags } => {
                let sessions = SessionFilter::default().with_tags(TAGS[tags].iter().copied());
                let mut text = text_query(&numbers.text(3));
                (text.scope, text.filter.sessions) = (scope(number), sessions.clone());
                let answer = check_text(&indexes[which], &store, &text, false);
                let held = indexes[which].status().text.map_or(0, |of| of.revision);
                let newer = store.state().messages.values().filter(|message| message.revision > held).count();
                assert_eq!(answer.tail_rows, newer as u64);
                let mut vectors = vector_query(numbers.vector(8));
                (vectors.scope, vectors.filter.sessions) = (scope(number), sessions);
                check_vectors(&indexes[which], &store, &vectors);
            }
            Operation::Reopen { which } => indexes[which] = SearchIndex::open(dir.path()),
            Operation::Delete => std::fs::remove_dir_all(dir.path()).unwrap_or_default(),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn any_history_is_searched_correctly(operations in prop::collection::vec(operation(), 1..60), seed: u64) {
        run(operations, seed);
    }
}
