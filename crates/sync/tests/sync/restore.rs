//! Stored sessions written back as folders.

use std::{fs, path::Path, sync::Arc};

use amplifier_session_core::{
    Result, SessionStorage,
    backend::StorageBackendExt,
    model::{ProjectSlug, RawJson, SessionId, SessionKey},
    storage::{EventDetail, IngestTarget, SyncLines},
};
use amplifier_session_sync::{
    DiffersBecause, NoProgress, RestoreOptions, RestoreReport, SyncOptions, restore, sync,
};
use amplifier_session_testkit::{MemoryBackend, erasure::contents, lines, samples, store::target_of};

use crate::fixture::{Fixture, scope, set_modified, user};

impl Fixture {
    async fn restore_with(&self, options: RestoreOptions) -> Result<RestoreReport> {
        restore(&self.storage, &options, &NoProgress).await
    }

    async fn restore(&self, to: &Path) -> RestoreReport {
        self.restore_with(RestoreOptions::new(to, scope())).await.unwrap()
    }

    /// A session with all files, whose lines are easily corrupted.
    fn put_awkward(&self, session: &str) {
        let folder = self.session("-home-ana-shop", session);
        let raws = |lines: Vec<(&'static str, RawJson)>| lines.into_iter().map(|(_, line)| line);
        folder.transcript(raws(samples::awkward_messages())).unwrap();
        let (_, metadata) = samples::awkward_metadata().swap_remove(0);
        folder.file("metadata.json", metadata.as_bytes()).unwrap();
        folder.file("context-intelligence/metadata.json", r#"{"working_dir":"/w","x":1.10}"#).unwrap();
        let mut events: Vec<u8> = Vec::new();
        for (number, (_, event)) in samples::awkward_events().into_iter().enumerate() {
            events.extend(event.as_bytes());
            events.push(b'\n');
            let text = "filler ".repeat(if number % 2 == 0 { 3_000 } else { 200_000 });
            events.extend(format!("{{\"event\":\"tool:post\",\"data\":{{\"n\":\"{text}\"}}}}\n").as_bytes());
        }
        folder.file("context-intelligence/events.jsonl", events).unwrap();
    }
}

/// The digests of all rows of a session.
async fn digests(storage: &SessionStorage, session: &str) -> String {
    let key = SessionKey::new(user(), SessionId::new(session).unwrap());
    let messages = storage.backend().message_states(&key).await.unwrap();
    let all = amplifier_session_core::backend::SequenceRange { start: 0, limit: usize::MAX };
    let events = storage.backend().event_digests(&key, all).await.unwrap();
    let messages: Vec<_> = messages.into_iter().map(|message| message.digest).collect();
    format!("{messages:?} {events:?}")
}

/// A link could lead out of the target.
#[cfg(unix)]
#[tokio::test]
async fn links_in_the_target_are_not_followed() {
    use std::os::unix::fs::symlink;

    let fixture = Fixture::new();
    let session = fixture.session("p", "s");
    session.transcript([lines::user("Hello")]).unwrap();
    session.file("context-intelligence/metadata.json", r#"{"x":1}"#).unwrap();
    fixture.sync().await;
    let linked = [
        "projects",
        "projects/p",
        "projects/p/sessions",
        "projects/p/sessions/s",
        "projects/p/sessions/s/context-intelligence",
        "projects/p/sessions/s/transcript.jsonl",
    ];
    for link in linked {
        let home = tempfile::tempdir().unwrap();
        let (elsewhere, to) = (home.path().join("elsewhere"), home.path().join("to"));
        let link = to.join(link);
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        // A dangling link, and one to a folder or a file.
        for exists in [false, true] {
            if exists && link.ends_with("transcript.jsonl") {
                fs::write(&elsewhere, "theirs").unwrap();
            } else if exists {
                fs::create_dir(&elsewhere).unwrap();
            }
            symlink(&elsewhere, &link).unwrap();
            let options = RestoreOptions::new(&to, scope()).with_overwrite(true);
            let reason = match fixture.restore_with(options).await {
                Ok(report) => report.failed[0].reason.clone(),
                Err(error) => error.to_string(),
            };
            assert!(reason.contains("is a link"), "{link:?}: {reason}");
            assert!(link.is_symlink());
            fs::remove_file(&link).unwrap();
        }
        if elsewhere.is_dir() {
            assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0, "{link:?}");
        } else {
            assert_eq!(fs::read_to_string(&elsewhere).unwrap(), "theirs");
        }
    }
    // The target itself may be a link.
    let home = tempfile::tempdir().unwrap();
    symlink(home.path(), home.path().join("link")).unwrap();
    assert_eq!(fixture.restore(&home.path().join("link")).await.sessions, 1);
}

#[tokio::test]
async fn restored_files_are_those_that_were_synced() {
    let fixture = Fixture::new();
    fixture.put_awkward("s");
    let other = fixture.session("p", "t");
    other.transcript([lines::user("Hello")]).unwrap().events([lines::logger_event("session:start")]).unwrap();
    fixture.session("p", "empty").file("transcript.jsonl", "").unwrap();
    fixture.session("p", "unended").file("transcript.jsonl", lines::user("Hello").raw().as_bytes()).unwrap();
    fixture.session("p", "marked").file("metadata.json", "\u{feff}{\"name\":\"n\"}").unwrap();
    fixture.sync().await;
    let to = tempfile::tempdir().unwrap();
    let report = fixture.restore(to.path()).await;
    assert_eq!((report.sessions, report.unchanged, report.failed.len()), (5, 0, 0), "{report:?}");
    assert!(report.differing.is_empty() && report.damaged.is_empty(), "{report:?}");
    let (restored, original) = (contents(to.path()), contents(fixture.home.path()));
    assert!(restored == original, "{:?} for {:?}", restored.keys(), original.keys());
    assert_eq!(report.bytes, original.values().map(|content| content.len() as u64).sum::<u64>());

    // In another store, they are the same sessions.
    let storage = SessionStorage::new(Arc::new(MemoryBackend::new()));
    let options = SyncOptions::new(to.path(), user(), fixture.options().host);
    assert_eq!(sync(&storage, &options, &NoProgress).await.unwrap().sessions.new, 5);
    for session in ["s", "t", "empty", "unended", "marked"] {
        assert_eq!(digests(&storage, session).await, digests(&fixture.storage, session).await);
    }
    assert_eq!(fixture.restore(to.path()).await.unchanged, 5);
}

#[tokio::test]
async fn lines_in_other_formats_are_restored_as_they_were_written() {
    let fixture = Fixture::new();
    let lines = samples::messages_in_other_formats();
    fixture.folder().transcript(lines.iter().map(|(_, line)| line.clone())).unwrap();
    let report = fixture.sync().await;
    assert_eq!((report.skipped_count, report.warning_count), (0, 0), "{report:?}");
    assert_eq!(fixture.stored("s").await.unwrap().session.message_count as usize, lines.len());
    let to = tempfile::tempdir().unwrap();
    fixture.restore(to.path()).await;
    assert!(contents(to.path()) == contents(fixture.home.path()));
    assert_eq!(fixture.sync().await.sessions.unchanged, 1);
}

#[cfg(unix)]
#[tokio::test]
async fn only_the_owner_can_read_restored_files() {
    use std::os::unix::fs::PermissionsExt;

    let fixture = Fixture::new();
    fixture.put_awkward("s");
    fixture.sync().await;
    let to = tempfile::tempdir().unwrap();
    let to = to.path().join("new");
    fixture.restore(&to).await;
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    for file in contents(&to).keys() {
        assert_eq!(mode(&to.join(file)), 0o600);
        file.ancestors().skip(1).for_each(|folder| assert_eq!(mode(&to.join(folder)), 0o700));
    }
}

#[tokio::test]
async fn files_that_exist_are_kept_unless_they_may_be_replaced() {
    let fixture = Fixture::new();
    fixture.put_awkward("s");
    fixture.put_awkward("t");
    fixture.sync().await;
    let to = tempfile::tempdir().unwrap();
    fixture.restore(to.path()).await;
    let whole = contents(to.path());
    let folder = to.path().join("projects/-home-ana-shop/sessions/s");
    // A file of Amplifier's that no sync reads.
    fs::write(folder.join("notes.txt"), "mine").unwrap();
    fs::remove_file(folder.join("context-intelligence/events.jsonl")).unwrap();
    fs::write(folder.join("transcript.jsonl"), "{\"role\":\"user\",\"content\":\"other\"}\n").unwrap();
    let changed = contents(to.path());

    let report = fixture.restore(to.path()).await;
    assert_eq!((report.sessions, report.unchanged, report.failed.len()), (1, 1, 1));
    let reason = &report.failed[0].reason;
    assert!(
        reason.starts_with("transcript.jsonl exists in ") && reason.ends_with(" and differs"),
        "{reason}"
    );
    assert_eq!(contents(to.path()), changed);

    let overwrite = || RestoreOptions::new(to.path(), scope()).with_overwrite(true);
    fs::write(folder.join("transcript.jsonl.append-pending"), "").unwrap();
    let report = fixture.restore_with(overwrite()).await.unwrap();
    assert!(report.failed[0].reason.starts_with("another program is writing"), "{report:?}");
    fs::remove_file(folder.join("transcript.jsonl.append-pending")).unwrap();
    let report = fixture.restore_with(overwrite()).await.unwrap();
    assert_eq!((report.sessions, report.unchanged, report.failed.len()), (2, 1, 0));
    fs::remove_file(folder.join("notes.txt")).unwrap();
    assert!(contents(to.path()) == whole);
}

#[tokio::test]
async fn what_is_not_stored_is_reported() {
    let mut fixture = Fixture::new();
    let line = r#"{"role":"user","content":"Hello"}"#;
    fixture.session("p", "crlf").file("transcript.jsonl", format!("{line}\r\n{line}\r\n")).unwrap();
    let too_long = "x".repeat((64 << 20) + 1);
    fixture
        .session("p", "skipped")
        .file("transcript.jsonl", format!("{line}\n{too_long}\n{line}\n"))
        .unwrap();
    fixture.session("p", "kept").file("transcript.jsonl", format!("{line}\n")).unwrap();
    fixture.sync().await;
    let emptied = fixture.session("p", "kept");
    emptied.file("transcript.jsonl", "").unwrap();
    set_modified(&emptied.path().join("transcript.jsonl"), "2026-01-05T08:00:01Z");
    fixture.keep_events(EventDetail::Summary);
    let summary = fixture.session("p", "summary");
    summary.transcript([line]).unwrap().events([lines::logger_event("session:start")]).unwrap();
    fixture.sync().await;
    fixture.keep_events(EventDetail::None);
    let none = fixture.session("p", "none");
    none.transcript([line]).unwrap().events([lines::logger_event("session:start")]).unwrap();
    fixture.sync().await;

    let to = tempfile::tempdir().unwrap();
    let report = fixture.restore(to.path()).await;
    let mut found: Vec<_> = report
        .differing
        .iter()
        .map(|file| (file.session_id.as_str(), file.file.as_str(), file.because, file.reason.as_str()))
        .collect();
    found.sort_unstable_by_key(|(session, ..)| *session);
    let no_lines = "not written: the store does not have its lines (see `sync --events`)";
    assert_eq!(
        found,
        [
            ("crlf", "transcript.jsonl", DiffersBecause::OtherSize, "has 68 bytes; the synced file had 70"),
            (
                "kept",
                "transcript.jsonl",
                DiffersBecause::KeptRows,
                "has 1 line more than the synced file, which is empty"
            ),
            ("none", "events.jsonl", DiffersBecause::NoLines, no_lines),
            (
                "skipped",
                "transcript.jsonl",
                DiffersBecause::SkippedLines,
                "1 line was skipped when it was synced, and not stored"
            ),
            ("summary", "events.jsonl", DiffersBecause::NoLines, no_lines),
        ]
    );
    assert_eq!((report.sessions, report.failed.len()), (5, 0));
    let restored = contents(to.path());
    let transcript = |session: &str| {
        let path = format!("projects/p/sessions/{session}/transcript.jsonl");
        String::from_utf8(restored[Path::new(&path)].clone()).unwrap()
    };
    for session in ["crlf", "skipped"] {
        assert_eq!(transcript(session), format!("{line}\n{line}\n"));
    }
    assert_eq!(transcript("kept"), format!("{line}\n"));
    assert_eq!(restored.len(), 5, "no event log: {:?}", restored.keys());
}

#[tokio::test]
async fn names_in_the_store_do_not_lead_out_of_the_folder() {
    let fixture = Fixture::new();
    let hello = || SyncLines::whole(vec![lines::user("Hello").into()]);
    for (project, session) in [("..", "a"), ("../../..", "b"), ("/tmp", "c"), ("p/q", "d"), ("p", "good")] {
        let target = IngestTarget {
            project_slug: ProjectSlug::new(project).unwrap(),
            ..target_of("ana", "p", session)
        };
        fixture.storage.ingestion().sync_transcript_lines(&target, hello()).await.unwrap();
    }
    let mut ingest = fixture.storage.ingestion().ingest(target_of("ana", "p", "e")).await.unwrap();
    let name = "../../metadata.json".to_owned();
    ingest
        .set_metadata(vec![amplifier_session_core::model::MetadataFile { name, raw: RawJson::from("{}") }])
        .unwrap();
    ingest.commit().await.unwrap();
    let outer = tempfile::tempdir().unwrap();
    let report = fixture.restore(&outer.path().join("to")).await;
    assert_eq!((report.sessions, report.failed.len()), (1, 5), "{report:?}");
    let found: Vec<_> = contents(outer.path()).into_keys().collect();
    assert_eq!(found, [Path::new("to/projects/p/sessions/good/transcript.jsonl")]);
}

#[tokio::test]
async fn sessions_of_several_users_do_not_share_a_folder() {
    let fixture = Fixture::new();
    for user in ["ana", "ben"] {
        let hello = SyncLines::whole(vec![lines::user(user).into()]);
        fixture.storage.ingestion().sync_transcript_lines(&target_of(user, "p", "s"), hello).await.unwrap();
    }
    let to = tempfile::tempdir().unwrap();
    let everyone = RestoreOptions::new(to.path(), amplifier_session_core::Scope::Everyone);
    let report = fixture.restore_with(everyone.with_overwrite(true)).await.unwrap();
    assert_eq!((report.sessions, report.failed.len()), (1, 1));
    assert!(report.failed[0].reason.contains("another user's session"), "{report:?}");
}

/// macOS writes accents of folder names as characters of their own. The project has one name, and its folder keeps its
/// own.
#[tokio::test]
async fn a_folder_with_decomposed_accents_keeps_its_name() {
    let fixture = Fixture::new();
    fixture.session("-Users-zoe\u{308}-cafe\u{301}", "s").transcript([lines::user("Hello")]).unwrap();
    fixture.sync().await;
    let key = SessionKey::new(user(), SessionId::new("s").unwrap());
    let stored = fixture.storage.backend().get_session(&key).await.unwrap().unwrap();
    assert_eq!(stored.session.project_slug.as_str(), "-Users-zoë-café");
    assert_eq!(fixture.sync().await.sessions.unchanged, 1);
    let to = tempfile::tempdir().unwrap();
    fixture.restore(to.path()).await;
    assert_eq!(contents(&fixture.home.path().join("projects")), contents(&to.path().join("projects")));
    let excluded = fixture.options().with_exclude(["-Users-zoë-café/*"]).with_dry_run(true);
    let report = sync(&fixture.storage, &excluded, &NoProgress).await.unwrap();
    assert_eq!(report.sessions.found, 0);
}
