//! Vector search, with the rows divided between index and tail in every way.

use amplifier_session_core::{
    ErrorField, ErrorKind, Scope,
    backend::VectorQuery,
    model::{ContentType, ContentTypes, Role, Timestamp, UserId},
    search::SearchFilter,
};
use amplifier_session_index::{SearchIndex, WhenBusy};

use super::{
    model::{Numbers, check_vectors, unit, vector_model, vector_query},
    store::{ANA, Place, Store},
};

/// Writes vectors in clusters, as those of texts are.
fn filled(store: &Store, keys: std::ops::Range<u64>, dimensions: usize) {
    let mut numbers = Numbers(11);
    let centres: Vec<_> = (0..40).map(|_| numbers.vector(dimensions)).collect();
    let mut numbers = Numbers(keys.start + 1);
    store.write(|write| {
        for key in keys {
            let centre = &centres[numbers.below(40) as usize];
            let noise = numbers.vector(dimensions);
            let vector = unit(centre.iter().zip(noise).map(|(c, n)| c + 0.6 * n).collect());
            write.vector(key, ANA, ContentType::EMBEDDED[(key % 4) as usize], key as i64, vector);
        }
    });
}

#[test]
fn index_and_tail_answer_as_one() {
    let (store, dir) = (Store::new(1), tempfile::tempdir().unwrap());
    let index = SearchIndex::open(dir.path());
    let mut numbers = Numbers(12);
    filled(&store, 0..300, 32);
    let answer = check_vectors(&index, &store, &vector_query(numbers.vector(32)));
    assert_eq!(answer.tail_rows, 300);
    assert!(answer.notice.unwrap().contains("the vector index is missing"));
    for round in 1..8 {
        assert_eq!(index.fold(&mut store.rows(), WhenBusy::Skip).unwrap().vectors, 300);
        assert_eq!(check_vectors(&index, &store, &vector_query(numbers.vector(32))).tail_rows, 0);
        filled(&store, round * 300..round * 300 + 300, 32);
        let answer = check_vectors(&index, &store, &vector_query(numbers.vector(32)));
        assert_eq!((answer.tail_rows, answer.notice), (300, None));
    }
}

#[test]
fn the_codes_lose_no_near_vector() {
    let (store, dir) = (Store::new(1), tempfile::tempdir().unwrap());
    let index = SearchIndex::open(dir.path()).with_step_bytes(2 << 20);
    filled(&store, 0..17_000, 256);
    index.fold(&mut store.rows(), WhenBusy::Skip).unwrap();
    assert!(std::fs::read_dir(dir.path().join("vectors")).unwrap().count() > 1, "two cores have work");
    let state = store.state();
    let (mut found, mut wanted) = (0, 0);
    for key in (0..17_000).step_by(3_000) {
        let all = vector_query(state.vectors[&key].vector.clone());
        let some =
            VectorQuery { content_types: [ContentType::EMBEDDED[2]].into_iter().collect(), ..all.clone() };
        for query in [all, some] {
            let expected: Vec<u64> = vector_model(&state, &query).iter().map(|(key, _)| *key).collect();
            let answer = index.vector_candidates(&mut store.rows(), &query).unwrap();
            found += answer.hits.iter().filter(|hit| expected.contains(&hit.key)).count();
            wanted += expected.len();
        }
    }
    assert!(found as f64 >= wanted as f64 * 0.99, "{found} of {wanted}");
}

#[test]
fn any_limit_is_possible() {
    let (store, dir) = (Store::new(1), tempfile::tempdir().unwrap());
    let index = SearchIndex::open(dir.path());
    filled(&store, 0..1_200, 8);
    index.fold(&mut store.rows(), WhenBusy::Skip).unwrap();
    let query = vector_query(Numbers(14).vector(8));
    for limit in [0, 1, 1_199, usize::MAX] {
        check_vectors(&index, &store, &VectorQuery { limit, ..query.clone() });
    }
}

#[test]
fn zero_vectors_are_ordinary_rows() {
    let (store, dir) = (Store::new(1), tempfile::tempdir().unwrap());
    let index = SearchIndex::open(dir.path());
    store.write(|write| {
        write.vector(1, ANA, ContentType::UserQuery, 0, vec![0.0; 4]);
        write.vector(2, ANA, ContentType::UserQuery, 0, vec![0.0, 1.0, 0.0, 0.0]);
        write.vector(3, ANA, ContentType::UserQuery, 0, vec![0.0, -1.0, 0.0, 0.0]);
    });
    for _ in 0..2 {
        let answer = check_vectors(&index, &store, &vector_query(vec![0.0, 1.0, 0.0, 0.0]));
        assert_eq!(answer.hits.iter().map(|hit| hit.key).collect::<Vec<_>>(), [2, 1, 3]);
        check_vectors(&index, &store, &vector_query(vec![0.0; 4]));
        index.fold(&mut store.rows(), WhenBusy::Skip).unwrap();
    }
}

#[test]
fn a_query_of_another_length_is_refused() {
    let (store, dir) = (Store::new(1), tempfile::tempdir().unwrap());
    let index = SearchIndex::open(dir.path());
    let query = vector_query(vec![1.0, 0.0]);
    assert!(index.vector_candidates(&mut store.rows(), &query).unwrap().hits.is_empty());
    filled(&store, 0..5, 16);
    for _ in 0..2 {
        let error = index.vector_candidates(&mut store.rows(), &query).unwrap_err();
        assert_eq!((error.kind(), error.field()), (ErrorKind::Validation, Some(ErrorField::Vector)));
        index.fold(&mut store.rows(), WhenBusy::Skip).unwrap();
    }
}

#[test]
fn turns_are_searched_like_texts_and_apart_from_them() {
    let (store, dir) = (Store::new(1), tempfile::tempdir().unwrap());
    let index = SearchIndex::open(dir.path());
    let mut numbers = Numbers(21);
    let bens = Place { user: "ben", project: "shop", session: "s-2" };
    // The keys are those of vectors of texts.
    filled(&store, 0..400, 16);
    store.write(|write| {
        for key in 0..400 {
            let place = if key % 3 == 0 { bens.clone() } else { ANA };
            write.turn(key, place, key as i64, numbers.vector(16));
        }
    });
    for round in 0..3 {
        let all = VectorQuery { turns: true, ..vector_query(numbers.vector(16)) };
        let of_ben = Scope::User(UserId::new("ben").unwrap());
        let later = SearchFilter::default().with_since(Timestamp::from_micros(200));
        let answers = SearchFilter::default().with_role(Role::Assistant);
        for query in [
            all.clone(),
            VectorQuery { content_types: ContentTypes::NONE, ..all.clone() },
            VectorQuery { scope: of_ben, limit: 1_000, ..all.clone() },
            VectorQuery { filter: later, limit: 1_000, ..all.clone() },
            VectorQuery { filter: answers, ..all.clone() },
            VectorQuery { turns: false, ..all },
        ] {
            check_vectors(&index, &store, &query);
        }
        if round == 0 {
            assert_eq!(index.fold(&mut store.rows(), WhenBusy::Skip).unwrap().vectors, 800);
        } else {
            store.write(|write| {
                (0..50).for_each(|key| write.remove_turn(key + 50 * round));
                write.turn(1_000 + round, bens.clone(), 0, numbers.vector(16));
            });
        }
    }
}
