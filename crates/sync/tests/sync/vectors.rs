//! Vectors are made while sessions are read; pending ones by the next sync.

use std::sync::Arc;

use amplifier_session_core::model::{SessionId, SessionKey};
use amplifier_session_testkit::{FakeEmbedding, Operation, lines};

use crate::fixture::{Fixture, user};

async fn vectors(fixture: &Fixture, session: &str) -> u64 {
    let key = SessionKey::new(user(), SessionId::new(session).unwrap());
    fixture.storage.backend().session_rows(&key).await.unwrap().vectors
}

#[tokio::test]
async fn vectors_are_made_and_counted_by_content_type() {
    let fixture = Fixture::new().with_embedding(Arc::new(FakeEmbedding::new()));
    fixture.folder().transcript([lines::user("Hello"), lines::thinking("Hm.", "Hi!")]).unwrap();
    let report = fixture.sync().await;
    let counts: Vec<(&str, u64)> =
        report.vectors.iter().map(|(kind, count)| (kind.as_str(), *count)).collect();
    assert_eq!(counts, [("user_query", 1), ("assistant_response", 1), ("assistant_thinking", 1)]);
    assert_eq!((report.vectors_pending_reason, vectors(&fixture, "s").await), (None, 3));
}

#[tokio::test]
async fn a_failing_provider_loses_no_message_and_gets_no_more_calls() {
    let provider = Arc::new(FakeEmbedding::new());
    let fixture = Fixture::new().with_embedding(provider.clone());
    for n in 0..10 {
        fixture.session("p", &format!("s{n}")).transcript([lines::user("hello")]).unwrap();
    }
    provider.fail_always(true);
    let report = fixture.sync().await;
    assert!(report.vectors_pending_reason.unwrap().contains("fails as scripted"));
    assert_eq!((report.sessions.new, report.messages.written, report.failures.len()), (10, 10, 0));
    assert_eq!(provider.calls(), 1);

    provider.fail_always(false);
    let report = fixture.sync().await;
    assert_eq!((report.sessions.unchanged, report.vectors_pending_reason.clone()), (10, None));
    assert_eq!(report.vectors.values().sum::<u64>(), 10);
    assert_eq!(fixture.sync().await.vectors.values().sum::<u64>(), 0);
}

#[tokio::test]
async fn without_a_provider_nothing_is_embedded() {
    let fixture = Fixture::new();
    fixture.folder().transcript([lines::user("Hello")]).unwrap();
    let report = fixture.sync().await;
    assert!(report.vectors.is_empty() && report.vectors_pending_reason.is_none());
    assert_eq!(fixture.backend.calls(Operation::MessagesPendingVectors), 0);
}

#[tokio::test]
async fn many_sessions_lose_no_vector() {
    let fixture = Fixture::new().with_embedding(Arc::new(FakeEmbedding::new()));
    for n in 0..150 {
        fixture.session("p", &format!("s{n}")).transcript([lines::user("hello")]).unwrap();
    }
    let report = fixture.sync().await;
    assert_eq!(report.vectors.values().sum::<u64>(), 150);
}
