//! Sessions as the programs of Amplifier write them.

use std::fs;

use amplifier_session_core::{
    backend::SupersededQuery,
    model::{SessionSource, SupersededReason, Timestamp},
};
use amplifier_session_sync::{NoProgress, RestoreOptions, restore};
use amplifier_session_testkit::{SessionFolder as Folder, erasure::contents, lines};

use crate::fixture::{Fixture, scope};

const PARENT: &str = "0f4c2a77-6d1e-4b53-9c10-5a2f83d7e6b1";
const FORK: &str = "b81d9e04-27a5-4f6c-8e3b-91c0d4f7a256";
const TWO_LOGS: &str = "6a0d35c8-94f2-4e17-b7a9-c3e58f1d2046";
const COMPACTED: &str = "d27b6f10-3c84-4a95-8f61-0e9a7b4c5d38";
const FENCE: &str = "transfer-fence.json";

fn time(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

/// Syncs a fixture, without any warning, and again, without any change.
async fn synced(name: &str, sessions: u64) -> Fixture {
    let fixture = Fixture::with_files(name);
    let report = fixture.sync().await;
    assert_eq!((report.sessions.new, report.sessions.found), (sessions, sessions), "{report:?}");
    assert_eq!((report.warning_count, report.skipped_count), (0, 0), "{report:?}");
    assert!(report.failures.is_empty() && report.kept.is_empty(), "{report:?}");
    assert_eq!(fixture.sync().await.sessions.unchanged, sessions);
    fixture
}

#[tokio::test]
async fn a_session_of_the_agent() {
    let fixture = synced("agent", 1).await;
    let session = fixture.stored("chat-42").await.unwrap().session;
    assert_eq!(session.source, SessionSource::AmplifierAgent);
    assert_eq!(
        (session.project_slug.as_str(), session.message_count, session.turn_count),
        ("-srv-bakery", 6, 2)
    );
    assert_eq!(session.event_count, 20);
    // Its own metadata has none of these.
    assert_eq!(session.working_dir.as_deref(), Some("/srv/bakery"));
    assert_eq!(session.bundle.as_deref(), Some("foundation"));
    assert_eq!(session.model.as_deref(), Some("claude-sonnet-4-8"));
    assert_eq!(session.first_prompt.as_deref(), Some("Who bakes the rye on Saturday?"));
    assert_eq!(session.created, time("2026-09-14T06:00:00.000000417Z"));
    let last = fixture.messages("chat-42").await.pop().unwrap();
    assert_eq!(last.ts, time("2026-09-14T06:01:05.2Z"));

    let to = tempfile::tempdir().unwrap();
    let options = RestoreOptions::new(to.path(), scope());
    let restored = restore(&fixture.storage, &options, &NoProgress).await.unwrap();
    assert_eq!((restored.sessions, restored.differing.len()), (1, 0), "{restored:?}");
    let agent = |root: &std::path::Path| contents(&root.join("state/workspaces"));
    assert!(agent(to.path()) == agent(fixture.home.path()));
}

#[tokio::test]
async fn a_web_session_and_its_fork() {
    let fixture = synced("web-fork", 2).await;
    for (id, name, events) in
        [(PARENT, "Starter for ten loaves", 18), (FORK, "Starter for ten loaves (fork)", 10)]
    {
        let session = fixture.stored(id).await.unwrap().session;
        assert_eq!((session.source, session.name.as_deref()), (SessionSource::Amplifier, Some(name)));
        assert_eq!((session.message_count, session.turn_count, session.event_count), (5, 2, events));
    }
    let beginning =
        async |id| fixture.messages(id).await.into_iter().take(3).map(|m| m.digest).collect::<Vec<_>>();
    assert_eq!(beginning(PARENT).await, beginning(FORK).await);
}

#[tokio::test]
async fn a_session_over_the_switch_of_logs() {
    let fixture = synced("two-logs", 1).await;
    let session = fixture.stored(TWO_LOGS).await.unwrap().session;
    // The log in the folder has 18 of them.
    assert_eq!((session.message_count, session.turn_count, session.event_count), (6, 3, 26));
    let first = fixture.events(TWO_LOGS).await.swap_remove(0);
    assert_eq!(first.event.event_type, "session:start");
}

#[tokio::test]
async fn a_compacted_log() {
    let fixture = Fixture::with_files("compacted");
    let folder = fixture.home.path().join("projects/-home-mira-bakery/sessions").join(COMPACTED);
    let folder = Folder::create(folder).unwrap();
    let read = |name: &str| fs::read(folder.path().join(name)).unwrap();
    let compacted = read("events.jsonl");
    folder.file("events.jsonl", read("events-before-compaction.jsonl")).unwrap();
    fixture.sync().await;
    assert_eq!(fixture.stored(COMPACTED).await.unwrap().session.event_count, 27);
    folder.file("events.jsonl", compacted).unwrap();
    let report = fixture.sync().await;
    assert!(report.kept.is_empty() && report.failures.is_empty(), "{report:?}");
    let session = fixture.stored(COMPACTED).await.unwrap().session;
    assert_eq!((session.message_count, session.turn_count, session.event_count), (6, 3, 9));
    let mut superseded = fixture.storage.superseded().superseded_lines(SupersededQuery::new(scope()));
    let mut reasons = Vec::new();
    while let Some(page) = superseded.next().await.unwrap() {
        reasons.extend(page.into_iter().map(|line| line.reason));
    }
    assert_eq!(reasons, [SupersededReason::Compacted; 18]);
}

#[tokio::test]
async fn a_session_that_was_moved_says_where_until_its_fence_is_lifted() {
    let fixture = Fixture::new();
    let folder = fixture.folder();
    folder.transcript([lines::user("Hello")]).unwrap().metadata(r#"{"name":"bread"}"#).unwrap();
    fixture.sync().await;
    let moved_to = async || {
        let session = fixture.stored("s").await.unwrap().session;
        assert_eq!(session.name.as_deref(), Some("bread"));
        session.moved_to
    };
    assert_eq!(moved_to().await, None);
    let fence = r#"{"version":1,"session_id":"s","transfer_id":"t","destination_host":"desk","role":"source","phase":"committed"}"#;
    folder.file(FENCE, fence).unwrap();
    assert_eq!(fixture.sync().await.sessions.changed, 1);
    assert_eq!(moved_to().await.as_deref(), Some("desk"));
    assert_eq!(fixture.sync().await.sessions.unchanged, 1);
    let to = tempfile::tempdir().unwrap();
    restore(&fixture.storage, &RestoreOptions::new(to.path(), scope()), &NoProgress).await.unwrap();
    assert_eq!(fs::read_to_string(to.path().join("projects/p/sessions/s").join(FENCE)).unwrap(), fence);

    folder.file(FENCE, "incomplete").unwrap();
    assert_eq!(fixture.sync().await.skipped_count, 1);
    assert_eq!(moved_to().await.as_deref(), Some("desk"));
    folder.remove(FENCE).unwrap();
    assert_eq!(fixture.sync().await.sessions.changed, 1);
    assert_eq!(moved_to().await, None);
    assert_eq!(fixture.sync().await.sessions.unchanged, 1);
}

#[tokio::test]
async fn another_version_of_a_capture_is_reported_and_read() {
    let warnings = async |metadata: &str| {
        let fixture = Fixture::new();
        let event =
            r#"{"event":"session:start","workspace":"w","timestamp":"2026-01-05T08:00:00Z","data":{}}"#;
        fixture
            .folder()
            .transcript([lines::user("Hello")])
            .unwrap()
            .file("context-intelligence/metadata.json", metadata)
            .unwrap()
            .file("context-intelligence/events.jsonl", event)
            .unwrap();
        let report = fixture.sync().await;
        let session = fixture.stored("s").await.unwrap().session;
        assert_eq!((session.event_count, session.working_dir.as_deref()), (1, Some("/w")));
        assert_eq!(fixture.sync().await.warning_count, 0);
        let place = |warning: &amplifier_session_sync::Skipped| warning.file.clone().unwrap();
        report
            .warnings
            .iter()
            .map(|warning| format!("{}: {}", place(warning), warning.reason))
            .collect::<Vec<_>>()
    };
    let of = |what: &str| {
        vec![format!(
            "context-intelligence/metadata.json: {what} of the capture is not known: what is as in version 1.0.0 is read"
        )]
    };
    let known = r#"{"format":"context-intelligence","version":"1.0.0","working_dir":"/w"}"#;
    assert_eq!(warnings(known).await, Vec::<String>::new());
    assert_eq!(warnings(r#"{"working_dir":"/w"}"#).await, Vec::<String>::new());
    assert_eq!(warnings(&known.replace("1.0.0", "2.0.0")).await, of("version 2.0.0"));
    assert_eq!(warnings(&known.replace("\"1.0.0\"", "2")).await, of("version 2"));
    assert_eq!(warnings(&known.replace("\"context-intelligence\"", "\"ci\"")).await, of("format ci"));
}
