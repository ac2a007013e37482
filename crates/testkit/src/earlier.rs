//! The oldest stores that are carried over: those of commit 3fddc7f2, one of each kind with the same contents.
//!
//! The program of that commit synced four sessions of the user `dana` with the model that is built in, and copied the
//! store to the other kinds. They are text: SQL in the tests of each backend, and [`ARCHIVE`].
//!
//! | session | has |
//! | --- | --- |
//! | `1111…` | thinking, a tool call, events, a summary of its first turn, a line that could not be read, a superseded
//! line, and an answer in a block that the rules of that version did not read |
//! | `2222…` | a name, a description and tags set by hand, a team that may read it, and a turn that was removed by
//! `rewind` |
//! | `3333…` | nothing: it was deleted |
//! | `4444…` | no vectors: it was synced without a model |

#![allow(clippy::unwrap_used, clippy::panic, clippy::missing_panics_doc, reason = "tests fail by panicking")]

use std::{sync::Arc, time::Duration};

use amplifier_session_core::{
    Result, Scope, SessionStorage, Viewer,
    backend::{ChangeCursor, SessionChanged, SessionQuery, StorageBackend, StorageBackendExt as _, meta},
    embedding::{EmbeddingLimits, EmbeddingProvider, EmbeddingPurpose, ModelStrength},
    model::{ContentType, EmbeddingSpace, MessageRef, SessionId, SessionKey, UserId},
    search::{SearchMode, SearchOptions, SessionFilter},
    storage::{JsonLinesWriter, Sharing},
};
use async_trait::async_trait;
use serde_json::Value;

use crate::{
    lines,
    store::{target_of, whole},
};

/// The archive, with vectors. It has no deletions.
pub const ARCHIVE: &str = include_str!("earlier/archive.jsonl");

const PEARS: &str = "11111111-aaaa-4aaa-8aaa-000000000001";
const SHARED: &str = "22222222-bbbb-4bbb-8bbb-000000000002";
const TEAM: &str = "gardeners";
const DELETED: &str = "33333333-cccc-4ccc-8ccc-000000000003";

/// Checks a store that an earlier version wrote, and its first write.
pub async fn check_store(backend: Arc<dyn StorageBackend>) {
    let storage = storage(backend.clone()).await;
    check_contents(&storage).await;
    let deleted = backend.deleted_sessions(&dana()).await.unwrap();
    assert_eq!(deleted, [SessionId::new(DELETED).unwrap()]);
    let entries = backend.meta().await.unwrap();
    let space = r#"{"model":"static-256-v2","dimensions":256,"number":0}"#;
    for (key, value) in [(meta::USER_ID, "dana"), (meta::EMBEDDING_SPACE, space), (meta::EXTRACTION, "3")] {
        assert_eq!(entries.get(key).map(String::as_str), Some(value), "{key}");
    }

    let pending = async || backend.count_vectors(&Scope::Everyone).await.unwrap().generations[&0].pending;
    assert_eq!(pending().await, 2, "the session that was synced without a model");
    assert_eq!(
        storage.rederivation().rederive().await.unwrap(),
        1,
        "the answer that the earlier rules did not read"
    );
    assert_eq!(pending().await, 3);
    let session = target_of("dana", "-home-dana-garden", "new");
    let begun = backend.changes(&Scope::Everyone, None, 99).await.unwrap();
    storage
        .ingestion()
        .sync_transcript_lines(&session, whole(vec![lines::user("a hedgehog")]))
        .await
        .unwrap();
    let changes = async |scope: &Scope, cursor: ChangeCursor| {
        backend.wait_for_changes(scope, &cursor, 99, Duration::from_secs(60)).await.unwrap()
    };
    let mut page = changes(&Scope::Everyone, begun.cursor).await;
    // Changes that were committed just before may be reported first.
    while !page.changes.iter().any(|changed| changed.key() == session.key) {
        assert!(!page.changes.is_empty());
        page = changes(&Scope::Everyone, page.cursor).await;
    }
    assert_eq!(missing(&storage, &["message", "superseded"]).await, Vec::<String>::new());
    check_rows(&storage).await;

    // A team could see it.
    let shared = SessionKey::new(dana(), SessionId::new(SHARED).unwrap());
    let member = Scope::Visible(Viewer::new(UserId::new("eve").unwrap()).with_teams([TEAM]));
    let begun = backend.changes(&member, None, 99).await.unwrap();
    storage.sessions().share_session(&shared, &Sharing::private()).await.unwrap();
    assert_eq!(changes(&member, begun.cursor).await.changes, [SessionChanged::Removed(shared)]);
}

