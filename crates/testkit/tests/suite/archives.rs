//! Exports of sessions that change in the meantime.

use std::sync::Arc;

use amplifier_session_testkit::{erasure::noise, prelude::*};

/// More than one page of a list.
const SESSIONS: usize = 150;

async fn sync(storage: &SessionStorage, number: usize, ts: &str) {
    let target = target(&format!("s{number:03}"));
    let lines = SyncLines::whole(vec![lines::user("hello").at(ts).raw()]);
    storage.ingestion().sync_transcript_lines(&target, lines).await.unwrap();
}

/// Moves the last session of the list to its beginning as soon as the first session is written.
struct Busy {
    storage: SessionStorage,
    written: Vec<SessionId>,
}

impl ArchiveWriter for Busy {
    fn put(&mut self, record: Record) -> Result<()> {
        if let Record::Session(record) = record {
            if self.written.is_empty() {
                let sync = sync(&self.storage, 0, "2026-03-01T00:00:00Z");
                tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(sync));
            }
            self.written.push(record.session.session_id);
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_changed_during_an_export_is_in_the_archive() {
    let storage = SessionStorage::new(Arc::new(MemoryBackend::new()));
    for number in 0..SESSIONS {
        sync(&storage, number, &format!("2026-01-01T{:02}:{:02}:00Z", number / 60, number % 60)).await;
    }
    let mut busy = Busy { storage: storage.clone(), written: Vec::new() };
    let report = storage
        .archive()
        .export_sessions(&Scope::Everyone, SessionFilter::default(), &mut busy)
        .await
        .unwrap();
    assert_eq!(report.sessions, SESSIONS as u64);
    busy.written.sort();
    busy.written.dedup();
    assert_eq!(busy.written.len(), SESSIONS);
}

/// An import that stops in the middle of a large session leaves a part, which the next import replaces.
#[tokio::test]
async fn an_interrupted_import_is_completed_by_the_next() {
    let scope = Scope::Everyone;
    let exported = async |storage: &SessionStorage| {
        let mut archive = Vec::new();
        let mut writer = JsonLinesWriter::new(&mut archive);
        storage.archive().export_sessions(&scope, SessionFilter::default(), &mut writer).await.unwrap();
        archive
    };
    let source = SessionStorage::new(Arc::new(MemoryBackend::new()));
    let text = noise(1, 1_000_000);
    let event =
        |n: usize| RawJson::from(format!(r#"{{"event":"note","data":{{"n":"{n} {text}"}}}}"#).as_str());
    let lines = SyncLines::whole((0..40).map(event).collect());
    source.ingestion().sync_event_lines(&target("s"), lines).await.unwrap();
    let mut ingest = source.ingestion().ingest(target("s")).await.unwrap();
    ingest.set_sync_state("as far as this".to_owned());
    ingest.commit().await.unwrap();
    let archive = exported(&source).await;

    let backend = Arc::new(FlakyBackend::new(Arc::new(MemoryBackend::new())));
    let storage = SessionStorage::new(backend.clone());
    let import = async || {
        let mut reader = JsonLinesReader::seekable(std::io::Cursor::new(archive.as_slice()));
        storage.archive().import_sessions(&mut reader, &ImportOptions::default()).await
    };
    backend.fail_after(Operation::Write, 1);
    assert_eq!(import().await.unwrap_err().kind(), ErrorKind::StorageIo);
    let part = backend.get_session(&target("s").key).await.unwrap().unwrap();
    assert!((1..40).contains(&part.session.event_count), "{}", part.session.event_count);
    let report = import().await.unwrap();
    assert_eq!((report.sessions, report.replaced, report.refused.len()), (1, 0, 0));
    assert!(exported(&storage).await == archive);
    // Now it is there.
    assert_eq!(import().await.unwrap().refused.len(), 1);
}
