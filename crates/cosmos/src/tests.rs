//! What only this backend promises, on the SDK's emulator in memory: how many requests a write takes, and what becomes of
//! writers that are too late.

use std::{sync::Arc, time::Duration};

use amplifier_session_core::{
    ErrorKind,
    backend::{prelude::*, MessageVectors, RowChange, SequenceRange, SessionChange, Version, meta},
    model::{
        ContentType, Digest, Event, HostId, Level, Message, Payload, Place, ProjectSlug, RawJson, Role,
        Session, SessionId, SessionKey, StoredEvent, TimeSource, Timestamp, UserId, VectorRecord,
        VectorState,
    },
};
use azure_data_cosmos::CosmosRuntimeBuilder;
use azure_data_cosmos_driver::in_memory_emulator::{
    ConsistencyLevel, InMemoryEmulatorHttpClient, VirtualAccountConfig, VirtualRegion,
};
use serde_json::json;

use crate::{
    config::{Authentication, CosmosConfig},
    ids,
    lease::{Expected, WriteLease},
    messages, schema,
    store::{Store, Transport},
    vectors, write,
};

const ENDPOINT: &str = "https://eastus.emulator.local";

async fn store() -> Store {
    let (config, runtime) = emulator();
    Store::connect(config, Transport { credential: None, runtime }).await.unwrap()
}

async fn backend() -> crate::CosmosBackend {
    let (config, runtime) = emulator();
    crate::CosmosBackend::connect_through(config, runtime).await.unwrap()
}

async fn everything_in(container: &crate::client::Container) -> Vec<serde_json::Value> {
    container.all(crate::client::Within::All, crate::queries::everything()).await.unwrap()
}

fn emulator() -> (CosmosConfig, CosmosRuntimeBuilder) {
    let region = VirtualRegion::new("East US", ENDPOINT.parse().unwrap());
    let account =
        VirtualAccountConfig::new(vec![region]).unwrap().with_consistency(ConsistencyLevel::Session);
    let emulator = Arc::new(InMemoryEmulatorHttpClient::new(account));
    let config = CosmosConfig::new(ENDPOINT)
        .with_authentication(Authentication::Key("dGVzdGtleQ==".to_owned()))
        .with_vector(false)
        .with_takeover_after(Duration::ZERO);
    (config, CosmosRuntimeBuilder::from(emulator.runtime_builder()))
}

fn key() -> SessionKey {
    SessionKey::new(UserId::new("ana").unwrap(), SessionId::new("s").unwrap())
}

fn session() -> Session {
    let (host, project) = (HostId::new("h").unwrap(), ProjectSlug::new("p").unwrap());
    Session::new(key(), host, project, Timestamp::from_micros(0))
}

