//! The fakes themselves.

use std::{fs, sync::Arc};

use amplifier_session_testkit::{AmplifierHome, prelude::*};

#[tokio::test]
async fn a_flaky_backend_counts_and_fails_on_request() {
    let backend = FlakyBackend::new(Arc::new(MemoryBackend::new()));
    let list = async || backend.list_sessions(&SessionQuery::new(Scope::Everyone)).await;
    backend.fail_after(Operation::ListSessions, 1);
    assert!(list().await.is_ok());
    assert!(list().await.unwrap_err().is_retryable());
    assert!(list().await.is_ok());

    backend.fail_any_after(1);
    assert!(backend.meta().await.is_ok());
    assert!(list().await.is_err());

    backend.break_operation(Operation::ListSessions, ErrorKind::Authentication);
    assert_eq!(list().await.unwrap_err().kind(), ErrorKind::Authentication);
    assert!(list().await.is_err());
    assert!(backend.meta().await.is_ok());
    backend.recover();
    assert!(list().await.is_ok());

    assert_eq!((backend.calls(Operation::ListSessions), backend.calls(Operation::Meta)), (7, 2));
    assert_eq!(backend.writes(), 0);
    backend.put_meta_if_absent("k", "v").await.unwrap();
    assert_eq!(backend.writes(), 1);
    backend.reset_counts();
    assert_eq!(backend.calls(Operation::ListSessions), 0);
}

#[tokio::test]
async fn the_memory_backend_returns_pages() {
    let backend = MemoryBackend::new();
    assert!(!backend.info().atomic_writes && !backend.info().persistent);
    let storage = SessionStorage::new(Arc::new(backend.clone()));
    let lines = (0..10).map(|n| lines::user(&n.to_string())).collect();
    storage.ingestion().sync_transcript_lines(&target("s"), whole(lines)).await.unwrap();
    assert_eq!(backend.read_messages(&target("s").key, range(0, 100)).await.unwrap().len(), 7);
}

#[test]
fn a_session_folder_has_the_files_that_amplifier_writes() {
    let home = AmplifierHome::new().unwrap();
    let folder = home.session("shop", "s1").unwrap();
    folder
        .metadata("{}")
        .unwrap()
        .transcript([lines::user("a")])
        .unwrap()
        .append_transcript([lines::user("b")])
        .unwrap();
    folder.file("context-intelligence/events.jsonl", "{}").unwrap().append("events.jsonl", b"half").unwrap();
    let read =
        |name: &str| fs::read_to_string(home.path().join("projects/shop/sessions/s1").join(name)).unwrap();
    assert_eq!(read("metadata.json"), "{}");
    assert_eq!(read("transcript.jsonl").lines().count(), 2);
    assert!(read("transcript.jsonl").ends_with('\n'));
    assert_eq!(
        (read("context-intelligence/events.jsonl").as_str(), read("events.jsonl").as_str()),
        ("{}", "half")
    );
    folder.remove("metadata.json").unwrap();
    assert!(!folder.path().join("metadata.json").exists());
}

#[test]
fn a_clock_returns_the_time_it_was_set_to() {
    let clock = TestClock::fixed("2026-01-05T08:00:00Z");
    assert_eq!(clock.now(), clock.now());
    clock.advance(500_000);
    assert_eq!((clock.function())().to_string(), "2026-01-05T08:00:00.500000Z");
}
