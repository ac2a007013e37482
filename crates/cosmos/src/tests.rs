//! The specific behaviour of this backend, on the SDK's in-memory emulator: the number of requests of a write, the
//! treatment of late writers, and the form of the documents.

use std::{sync::Arc, time::Duration};

use amplifier_session_core::{
    ErrorKind, Secret,
    backend::{
        MessageVectors, RewoundTo, RowChange, SequenceRange, SessionChange, SkippedLine, StoredSyncState,
        TextQuery, Version, meta, prelude::*,
    },
    model::{
        ContentType, ContentTypes, Digest, EmbeddingSpace, Event, HostId, Level, Message, MessageRef,
        MetadataFile, Payload, ProjectSlug, RawJson, Role, Session, SessionId, SessionKey, StoredEvent,
        TimeSource, Timestamp, UserId, VectorRecord, VectorState,
    },
};
use azure_data_cosmos::CosmosRuntimeBuilder;
use azure_data_cosmos_driver::in_memory_emulator::{
    ConsistencyLevel, InMemoryEmulatorHttpClient, VirtualAccountConfig, VirtualRegion,
};
use serde_json::json;

use crate::{
    CosmosBackend,
    batch::Operation,
    config::{Authentication, CosmosConfig},
    documents::{ChunkDocument, EventDocument, MessageDocument, VectorDocument, chunks_of, vectors_of},
    ids,
    lease::{Expected, WriteLease},
    query::Select,
};

const ENDPOINT: &str = "https://eastus.emulator.local";

async fn backend() -> CosmosBackend {
    backend_with(CosmosConfig::new(ENDPOINT)).await
}

async fn backend_with(mut config: CosmosConfig) -> CosmosBackend {
    let region = VirtualRegion::new("East US", ENDPOINT.parse().unwrap());
    let account =
        VirtualAccountConfig::new(vec![region]).unwrap().with_consistency(ConsistencyLevel::Session);
    let emulator = Arc::new(InMemoryEmulatorHttpClient::new(account));
    config.authentication = Authentication::Key(Secret::new("dGVzdGtleQ=="));
    config.enable_vector = false;
    config.takeover_after = Duration::ZERO;
    let runtime = CosmosRuntimeBuilder::from(emulator.runtime_builder());
    CosmosBackend::open(config, None, runtime).await.unwrap()
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
        vectors: VectorState::Pending,
        digest: Digest::of(raw.as_bytes()),
        raw,
    }
}

async fn put(
    backend: &CosmosBackend,
    expected: Option<Version>,
    sequences: std::ops::Range<u32>,
) -> amplifier_session_core::Result<Version> {
    let messages = RowChange { put: sequences.map(message).collect(), truncate: None };
    backend.write_one(SessionChange { messages, ..SessionChange::new(session(), expected) }).await
}

async fn count(backend: &CosmosBackend) -> usize {
    let range = SequenceRange { start: 0, limit: 1_000 };
    backend.read_messages(&key(), range).await.unwrap().len()
}

async fn version(backend: &CosmosBackend) -> Version {
    Version(backend.0.session(&key()).await.unwrap().unwrap().fields.version)
}

/// Makes a generation of two dimensions the current or the next one.
async fn set_generation(backend: &CosmosBackend, key: &str, number: u32, model: &str) {
    let space = EmbeddingSpace { model: model.into(), dimensions: 2 };
    let value = meta::Generation { space, number }.to_value();
    backend.swap_meta(key, None, &value).await.unwrap();
}

#[tokio::test]
async fn appending_does_not_read_what_is_stored() {
    let backend = backend().await;
    let version = put(&backend, None, 0..3).await.unwrap();
    let before = backend.info().usage.unwrap();
    let version = put(&backend, Some(version), 3..6).await.unwrap();
    // Reads the session, marks it, puts the messages, and completes the session.
    assert_eq!(backend.info().usage.unwrap().requests - before.requests, 4);
    assert!(before.request_units > 0.0);
    put(&backend, Some(version), 2..7).await.unwrap();
    assert_eq!(count(&backend).await, 7);
}

#[tokio::test]
async fn totals_are_the_same_whether_texts_are_added_or_counted() {
    let backend = backend().await;
    let version = put(&backend, None, 0..3).await.unwrap();
    let version = put(&backend, Some(version), 3..6).await.unwrap();
    let totals = async || backend.0.session(&key()).await.unwrap().unwrap().texts;
    let added = totals().await;
    put(&backend, Some(version), 0..6).await.unwrap();
    assert_eq!((added.texts, added), (6, totals().await));
}