fn message(sequence: u32) -> Message {
    let raw = RawJson::from(format!(r#"{{"role":"user","content":"word{sequence} twice"}}"#).as_str());
    Message {
        user_id: key().user_id,
        host_id: session().host_id,
        project_slug: session().project_slug,
        session_id: key().session_id,
        sequence,
        role: Role::User,
        turn: None,
        ts: Timestamp::from_micros(0),
        ts_source: TimeSource::Stated,
        synced_at: Timestamp::from_micros(0),
        vectors: VectorState::Owed,
        digest: Digest::of(raw.as_bytes()),
        raw,
    }
}

async fn put(
    store: &Store,
    expected: Option<Version>,
    sequences: std::ops::Range<u32>,
) -> amplifier_session_core::Result<Version> {
    let messages = RowChange { put: sequences.map(message).collect(), truncate: None };
    write::write(store, SessionChange { messages, ..SessionChange::new(session(), expected) }).await
}

async fn texts_there(store: &Store) -> usize {
    let range = SequenceRange { start: 0, limit: 1_000 };
    messages::read(store, &key(), range).await.unwrap().len()
}

#[tokio::test]
async fn lines_that_are_appended_need_no_look_at_what_is_there() {
    let store = store().await;
    let version = put(&store, None, 0..3).await.unwrap();
    let before = store.usage.total().requests;
    let version = put(&store, Some(version), 3..6).await.unwrap();
    // The session is read and marked, the messages are put, the session is ended.
    assert_eq!(store.usage.total().requests - before, 4);
    assert!(store.usage.total().request_units > 0.0);
    put(&store, Some(version), 2..7).await.unwrap();
    assert_eq!(texts_there(&store).await, 7);
}

#[tokio::test]
async fn totals_are_the_same_whether_texts_are_added_or_counted() {
    let store = store().await;
    let version = put(&store, None, 0..3).await.unwrap();
    let version = put(&store, Some(version), 3..6).await.unwrap();
    let read = async || crate::lease::read(&store, &key()).await.unwrap().unwrap();
    let added = read().await;
    put(&store, Some(version), 0..6).await.unwrap();
    let counted = read().await;
    assert_eq!((added.texts, added.text_tokens), (6, counted.text_tokens));
    assert_eq!(counted.texts, 6);
}

#[tokio::test]
async fn who_took_the_session_before_it_was_lost_can_not_take_its_fence_after() {
    let store = store().await;
    let version = put(&store, None, 0..3).await.unwrap();
    let expected = Expected::Exactly(Some(version));
    let late = WriteLease::begin(&store, &key(), &expected, None).await.unwrap().unwrap();
    // Another writer takes it over, and the one after it writes.
    let taken = WriteLease::begin(&store, &key(), &Expected::Any, None).await.unwrap_err();
    assert_eq!(taken.kind(), ErrorKind::Conflict);
    let version = Version(crate::lease::read(&store, &key()).await.unwrap().unwrap().version);
    let version = put(&store, Some(version), 3..5).await.unwrap();
    let partition = ids::partition(&key());
    let refused = late.fence(&store.messages, &partition, None).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Conflict);
    // What is known of the fence is wrong now: that is a conflict, and then known again.
    let conflict = put(&store, Some(version), 5..6).await.unwrap_err();
    assert!(conflict.kind() == ErrorKind::Conflict && conflict.is_retryable());
    let version = Version(crate::lease::read(&store, &key()).await.unwrap().unwrap().version);
    put(&store, Some(version), 5..6).await.unwrap();
    assert_eq!(texts_there(&store).await, 6);
}

fn made(sequence: u32, chunks: u32) -> MessageVectors {
    let record = |chunk_index| VectorRecord {
        content_type: ContentType::UserQuery,
        chunk_index,
        total_chunks: chunks,
        span_start: chunk_index,
        span_end: chunk_index + 1,
        token_count: 1,
        vector: vec![1.0, 0.0],
    };
    MessageVectors {
        sequence,
        digest: message(sequence).digest,
        created_at: Timestamp::from_micros(0),
        records: (0..chunks).map(record).collect(),
        failure: None,
    }
}

#[tokio::test]
async fn vectors_of_many_messages_go_together_and_those_of_one_go_in_parts() {
    let store = store().await;
    put(&store, None, 0..60).await.unwrap();
    let generation = meta::Generation {
        space: amplifier_session_core::model::EmbeddingSpace { model: "m".into(), dimensions: 2 },
        number: 0,
    };
    schema::swap(&store, meta::EMBEDDING_SPACE, None, &generation.to_value()).await.unwrap();
    let before = store.usage.total().requests;
    let all: Vec<MessageVectors> = (0..50).map(|sequence| made(sequence, 1)).collect();
    assert_eq!(vectors::write(&store, &key(), 0, all).await.unwrap(), 50);
    // The schema, messages, what vectors they have, one batch of 50 messages with a vector each, and the schema again.
    assert_eq!(store.usage.total().requests - before, 5);
    let many = vec![made(50, 250), made(51, 1)];
    assert_eq!(vectors::write(&store, &key(), 0, many).await.unwrap(), 251);
    let texts = [(Place::new(key(), 50), ContentType::UserQuery)];
    assert_eq!(vectors::of_texts(&store, 0, &texts).await.unwrap().len(), 250);
    let stored = messages::at(&store, &[Place::new(key(), 50)]).await.unwrap();
    assert_eq!(stored[0].vectors, VectorState::Stored);
}

#[tokio::test]
async fn what_an_abandoned_first_write_left_keeps_nobody_from_another_model() {
    let store = store().await;
    let generation = |number, model: &str| {
        let space = amplifier_session_core::model::EmbeddingSpace { model: model.into(), dimensions: 2 };
        meta::Generation { space, number }.to_value()
    };
    schema::swap(&store, meta::EMBEDDING_SPACE, None, &generation(0, "m")).await.unwrap();
    schema::swap(&store, meta::NEXT_EMBEDDING_SPACE, None, &generation(1, "n")).await.unwrap();
    put(&store, None, 0..3).await.unwrap();
    assert!(!crate::generations::complete(&store, 1).await.unwrap());
    let all: Vec<MessageVectors> = (0..3).map(|sequence| made(sequence, 1)).collect();
    assert_eq!(vectors::write(&store, &key(), 1, all).await.unwrap(), 3);
    // Somebody's first write breaks off behind its rows.
    let before = crate::lease::read(&store, &crate::tests::key()).await.unwrap().unwrap();
    let rows = RowChange { put: vec![message(9)], truncate: None };
    let mut other = SessionChange { messages: rows, ..SessionChange::new(session(), None) };
    other.session.session_id = SessionId::new("other").unwrap();
    other.messages.put[0].session_id = other.session.session_id.clone();
    let (key, none) = (other.session.key(), Expected::Exactly(None));
    WriteLease::begin(&store, &key, &none, Some(&other.session)).await.unwrap().unwrap();
    let partition = ids::partition(&key);
    let row = crate::documents::MessageDocument::new(&other.messages.put[0], &partition);
    let create = crate::client::Operation::create(&row).unwrap();
    assert!(store.messages.write_many(&partition, vec![create]).await.unwrap());
    assert!(crate::generations::complete(&store, 1).await.unwrap());
    let after = crate::lease::read(&store, &crate::tests::key()).await.unwrap().unwrap();
    assert_eq!(after.version, before.version);
}

#[tokio::test]
async fn texts_of_others_take_no_room_from_ones_own() {
    let mut store = store().await;
    store.config.most_texts = 4;
    put(&store, None, 0..3).await.unwrap();
    let mut other = SessionChange::new(session(), None);
    other.session.user_id = UserId::new("aaa").unwrap();
    other.messages.put = (0..6)
        .map(|sequence| Message { user_id: other.session.user_id.clone(), ..message(sequence) })
        .collect();
    write::write(&store, other).await.unwrap();
    let query = amplifier_session_core::backend::TextQuery {
        scope: key().user_id.into(),
        filter: Default::default(),
        content_types: amplifier_session_core::model::ContentTypes::embedded(),
        terms: vec!["twice".to_owned()],
        limit: 10,
    };
    let found = crate::search::texts(&store, &query).await.unwrap();
    assert_eq!((found.items.len(), found.notice), (3, None));
}

/// The fields of the documents that hold vectors and chunks of events, as the schema lists them.
#[test]
fn vectors_and_chunks_carry_the_fields_of_the_schema() {
    let partition = ids::partition(&key());
    let message = crate::documents::MessageDocument::new(&message(7), &partition);
    let vectors = crate::documents::VectorDocument::all_of(&message, 0, "m", &made(7, 2));
    let vector = serde_json::to_value(&vectors[1]).unwrap();
    for (field, value) in [
        ("parent_id", json!("s_msg_7")),
        ("user_id", json!("ana")),
        ("session_id", json!("s")),
        ("project_slug", json!("p")),
        ("content_type", json!("user_query")),
        ("chunk_index", json!(1)),
        ("total_chunks", json!(2)),
        ("embedding_model", json!("m")),
    ] {
        assert_eq!(vector[field], value, "{field}");
    }

    let event = Event {
        event_id: "e-1".to_owned(),
        user_id: key().user_id,
        host_id: session().host_id,
        project_slug: session().project_slug,
        session_id: key().session_id,
        sequence: 0,
        event_type: "llm:request".to_owned(),
        ts: Timestamp::from_micros(0),
        ts_estimated: false,
        turn: None,
        level: Level::Info,
        tool_name: None,
        error_type: None,
        model: None,
        provider: None,
        summary: serde_json::Map::new(),
        is_chunked: true,
        chunk_count: Some(3),
        data_size_bytes: 3,
        synced_at: None,
        digest: Digest::of(b""),
    };
    let stored = StoredEvent { event, payload: Payload::Chunks(vec![vec![1], vec![2], vec![3]]) };
    let chunks = crate::documents::chunks_of(&stored, &partition);
    let chunk = serde_json::to_value(&chunks[2]).unwrap();
    for (field, value) in [("event_id", json!("e-1")), ("chunk_index", json!(2)), ("total_chunks", json!(3))]
    {
        assert_eq!(chunk[field], value, "{field}");
    }
}

/// What is stored, in every container, by id: without the fields of the service, and with `*` for what is random.
async fn stored(store: &Store) -> serde_json::Value {
    let mut containers = serde_json::Map::new();
    for (name, container) in [
        ("sessions", &store.sessions),
        ("messages", &store.messages),
        ("events", &store.events),
        ("chunks", &store.chunks),
    ] {
        let mut documents = std::collections::BTreeMap::new();
        for mut document in everything_in(container).await {
            let fields = document.as_object_mut().unwrap();
            fields.retain(|name, _| !name.starts_with('_'));
            fields.sort_keys();
            for random in ["version", "holder"] {
                fields.entry(random).and_modify(|value| *value = json!("*"));
            }
            for rows in ["message_rows", "event_rows"] {
                fields.entry(rows).and_modify(|rows| rows["fence"] = json!("*"));
            }
            documents.insert(document["id"].as_str().unwrap().to_owned(), document);
        }
        containers.insert(name.to_owned(), serde_json::to_value(documents).unwrap());
    }
    containers.into()
}

fn event(sequence: u32) -> Event {
    Event {
        event_id: format!("e-{sequence}"),
        user_id: key().user_id,
        host_id: session().host_id,
        project_slug: session().project_slug,
        session_id: key().session_id,
        sequence,
        event_type: "llm:request".to_owned(),
        ts: Timestamp::from_micros(0),
        ts_estimated: false,
        turn: Some(1),
        level: Level::Info,
        tool_name: None,
        error_type: None,
        model: Some("m".to_owned()),
        provider: None,
        summary: json!({"usage": {"input_tokens": 7}}).as_object().unwrap().clone(),
        is_chunked: false,
        chunk_count: None,
        data_size_bytes: 3,
        synced_at: Some(Timestamp::from_micros(1)),
        digest: Digest::of(b"line"),
    }
}

/// Fields that an earlier version wrote must not change their names or values.
#[tokio::test]
async fn documents_have_this_form() {
    let backend = backend().await;
    let store = &backend.0;
    let generation = meta::Generation {
        space: amplifier_session_core::model::EmbeddingSpace { model: "m".into(), dimensions: 2 },
        number: 0,
    };
    backend.swap_meta(meta::EMBEDDING_SPACE, None, &generation.to_value()).await.unwrap();
    let payloads = [
        Payload::None,
        Payload::Plain(b"broken \xe9".to_vec()),
        Payload::Zstd(vec![1]),
        Payload::Chunks(vec![vec![1], vec![2], vec![3]]),
    ];
    let events = payloads.into_iter().zip(0..).map(|(payload, n)| StoredEvent { event: event(n), payload });
    let mut long = message(2);
    long.raw = RawJson::from(format!(r#"{{"role":"user","content":"{}"}}"#, "\\u0001".repeat(300_000)).as_str());
    long.digest = Digest::of(long.raw.as_bytes());
    let change = SessionChange {
        metadata_files: Some(vec![amplifier_session_core::model::MetadataFile {
            name: "metadata.json".to_owned(),
            raw: RawJson::from("{}"),
        }]),
        skipped: Some(vec![amplifier_session_core::backend::SkippedLine {
            file: "events.jsonl".to_owned(),
            line: 7,
            reason: "no".to_owned(),
        }]),
        sync_state: Some("{}".to_owned()),
        messages: RowChange { put: vec![message(0), message(1), long], truncate: None },
        events: RowChange { put: events.collect(), truncate: None },
        ..SessionChange::new(session(), None)
    };
    backend.write(vec![change]).await.pop().unwrap().unwrap();
    let mut failed = made(1, 0);
    failed.failure = Some("too long".to_owned());
    let mut vectors = made(0, 2);
    vectors.records[1].vector = vec![0.6, -0.8];
    backend.write_vectors(&key(), 0, vec![vectors, failed]).await.unwrap();
    let mut other = session();
    other.session_id = SessionId::new("deleted").unwrap();
    backend.write(vec![SessionChange::new(other.clone(), None)]).await.pop().unwrap().unwrap();
    backend.delete_session(&other.key()).await.unwrap();
    let mut stored = stored(store).await;
    let pieces = stored["messages"].as_object_mut().unwrap().values_mut();
    for piece in pieces.filter(|document| document["type"] == "transcript_piece") {
        piece["raw"]["base64"] = json!(piece["raw"]["base64"].as_str().unwrap().len());
    }
    insta::assert_snapshot!(serde_json::to_string_pretty(&stored).unwrap());
}
