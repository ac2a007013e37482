//! Unreadable rows do not affect others. DuckDB checks types and constraints, so fewer values can be invalid than in
//! SQLite.

use amplifier_session_core::{
    ErrorKind, Scope,
    model::{DamagedRow, RawJson, RowKind, Timestamp, UserId},
    search::{EventFilter, EventSearchOptions, SearchMode, SearchOptions, SessionFilter},
    storage::{EventLines, Extent, IngestRepair, JsonLinesWriter, StatisticsOptions, SyncLines},
};
use amplifier_session_testkit::lines;

use super::support::{Folder, target, whole};

/// Writes nine messages and nine events, and damages some. Event 4 is compressed, event 5 is in chunks.
async fn damaged() -> Folder {
    let folder = Folder::new();
    let storage = folder.storage().await;
    let session = target("s");
    let messages = (0..9).map(|n| lines::user(&format!("zebra number {n}"))).collect();
    storage.ingestion().sync_transcript_lines(&session, whole(messages)).await.unwrap();
    let line = |n: usize| {
        let filler = "filler ".repeat(match n {
            4 => 20_000,
            5 => 600_000,
            _ => 10,
        });
        RawJson::new(format!(
            r#"{{"ts":"2026-01-01T00:00:0{n}Z","lvl":"INFO","event":"tool:post","data":{{"filler":"{filler}"}}}}"#
        ))
    };
    storage
        .ingestion()
        .sync_event_lines(&session, SyncLines::whole((0..9).map(line).collect()))
        .await
        .unwrap();
    drop(storage);
    folder.execute(
        "UPDATE transcripts SET digest = 'text' WHERE sequence = 0;
             UPDATE transcripts SET digest = '' WHERE sequence = 4;
             UPDATE transcripts SET raw = '{}' WHERE sequence = 7;
             UPDATE events SET summary = '{' WHERE sequence = 2;
             UPDATE events SET digest = 'x' WHERE sequence = 8;
             UPDATE events SET raw = '\\x28\\xb5\\x2f\\xfd\\x00\\x00' WHERE sequence = 4;
             DELETE FROM event_chunks WHERE sequence = 5 AND chunk_index = 1;
             UPDATE events SET raw = NULL WHERE sequence = 6;",
    );
    folder
}

fn places(damaged: &[DamagedRow]) -> Vec<(RowKind, u32)> {
    let mut places: Vec<_> = damaged.iter().map(|row| (row.kind, row.sequence.unwrap())).collect();
    places.sort_unstable();
    places
}

#[tokio::test(flavor = "multi_thread")]
async fn damaged_rows_are_skipped_and_named() {
    let folder = damaged().await;
    let storage = folder.storage().await;
    let (scope, id) = (Scope::User(UserId::new("ana").unwrap()), target("s").key.session_id);

    let messages = storage.reading().readable_transcript_lines(&scope, &id, None, 100).await.unwrap();
    assert_eq!(messages.rows.iter().map(|row| row.sequence).collect::<Vec<_>>(), [1, 2, 3, 5, 6, 8]);
    assert_eq!(places(&messages.damaged), [0, 4, 7].map(|n| (RowKind::Message, n)));
    let error = storage.reading().get_transcript_lines(&scope, &id, None, 100).await.unwrap_err();
    assert_eq!((error.kind(), error.context("sequence")), (ErrorKind::Damaged, Some("0")));

    let of = |sequences: &[u32]| sequences.iter().map(|n| (RowKind::Event, *n)).collect::<Vec<_>>();
    let events = storage.reading().readable_event_lines(&scope, &id, EventLines::default()).await.unwrap();
    assert_eq!(places(&events.damaged), of(&[2, 8]));
    let whole = EventLines::default().with_payload(true).with_limit(3);
    let events = storage.reading().readable_event_lines(&scope, &id, whole).await.unwrap();
    assert_eq!(events.rows.iter().map(|row| row.event.sequence).collect::<Vec<_>>(), [0, 1, 3]);
    let events = storage
        .reading()
        .readable_event_lines(&scope, &id, whole.after(Some(3)).with_limit(100))
        .await
        .unwrap();
    assert_eq!(places(&events.damaged), of(&[4, 5, 6, 8]));
    let options = EventSearchOptions::new(EventFilter::default());
    let found = storage.reading().readable_events(&scope, &options).await.unwrap();
    assert_eq!((found.rows.len(), places(&found.damaged)), (7, of(&[2, 8])));

    let counted = storage.statistics().get_statistics(&scope, &StatisticsOptions::default()).await.unwrap();
    assert_eq!(counted.event_types[0].events, 9);

    let options = SearchOptions::new("zebra").with_mode(SearchMode::FullText).with_limit(20);
    let found = storage.search().search_transcripts(&scope, &options).await.unwrap();
    assert_eq!((found.results.len(), found.damaged.len()), (6, 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_skips_damaged_rows() {
    let folder = damaged().await;
    let storage = folder.storage().await;
    let mut archive = Vec::new();
    let mut out = JsonLinesWriter::new(&mut archive);
    let report = storage
        .archive()
        .export_sessions(&Scope::Everyone, SessionFilter::default(), &mut out)
        .await
        .unwrap();
    assert_eq!((report.sessions, report.messages, report.events), (1, 6, 4));
    let messages = [0, 4, 7].map(|n| (RowKind::Message, n));
    let events = [2, 4, 5, 6, 8].map(|n| (RowKind::Event, n));
    assert_eq!(places(&report.damaged), [&messages[..], &events[..]].concat());
}

/// A damaged session or sequence leaves an event's id with the wrong row.
#[tokio::test(flavor = "multi_thread")]
async fn events_with_damaged_keys_are_replaced() {
    let log: Vec<RawJson> = (0..6).map(|n| lines::logger_event(&format!("event{n}")).raw()).collect();
    for set in ["session_id = 'w'", "sequence = 70", "event_id = 's_evt_9'"] {
        let folder = Folder::new();
        let storage = folder.storage().await;
        storage.ingestion().sync_event_lines(&target("s"), SyncLines::whole(log.clone())).await.unwrap();
        drop(storage);
        folder.execute(&format!("UPDATE events SET {set} WHERE sequence = 2"));
        let storage = folder.storage().await;
        let stored = storage.backend().get_session(&target("s").key).await.unwrap().unwrap();
        let check = storage.verification().check_session(&stored).await.unwrap();
        assert!(!check.is_clean(), "{set}");
        let mut ingest = storage.ingestion().ingest(target("s")).await.unwrap();
        ingest.repair(IngestRepair::new(Default::default(), true, check.gaps.clone()));
        ingest.begin_events(0).await.unwrap();
        for line in &log {
            ingest.event_line(line.clone(), Timestamp::from_micros(1)).await.unwrap();
        }
        ingest.end_events(Extent::Whole);
        ingest.commit().await.unwrap();
        let stored = storage.backend().get_session(&target("s").key).await.unwrap().unwrap();
        let check = storage.verification().check_session(&stored).await.unwrap();
        assert_eq!((check.differences, check.events), (Vec::new(), 6), "{set}");
        assert_eq!(
            storage.verification().check_records(&target("s").key.user_id).await.unwrap(),
            [],
            "{set}"
        );
    }
}
