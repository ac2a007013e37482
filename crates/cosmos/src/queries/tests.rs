use amplifier_session_core::{
    Viewer,
    backend::meta::Generation,
    model::{EmbeddingSpace, Place, Role, SessionKey, Timestamp},
    search::EventFilter,
};

use super::*;
use crate::{config::CosmosConfig, containers};

fn key() -> SessionKey {
    SessionKey::new(UserId::new("ana").unwrap(), SessionId::new("s").unwrap())
}

fn held() -> Generations {
    let generation = |dimensions, number| {
        Some(Generation { space: EmbeddingSpace { model: "m".into(), dimensions }, number })
    };
    Generations { current: generation(3, 1), next: generation(4, 2), last_number: 2 }
}

fn viewer() -> Scope {
    let user = UserId::new("ana").unwrap();
    Viewer::new(user).with_teams(["a", "b"]).with_org(Some("o".into())).into()
}

fn full_event_filter() -> EventFilter {
    EventFilter::default()
        .with_event_type("llm:request".to_owned())
        .with_category("llm".to_owned())
        .with_since(Timestamp::from_micros(0))
}

/// Every query with each of its conditions, and the container that it is for.
fn every_query() -> Vec<(&'static str, Query)> {
    use containers::{CHUNKS, EVENTS, MESSAGES, SESSIONS};
    let cursor = SessionCursor { updated: Timestamp::from_micros(0), key: key() };
    let place = Place::new(key(), 7);
    let list = SessionQuery::new(viewer())
        .with_id_prefix(Some("x".into()))
        .with_since(Some(Timestamp::from_micros(0)))
        .with_after(Some(cursor));
    let owing_query = |generation| OwingQuery {
        user: key().user_id,
        session: Some(key().session_id),
        generation,
        after: Some(place.clone()),
        limit: 10,
    };
    let filter = SearchFilter::default().with_role(Role::User);
    let partitions = ["ana|s".to_owned()];
    let after = EventCursor { ts: Timestamp::from_micros(0), place: place.clone() };
    let terms = ["run".to_owned(), "happi".to_owned()];
    vec![
        (SESSIONS, scope(&viewer(), &SessionFilter::default().with_tags(["t"]))),
        (SESSIONS, sessions(&list)),
        (SESSIONS, text_totals()),
        (SESSIONS, sync_states(Some(&key().session_id))),
        (SESSIONS, deletions()),
        (MESSAGES, rows_from(3)),
        (MESSAGES, everything()),
        (MESSAGES, ids()),
        (MESSAGES, count_texts()),
        (MESSAGES, rows(kind::MESSAGE, "*", 3, Some(10))),
        (MESSAGES, rows_at(kind::PIECE, "*", &[1])),
        (MESSAGES, rows_at(kind::MESSAGE, "*", &[1, 2])),
        (MESSAGES, owing(&owing_query(1), &held()).unwrap()),
        (MESSAGES, owing(&owing_query(2), &held()).unwrap()),
        (MESSAGES, owing_partitions(2, &held()).unwrap()),
        (MESSAGES, owed()),
        (MESSAGES, stale_vectors(&[1, 2], 100)),
        (MESSAGES, messages_with_generations()),
        (MESSAGES, message_states(&key().user_id.into())),
        (MESSAGES, message_times(&Scope::Everyone, &filter)),
        (MESSAGES, vectors_of(1, &[1, 3])),
        (MESSAGES, vector_types(1, 0)),
        (MESSAGES, vectors_to_compare(1, &filter, &partitions)),
        (MESSAGES, nearest_vectors(1, &filter, (&partitions, &["user_query"]), &[0.5, 0.25], 20)),
        (MESSAGES, texts_with(&terms, false, 100, None)),
        (MESSAGES, texts_with(&terms, true, 100, None)),
        (MESSAGES, texts_with(&terms, true, 100, Some(&UserId::new("ana").unwrap()))),
        (CHUNKS, of_ids(&["a".to_owned()])),
        (EVENTS, events_of_ids("ana", &["e".to_owned()])),
        (EVENTS, event_ids("ana")),
        (EVENTS, answered_sessions(&key().user_id.into())),
        (EVENTS, events(&Scope::Everyone, &full_event_filter(), Some(&after), true)),
        (EVENTS, events(&Scope::Everyone, &EventFilter::default(), None, false)),
    ]
}

#[test]
fn the_texts_are_these() {
    let texts: Vec<String> = every_query().into_iter().map(|(_, query)| query.text).collect();
    insta::assert_snapshot!(texts.join("\n\n"));
}

#[test]
fn nothing_is_asked_that_the_sdk_refuses_or_answers_wrongly() {
    for (_, Query { text, .. }) in every_query() {
        assert!(!text.contains("ORDER BY RANK") && !text.contains("FullTextScore"), "{text}");
        assert!(!text.contains("DISTINCT") && !text.contains("GROUP BY"), "{text}");
        // Across partitions there are no aggregates: the one that there is, is for one partition.
        let aggregates = ["COUNT(", "SUM(", "MIN(", "MAX(", "AVG("];
        let is_aggregate = aggregates.iter().any(|name| text.contains(name));
        assert!(!is_aggregate || text == count_texts().text, "{text}");
        // A vector search is kept in memory: it has an end.
        assert!(!text.contains("VectorDistance") || text.contains("TOP"), "{text}");
    }
}

#[test]
fn each_order_of_several_properties_has_its_index() {
    let definitions = containers::definitions(&CosmosConfig::new("https://a/")).unwrap();
    for (container, Query { text, .. }) in every_query() {
        let Some((_, order)) = text.split_once(" ORDER BY c.") else { continue };
        let order: Vec<(String, bool)> = order
            .split(", c.")
            .map(|part| {
                let (property, direction) = part.split_once(' ').unwrap();
                (format!("/{property}"), direction == "ASC")
            })
            .collect();
        let policy = definitions.iter().find(|one| one.id == container).unwrap().indexing_policy.as_ref();
        let policy = serde_json::to_value(policy).unwrap();
        if order.len() > 1 {
            let index: Vec<Value> = order
                .iter()
                .map(
                    |(path, up)| json!({"path": path, "order": if *up { "ascending" } else { "descending" }}),
                )
                .collect();
            let indexes = policy["compositeIndexes"].as_array().unwrap();
            assert!(indexes.contains(&Value::Array(index)), "{text}\n{policy}");
        } else {
            let path = json!({"path": format!("{}/?", order[0].0)});
            assert!(policy["includedPaths"].as_array().unwrap().contains(&path), "{text}\n{policy}");
        }
    }
}

#[test]
fn names_are_parameters() {
    let scope = super::scope(&UserId::new("x' OR 1 = 1 --").unwrap().into(), &SessionFilter::default());
    assert!(!scope.text.contains("1 = 1"), "{}", scope.text);
    assert_eq!(scope.parameters[0].1, json!("x' OR 1 = 1 --"));
}
