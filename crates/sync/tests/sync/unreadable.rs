//! Lines and files that can't be read: what they contain is kept, and what is missing is named.

use std::fs;

use amplifier_session_core::{
    backend::SupersededQuery,
    model::{LineKind, SupersededReason},
};
use amplifier_session_sync::{NoProgress, RestoreOptions, RestoreReport, SyncReport, restore};
use amplifier_session_testkit::lines;

use crate::fixture::{Fixture, scope, set_modified, skipped};

const TRANSCRIPT: &str = "transcript.jsonl";
const BACKUP: &str = "transcript.jsonl.backup";
const EVENTS: &str = "events.jsonl";

fn message(text: &str) -> String {
    lines::user(text).raw().to_text().into_owned()
}

/// A transcript of user messages, each with a newline.
fn messages(texts: &[&str]) -> String {
    texts.iter().map(|text| message(text) + "\n").collect()
}

async fn restored(fixture: &Fixture) -> (tempfile::TempDir, RestoreReport) {
    let to = tempfile::tempdir().unwrap();
    let report =
        restore(&fixture.storage, &RestoreOptions::new(to.path(), scope()), &NoProgress).await.unwrap();
    (to, report)
}

/// The lines that the store keeps although they are no rows: their kinds and numbers in the file.
async fn kept(fixture: &Fixture) -> Vec<(LineKind, u32)> {
    let mut all = fixture.storage.superseded().superseded_lines(SupersededQuery::new(scope()));
    let mut found = Vec::new();
    while let Some(lines) = all.next().await.unwrap() {
        let unreadable = lines.iter().filter(|line| line.reason == SupersededReason::Unreadable);
        found.extend(unreadable.map(|line| (line.kind, line.sequence)));
    }
    found
}

fn reasons(report: &SyncReport) -> Vec<String> {
    let reason = |skipped: &amplifier_session_sync::Skipped| {
        format!("{} {}", skipped.file.as_deref().unwrap_or_default(), skipped.reason)
    };
    report.skipped.iter().map(reason).collect()
}

#[tokio::test]
async fn lines_that_are_no_rows_are_restored_where_they_were() {
    let fixture = Fixture::new();
    let not_utf8 = b"\xff\xfe not text\n".to_vec();
    let transcript = [
        b"not json\n".to_vec(),
        messages(&["one"]).into_bytes(),
        b"{\"content\":\"no role\"}\n".to_vec(),
        b"[1]\n".to_vec(),
        b"[1]\n".to_vec(),
        b"{\"role\":\"oracle\",\"content\":\"x\"}\n".to_vec(),
        not_utf8,
        messages(&["two"]).into_bytes(),
        b"{\"role\":\"user\",\"content\":\"tor".to_vec(),
    ]
    .concat();
    let event = lines::logger_event("session:start").raw().to_text().into_owned();
    let events = format!("{event}\n{{\"no\":\"event\"}}\n\0\0\0\n{event}\n");
    fixture.folder().file(TRANSCRIPT, &transcript).unwrap().file(EVENTS, &events).unwrap();
    let report = fixture.sync().await;
    let places: Vec<_> = [1, 3, 4, 5, 6, 7, 9].map(|line| (Some(TRANSCRIPT), Some(line))).into();
    assert_eq!(skipped(&report)[..7], places);
    assert_eq!(skipped(&report)[7..], [(Some(EVENTS), Some(2)), (Some(EVENTS), Some(3))]);
    assert_eq!((fixture.texts().await.len(), fixture.event_types().await.len()), (2, 2));

    let (to, report) = restored(&fixture).await;
    assert!(report.differing.is_empty(), "{:?}", report.differing);
    assert_eq!((report.messages, report.events), (2, 2));
    let folder = to.path().join("projects/p/sessions/s");
    assert_eq!(fs::read(folder.join(TRANSCRIPT)).unwrap(), transcript);
    assert_eq!(fs::read_to_string(folder.join(EVENTS)).unwrap(), events);
}

#[tokio::test]
async fn a_line_that_can_not_be_read_is_kept_once_even_if_it_goes_away() {
    let fixture = Fixture::with_atomic_writes();
    fixture.folder().file(TRANSCRIPT, messages(&["one"]) + "broken\n").unwrap();
    fixture.sync().await;
    fixture.sync_with(fixture.options().with_verify(true)).await;
    fixture.folder().file(TRANSCRIPT, messages(&["one"]) + "broken\n" + &messages(&["two"])).unwrap();
    fixture.sync().await;
    assert_eq!(kept(&fixture).await, [(LineKind::Message, 2)]);
    fixture.folder().file(TRANSCRIPT, messages(&["one", "two"])).unwrap();
    fixture.sync().await;
    assert_eq!(kept(&fixture).await, [(LineKind::Message, 2)]);
    let (to, _) = restored(&fixture).await;
    let transcript = fs::read_to_string(to.path().join("projects/p/sessions/s").join(TRANSCRIPT)).unwrap();
    assert_eq!(transcript, messages(&["one", "two"]), "it is not put back where it no longer is");
}