#[tokio::test]
async fn a_writer_that_has_lost_its_session_cannot_take_the_fence() {
    let backend = backend().await;
    let expected = Expected::Exactly(Some(put(&backend, None, 0..3).await.unwrap()));
    let late = WriteLease::begin(&backend.0, &key(), &expected, None).await.unwrap().unwrap();
    // Another writer takes over the session, and the next one writes.
    let taken = WriteLease::begin(&backend.0, &key(), &Expected::Any, None).await.unwrap_err();
    assert_eq!(taken.kind(), ErrorKind::Conflict);
    let next = put(&backend, Some(version(&backend).await), 3..5).await.unwrap();
    let partition = ids::partition(&key());
    let refused = late.fence(&backend.0.messages, &partition, None).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Conflict);
    // The known state of the fence is outdated now: the first write conflicts, and the second one reads it.
    let conflict = put(&backend, Some(next), 5..6).await.unwrap_err();
    assert!(conflict.kind() == ErrorKind::Conflict && conflict.is_retryable());
    put(&backend, Some(version(&backend).await), 5..6).await.unwrap();
    assert_eq!(count(&backend).await, 6);
}

fn made(sequence: u32, chunks: u32) -> MessageVectors {
    let record = |chunk_index| VectorRecord {
        text: ContentType::UserQuery.into(),
        chunk_index,
        total_chunks: chunks,
        span_start: chunk_index,
        span_end: chunk_index + 1,
        token_count: 1,
        vector: vec![1.0, 0.0],
        turn: None,
    };
    let records = (0..chunks).map(record).collect();
    MessageVectors::new(sequence, message(sequence).digest, Timestamp::from_micros(0), records)
}

#[tokio::test]
async fn vectors_of_many_messages_share_a_batch_and_those_of_one_may_need_several() {
    let backend = backend().await;
    put(&backend, None, 0..60).await.unwrap();
    set_generation(&backend, meta::EMBEDDING_SPACE, 0, "m").await;
    let requests = || backend.info().usage.unwrap().requests;
    let before = requests();
    let all: Vec<MessageVectors> = (0..50).map(|sequence| made(sequence, 1)).collect();
    assert_eq!(backend.write_vectors(&key(), 0, all).await.unwrap(), 50);
    // The schema, messages, their stored vectors, one batch of 50 messages with a vector each, and the schema again.
    assert_eq!(requests() - before, 5);
    let many = vec![made(50, 250), made(51, 1)];
    assert_eq!(backend.write_vectors(&key(), 0, many).await.unwrap(), 251);
    let message_ref = MessageRef::new(key(), 50);
    let texts = [(message_ref.clone(), ContentType::UserQuery.into())];
    assert_eq!(backend.vectors_of(0, &texts).await.unwrap().len(), 250);
    let stored = backend.messages_at(&[message_ref]).await.unwrap();
    assert_eq!(stored[0].vectors, VectorState::Stored);
}

#[tokio::test]
async fn an_abandoned_first_write_does_not_block_the_next_generation() {
    let backend = backend().await;
    set_generation(&backend, meta::EMBEDDING_SPACE, 0, "m").await;
    set_generation(&backend, meta::NEXT_EMBEDDING_SPACE, 1, "n").await;
    put(&backend, None, 0..3).await.unwrap();
    assert!(!backend.complete_generation(1).await.unwrap());
    let all: Vec<MessageVectors> = (0..3).map(|sequence| made(sequence, 1)).collect();
    assert_eq!(backend.write_vectors(&key(), 1, all).await.unwrap(), 3);
    // The first write of another session is interrupted after its rows.
    let before = version(&backend).await;
    let mut other = (session(), message(9));
    other.0.session_id = SessionId::new("other").unwrap();
    other.1.session_id = other.0.session_id.clone();
    let (key, none) = (other.0.key(), Expected::Exactly(None));
    WriteLease::begin(&backend.0, &key, &none, Some(&other.0)).await.unwrap().unwrap();
    let create = Operation::save(&MessageDocument::new(&other.1).0).unwrap();
    assert!(backend.0.messages.write_many(&ids::partition(&key), vec![create]).await.unwrap());
    assert!(backend.complete_generation(1).await.unwrap());
    assert_eq!(version(&backend).await, before);
}

#[tokio::test]
async fn texts_of_others_do_not_displace_ones_own() {
    let mut config = CosmosConfig::new(ENDPOINT);
    config.most_texts = 4;
    let backend = backend_with(config).await;
    put(&backend, None, 0..3).await.unwrap();
    let mut other = SessionChange::new(session(), None);
    other.session.user_id = UserId::new("aaa").unwrap();
    let of_other = |sequence| Message { user_id: UserId::new("aaa").unwrap(), ..message(sequence) };
    other.messages.put = (0..6).map(of_other).collect();
    backend.write_one(other).await.unwrap();
    let query = TextQuery {
        scope: key().user_id.into(),
        filter: Default::default(),
        content_types: ContentTypes::embedded(),
        terms: vec!["twice".to_owned()],
        weights: Vec::new(),
        required: Vec::new(),
        phrases: Vec::new(),
        tools: Vec::new(),
        limit: 10,
    };
    let found = backend.text_candidates(&query).await.unwrap();
    assert_eq!((found.items.len(), found.notice), (3, None));
}

