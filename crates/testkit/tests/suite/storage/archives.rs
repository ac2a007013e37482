//! Export of sessions as JSON Lines, and import.

use std::sync::Arc;

use amplifier_session_testkit::{earlier, erasure::noise, prelude::*};

on_both_stores![
    sessions_come_back_as_they_were,
    existing_sessions_are_replaced_only_on_request,
    a_broken_line_costs_its_session,
    an_incomplete_archive_is_noticed,
    large_sessions_are_checked_before_they_are_stored,
    event_ids_of_other_sessions_are_refused,
    vectors_are_in_archives_on_request,
    wrong_vectors_cost_their_session,
    archives_of_an_earlier_version_are_imported,
];

async fn exported(store: &Store, scope: &Scope) -> String {
    let mut archive = Vec::new();
    let mut writer = JsonLinesWriter::new(&mut archive);
    store.storage.archive().export_sessions(scope, SessionFilter::default(), &mut writer).await.unwrap();
    String::from_utf8(archive).unwrap()
}

async fn imported(store: &Store, archive: &str, options: &ImportOptions) -> Result<ImportReport> {
    store.storage.archive().import_sessions(&mut JsonLinesReader::new(archive.as_bytes()), options).await
}

/// Everything except vectors comes back byte for byte, including fields that were edited and those that are not in the
/// lines.
async fn sessions_come_back_as_they_were(store: Store) {
    let target = target("s");
    store.sync(&target, samples::awkward_messages().into_iter().map(|(_, line)| line).collect()).await;
    let mut events: Vec<RawJson> = samples::awkward_events().into_iter().map(|(_, line)| line).collect();
    for size in [10_000, 900_000] {
        let text: String = (0..size).map(|n| char::from(b'a' + (n % 997 * (n % 991) % 23) as u8)).collect();
        events.push(RawJson::new(format!(r#"{{"event":"tool:post","data":{{"result":"{text}"}}}}"#)));
    }
    store.sync_events(&target, events).await;
    let (_, metadata) = samples::awkward_metadata().swap_remove(0);
    let mut ingest = store.storage.ingestion().ingest(target.clone()).await.unwrap();
    ingest.set_metadata(vec![MetadataFile { name: "metadata.json".to_owned(), raw: metadata }]).unwrap();
    ingest.set_skipped(vec![SkippedLine::new("events.jsonl", 7, "broken")]);
    ingest.commit().await.unwrap();
    let state = StoredSyncState {
        settled: Some("{}".to_owned()),
        rewound: Some(RewoundTo { messages: 3, events: 0 }),
        ..StoredSyncState::of("as far as this")
    };
    store.write(&target, |change| change.sync_state = Some(state.clone())).await;
    let edit = SessionEdit::default().set_name("By hand");
    store.storage.sessions().update_session(&target.key, &edit).await.unwrap();
    let without_lines = target_of("ana", "p", "t");
    let settings = store.storage.settings().clone().with_events(EventDetail::Summary);
    let summaries = SyncLines::whole(vec![lines::logger_event("tool:post").into()]);
    store
        .storage
        .clone()
        .with_settings(settings)
        .ingestion()
        .sync_event_lines(&without_lines, summaries)
        .await
        .unwrap();

    let scope = Scope::from(target.key.user_id.clone());
    let archive = exported(&store, &scope).await;
    for key in [&target.key, &without_lines.key] {
        assert!(store.backend.delete_session(key).await.unwrap());
    }
    let report = imported(&store, &archive, &ImportOptions::default()).await.unwrap();
    assert_eq!((report.sessions, report.refused.len()), (2, 0));
    assert_eq!(report.were_deleted, [target.key.clone(), without_lines.key.clone()]);
    assert_eq!(exported(&store, &scope).await, archive);
    let stored = store.stored(&target).await;
    assert_eq!((stored.session.name.as_deref(), stored.skipped.len()), (Some("By hand"), 1));
    assert_eq!(stored.sync_state, Some(state));
    assert_eq!(report.messages, u64::from(stored.session.message_count));

    let rows = store.rows(&target).await;
    assert_eq!((rows.vectors, rows.pending_vectors), (0, report.messages));
}

/// Existing sessions are kept, or replaced completely on request. Sessions of other users are imported only on request.
async fn existing_sessions_are_replaced_only_on_request(store: Store) {
    for one in [target("s"), target_of("ben", "p", "s")] {
        store.sync(&one, vec![lines::user("first"), lines::assistant("second")]).await;
        store.sync_events(&one, vec![lines::logger_event("tool:post")]).await;
    }
    let archive = exported(&store, &Scope::Everyone).await;
    store.sync(&target("s"), vec![lines::user("other"), lines::user("words"), lines::user("here")]).await;
    let changed = exported(&store, &Scope::Everyone).await;

    let import = async |options: ImportOptions| imported(&store, &archive, &options).await.unwrap();
    let report = import(ImportOptions::default()).await;
    assert_eq!((report.sessions, report.refused.len()), (0, 2));
    assert_eq!(exported(&store, &Scope::Everyone).await, changed);

    let ana = target("s").key.user_id;
    let report = import(ImportOptions::default().with_replace(true).with_owner(Some(ana))).await;
    assert_eq!((report.sessions, report.replaced, report.refused.len()), (1, 1, 1));
    assert_eq!(report.refused[0].user_id.as_str(), "ben");
    assert_eq!(exported(&store, &Scope::Everyone).await, archive);
    assert_eq!(store.stored(&target("s")).await.session.message_count, 2);
}

/// An archive without checksums, as versions before them wrote it.
fn without_checksums(archive: &str) -> String {
    let line = |line: &str| {
        let mut record: serde_json::Map<String, serde_json::Value> = serde_json::from_str(line).unwrap();
        record.remove("checksum");
        record.remove("checksums");
        serde_json::to_string(&record).unwrap() + "\n"
    };
    archive.lines().map(line).collect()
}

/// The archive with the checksums of its lines as they are now.
fn with_right_checksums(archive: &str) -> String {
    let mut right = Vec::new();
    let mut writer = JsonLinesWriter::new(&mut right);
    archive.lines().for_each(|line| writer.put(serde_json::from_str(line).unwrap()).unwrap());
    String::from_utf8(right).unwrap()
}

/// A broken line costs its session. The others are imported, and the report says what is broken.
async fn a_broken_line_costs_its_session(store: Store) {
    for session in ["a", "b", "c"] {
        store.sync(&target(session), vec![lines::user("hello"), lines::assistant("world")]).await;
        store.sync_events(&target(session), vec![lines::logger_event("tool:post")]).await;
    }
    let scope = Scope::from(target("a").key.user_id);
    let archive = exported(&store, &scope).await;
    let good: Vec<&str> = archive.lines().collect();
    assert_eq!(good.len(), 17);
    // The sessions in the archive.
    let names: Vec<String> = [1, 6, 11].map(|line: usize| session_of(good[line])).to_vec();
    let flipped = good[8].replace("world", "worle");
    let event = good[9].replace("tool:post", "tool:pre\"");
    let event_line = good[9].replacen("\\\"event\\\"", "\\\"evenT\\\"", 1);
    assert_ne!(event_line, good[9]);
    let cases: [(usize, &str, &str); 9] = [
        (7, "{\"record\":", "is not an archive record"),
        (7, "{\"record\":\"spaceship\"}", "spaceship"),
        (8, &flipped, "checksum does not match"),
        (9, &event, "is not an archive record"),
        (9, &event_line, "digest does not match"),
        (8, good[7], "is out of order"),
        (10, "{\"record\":\"end\",\"messages\":3,\"events\":1}", ""),
        (10, "broken", "is not an archive record"),
        (6, "{\"record\":\"archive\",\"format\":1,\"writer\":\"\"}", "second header"),
    ];
    for (at, wrong, says) in cases {
        for session in ["a", "b", "c"] {
            store.backend.delete_session(&target(session).key).await.unwrap();
        }
        let mut lines = good.clone();
        lines[at] = wrong;
        let report = imported(&store, &lines.join("\n"), &ImportOptions::default()).await.unwrap();
        assert_eq!((report.sessions, report.messages, report.events), (2, 4, 2), "{wrong}: {report:?}");
        assert_eq!(report.broken.len(), 1, "{wrong}: {report:?}");
        let broken = &report.broken[0];
        assert!(broken.reason.contains(says), "{wrong}: {report:?}");
        let at = if wrong == flipped { 10 } else { at };
        assert_eq!(broken.place, format!("line {}", at + 1), "{wrong}");
        let session = broken.session_id.as_ref().map(SessionId::as_str);
        assert_eq!(session, (at != 6).then_some(names[1].as_str()), "{wrong}");
        let stored = exported(&store, &scope).await;
        assert!(!stored.contains(&format!("\"session_id\":\"{}\"", names[1])), "{wrong}");
    }
}

/// The id of the session that a line begins.
fn session_of(line: &str) -> String {
    let record: serde_json::Value = serde_json::from_str(line).unwrap();
    record["session"]["session_id"].as_str().unwrap().to_owned()
}

/// An archive without its beginning, its end or a session is noticed.
async fn an_incomplete_archive_is_noticed(store: Store) {
    for session in ["a", "b"] {
        store.sync(&target(session), vec![lines::user("hello"), lines::assistant("world")]).await;
    }
    let scope = Scope::from(target("a").key.user_id);
    let archive = exported(&store, &scope).await;
    let good: Vec<&str> = archive.lines().collect();
    assert_eq!(good.len(), 10);
    let replace = ImportOptions::default().with_replace(true);
    for (wrong, sessions, says) in [
        (good[..8].join("\n"), 1, "in the middle of a session"),
        (good[..9].join("\n"), 2, "is cut short after 2 sessions"),
        ([&good[..5], &good[9..]].concat().join("\n"), 1, "should have 2 sessions, but has 1"),
        ([&good[..1], &good[5..9], &good[1..5], &good[9..]].concat().join("\n"), 2, "out of order"),
        (format!("{archive}{}", good[0]), 2, "continues after its end"),
        ([&["{\"record\":\"archive"], &good[1..]].concat().join("\n"), 2, "is not an archive record"),
    ] {
        let report = imported(&store, &wrong, &replace).await.unwrap();
        assert_eq!((report.sessions, report.broken.len()), (sessions, 1), "{says}: {report:?}");
        assert!(report.broken[0].reason.contains(says), "{says}: {report:?}");
    }
    for (whole, says) in [
        ("", "is empty"),
        ("{\"record\":\"again\"}", "is not an archive"),
        ("{\"role\":\"user\"}\n{\"role\":\"user\"}", "is not an archive record"),
        (without_checksums(&archive).as_str(), "has no checksums"),
    ] {
        let error = imported(&store, whole, &ImportOptions::default()).await.unwrap_err();
        assert!(error.message().contains(says), "{whole}: {error}");
        assert_eq!((error.kind(), error.field()), (ErrorKind::Validation, Some(ErrorField::Archive)));
    }
    // Rows that are added later would leave a gap.
    let lying = with_right_checksums(&archive.replace("\"message_count\":2", "\"message_count\":5"));
    let report = imported(&store, &lying, &replace).await.unwrap();
    assert_eq!((report.sessions, report.broken.len()), (0, 2), "{report:?}");
    assert!(report.broken[0].reason.contains("rows of the session are missing"), "{report:?}");
    let spaced = format!("{}\n\n", archive.replace('\n', "\n \r\n"));
    let report = imported(&store, &spaced, &replace).await.unwrap();
    assert_eq!((report.sessions, report.broken.len()), (2, 0), "{report:?}");
    let newer = archive.replacen("\"format\":1", "\"format\":2", 1);
    let error = imported(&store, &newer, &ImportOptions::default()).await;
    assert!(error.unwrap_err().to_string().contains("format 2"));
}

/// A session that is larger than what is written at a time is imported in parts, and only if it is whole.
async fn large_sessions_are_checked_before_they_are_stored(store: Store) {
    let large = target("large");
    store.sync(&large, vec![lines::user("hello"), lines::assistant("world")]).await;
    let text = noise(1, 1_000_000);
    let event =
        |n: usize| RawJson::from(format!(r#"{{"event":"note","data":{{"n":"{n} {text}"}}}}"#).as_str());
    store.sync_events(&large, (0..40).map(event).collect()).await;
    let mut ingest = store.storage.ingestion().ingest(large.clone()).await.unwrap();
    ingest.set_sync_state("as far as this".to_owned());
    ingest.commit().await.unwrap();
    store.sync(&target("small"), vec![lines::user("hello")]).await;
    let scope = Scope::from(large.key.user_id.clone());
    let archive = exported(&store, &scope).await;
    let seekable = async |archive: &str, options: ImportOptions| {
        let mut reader = JsonLinesReader::seekable(std::io::Cursor::new(archive.as_bytes()));
        store.storage.archive().import_sessions(&mut reader, &options).await.unwrap()
    };
    let replace = || ImportOptions::default().with_replace(true);
    let report = seekable(&archive, replace()).await;
    assert_eq!((report.sessions, report.replaced, report.broken.len()), (2, 2, 0), "{report:?}");
    assert!(exported(&store, &scope).await == archive);
    // One changed letter in its last line: what was stored stays.
    let at = archive.rfind(&format!("39 {text}")).unwrap();
    let mut broken = archive.clone().into_bytes();
    broken[at] = b'1';
    let report = seekable(std::str::from_utf8(&broken).unwrap(), replace()).await;
    assert_eq!((report.sessions, report.broken.len()), (1, 1), "{report:?}");
    assert!(exported(&store, &scope).await == archive);
    // Without its last line, the other session is imported all the same.
    let end = |line: &&str| !line.contains("\"messages\":2,\"events\":40");
    let cut: Vec<&str> = archive.lines().filter(end).collect();
    let report = seekable(&cut.join("\n"), replace()).await;
    assert_eq!((report.sessions, report.broken.len()), (1, 1), "{report:?}");
    store.backend.delete_session(&large.key).await.unwrap();
    let report = seekable(&archive, replace()).await;
    assert_eq!((report.sessions, report.replaced), (2, 1), "{report:?}");
    assert!(exported(&store, &scope).await == archive);
}

/// A session is refused with a reason if one of its event ids belongs to another session.
async fn event_ids_of_other_sessions_are_refused(store: Store) {
    let event =
        || RawJson::from(r#"{"event":"note","event_id":"e-1","ts":"2026-01-05T08:00:00Z","data":{}}"#);
    store.sync_events(&target("a"), vec![event()]).await;
    let scope = Scope::from(target("a").key.user_id);
    let archive = exported(&store, &scope).await;
    assert!(archive.contains("\"event_id\":\"e-1\""), "{archive}");
    store.backend.delete_session(&target("a").key).await.unwrap();
    store.sync_events(&target("b"), vec![event()]).await;
    let report = imported(&store, &archive, &ImportOptions::default()).await.unwrap();
    assert_eq!((report.sessions, report.refused.len()), (0, 1));
    assert!(report.refused[0].reason.contains("session b"), "{:?}", report.refused);
}

async fn exported_with_vectors(store: &Store) -> String {
    let mut archive = Vec::new();
    let mut writer = JsonLinesWriter::new(&mut archive).with_vectors(true);
    let report =
        store.storage.archive().export_sessions(&ana(), SessionFilter::default(), &mut writer).await.unwrap();
    assert_eq!(report.vectors, archive_vectors(&archive));
    String::from_utf8(archive).unwrap()
}

fn archive_vectors(archive: &[u8]) -> u64 {
    String::from_utf8_lossy(archive).matches("\"chunk_index\"").count() as u64
}

/// Vectors come back with the sessions, if the store takes those of their space. Nothing is embedded for it.
async fn vectors_are_in_archives_on_request(store: Store) {
    let target = target("s");
    store.embedding.refuse(Some("unspeakable"));
    let long = "a long text about the nightly import. ".repeat(400);
    store
        .sync(&target, vec![lines::user("unspeakable"), lines::thinking("hm", "fine"), lines::user(&long)])
        .await;
    store.embedding.refuse(None);
    let (vectors, archive) = (store.vectors(&target).await, exported_with_vectors(&store).await);
    assert_eq!(archive_vectors(archive.as_bytes()), vectors.len() as u64);
    assert!(vectors.len() >= 3 && archive_vectors(exported(&store, &ana()).await.as_bytes()) == 0);

    store.backend.delete_session(&target.key).await.unwrap();
    store.embedding.reset_counts();
    let report = imported(&store, &archive, &ImportOptions::default()).await.unwrap();
    assert_eq!((report.sessions, report.vectors), (1, vectors.len() as u64), "{report:?}");
    assert_eq!(store.vectors(&target).await, vectors);
    assert!(store.pending(&target).await.is_empty());
    assert_eq!(store.embed().await.messages, 0);
    assert_eq!((store.embedding.calls(), exported_with_vectors(&store).await), (0, archive.clone()));

    let other = Store::open(std::sync::Arc::new(MemoryBackend::new())).await;
    let other = other.with_embedding(FakeEmbedding::new().with_model("another"));
    other.sync(&target_of("ana", "shop", "t"), vec![lines::user("hello")]).await;
    let report = imported(&other, &archive, &ImportOptions::default()).await.unwrap();
    assert_eq!((report.vectors, report.vectors_left_out), (0, vectors.len() as u64), "{report:?}");
    assert_eq!(other.pending(&target).await, [0, 1, 2]);
}

/// A vector that can't be one of its message costs the session, as any other broken part does.
async fn wrong_vectors_cost_their_session(store: Store) {
    store.sync(&target("s"), vec![lines::user("hello")]).await;
    let archive = exported_with_vectors(&store).await;
    store.backend.delete_session(&target("s").key).await.unwrap();
    let vector = archive.split("\"vector\":\"").nth(1).unwrap().split('"').next().unwrap();
    for (right, wrong) in [
        (vector, "AAAA"),
        (vector, "?"),
        (vector, &"A".repeat(vector.len())[..]),
        ("\"span_end\":5", "\"span_end\":6"),
        ("\"user_query\"", "\"assistant_response\""),
        ("\"total_chunks\":1", "\"total_chunks\":0"),
    ] {
        let changed = archive.replacen(right, wrong, 1);
        assert_ne!(changed, archive);
        let changed = with_right_checksums(&changed);
        let report = imported(&store, &changed, &ImportOptions::default()).await.unwrap();
        assert_eq!((report.sessions, report.broken.len()), (0, 1), "{wrong}: {report:?}");
        assert!(report.broken[0].reason.contains("vector"), "{wrong}: {report:?}");
    }
    assert_eq!(imported(&store, &archive, &ImportOptions::default()).await.unwrap().vectors, 1);
}

async fn archives_of_an_earlier_version_are_imported(store: Store) {
    let backend: Arc<dyn StorageBackend> = store.backend.clone();
    let importing = earlier::storage(backend.clone()).await;
    let mut archive = JsonLinesReader::new(earlier::ARCHIVE.as_bytes());
    let report = importing.archive().import_sessions(&mut archive, &ImportOptions::default()).await.unwrap();
    assert_eq!((report.sessions, report.messages, report.events), (3, 10, 4));
    assert_eq!((report.vectors, report.turns, report.summaries, report.superseded), (8, 2, 1, 1));
    assert_eq!((report.refused.len(), report.broken.len()), (0, 0));
    earlier::check_contents(&earlier::storage(backend).await).await;
}
