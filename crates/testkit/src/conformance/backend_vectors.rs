//! The rules of the [`StorageBackend`] trait about vectors.

use amplifier_session_core::{
    ErrorKind,
    backend::{MessageVectors, RowChange, SessionChange, prelude::*},
    model::{ContentType, Digest, Place, Timestamp, VectorRecord, VectorState},
    storage::SyncLines,
};

use super::{
    Subject,
    backend_rows::three_messages,
    store::{Store, kind, raw, target, target_of},
};
use crate::lines;

fn record(content_type: ContentType, chunk_index: u32, total_chunks: u32, vector: Vec<f32>) -> VectorRecord {
    let (span_start, span_end) = (chunk_index * 2, chunk_index * 2 + 3);
    VectorRecord { content_type, chunk_index, total_chunks, span_start, span_end, token_count: 1, vector }
}

/// A message that is put again loses the vectors it had; a removed one takes its vectors with it.
pub async fn a_message_that_is_put_loses_its_vectors(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let target = target("s");
    store.sync(&target, three_messages()).await;
    assert_eq!(store.backend.session_rows(&target.key).await.unwrap().vectors, 3);
    let stored = store.stored(&target).await;
    let mut again = store.messages(&target).await.remove(1);
    assert_eq!(again.vectors, VectorState::Stored);
    again.vectors = VectorState::Owed;
    let mut change = SessionChange::new(stored.session, Some(stored.version));
    change.messages = RowChange { put: vec![again], truncate: Some(2) };
    change.session.message_count = 2;
    store.backend.write_one(change).await.unwrap();
    assert_eq!(store.vectors(&target).await.iter().map(|(n, _)| *n).collect::<Vec<_>>(), [0]);
    assert_eq!(store.backend.session_rows(&target.key).await.unwrap().vectors, 1);
    assert_eq!(store.owing(&target).await, [1]);
}

/// Vectors of a message that is gone, or that says something else by now, are not stored.
pub async fn vectors_of_another_line_are_not_stored(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let target = target("s");
    store.storage_with(None).sync_transcript_lines(&target, sync(three_messages())).await.unwrap();
    let messages = store.messages(&target).await;
    // The store has a space by now: vectors are written only after that.
    store.sync(&super::store::target("other"), three_messages()).await;
    let of = |sequence: u32, digest: Digest| MessageVectors {
        sequence,
        digest,
        created_at: Timestamp::from_micros(0),
        records: vec![record(ContentType::UserQuery, 0, 1, store.embedding.vector("x"))],
        failure: None,
    };
    let vectors = vec![of(0, messages[0].digest), of(2, messages[1].digest), of(3, messages[0].digest)];
    assert_eq!(store.backend.write_vectors(&target.key, 0, vectors.clone()).await.unwrap(), 1);
    assert_eq!(store.owing(&target).await, [1, 2]);
    assert_eq!(store.backend.session_rows(&target.key).await.unwrap().vectors, 1);
    let elsewhere = super::store::target("elsewhere").key;
    assert_eq!(store.backend.write_vectors(&elsewhere, 0, vectors).await.unwrap(), 0);
    assert_eq!(store.backend.session_rows(&elsewhere).await.unwrap().vectors, 0);
}

/// Vectors are refused before the store has a space, and where they are not of it; then nothing is stored.
pub async fn vectors_are_only_stored_in_their_space(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let target = target("s");
    store.storage_with(None).sync_transcript_lines(&target, sync(three_messages())).await.unwrap();
    let messages = store.messages(&target).await;
    let vector = store.embedding.vector("x");
    let of = |message: usize, vector: &[f32]| MessageVectors {
        sequence: message as u32,
        digest: messages[message].digest,
        created_at: Timestamp::from_micros(0),
        records: vec![record(ContentType::UserQuery, 0, 1, vector.to_vec())],
        failure: None,
    };
    let early = store.backend.write_vectors(&target.key, 0, vec![of(0, &vector)]).await;
    assert_eq!(kind(early), ErrorKind::Validation);
    store.sync(&super::store::target("other"), three_messages()).await;
    let short = &vector[1..];
    let mixed = store.backend.write_vectors(&target.key, 0, vec![of(0, &vector), of(2, short)]).await;
    assert_eq!(kind(mixed), ErrorKind::Validation);
    assert_eq!(store.backend.session_rows(&target.key).await.unwrap().vectors, 0);
    assert_eq!(store.owing(&target).await, [0, 1, 2]);
}

