//! Pages that can't be read: what is on other pages is saved, and what is not is named.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
    sync::Arc,
};

use amplifier_session_sqlite::FACTORY;
use amplifier_session_testkit::{erasure::noise, prelude::*};

use super::support::Folder;

const PAGE: usize = 8192;
/// Pages have no more rows than this here.
const ROWS_OF_A_PAGE: usize = 60;

/// The lines of the messages and of the events of each session.
type Lines = BTreeMap<String, (Vec<String>, Vec<String>)>;
/// Superseded lines, with their sessions.
type Superseded = BTreeSet<(String, String)>;

/// The number of superseded events of every third session.
const SUPERSEDED: usize = 6;

/// Writes sessions with short and long lines, metadata files, vectors and superseded events. Remembers a deletion.
async fn fill(folder: &Folder) -> Lines {
    let settings = StorageSettings::default().with_turns(true);
    let storage = folder.storage().await.with_settings(settings);
    let mut written = Lines::new();
    for session in 0..12_usize {
        let name = format!("session-{session:02}");
        let target = target_of("ana", ["shop", "site"][session % 2], &name);
        let text = |n: usize| match n % 7 {
            3 => noise(session * 100 + n, 30_000),
            5 => noise(session * 100 + n, 2_000),
            _ => format!("message {n} about zebra {session}"),
        };
        let messages: Vec<RawJson> = (0..20 + session)
            .map(|n| if n % 2 == 0 { lines::user(&text(n)) } else { lines::assistant(&text(n)) })
            .map(|line| line.at("2026-02-01T08:00:00Z").raw())
            .collect();
        let length = |n: usize| match n {
            4 => 20_000,
            9 if session % 4 == 0 => 600_000,
            _ => 50,
        };
        let superseded = if session % 3 == 0 { SUPERSEDED } else { 0 };
        let mut events: Vec<RawJson> = (0..24 + superseded)
            .map(|n| {
                let data = json!({"tool_name": "bash", "output": noise(session * 1_000 + n, length(n))});
                lines::logger_event("tool:post").data(data).raw()
            })
            .collect();
        let metadata = json!({"name": format!("The session {session}"), "working_dir": "/work"});
        storage.ingestion().sync_session_metadata(&target, RawJson::new(metadata.to_string())).await.unwrap();
        storage.ingestion().sync_transcript_lines(&target, SyncLines::whole(messages.clone())).await.unwrap();
        storage.ingestion().sync_event_lines(&target, SyncLines::whole(events.clone())).await.unwrap();
        events.truncate(24);
        let mut ingest = storage.ingestion().ingest(target).await.unwrap();
        ingest.begin_events(24).await.unwrap();
        ingest.supersede(LineKind::Event, &Remaining::default());
        ingest.end_events(Extent::Whole);
        ingest.commit().await.unwrap();
        let texts = |lines: Vec<RawJson>| lines.iter().map(|line| line.to_text().into_owned()).collect();
        written.insert(name, (texts(messages), texts(events)));
    }
    let gone = target_of("ana", "shop", "gone");
    storage
        .ingestion()
        .sync_transcript_lines(&gone, SyncLines::whole(vec![lines::user("gone").raw()]))
        .await
        .unwrap();
    storage.users().pin_user(&gone.key.user_id).await.unwrap();
    storage.sessions().delete_sessions(&[gone.key]).await;
    let ana = UserId::new("ana").unwrap();
    storage.vectors().embed_pending(&ana, None).await.unwrap();
    let given = [("session-03", 2), ("session-03", 4), ("session-07", 0)].map(|(session, message)| {
        GivenSummary { message: format!("{session}#{message}"), text: format!("summary of {message}") }
    });
    let mut summaries = Vec::new();
    for given in given {
        summaries.push(storage.turns().resolve_summary(&ana, &given).await.unwrap());
    }
    storage.turns().set_summaries(summaries).await.unwrap();
    written
}

/// The summaries in a store, and the number of vectors of turns of each session.
async fn turns_in(storage: &SessionStorage) -> (Vec<TurnSummary>, BTreeMap<String, usize>) {
    let ana = UserId::new("ana").unwrap();
    let summaries = storage.backend().list_summaries(&SummaryQuery::new(ana.clone())).await.unwrap();
    let mut vectors = BTreeMap::new();
    for session in 0..12 {
        let session = format!("session-{session:02}");
        let key = SessionKey::new(ana.clone(), SessionId::new(session.as_str()).unwrap());
        let range = SequenceRange { start: 0, limit: 1_000 };
        let texts = storage.backend().vector_texts(0, &key, range).await.unwrap();
        let has_turn = |(_, texts): &&(u32, Vec<VectorText>)| texts.contains(&VectorText::Turn);
        vectors.insert(session, texts.iter().filter(has_turn).count());
    }
    (summaries, vectors)
}

