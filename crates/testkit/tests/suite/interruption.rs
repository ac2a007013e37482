//! Interrupted writes are completed by the next sync.

use std::sync::Arc;

use amplifier_session_testkit::prelude::*;

/// Session `s` of ana.
pub(crate) fn target(project: &str) -> IngestTarget {
    target_of("ana", project, "s")
}

pub(crate) fn messages(label: &str, count: usize) -> Vec<RawJson> {
    (0..count).map(|n| lines::user(&format!("{label} message {n}")).raw()).collect()
}

pub(crate) fn events(label: &str, count: usize) -> Vec<RawJson> {
    (0..count).map(|n| lines::logger_event(&format!("{label}:{n}")).raw()).collect()
}

/// Checks that the session has these lines and everything derived from them.
pub(crate) async fn check(
    storage: &SessionStorage,
    expected_messages: &[RawJson],
    expected_events: &[RawJson],
) {
    let (scope, id) = (ana(), SessionId::new("s").unwrap());
    let session = storage.sessions().get_session(&scope, &id).await.unwrap().unwrap();
    assert_eq!(session.message_count as usize, expected_messages.len());
    assert_eq!(session.event_count as usize, expected_events.len());
    let found = storage.reading().get_transcript_lines(&scope, &id, None, 1_000).await.unwrap();
    assert!(found.iter().map(|message| &message.raw).eq(expected_messages));
    assert!(found.iter().all(|message| message.project_slug == session.project_slug));
    let wanted = EventLines::default().with_payload(true);
    let found = storage.reading().get_event_lines(&scope, &id, wanted).await.unwrap();
    assert!(found.iter().filter_map(|event| event.raw.as_ref()).eq(expected_events));
    let vectors = storage.backend().session_rows(&session.key()).await.unwrap().vectors;
    assert_eq!(vectors as usize, expected_messages.len());
}

#[tokio::test]
async fn an_interrupted_write_is_completed_by_the_next_sync() {
    // The number of batches before the interruption, and the length of the transcript in the next sync: the same,
    // longer or shorter.
    for batches in 0..18 {
        for again in [20, 26, 15, 11, 2] {
            let backend = MemoryBackend::new();
            let storage = SessionStorage::new(Arc::new(backend.clone()))
                .with_embedding(Some(Arc::new(FakeEmbedding::new())));
            let sync = async |project: &str, label: &str, count: usize| {
                storage
                    .ingestion()
                    .sync_transcript_lines(&target(project), SyncLines::whole(messages(label, count)))
                    .await?;
                storage
                    .ingestion()
                    .sync_event_lines(&target(project), SyncLines::whole(events(label, count)))
                    .await
            };
            sync("old", "first", 12).await.unwrap();
            backend.interrupt_after(Some(batches));
            let interrupted = sync("new", "second", 20).await;
            if let Err(error) = interrupted {
                assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::StorageIo, true));
            }
            backend.interrupt_after(None);
            sync("new", "second", again).await.unwrap();
            check(&storage, &messages("second", again), &events("second", again)).await;
        }
    }
}

#[tokio::test]
async fn an_interrupted_first_write_is_completed_by_the_next_sync() {
    for batches in 0..6 {
        for again in [20, 26, 11, 0] {
            let backend = MemoryBackend::new();
            let storage = SessionStorage::new(Arc::new(backend.clone()))
                .with_embedding(Some(Arc::new(FakeEmbedding::new())));
            backend.interrupt_after(Some(batches));
            let first = storage
                .ingestion()
                .sync_transcript_lines(&target("p"), SyncLines::whole(messages("m", 20)))
                .await;
            assert_eq!(first.is_err(), batches < 5);
            backend.interrupt_after(None);
            storage
                .ingestion()
                .sync_transcript_lines(&target("p"), SyncLines::whole(messages("m", again)))
                .await
                .unwrap();
            check(&storage, &messages("m", again), &[]).await;
        }
    }
}

#[tokio::test]
async fn an_interrupted_deletion_is_completed_by_the_next() {
    for batches in 0..8 {
        let backend = MemoryBackend::new();
        let storage = SessionStorage::new(Arc::new(backend.clone()));
        storage
            .ingestion()
            .sync_transcript_lines(&target("p"), SyncLines::whole(messages("m", 15)))
            .await
            .unwrap();
        storage.ingestion().sync_event_lines(&target("p"), SyncLines::whole(events("e", 15))).await.unwrap();
        backend.interrupt_after(Some(batches));
        let target = target("p");
        let delete = || {
            storage.sessions().delete_session(
                &target.key.user_id,
                &target.project_slug,
                &target.key.session_id,
            )
        };
        if delete().await.is_err() {
            assert!(delete().await.unwrap());
        }
        assert!(backend.message_states(&target.key).await.unwrap().is_empty());
        assert!(!delete().await.unwrap());
    }
}

/// Messages and events with the same times: message `n` begins turn `n + 1`.
fn timed(label: &str, count: usize) -> (Vec<RawJson>, Vec<RawJson>) {
    let at = |n: usize| format!("2026-01-05T08:{n:02}:00Z");
    let message = |n: usize| lines::user(&format!("{label} message {n}")).at(at(n)).raw();
    let event = |n: usize| lines::logger_event(&format!("{label}:{n}")).at(at(n)).raw();
    ((0..count).map(message).collect(), (0..count).map(event).collect())
}

#[tokio::test]
async fn an_interrupted_rewind_is_completed_by_the_next() {
    let (messages, events) = timed("m", 20);
    // The turn of the second rewind: the same, an earlier or a later one.
    for (batches, again) in (0..14).flat_map(|batches| [6, 2, 11].map(|again| (batches, again))) {
        let backend = MemoryBackend::new();
        let storage = SessionStorage::new(Arc::new(backend.clone()))
            .with_embedding(Some(Arc::new(FakeEmbedding::new())));
        let fill = async || {
            storage
                .ingestion()
                .sync_transcript_lines(&target("p"), SyncLines::whole(messages.clone()))
                .await
                .unwrap();
            storage
                .ingestion()
                .sync_event_lines(&target("p"), SyncLines::whole(events.clone()))
                .await
                .unwrap();
        };
        fill().await;
        let rewind = async |turn: usize| {
            storage.ingestion().rewind(&target("p").key, &RewindOptions::to_turn(turn as u32)).await
        };
        backend.interrupt_after(Some(batches));
        let first = rewind(6).await;
        backend.interrupt_after(None);
        rewind(again).await.unwrap();
        // The first one is only completed by a later turn if it has begun.
        let left = if first.is_err() && batches == 0 { again } else { again.min(6) };
        check(&storage, &messages[..left], &events[..left]).await;
        assert!(rewind(again).await.unwrap().is_empty());
        if batches % 3 == 0 {
            backend.interrupt_after(Some(batches));
            let _ = rewind(1).await;
            backend.interrupt_after(None);
        }
        fill().await;
        check(&storage, &messages, &events).await;
    }
}
