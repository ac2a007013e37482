//! What the store holds of a session, as a sync left it.

use amplifier_session_core::{
    ErrorKind,
    backend::{RowSpan, SkippedLine, prelude::*},
    model::Timestamp,
    storage::{SyncLines, SyncStatistics},
};

use super::{
    Subject,
    store::{Store, kind, raw, scope, target, target_of},
};
use crate::lines::{self, Line};

fn at(minute: u32) -> String {
    format!("2026-01-05T08:{minute:02}:00Z")
}

fn time(minute: u32) -> Option<Timestamp> {
    Some(Timestamp::parse(&at(minute)).unwrap())
}

async fn told(store: &Store, session: &str) -> SyncStatistics {
    let target = target(session);
    store.storage.get_sync_statistics(&scope(&target), &target.key.session_id).await.unwrap()
}

/// Rows are counted, with the last sequence and the times of the earliest and the latest, in whatever order they are.
pub async fn rows_are_told_with_their_ends(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let messages: Vec<Line> = [30, 10, 20].map(|minute| lines::user("text").at(&at(minute))).to_vec();
    store.sync(&target("s"), messages).await;
    store
        .sync_events(&target("s"), [50, 40].map(|minute| lines::logger_event("e").at(&at(minute))).to_vec())
        .await;
    store.sync(&target_of("ben", "shop", "s"), vec![lines::user("another's")]).await;
    let rows = told(&store, "s").await.rows;
    let messages = RowSpan { count: 3, last_sequence: Some(2), first_ts: time(10), last_ts: time(30) };
    let events = RowSpan { count: 2, last_sequence: Some(1), first_ts: time(40), last_ts: time(50) };
    assert_eq!((rows.messages, rows.events, rows.vectors, rows.owing_vectors), (messages, events, 3, 0));
    let stored = store.messages(&target("s")).await;
    assert_eq!(rows.synced_at, stored.iter().map(|message| message.synced_at).max());
    assert_eq!(rows, store.backend.session_rows(&target("s").key).await.unwrap());

    store.sync(&target("s"), vec![lines::user("text").at(&at(30))]).await;
    let rows = told(&store, "s").await.rows;
    let messages = RowSpan { count: 1, last_sequence: Some(0), first_ts: time(30), last_ts: time(30) };
    assert_eq!((rows.messages, rows.vectors), (messages, 1));
}

/// A session that was synced holds every sequence up to its last, however it came in.
pub async fn a_good_session_has_no_gaps(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let messages =
        |range: std::ops::Range<u32>| range.map(|n| lines::user(&n.to_string())).collect::<Vec<_>>();
    let events =
        |range: std::ops::Range<u32>| range.map(|n| lines::logger_event(&n.to_string())).collect::<Vec<_>>();
    store.sync(&target("s"), messages(0..40)).await;
    store.sync_events(&target("s"), events(0..40)).await;
    store.sync_from(&target("s"), 30, messages(100..125)).await.unwrap();
    store.sync_events_from(&target("s"), 40, events(40..60)).await.unwrap();
    store.sync_events(&target("s"), events(0..33)).await;
    let told = told(&store, "s").await;
    assert!(told.missing_messages.is_empty() && told.missing_events.is_empty());
    assert_eq!((told.rows.messages.count, told.rows.messages.last_sequence), (55, Some(54)));
    assert_eq!((told.rows.events.count, told.rows.events.last_sequence), (33, Some(32)));
}

/// Lines that were left out are told with the reason; they leave no gap.
pub async fn skipped_lines_are_told(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let skipped = |line: u64, reason: &str| SkippedLine {
        file: "transcript.jsonl".to_owned(),
        line,
        reason: reason.to_owned(),
    };
    let all = vec![skipped(2, "it's \"broken\""), skipped(9, "é")];
    let mut ingest = store.storage.ingest(target("s")).await.unwrap();
    ingest.begin_transcript(0).await.unwrap();
    for line in [lines::user("one"), lines::user("two")] {
        ingest.transcript_line(line.raw(), store.storage.now()).await.unwrap();
    }
    ingest.set_skipped(all.clone());
    ingest.commit().await.unwrap();
    let told = told(&store, "s").await;
    assert_eq!((told.skipped, told.rows.messages.count), (all, 2));
    assert!(told.missing_messages.is_empty());
}

/// Vectors that are still to be made are counted until they are.
pub async fn owed_vectors_are_counted(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let messages = vec![
        lines::user("one"),
        lines::thinking("two", "three"),
        lines::system("rules"),
        lines::tool_call("bash", "ls".into()),
    ];
    let sync = SyncLines::whole(raw(messages));
    store.storage_with(None).sync_transcript_lines(&target("s"), sync).await.unwrap();
    let rows = told(&store, "s").await.rows;
    assert_eq!((rows.vectors, rows.owing_vectors), (0, 2));
    let target = target("s");
    store.storage.embed_owed(&target.key.user_id, Some(&target.key.session_id)).await.unwrap();
    let rows = told(&store, "s").await.rows;
    assert_eq!((rows.vectors, rows.owing_vectors), (3, 0));
}

/// A session without rows has none; one that is not in scope is not there.
pub async fn a_session_without_rows_has_none(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    store
        .storage
        .sync_session_metadata(&target("s"), amplifier_session_core::model::RawJson::from("{}"))
        .await
        .unwrap();
    let told = told(&store, "s").await;
    assert_eq!(told.rows, Default::default());
    assert!(told.missing_messages.is_empty() && told.missing_events.is_empty() && told.skipped.is_empty());
    let ben = scope(&target_of("ben", "shop", "s"));
    let missing = store.storage.get_sync_statistics(&ben, &target("s").key.session_id).await;
    assert_eq!(kind(missing), ErrorKind::SessionNotFound);
}
