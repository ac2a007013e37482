//! Several roots, and captures outside of the folders of their sessions.

use std::{
    fs,
    path::{Path, PathBuf},
};

use amplifier_session_core::model::{HostId, SessionSource};
use amplifier_session_sync::{
    NoProgress, RefreshLimits, Refreshed, SyncOptions, VerifyOptions, pending, refresh, verify,
};
use amplifier_session_testkit::{AmplifierHome, SessionFolder as Folder, lines};

use crate::fixture::{Fixture, user};

const IN_AGENT: &str = "state/workspaces/-srv-bakery/sessions/chat-42";

fn verify_options(options: &SyncOptions) -> VerifyOptions {
    VerifyOptions::new(user(), HostId::new("host").unwrap())
        .with_roots(options.roots.clone())
        .with_captures(options.captures.clone())
}

/// Moves the capture of the fixture `agent` to the place where it is if captures are in `captures`.
fn move_capture(home: &Path, captures: &Path) -> PathBuf {
    let to = captures.join("-srv-bakery/sessions/chat-42");
    fs::create_dir_all(&to).unwrap();
    fs::rename(home.join(IN_AGENT).join("context-intelligence"), to.join("context-intelligence")).unwrap();
    to
}

#[tokio::test]
async fn all_roots_are_read_and_compared() {
    let (fixture, agent) = (Fixture::new(), AmplifierHome::of_fixture("agent").unwrap());
    fixture.folder().transcript([lines::user("Hello")]).unwrap();
    let options = fixture.options().with_roots([fixture.home.path(), agent.path()]);
    assert_eq!(pending(&fixture.storage, &options).await.unwrap().sessions, 2);
    assert_eq!(fixture.sync_with(options.clone()).await.sessions.new, 2);
    let source = async |session| fixture.stored(session).await.unwrap().session.source;
    assert_eq!(source("s").await, SessionSource::Amplifier);
    assert_eq!(source("chat-42").await, SessionSource::AmplifierAgent);
    assert_eq!(fixture.sync_with(options.clone()).await.sessions.unchanged, 2);
    let report = verify(&fixture.storage, &verify_options(&options), &NoProgress).await.unwrap();
    assert!(report.is_clean(), "{report:?}");
    assert_eq!((report.on_disk, report.known.without_folder), (2, 0));

    let changed = Folder::create(agent.path().join(IN_AGENT)).unwrap();
    changed.append("transcript.jsonl", "\n{\"role\":\"user\",\"content\":\"Thanks\"}").unwrap();
    let limits = RefreshLimits::default();
    let Refreshed::Taken { sessions, .. } = refresh(&fixture.storage, &options, limits).await.unwrap() else {
        panic!("nothing was read");
    };
    assert_eq!(sessions.len(), 1);
    assert_eq!(fixture.stored("chat-42").await.unwrap().session.message_count, 7);

    let missing = options.with_roots([fixture.home.path().to_owned(), agent.path().join("missing")]);
    let error = amplifier_session_sync::sync(&fixture.storage, &missing, &NoProgress).await.unwrap_err();
    assert_eq!(error.context("path").map(|path| path.ends_with("missing/projects")), Some(true), "{error:?}");
}

#[tokio::test]
async fn a_session_in_two_roots_is_read_from_the_longer_one() {
    let (fixture, other) = (Fixture::new(), AmplifierHome::new().unwrap());
    fixture.folder().transcript([lines::user("one")]).unwrap();
    other.session("p", "s").unwrap().transcript([lines::user("one"), lines::assistant("two")]).unwrap();
    let options = fixture.options().with_roots([fixture.home.path(), other.path()]);
    for _ in 0..2 {
        let report = fixture.sync_with(options.clone()).await;
        assert_eq!(report.skipped_count, 1, "{report:?}");
        assert_eq!(fixture.texts().await, ["one", "two"]);
    }
}

#[tokio::test]
async fn a_folder_of_state_is_a_root_too() {
    let fixture = Fixture::with_files("agent");
    let options = fixture.options().with_roots([fixture.home.path().join("state")]);
    assert_eq!(fixture.sync_with(options).await.sessions.new, 1);
    assert_eq!(fixture.stored("chat-42").await.unwrap().session.source, SessionSource::AmplifierAgent);
}

#[tokio::test]
async fn captures_elsewhere_are_read_as_if_they_were_in_the_folder() {
    let (inside, outside, captures) =
        (Fixture::with_files("agent"), Fixture::with_files("agent"), tempfile::tempdir().unwrap());
    inside.sync().await;
    let moved = move_capture(outside.home.path(), captures.path());
    let options = outside.options().with_captures(Some(captures.path().to_owned()));
    assert_eq!(outside.sync_with(options.clone()).await.sessions.new, 1);
    let session = async |fixture: &Fixture| fixture.stored("chat-42").await.unwrap().session;
    let (mut expected, found) = (session(&inside).await, session(&outside).await);
    expected.updated = found.updated;
    assert_eq!(found, expected);
    assert_eq!(outside.sync_with(options.clone()).await.sessions.unchanged, 1);
    let report = verify(&outside.storage, &verify_options(&options), &NoProgress).await.unwrap();
    assert!(report.is_clean() && report.lines == 26, "{report:?}");

    let event =
        r#"{"event":"session:end","workspace":"bakery","timestamp":"2026-09-14T06:02:00Z","data":{}}"#;
    Folder::create(moved).unwrap().append("context-intelligence/events.jsonl", format!("{event}\n")).unwrap();
    assert_eq!(outside.sync_with(options.clone()).await.events.written, 1);
    // Without the setting, nothing is lost.
    let report = outside.sync().await;
    assert!(report.failures.is_empty() && report.kept.is_empty(), "{report:?}");
    let session = session(&outside).await;
    assert_eq!((session.event_count, session.working_dir.as_deref()), (21, Some("/srv/bakery")));
}

/// Only one of two captures is read; a sync says so.
#[tokio::test]
async fn a_capture_in_the_folder_beside_one_elsewhere_is_named() {
    let (fixture, captures) = (Fixture::with_files("agent"), tempfile::tempdir().unwrap());
    move_capture(fixture.home.path(), captures.path());
    let options = fixture.options().with_captures(Some(captures.path().to_owned()));
    assert_eq!(fixture.sync_with(options.clone()).await.skipped_count, 0);
    Folder::create(fixture.home.path().join(IN_AGENT))
        .unwrap()
        .file("context-intelligence/events.jsonl", "{}\n")
        .unwrap();
    let report = fixture.sync_with(options).await;
    assert_eq!(
        report.skipped[0].reason, "is not read, because there is another one outside of the session folder",
        "{report:?}"
    );
}

#[tokio::test]
async fn captures_may_be_where_they_always_were() {
    let fixture = Fixture::with_files("web-fork");
    let projects = fixture.home.path().join("projects");
    assert_eq!(fixture.sync_with(fixture.options().with_captures(Some(projects))).await.sessions.new, 2);
    assert_eq!(fixture.sync().await.sessions.unchanged, 2);
}