#[tokio::test]
async fn a_file_that_its_writer_may_complete_is_not_damaged() {
    let fixture = Fixture::new();
    let half = r#"{"role":"user","content":"hal"#;
    let session = fixture.folder();
    session.file(TRANSCRIPT, messages(&["one"]) + half).unwrap();
    let path = session.path().join(TRANSCRIPT);
    let sync_at = async |time| {
        fixture.clock.set(time);
        fixture.sync().await
    };
    set_modified(&path, "2026-01-01T10:00:00Z");
    let report = sync_at("2026-01-01T10:59:00Z").await;
    assert_eq!((report.unfinished.len(), reasons(&report).len()), (1, 0));
    assert_eq!((fixture.texts().await, kept(&fixture).await), (vec!["one".to_owned()], vec![]));
    let report = sync_at("2026-01-01T11:01:00Z").await;
    assert_eq!(report.unfinished.len(), 0);
    assert_eq!(reasons(&report), [format!("{TRANSCRIPT} is incomplete")]);
    assert_eq!(kept(&fixture).await, [(LineKind::Message, 2)]);
    assert_eq!(sync_at("2026-01-01T11:02:00Z").await.sessions.unchanged, 1);
    // The writer completes it after all.
    session.file(TRANSCRIPT, messages(&["one", "half", "three"])).unwrap();
    sync_at("2026-01-01T11:03:00Z").await;
    assert_eq!(fixture.texts().await, ["one", "half", "three"]);
}

#[tokio::test]
async fn an_empty_transcript_of_a_new_session_is_unfinished() {
    let fixture = Fixture::new();
    fixture.folder().metadata("{}").unwrap().file(TRANSCRIPT, "").unwrap();
    set_modified(&fixture.folder().path().join(TRANSCRIPT), "2026-01-01T10:00:00Z");
    fixture.clock.set("2026-01-01T10:30:00Z");
    let report = fixture.sync().await;
    assert_eq!((report.unfinished.len(), report.skipped.len()), (1, 0));
    fixture.clock.set("2026-01-01T11:30:00Z");
    let report = fixture.sync().await;
    assert_eq!((report.unfinished.len(), reasons(&report)), (0, vec![format!("{TRANSCRIPT} is empty")]));
}

#[tokio::test]
async fn binary_data_in_a_new_session_is_reported() {
    for content in [vec![0; 400], [messages(&["one"]).as_bytes(), &[0; 90]].concat()] {
        let fixture = Fixture::new();
        fixture.folder().file(TRANSCRIPT, &content).unwrap();
        let report = fixture.sync().await;
        assert_eq!(reasons(&report), [format!("{TRANSCRIPT} contains binary data")]);
        assert_eq!(kept(&fixture).await.len(), 1);
    }
}

