//! Sessions that go from one SQLite file to another.

use std::sync::Arc;

use amplifier_session_core::SessionStorage;
use amplifier_session_testkit::prelude::*;

use crate::support::Folder;

async fn push(from: &SessionStorage, other: &OtherStore) -> PushReport {
    let options = PushOptions::new(target("s").key.user_id);
    let report = from.exchange().push(other, &options, &|_| {}).await.unwrap();
    assert!(report.failed.is_empty(), "{:?}", report.failed);
    report
}

async fn lines(storage: &SessionStorage, session: &str) -> (Vec<RawJson>, Vec<Option<RawJson>>) {
    let target = target(session);
    let (scope, id) = (scope(&target), &target.key.session_id);
    let messages = storage.reading().get_transcript_lines(&scope, id, None, 100_000).await.unwrap();
    let with_lines = EventLines::default().with_limit(100_000).with_payload(true);
    let events = storage.reading().get_event_lines(&scope, id, with_lines).await.unwrap();
    (messages.into_iter().map(|of| of.raw).collect(), events.into_iter().map(|of| of.raw).collect())
}

/// Long and awkward sessions arrive as they were, in parts, and are found there. Of what follows, only the new lines are
/// sent, also after both files were closed and opened again.
#[tokio::test]
async fn sessions_arrive_as_they_were_and_go_on() {
    let (here, there) = (Folder::new(), Folder::new());
    let from = SessionStorage::new(Arc::new(here.backend().await));
    let mut messages: Vec<RawJson> = samples::awkward_messages().into_iter().map(|(_, line)| line).collect();
    messages.extend((0..1_200).map(|n| lines::user(&format!("question {n} about the aqueduct")).raw()));
    let mut events: Vec<RawJson> = samples::awkward_events().into_iter().map(|(_, line)| line).collect();
    for size in [10, 900_000, 9_000_000] {
        let result = "a\"b\\ ".repeat(size / 5);
        events.push(lines::logger_event("tool:post").data(json!({ "result": result })).raw());
    }
    let long = target("long");
    from.ingestion().sync_transcript_lines(&long, SyncLines::whole(messages)).await.unwrap();
    from.ingestion().sync_event_lines(&long, SyncLines::whole(events)).await.unwrap();
    for n in 0..150 {
        let short = target(&format!("short {n}"));
        from.ingestion().sync_transcript_lines(&short, whole(vec![lines::user("hello")])).await.unwrap();
    }
    let other = OtherStore::new(there.storage().await);
    let report = push(&from, &other).await;
    assert_eq!((report.sessions, report.unchanged), (151, 0));
    let to = there.storage().await;
    assert_eq!(lines(&to, "long").await, lines(&from, "long").await);
    let found = to.search().search_transcripts(&scope(&long), &words("aqueduct")).await.unwrap();
    assert!(!found.results.is_empty());
    let count = to.backend().get_session(&long.key).await.unwrap().unwrap().session.message_count;
    let more = SyncLines::starting_at(count, vec![lines::user("one more").raw()]);
    from.ingestion().sync_transcript_lines(&long, more).await.unwrap();
    other.take_bytes();
    let from = SessionStorage::new(Arc::new(here.backend().await));
    let report = push(&from, &other).await;
    assert_eq!((report.sessions, report.messages, report.events), (1, 1, 0));
    assert!(other.take_bytes() < 4_000);
    let from = SessionStorage::new(Arc::new(here.backend().await));
    assert_eq!((push(&from, &other).await.unchanged, other.take_bytes()), (151, 0));
    assert_eq!(lines(&to, "long").await, lines(&from, "long").await);
}
