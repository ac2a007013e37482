//! Metadata files.

use amplifier_session_testkit::lines;

use crate::fixture::{Fixture, skipped};

#[tokio::test]
async fn the_sessions_own_metadata_takes_precedence() {
    let fixture = Fixture::new();
    let own = "{\n  \"name\": \"caf\\u00e9\",\n  \"bundle\": \"\",\n  \"cost\": 1.50\n}\n";
    fixture
        .folder()
        .metadata(own)
        .unwrap()
        .file("context-intelligence/metadata.json", r#"{"name":"other","bundle":"b","working_dir":"/w"}"#)
        .unwrap();
    assert_eq!(fixture.sync().await.sessions.new, 1);
    let stored = fixture.stored("s").await.unwrap();
    assert_eq!(stored.session.name.as_deref(), Some("café"));
    assert_eq!(
        (stored.session.bundle.as_deref(), stored.session.working_dir.as_deref()),
        (Some("b"), Some("/w"))
    );
    let names: Vec<&str> = stored.metadata_files.iter().map(|file| file.name.as_str()).collect();
    assert_eq!(names, ["metadata.json", "context-intelligence/metadata.json"]);
    assert_eq!(stored.metadata_files[0].raw.as_bytes(), own.as_bytes());
}

#[tokio::test]
async fn the_sessions_own_metadata_takes_precedence_even_if_it_appears_later() {
    let fixture = Fixture::new();
    let folder = fixture.folder();
    folder.file("context-intelligence/metadata.json", r#"{"name":"other"}"#).unwrap();
    fixture.sync().await;
    folder.metadata(r#"{"name":"own"}"#).unwrap();
    assert_eq!(fixture.sync().await.sessions.changed, 1);
    assert_eq!(fixture.stored("s").await.unwrap().session.name.as_deref(), Some("own"));
}

#[tokio::test]
async fn a_broken_file_is_reported_and_others_are_read() {
    let fixture = Fixture::new();
    fixture
        .folder()
        .metadata("{broken")
        .unwrap()
        .file("context-intelligence/metadata.json", r#"{"name":"other"}"#)
        .unwrap()
        .transcript([lines::user("one")])
        .unwrap();
    let report = fixture.sync().await;
    assert_eq!(skipped(&report), [(Some("metadata.json"), Some(1))]);
    assert_eq!((report.sessions.new, report.messages.written), (1, 1));
    assert_eq!(fixture.stored("s").await.unwrap().session.name.as_deref(), Some("other"));
    assert_eq!(fixture.sync().await.skipped_count, 0, "it is reported when it is read, not in each sync");
    assert_eq!(fixture.noted().await, [("metadata.json".to_owned(), 1)]);
}

#[tokio::test]
async fn metadata_stays_if_its_file_is_broken_or_gone() {
    let fixture = Fixture::new();
    let folder = fixture.folder();
    folder.metadata(r#"{"name":"own"}"#).unwrap().transcript([lines::user("one")]).unwrap();
    fixture.sync().await;
    folder.metadata(r#"{"name":"#).unwrap();
    assert_eq!(fixture.sync().await.skipped_count, 1);
    assert_eq!(fixture.stored("s").await.unwrap().session.name.as_deref(), Some("own"));
    folder.remove("metadata.json").unwrap();
    fixture.sync().await;
    assert_eq!(fixture.stored("s").await.unwrap().session.name.as_deref(), Some("own"));
    folder.metadata(r#"{"name":"mended"}"#).unwrap();
    assert_eq!(fixture.sync().await.sessions.changed, 1);
    assert_eq!(fixture.stored("s").await.unwrap().session.name.as_deref(), Some("mended"));
    assert!(fixture.noted().await.is_empty());
}

#[tokio::test]
async fn two_working_folders_may_share_a_slug() {
    let fixture = Fixture::new();
    for (session, working_dir) in [("s", "/srv/my-app"), ("t", "/srv/my/app")] {
        let metadata = format!(r#"{{"working_dir":"{working_dir}"}}"#);
        fixture.session("-srv-my-app", session).metadata(&metadata).unwrap();
    }
    fixture.sync().await;
    let working_dir = async |session| fixture.stored(session).await.unwrap().session.working_dir.unwrap();
    assert_eq!(
        (working_dir("s").await, working_dir("t").await),
        ("/srv/my-app".into(), "/srv/my/app".into())
    );
}

#[tokio::test]
async fn unreadable_times_are_warnings() {
    let fixture = Fixture::new();
    let folder = fixture.folder();
    folder.metadata(r#"{"name":"own","created":"yesterday","updated":""}"#).unwrap();
    let report = fixture.sync().await;
    let warnings: Vec<_> = report.warnings.iter().map(|one| (one.file.as_deref(), one.line)).collect();
    assert_eq!(warnings, [(Some("metadata.json"), Some(1))]);
    assert_eq!(report.warnings[0].reason, "the time in \"created\" can't be read");
    assert_eq!((report.warning_count, report.skipped_count, report.sessions.new), (1, 0, 1));
    folder.metadata(r#"{"created":"yesterday","created_at":"2026-01-05T08:00:00Z"}"#).unwrap();
    assert_eq!(fixture.sync().await.warning_count, 0);
}

/// Hosts write the number of messages as the turns of a sub-session that was resumed.
#[tokio::test]
async fn turns_are_counted_from_the_transcript() {
    let fixture = Fixture::new();
    let folder = fixture.folder();
    folder.metadata(r#"{"parent_id":"p","agent_name":"explorer","turn_count":57}"#).unwrap();
    fixture.sync().await;
    assert_eq!(fixture.stored("s").await.unwrap().session.turn_count, 0);
    folder.transcript([lines::user("one"), lines::assistant("two"), lines::user("three")]).unwrap();
    fixture.sync().await;
    assert_eq!(fixture.stored("s").await.unwrap().session.turn_count, 2);
}