/// The stored documents in every container, by id, without the fields of the service, and with `*` for random values.
async fn stored(backend: &CosmosBackend) -> serde_json::Value {
    let store = &backend.0;
    let mut containers = serde_json::Map::new();
    for (name, container) in [
        ("sessions", &store.sessions),
        ("messages", &store.messages),
        ("events", &store.events),
        ("chunks", &store.chunks),
    ] {
        let mut documents = std::collections::BTreeMap::new();
        for mut document in container.all::<serde_json::Value>(Select::default().documents()).await.unwrap() {
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

#[tokio::test]
async fn a_line_that_is_not_what_was_stored_is_damaged() {
    let backend = backend().await;
    let mut flipped = message(1);
    flipped.raw = RawJson::from(r#"{"role":"user","content":"wosd1 twice"}"#);
    let messages = RowChange { put: vec![message(0), flipped], truncate: None };
    backend.write_one(SessionChange { messages, ..SessionChange::new(session(), None) }).await.unwrap();
    let range = amplifier_session_core::backend::SequenceRange { start: 0, limit: 9 };
    let error = backend.read_messages(&key(), range).await.unwrap_err();
    let place = ["user", "session", "sequence"].map(|name| error.context(name).unwrap().to_owned());
    assert_eq!(error.kind(), amplifier_session_core::ErrorKind::Damaged);
    assert_eq!(place, [key().user_id.to_string(), key().session_id.to_string(), "1".to_owned()]);
}

/// Fields that an earlier version wrote must not change their names or values.
#[tokio::test]
async fn documents_have_this_form() {
    let backend = backend().await;
    set_generation(&backend, meta::EMBEDDING_SPACE, 0, "m").await;
    let payloads = [
        Payload::None,
        Payload::Plain(b"broken \xe9".to_vec()),
        Payload::Zstd(vec![1]),
        Payload::Chunks(vec![vec![1], vec![2], vec![3]]),
    ];
    let events = payloads.into_iter().zip(0..).map(|(payload, n)| StoredEvent { event: event(n), payload });
    let mut long = message(2);
    long.raw =
        RawJson::from(format!(r#"{{"role":"user","content":"{}"}}"#, "\\u0001".repeat(300_000)).as_str());
    long.digest = Digest::of(long.raw.as_bytes());
    let change = SessionChange {
        metadata_files: Some(vec![MetadataFile {
            name: "metadata.json".to_owned(),
            raw: RawJson::from("{}"),
        }]),
        skipped: Some(vec![SkippedLine::new("events.jsonl", 7, "no")]),
        sync_state: Some(StoredSyncState {
            settled: Some("{}".to_owned()),
            rewound: Some(RewoundTo { messages: 2, events: 3 }),
            ..StoredSyncState::of("{}")
        }),
        messages: RowChange { put: vec![message(0), message(1), long], truncate: None },
        events: RowChange { put: events.collect(), truncate: None },
        ..SessionChange::new(session(), None)
    };
    backend.write_one(change).await.unwrap();
    let mut failed = made(1, 0);
    failed.failure = Some("too long".to_owned());
    let mut vectors = made(0, 2);
    vectors.records.as_mut().unwrap()[1].vector = vec![0.6, -0.8];
    backend.write_vectors(&key(), 0, vec![vectors, failed]).await.unwrap();
    let mut other = session();
    other.session_id = SessionId::new("deleted").unwrap();
    backend.write_one(SessionChange::new(other.clone(), None)).await.unwrap();
    backend.delete_session(&other.key()).await.unwrap();
    let mut stored = stored(&backend).await;
    let pieces = stored["messages"].as_object_mut().unwrap().values_mut();
    for piece in pieces.filter(|document| document["type"] == "transcript_piece") {
        piece["raw"]["base64"] = json!(piece["raw"]["base64"].as_str().unwrap().len());
    }
    let text = serde_json::to_string_pretty(&stored).unwrap();
    // Its id is random.
    let removal = text.split('"').find(|id| id.starts_with("removal ")).unwrap();
    insta::assert_snapshot!(text.replace(removal, "removal"));
}

/// Fields that documents of earlier versions do not have.
#[tokio::test]
async fn documents_of_earlier_versions_can_be_read() {
    fn without<T: serde::de::DeserializeOwned>(document: impl serde::Serialize, fields: &[&str]) -> T {
        let mut json = serde_json::to_value(document).unwrap();
        json.as_object_mut().unwrap().retain(|name, _| !fields.contains(&name.as_str()));
        serde_json::from_value(json).unwrap()
    }
    let (document, _) = MessageDocument::new(&message(0));
    let old: MessageDocument = without(&document, &["ts_source"]);
    assert_eq!(old.message.ts_source, TimeSource::Stated);
    let vectors = vectors_of(&document, 0, "m", &made(0, 1));
    let old: VectorDocument = without(&vectors[0], &["parent_id", "project_slug", "embedding_model"]);
    assert_eq!(old.record, vectors[0].record);
    let stored = StoredEvent { event: event(0), payload: Payload::Chunks(vec![vec![1]]) };
    let chunks = chunks_of(&stored);
    let old: EventDocument = without(EventDocument::new(&stored, &chunks), &["synced_at"]);
    assert_eq!(old.into_event().synced_at, None);
    let old: ChunkDocument = without(&chunks[0], &["event_id", "chunk_index", "total_chunks"]);
    assert_eq!(old.id, chunks[0].id);
}