/// A store as it lies on disk, closed.
async fn filled() -> (Vec<u8>, Lines, Superseded) {
    let folder = Folder::new();
    let written = fill(&folder).await;
    let superseded = superseded_in(&folder.storage().await).await;
    // The index may still be updated in the background. The log goes with the last connection.
    while folder.path().join("sessions.sqlite-wal").exists() {
        std::thread::yield_now();
    }
    let bytes = fs::read(folder.database()).unwrap();
    (bytes, written, superseded)
}

async fn salvage(file: &Path, to: &SessionStorage) -> Result<SalvageReport> {
    let mut source = FACTORY.salvage.unwrap()(file.to_owned()).await?;
    to.salvage().take_from(source.as_mut()).await
}

fn in_memory() -> SessionStorage {
    SessionStorage::new(Arc::new(MemoryBackend::new()))
}

/// The lines in a store.
async fn lines_in(storage: &SessionStorage) -> Lines {
    let mut found = Lines::new();
    for session in storage.sessions().search_sessions(&SessionQuery::new(Scope::Everyone)).await.unwrap() {
        let (id, scope) = (&session.session_id, Scope::Everyone);
        let messages = storage.reading().get_transcript_lines(&scope, id, None, usize::MAX).await.unwrap();
        let messages = messages.iter().map(|message| message.raw.to_text().into_owned()).collect();
        let events = EventLines::default().with_payload(true).with_limit(usize::MAX);
        let events = storage.reading().get_event_lines(&scope, id, events).await.unwrap();
        let events: Vec<String> =
            events.iter().map(|event| event.raw.as_ref().unwrap().to_text().into_owned()).collect();
        assert_eq!(session.event_count as usize, events.len());
        found.insert(id.to_string(), (messages, events));
    }
    found
}

/// The superseded lines in a store, with their sessions.
async fn superseded_in(storage: &SessionStorage) -> Superseded {
    let (mut found, mut lines) =
        (BTreeSet::new(), storage.superseded().superseded_lines(SupersededQuery::new(Scope::Everyone)));
    while let Some(lines) = lines.next().await.unwrap() {
        found.extend(lines.iter().map(|line| (line.session_id.to_string(), line.raw.to_text().into_owned())));
    }
    found
}

/// Checks that superseded lines were saved, or that the report names them.
fn check_superseded(what: &str, written: &Superseded, saved: &Superseded, report: &SalvageReport) {
    assert!(saved.is_subset(written), "{what}");
    let names = |session: &String| {
        let of_session = |row: &&DamagedRow| row.session_id.as_str() == session;
        report.missing.iter().filter(of_session).any(|row| row.reason.contains("superseded"))
    };
    let is_lost = report.lost.iter().any(|lost| lost == "superseded lines");
    for (session, _) in written.difference(saved) {
        assert!(is_lost || names(session), "{what}: {session}: {report:?}");
    }
    assert_eq!(report.superseded as usize, saved.len(), "{what}");
}

