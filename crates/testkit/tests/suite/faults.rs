//! Any call to the backend may fail. The error is reported, and the next sync repairs what is missing.

use std::sync::Arc;

use amplifier_session_testkit::prelude::*;

use crate::interruption::{check, events, messages, target};

/// More calls than any of the operations makes.
const CALLS: usize = 200;

async fn sync_all(storage: &SessionStorage, label: &str, count: usize) -> Result<()> {
    let target = target("p");
    storage
        .ingestion()
        .sync_session_metadata(&target, RawJson::from(format!("{{\"name\":\"{label}\"}}").as_str()))
        .await?;
    storage.ingestion().sync_transcript_lines(&target, SyncLines::whole(messages(label, count))).await?;
    storage.ingestion().sync_event_lines(&target, SyncLines::whole(events(label, count))).await?;
    Ok(())
}

fn store() -> (Arc<FlakyBackend>, SessionStorage) {
    let backend = Arc::new(FlakyBackend::new(Arc::new(MemoryBackend::new())));
    let storage = SessionStorage::new(backend.clone()).with_embedding(Some(Arc::new(FakeEmbedding::new())));
    (backend, storage)
}

#[tokio::test]
async fn a_sync_that_fails_at_any_call_is_completed_by_the_next() {
    for calls in 0..CALLS {
        let (backend, storage) = store();
        sync_all(&storage, "first", 9).await.unwrap();
        backend.fail_any_after(calls);
        let failed = sync_all(&storage, "second", 14).await.is_err();
        backend.recover();
        sync_all(&storage, "second", 14).await.unwrap();
        check(&storage, &messages("second", 14), &events("second", 14)).await;
        if !failed {
            assert!(calls > 10);
            return;
        }
    }
    panic!("a sync makes more than {CALLS} calls");
}

#[tokio::test]
async fn a_search_that_fails_at_any_call_is_an_error_and_not_a_partial_result() {
    let (backend, storage) = store();
    sync_all(&storage, "word", 30).await.unwrap();
    for mode in [SearchMode::FullText, SearchMode::Semantic, SearchMode::Hybrid] {
        let options = SearchOptions::new("word message").with_mode(mode);
        let whole = storage.search().search_transcripts(&ana(), &options).await.unwrap();
        let mut calls = 0;
        loop {
            backend.fail_any_after(calls);
            let answer = storage.search().search_transcripts(&ana(), &options).await;
            backend.recover();
            match answer {
                Err(error) => assert!(error.is_retryable()),
                Ok(answer) => {
                    assert_eq!(answer, whole);
                    break;
                }
            }
            calls += 1;
            assert!(calls < CALLS);
        }
        assert!(calls > 1, "{mode}");
    }
}

#[tokio::test]
async fn a_rewind_that_fails_at_any_call_is_completed_by_the_next() {
    let at = |n: usize| format!("2026-01-05T08:{n:02}:00Z");
    let message = |n: usize| lines::user(&format!("message {n}")).at(at(n)).raw();
    let event = |n: usize| lines::logger_event(&format!("e:{n}")).at(at(n)).raw();
    let messages: Vec<_> = (0..9).map(message).collect();
    let events: Vec<_> = (0..9).map(event).collect();
    for calls in 0..CALLS {
        let (backend, storage) = store();
        storage
            .ingestion()
            .sync_transcript_lines(&target("p"), SyncLines::whole(messages.clone()))
            .await
            .unwrap();
        storage.ingestion().sync_event_lines(&target("p"), SyncLines::whole(events.clone())).await.unwrap();
        let rewind = async || storage.ingestion().rewind(&target("p").key, &RewindOptions::to_turn(4)).await;
        backend.fail_any_after(calls);
        let failed = rewind().await;
        backend.recover();
        rewind().await.unwrap();
        check(&storage, &messages[..4], &events[..4]).await;
        if let Ok(report) = failed {
            assert_eq!((report.messages, report.messages_with_vectors, report.events), (5, 5, 5));
            assert!(calls > 6);
            return;
        }
    }
    panic!("a rewind makes more than {CALLS} calls");
}