#[tokio::test]
async fn the_backup_of_a_transcript_is_read_if_the_transcript_is_damaged() {
    let backup = messages(&["one", "two"]);
    let cases = [
        (None, "is missing: its backup is read"),
        (Some(Vec::new()), "is empty: its backup is read"),
        (Some(vec![0; 100]), "is damaged: its backup is read, which has as many messages or more"),
        (
            Some((messages(&["one"]) + r#"{"role":"us"#).into_bytes()),
            "is damaged: its backup is read, which has as many messages or more",
        ),
    ];
    for (transcript, reason) in cases {
        let fixture = Fixture::new();
        fixture.folder().file(BACKUP, &backup).unwrap();
        if let Some(transcript) = &transcript {
            fixture.folder().file(TRANSCRIPT, transcript).unwrap();
        }
        let report = fixture.sync().await;
        assert_eq!(reasons(&report), [format!("{TRANSCRIPT} {reason}")], "{transcript:?}");
        assert_eq!(fixture.texts().await, ["one", "two"], "{transcript:?}");
        let (again, read) = fixture.sync_and_count().await;
        assert_eq!((again.sessions.unchanged, read), (1, 0), "{transcript:?}");
        assert_eq!(reasons(&again), reasons(&report), "it is reported without being read again");
        assert_eq!(fixture.verify().await.difference_count, 0);
        // The writer has recovered.
        fixture.folder().file(TRANSCRIPT, messages(&["one", "two", "three"])).unwrap();
        fixture.sync().await;
        assert_eq!(fixture.texts().await, ["one", "two", "three"], "{transcript:?}");
    }
}

#[tokio::test]
async fn a_backup_that_is_no_better_is_not_read() {
    let torn = messages(&["one", "two", "three"]) + r#"{"role":"us"#;
    for backup in [messages(&["one", "two"]), messages(&["one", "two", "three", "four"]) + "\0\0"] {
        let fixture = Fixture::new();
        fixture.folder().file(BACKUP, backup).unwrap().file(TRANSCRIPT, &torn).unwrap();
        fixture.sync().await;
        assert_eq!(fixture.texts().await, ["one", "two", "three"]);
    }
}

#[tokio::test]
async fn the_backup_of_metadata_is_read_if_the_file_is_damaged() {
    for content in [None, Some(""), Some("{\"name\":"), Some("\0\0\0\0")] {
        let fixture = Fixture::new();
        let folder = fixture.folder();
        folder.transcript([lines::user("one")]).unwrap();
        folder.file("metadata.json.backup", r#"{"name":"From the backup"}"#).unwrap();
        if let Some(content) = content {
            folder.metadata(content).unwrap();
        }
        let report = fixture.sync().await;
        let what = if content.is_some() { "damaged" } else { "missing" };
        assert_eq!(reasons(&report), [format!("metadata.json is {what}: its backup is read")]);
        let stored = fixture.stored("s").await.unwrap();
        assert_eq!(stored.session.name.as_deref(), Some("From the backup"), "{content:?}");
        assert_eq!(fixture.sync().await.sessions.unchanged, 1);
        assert_eq!(fixture.verify().await.difference_count, 0, "{content:?}");
    }
}

#[tokio::test]
async fn a_mark_that_a_writer_left_an_hour_before_does_not_hide_a_turn() {
    let fixture = Fixture::new();
    let folder = fixture.folder();
    folder.file(BACKUP, messages(&["one"])).unwrap().file(TRANSCRIPT, messages(&["one", "two"])).unwrap();
    let mark = "transcript.jsonl.append-pending";
    folder.file(mark, "{\"version\":1}").unwrap();
    set_modified(&folder.path().join(TRANSCRIPT), "2026-01-01T10:30:00Z");
    set_modified(&folder.path().join(mark), "2026-01-01T10:00:00Z");
    fixture.sync().await;
    assert_eq!(fixture.texts().await, ["one"]);
    set_modified(&folder.path().join(mark), "2026-01-01T09:00:00Z");
    let report = fixture.sync().await;
    assert_eq!(fixture.texts().await, ["one", "two"]);
    let reason = "is more than an hour older than the transcript: it is ignored";
    assert_eq!(reasons(&report), [format!("{mark} {reason}")]);
}

#[cfg(unix)]
#[tokio::test]
async fn links_that_lead_nowhere_are_reported() {
    use std::os::unix::fs::symlink;
    let fixture = Fixture::new();
    let folder = fixture.folder();
    folder.transcript([lines::user("one")]).unwrap();
    let (sessions, projects) =
        (fixture.home.path().join("projects/p/sessions"), fixture.home.path().join("projects"));
    symlink("gone", sessions.join("dangling")).unwrap();
    symlink("circle", sessions.join("circle")).unwrap();
    symlink("gone", projects.join("q")).unwrap();
    symlink("gone", folder.path().join("metadata.json")).unwrap();
    symlink(EVENTS, folder.path().join(EVENTS)).unwrap();
    fixture.session("p", "t").file("metadata.json", "{}").unwrap();
    symlink("gone", sessions.join("t").join(TRANSCRIPT)).unwrap();
    let report = fixture.sync().await;
    let links = report.skipped.iter().map(|link| (link.project.as_str(), link.session.as_deref()));
    let mut links: Vec<_> = links.collect();
    links.sort_unstable();
    assert_eq!(links, [("p", Some("circle")), ("p", Some("dangling")), ("q", None)]);
    let mut files: Vec<_> = report.failures.iter().map(|failure| failure.error.as_str()).collect();
    files.sort_unstable();
    let named = ["events.jsonl", "metadata.json", "transcript.jsonl"];
    assert_eq!(files, named.map(|file| format!("{file} is a link that leads nowhere")));
    let verified = fixture.verify().await;
    assert_eq!((verified.difference_count, verified.known.skipped_folders), (3, 3), "{verified:?}");
    assert_eq!(fixture.texts().await, ["one"]);
}