/// Compares what was saved with what there was, without the rows that are named as missing.
fn check(what: &str, written: &Lines, saved: &Lines, report: &SalvageReport) {
    let missing: BTreeSet<(&str, RowKind, u32)> = report
        .missing
        .iter()
        .filter_map(|row| Some((row.session_id.as_str(), row.kind, row.sequence?)))
        .collect();
    assert!(missing.len() <= ROWS_OF_A_PAGE, "{what}: {:?}", report.missing);
    for (session, (messages, events)) in written {
        let without = |kind, lines: &[String]| -> Vec<String> {
            let lines = lines.iter().enumerate();
            let left = lines.filter(|(n, _)| !missing.contains(&(session.as_str(), kind, *n as u32)));
            left.map(|(_, line)| line.clone()).collect()
        };
        let expected = (without(RowKind::Message, messages), without(RowKind::Event, events));
        assert!(saved.get(session) == Some(&expected), "{what}: {session} differs: {:?}", report.missing);
    }
    assert_eq!(saved.len(), written.len(), "{what}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_whole_store_is_saved_as_it_is() {
    let folder = Folder::new();
    let written = fill(&folder).await;
    // With changes in the log: another connection keeps it.
    let open = folder.storage().await;
    let key = target_of("ana", "shop", "session-00").key;
    let edit = SessionEdit::default().set_name("By hand");
    open.sessions().update_session(&key, &edit).await.unwrap();
    assert!(fs::metadata(folder.path().join("sessions.sqlite-wal")).unwrap().len() > 0);

    let other = Folder::new();
    let storage = other.storage().await;
    let report = salvage(&folder.database(), &storage).await.unwrap();
    assert!(report.is_complete() && report.unreadable.is_empty(), "{report:?}");
    assert_eq!(lines_in(&storage).await, written);
    let superseded = superseded_in(&storage).await;
    assert_eq!((superseded.len(), &superseded), (4 * SUPERSEDED, &superseded_in(&open).await));
    assert_eq!(report.superseded, 4 * SUPERSEDED as u64);
    let vectors = open.backend().count_vectors(&Scope::Everyone).await.unwrap();
    assert_eq!(storage.backend().count_vectors(&Scope::Everyone).await.unwrap(), vectors);
    assert_eq!(report.vectors, vectors.generations[&0].vectors);
    let turns = turns_in(&open).await;
    assert!(turns.0.len() == 3 && turns.1.values().all(|count| *count > 0), "{turns:?}");
    assert_eq!(turns_in(&storage).await, turns);
    assert_eq!((report.summaries, report.turns), (3, turns.1.values().sum::<usize>() as u64));
    for session in written.keys() {
        let id = SessionId::new(session.as_str()).unwrap();
        let [before, after] =
            [&open, &storage].map(|storage| storage.sessions().get_session(&Scope::Everyone, &id));
        assert_eq!(before.await.unwrap(), after.await.unwrap());
    }
    assert_eq!(storage.users().pinned_user().await.unwrap(), open.users().pinned_user().await.unwrap());
    let deleted = storage.backend().deleted_sessions(&key.user_id).await.unwrap();
    assert_eq!(deleted, [SessionId::new("gone").unwrap()]);
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_is_saved_but_what_is_on_the_damaged_page() {
    let (bytes, written, superseded) = filled().await;
    let folder = Folder::new();
    let (mut random, mut complete) = (Random(7), 0);
    let count = bytes.len() / PAGE;
    assert!(count > 300, "{count} pages");
    let step = count.div_ceil(rounds(20, 300));
    let sampled: Vec<usize> = (0..6).chain((6..count).step_by(step)).collect();
    for &page in &sampled {
        let mut damaged = bytes.clone();
        let at = &mut damaged[page * PAGE..][..PAGE];
        match page % 3 {
            0 => at.fill(0),
            1 => at.iter_mut().for_each(|byte| *byte = random.bits() as u8),
            // Half of a page.
            _ => at[PAGE / 2..].iter_mut().for_each(|byte| *byte = random.bits() as u8),
        }
        fs::write(folder.database(), &damaged).unwrap();
        let storage = in_memory();
        let report = salvage(&folder.database(), &storage).await.unwrap();
        let what = format!("page {}", page + 1);
        check(&what, &written, &lines_in(&storage).await, &report);
        check_superseded(&what, &superseded, &superseded_in(&storage).await, &report);
        let summaries = turns_in(&storage).await.0.len();
        let is_named = report.lost.iter().any(|lost| lost == "summaries of turns")
            || report.missing.iter().any(|row| row.reason.contains("summary"));
        assert!(summaries == 3 || is_named, "{what}: {summaries} summaries: {report:?}");
        complete += usize::from(report.is_complete());
        assert_eq!(fs::read(folder.database()).unwrap(), damaged, "{what}: the file was changed");
    }
    assert!(complete > 0 && complete < sampled.len() * 3 / 4, "{complete} of {}", sampled.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_truncated_file_is_saved_up_to_its_end() {
    let (bytes, written, superseded) = filled().await;
    let folder = Folder::new();
    for part in [9, 7, 5] {
        fs::write(folder.database(), &bytes[..bytes.len() / 10 * part]).unwrap();
        let storage = in_memory();
        let report = salvage(&folder.database(), &storage).await.unwrap();
        let saved = lines_in(&storage).await;
        assert!(!report.is_complete() && !saved.is_empty());
        for (session, (messages, events)) in saved {
            let (all_messages, all_events) = &written[&session];
            assert!(messages.iter().all(|line| all_messages.contains(line)));
            assert!(events.iter().all(|line| all_events.contains(line)));
        }
        let named: BTreeSet<&str> = report.missing.iter().map(|row| row.session_id.as_str()).collect();
        // Vectors of turns were written last.
        assert!(!named.is_empty() || report.lost == ["vectors of turns"], "{report:?}");
        assert!(superseded_in(&storage).await.is_subset(&superseded));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn other_files_are_refused() {
    let folder = Folder::new();
    for content in [&b"not a database"[..], &[0; 3 * PAGE], b""] {
        fs::write(folder.database(), content).unwrap();
        let error = salvage(&folder.database(), &in_memory()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StorageConnection, "{error}");
    }
    let other = rusqlite::Connection::open(folder.path().join("other.sqlite")).unwrap();
    other.execute_batch("CREATE TABLE schema_meta (key TEXT, value TEXT)").unwrap();
    let error = salvage(&folder.path().join("other.sqlite"), &in_memory()).await.unwrap_err();
    assert!(error.message().contains("is not a store"), "{error}");
}

/// The lines in an archive.
fn lines_of(archive: &[u8]) -> Lines {
    let mut found = Lines::new();
    let mut session: (String, (Vec<String>, Vec<String>)) = Default::default();
    for line in archive.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        match serde_json::from_slice::<Record>(line).unwrap() {
            Record::Session(record) => session = (record.session.session_id.to_string(), Default::default()),
            Record::Message(record) => session.1.0.extend(record.raw.raw),
            Record::Event(record) => session.1.1.extend(record.raw.raw),
            Record::End { .. } => drop(found.insert(session.0.clone(), session.1.clone())),
            Record::Again => session.1 = Default::default(),
            _ => {}
        }
    }
    found
}

/// What an export of a damaged store says.
async fn export(storage: &SessionStorage) -> Result<(Lines, Vec<DamagedRow>)> {
    let mut archive = Vec::new();
    let mut out = JsonLinesWriter::new(&mut archive);
    let report =
        storage.archive().export_sessions(&Scope::Everyone, SessionFilter::default(), &mut out).await?;
    Ok((lines_of(&archive), report.damaged))
}

#[tokio::test(flavor = "multi_thread")]
async fn reads_leave_out_what_is_on_a_damaged_page_and_name_it() {
    let (bytes, written, _) = filled().await;
    let count = bytes.len() / PAGE;
    let (mut failed, mut named, mut searched) = (Vec::new(), 0, 0);
    let sampled: Vec<usize> = (0..2).chain((2..count).step_by(count.div_ceil(rounds(16, 100)))).collect();
    for &page in &sampled {
        let folder = Folder::new();
        let mut damaged = bytes.clone();
        damaged[page * PAGE..][..PAGE].fill(if page % 2 == 0 { 0 } else { 0xa5 });
        fs::write(folder.database(), &damaged).unwrap();
        let what = format!("page {}", page + 1);
        let clear = |error: &Error| {
            let kinds = [ErrorKind::Damaged, ErrorKind::StorageConnection];
            assert!(kinds.contains(&error.kind()), "{what}: {error:?}");
        };
        let storage = match amplifier_session_sqlite::Sqlite::open(folder.database()).await {
            Ok(backend) => SessionStorage::new(Arc::new(backend)),
            Err(error) => {
                clear(&error);
                failed.push(page);
                continue;
            }
        };
        match export(&storage).await {
            Err(error) => {
                clear(&error);
                failed.push(page);
            }
            Ok((exported, missing)) => {
                let lost: BTreeSet<&str> = missing
                    .iter()
                    .filter(|row| row.kind == RowKind::Session)
                    .map(|row| row.session_id.as_str())
                    .collect();
                named += usize::from(!missing.is_empty());
                for (session, (messages, events)) in &written {
                    let Some((read_messages, read_events)) = exported.get(session) else {
                        assert!(lost.contains(session.as_str()), "{what}: {session} is missing: {missing:?}");
                        continue;
                    };
                    let of_session = |kind| {
                        missing
                            .iter()
                            .filter(|row| row.session_id.as_str() == session && row.kind == kind)
                            .count()
                    };
                    let left = (
                        messages.len() - of_session(RowKind::Message),
                        events.len() - of_session(RowKind::Event),
                    );
                    assert_eq!((read_messages.len(), read_events.len()), left, "{what}: {session}");
                }
            }
        }
        match storage.search().search_transcripts(&Scope::Everyone, &words("zebra")).await {
            Ok(found) => searched += usize::from(!found.results.is_empty()),
            Err(error) => clear(&error),
        }
        if let Err(error) =
            storage.statistics().get_statistics(&Scope::Everyone, &StatisticsOptions::default()).await
        {
            clear(&error);
        }
        let target = target_of("ana", "shop", "session-03");
        if let Err(error) =
            storage.ingestion().sync_transcript_lines(&target, whole(vec![lines::user("new")])).await
        {
            clear(&error);
        }
        let new = target_of("ana", "shop", "new");
        if let Err(error) =
            storage.ingestion().sync_transcript_lines(&new, whole(vec![lines::user("new")])).await
        {
            clear(&error);
        }
    }
    assert!(failed.len() < 8, "{failed:?} of {}", sampled.len());
    assert!(
        named > sampled.len() / 4 && searched > sampled.len() * 3 / 4,
        "{named}, {searched} of {}",
        sampled.len()
    );
}
