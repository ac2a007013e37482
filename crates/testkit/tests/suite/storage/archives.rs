//! Export of sessions as JSON Lines, and import.

use amplifier_session_testkit::prelude::*;

on_both_stores![
    sessions_come_back_as_they_were,
    existing_sessions_are_replaced_only_on_request,
    a_broken_archive_imports_only_complete_sessions,
    event_ids_of_other_sessions_are_refused,
];

async fn exported(store: &Store, scope: &Scope) -> String {
    let mut archive = Vec::new();
    let mut writer = JsonLinesWriter::new(&mut archive);
    store.storage.export_sessions(scope, SessionFilter::default(), &mut writer).await.unwrap();
    String::from_utf8(archive).unwrap()
}

async fn imported(store: &Store, archive: &str, options: &ImportOptions) -> Result<ImportReport> {
    store.storage.import_sessions(&mut JsonLinesReader::new(archive.as_bytes()), options).await
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
    let mut ingest = store.storage.ingest(target.clone()).await.unwrap();
    ingest.set_metadata(vec![MetadataFile { name: "metadata.json".to_owned(), raw: metadata }]).unwrap();
    ingest.set_skipped(vec![SkippedLine {
        file: "events.jsonl".to_owned(),
        line: 7,
        reason: "broken".to_owned(),
    }]);
    ingest.set_sync_state("as far as this".to_owned());
    ingest.commit().await.unwrap();
    let edit = SessionEdit::default().set_name("By hand");
    store.storage.update_session(&target.key, &edit).await.unwrap();
    let without_lines = target_of("ana", "p", "t");
    let settings = store.storage.settings().clone().with_events(EventDetail::Summary);
    let summaries = SyncLines::whole(vec![lines::logger_event("tool:post").into()]);
    store.storage.clone().with_settings(settings).sync_event_lines(&without_lines, summaries).await.unwrap();

    let scope = Scope::from(target.key.user_id.clone());
    let archive = exported(&store, &scope).await;
    for key in [&target.key, &without_lines.key] {
        assert!(store.backend.delete_session(key).await.unwrap());
    }
    let report = imported(&store, &archive, &ImportOptions::default()).await.unwrap();
    assert_eq!((report.sessions, report.refused.len()), (2, 0));
    assert_eq!(exported(&store, &scope).await, archive);
    let stored = store.stored(&target).await;
    assert_eq!((stored.session.name.as_deref(), stored.skipped.len()), (Some("By hand"), 1));
    assert_eq!(stored.sync_state.as_deref(), Some("as far as this"));
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

/// Importing a broken archive stores the sessions that are complete before the broken line, and no incomplete one.
async fn a_broken_archive_imports_only_complete_sessions(store: Store) {
    for session in ["a", "b"] {
        store.sync(&target(session), vec![lines::user("hello"), lines::assistant("world")]).await;
    }
    let scope = Scope::from(target("a").key.user_id);
    let archive = exported(&store, &scope).await;
    let good: Vec<&str> = archive.lines().collect();
    assert_eq!(good.len(), 10);
    for (at, wrong, says) in [
        (7, "{\"record\":", "is not a record"),
        (7, "{\"record\":\"spaceship\"}", "spaceship"),
        (7, good[6], "does not follow"),
        (8, "{\"record\":\"end\",\"messages\":3,\"events\":0}", "rows of the session are missing"),
        (8, good[0], "begins a second time"),
    ] {
        for session in ["a", "b"] {
            store.backend.delete_session(&target(session).key).await.unwrap();
        }
        let mut lines = good.clone();
        lines[at] = wrong;
        let broken = lines.join("\n");
        let error = imported(&store, &broken, &ImportOptions::default()).await.unwrap_err();
        assert_eq!(
            (error.kind(), error.context("field")),
            (ErrorKind::Validation, Some("archive")),
            "{wrong}"
        );
        assert!(error.message().contains(says), "{wrong}: {error}");
        assert_eq!(error.context("line"), Some((at + 1).to_string().as_str()), "{wrong}");
        assert_eq!(exported(&store, &scope).await.lines().count(), 6, "{wrong}: one session");
    }
    let cut = good[..8].join("\n");
    let error = imported(&store, &cut, &ImportOptions::default().with_replace(true)).await;
    assert!(error.unwrap_err().to_string().contains("in the middle of a session"));
    let replace = ImportOptions::default().with_replace(true);
    for (wrong, says) in [
        (good[..9].join("\n"), "ends before its last line; it had 2 sessions"),
        ([&good[..5], &good[9..]].concat().join("\n"), "should have 2 sessions, but has 1"),
        (format!("{archive}{}", good[0]), "continues after its end"),
    ] {
        let error = imported(&store, &wrong, &replace).await.unwrap_err();
        assert!(error.message().contains(says), "{says}: {error}");
    }
    for (whole, says) in [("", "is empty"), ("{\"record\":\"again\"}", "is not an archive")] {
        let error = imported(&store, whole, &ImportOptions::default()).await;
        assert!(error.unwrap_err().to_string().contains(says), "{whole}");
    }
    // Rows that are added later would leave a gap.
    let lying = archive.replace("\"message_count\":2", "\"message_count\":5");
    let error = imported(&store, &lying, &ImportOptions::default().with_replace(true)).await;
    assert!(error.unwrap_err().message().contains("rows of the session are missing"));
    let spaced = format!("{}\n\n", archive.replace('\n', "\n \r\n"));
    let report = imported(&store, &spaced, &ImportOptions::default().with_replace(true)).await.unwrap();
    assert_eq!(report.sessions, 2);
    let newer = archive.replacen("\"format\":1", "\"format\":2", 1);
    let error = imported(&store, &newer, &ImportOptions::default()).await;
    assert!(error.unwrap_err().to_string().contains("format 2"));
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