/// Checks what files cannot give back, and that it is found.
pub async fn check_contents(storage: &SessionStorage) {
    let records = ["session", "message", "event", "superseded"];
    assert_eq!(missing(storage, &records).await, Vec::<String>::new());
    let found = async |mode, text: &str| {
        let options = SearchOptions::new(text).with_mode(mode).with_limit(1);
        let found = storage.search().search_transcripts(&Scope::Everyone, &options).await.unwrap().results;
        (found[0].session_id.to_string(), found[0].sequence, found[0].similarity)
    };
    let (session, sequence, _) = found(SearchMode::FullText, "quinces").await;
    assert_eq!((session.as_str(), sequence), (PEARS, 4));
    // The model of the storage answers with the vector of the cold cellar.
    let (session, sequence, similarity) = found(SearchMode::Semantic, "where to keep fruit").await;
    assert_eq!((session.as_str(), sequence), (PEARS, 3));
    assert!(similarity.unwrap() > 0.999, "{similarity:?}");
}

/// Checks every row and the index, as `verify` does.
async fn check_rows(storage: &SessionStorage) {
    let backend = storage.backend();
    assert_eq!(storage.verification().check_records(&dana()).await.unwrap(), []);
    assert_eq!(backend.check_index().await.unwrap().problems, []);
    for session in backend.list_sessions(&SessionQuery::new(Scope::Everyone)).await.unwrap() {
        let stored = backend.get_session(&session.key()).await.unwrap().unwrap();
        assert_eq!(storage.verification().check_session(&stored).await.unwrap().differences, []);
    }
}

/// A storage whose model answers with the vector of a stored message.
pub async fn storage(backend: Arc<dyn StorageBackend>) -> SessionStorage {
    let message = MessageRef::new(SessionKey::new(dana(), SessionId::new(PEARS).unwrap()), 3);
    let text = [(message, ContentType::AssistantResponse.into())];
    let vector = backend.vectors_of(0, &text).await.unwrap().pop().map(|(_, record)| record.vector);
    let space = EmbeddingSpace { model: "static-256-v2".to_owned(), dimensions: 256 };
    let model: Arc<dyn EmbeddingProvider> = Arc::new(Fixed { space, vector });
    SessionStorage::new(backend).with_embedding(Some(model))
}

/// The records of these kinds in [`ARCHIVE`] that an export now writes differently. It may write more fields.
async fn missing(storage: &SessionStorage, kinds: &[&str]) -> Vec<String> {
    let mut archive = Vec::new();
    let mut writer = JsonLinesWriter::new(&mut archive).with_vectors(true);
    storage.archive().export_sessions(&Scope::Everyone, SessionFilter::default(), &mut writer).await.unwrap();
    let records = |archive: &str| -> Vec<Value> {
        archive.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let now = records(&String::from_utf8(archive).unwrap());
    let mut earlier = records(ARCHIVE);
    earlier.retain(|record| kinds.contains(&record["record"].as_str().unwrap()));
    earlier.retain(|record| !now.iter().any(|now| contains(now, record)));
    // Without the digits of vectors.
    earlier.iter().map(|record| record.to_string().chars().take(300).collect()).collect()
}

/// Whether a value has everything that `part` has.
fn contains(value: &Value, part: &Value) -> bool {
    match (value, part) {
        (Value::Object(value), Value::Object(part)) => {
            part.iter().all(|(key, part)| value.get(key).is_some_and(|value| contains(value, part)))
        }
        (Value::Array(values), Value::Array(parts)) => {
            values.len() == parts.len() && values.iter().zip(parts).all(|(value, part)| contains(value, part))
        }
        _ => value == part,
    }
}

fn dana() -> UserId {
    UserId::new("dana").unwrap()
}

/// A model that has the same vector for every text.
#[derive(Debug)]
struct Fixed {
    space: EmbeddingSpace,
    vector: Option<Vec<f32>>,
}

#[async_trait]
impl EmbeddingProvider for Fixed {
    fn space(&self) -> &EmbeddingSpace {
        &self.space
    }

    fn limits(&self) -> EmbeddingLimits {
        crate::FakeEmbedding::new().limits()
    }

    fn strength(&self) -> ModelStrength {
        ModelStrength::Static
    }

    fn is_local(&self) -> bool {
        true
    }

    async fn embed(&self, texts: &[String], _purpose: EmbeddingPurpose) -> Result<Vec<Vec<f32>>> {
        Ok(vec![self.vector.clone().unwrap(); texts.len()])
    }
}