/// Vectors of a message replace those it had; the call can be repeated.
pub async fn vectors_replace_those_of_the_message(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let target = target("s");
    store.sync(&target, three_messages()).await;
    let digest = store.messages(&target).await[1].digest;
    let chunk = |index: u32, total: u32| {
        record(
            ContentType::AssistantResponse,
            index,
            total,
            store.embedding.vector(&format!("chunk {index} {total}")),
        )
    };
    let first = vec![
        chunk(0, 3),
        chunk(1, 3),
        chunk(2, 3),
        record(ContentType::AssistantThinking, 0, 1, vec![0.0; 64]),
    ];
    for records in [first.clone(), first, vec![chunk(0, 2), chunk(1, 2)]] {
        let vectors = vec![MessageVectors {
            sequence: 1,
            digest,
            created_at: Timestamp::from_micros(0),
            records: records.clone(),
            failure: None,
        }];
        assert_eq!(store.backend.write_vectors(&target.key, 0, vectors).await.unwrap(), records.len());
        let stored = store.vectors(&target).await.into_iter().filter(|(sequence, _)| *sequence == 1);
        assert_eq!(stored.map(|(_, record)| record).collect::<Vec<_>>(), records);
        assert_eq!(store.backend.session_rows(&target.key).await.unwrap().vectors, 2 + records.len() as u64);
    }
}

/// Vectors are given for the texts that were asked for, the chunks of each in order, bit for bit.
pub async fn vectors_come_back_as_they_were(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let target = target("s");
    store
        .sync(&target, vec![lines::thinking("a deep thought", "a short answer"), lines::user("a question")])
        .await;
    let text = |sequence: u32, content_type| (Place::new(target.key.clone(), sequence), content_type);
    let wanted = [
        text(0, ContentType::AssistantThinking),
        text(1, ContentType::UserQuery),
        text(1, ContentType::ToolOutput),
        text(9, ContentType::UserQuery),
    ];
    let mut records = store.backend.vectors_of(0, &wanted).await.unwrap();
    records.sort_by(|a, b| a.0.cmp(&b.0));
    let found: Vec<_> =
        records.iter().map(|(place, record)| (place.sequence, record.vector.clone())).collect();
    let expected = [(0, store.embedding.vector("a deep thought")), (1, store.embedding.vector("a question"))];
    assert_eq!(found, expected);
    assert_eq!((records[1].1.span_start, records[1].1.span_end), (0, 10));
}

/// Messages that owe vectors are listed by session and sequence, within a user, a page at a time.
pub async fn messages_that_owe_vectors_are_listed_in_order(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let storage = store.storage_with(None);
    let message = |n: u32| {
        if n.is_multiple_of(2) { lines::user("text") } else { lines::tool_call("bash", "ls".into()) }
    };
    for (user, session) in [("ben", "a"), ("ana", "b"), ("ana", "a"), ("ana", "c")] {
        let target = target_of(user, "p", session);
        storage.sync_transcript_lines(&target, sync((0..20).map(message).collect())).await.unwrap();
    }
    let ana = target("a").key.user_id;
    let mut listed: Vec<Place> = Vec::new();
    loop {
        let page = store
            .backend
            .messages_owing_vectors(&super::store::owing_query(&ana, None, listed.last(), 4))
            .await
            .unwrap();
        assert!(page.len() <= 4);
        if page.is_empty() {
            break;
        }
        assert!(page.iter().all(|message| message.vectors == VectorState::Owed && message.user_id == ana));
        listed.extend(page.iter().map(|message| message.place()));
    }
    let expected = ["a", "b", "c"]
        .into_iter()
        .flat_map(|session| (0..20).step_by(2).map(move |n| Place::new(target(session).key, n)));
    assert_eq!(listed, expected.collect::<Vec<_>>());
    assert_eq!(store.owing(&target("b")).await.len(), 10);
}

fn sync(lines: Vec<lines::Line>) -> SyncLines {
    SyncLines::whole(raw(lines))
}
