//! Which folders are read.

use std::{fs, path::Path, sync::Arc};

use amplifier_session_core::{ErrorField, ErrorKind, model::Timestamp};
use amplifier_session_sync::{NoProgress, RejectedBecause, SessionOutcome, SyncOptions, discover, sync};
use amplifier_session_testkit::{FakeEmbedding, Operation, lines};

use crate::fixture::{Fixture, Seen, scope, set_modified};

/// Sessions `a`, `b` and `c` of project `p`, one minute after the other.
fn three_sessions(fixture: &Fixture) {
    for (session, minute) in [("a", 1), ("b", 2), ("c", 3)] {
        let folder = fixture.session("p", session);
        folder.transcript([lines::user(session)]).unwrap();
        set_modified(&folder.path().join("transcript.jsonl"), &format!("2026-01-05T08:0{minute}:00Z"));
    }
}

async fn stored(fixture: &Fixture) -> Vec<String> {
    let query = amplifier_session_core::backend::SessionQuery::new(scope());
    let sessions = fixture.storage.sessions().search_sessions(&query).await.unwrap();
    let mut names: Vec<String> = sessions.into_iter().map(|session| session.session_id.to_string()).collect();
    names.sort();
    names
}

#[tokio::test]
async fn options_select_sessions() {
    /// The options, and the sessions that they select.
    type Case<'a> = (fn(SyncOptions) -> SyncOptions, &'a [&'a str]);
    let cases: [Case<'_>; 3] = [
        (|options| options.with_newest(Some(2)), &["b", "c"]),
        (|options| options.with_since(Timestamp::parse("2026-01-05T08:02:00Z").ok()), &["b", "c"]),
        (|options| options.with_exclude(["scratch/*", "*/[ab]"]), &["c"]),
    ];
    for (select, expected) in cases {
        let fixture = Fixture::new();
        three_sessions(&fixture);
        let scratch = fixture.session("scratch", "d");
        scratch.transcript([lines::user("d")]).unwrap();
        set_modified(&scratch.path().join("transcript.jsonl"), "2026-01-05T08:00:00Z");
        let report = fixture.sync_with(select(fixture.options())).await;
        assert_eq!(report.sessions.found, expected.len() as u64);
        assert_eq!(stored(&fixture).await, expected);
    }
}

#[tokio::test]
async fn errors_about_globs_name_the_field() {
    let fixture = Fixture::new();
    three_sessions(&fixture);
    let options = fixture.options().with_exclude(["p/[a"]);
    let error = sync(&fixture.storage, &options, &NoProgress).await.unwrap_err();
    assert_eq!((error.kind(), error.field()), (ErrorKind::Validation, Some(ErrorField::Exclude)));
}

#[tokio::test]
async fn a_root_without_projects_is_an_error() {
    let fixture = Fixture::new();
    let error = fixture.try_sync().await.unwrap_err();
    assert_eq!((error.kind(), error.field()), (ErrorKind::Validation, Some(ErrorField::Root)));
    assert_eq!(fixture.backend.writes(), 0);
}

#[tokio::test]
async fn a_dry_run_reports_changes_and_makes_none() {
    let provider = Arc::new(FakeEmbedding::new());
    let fixture = Fixture::new().with_embedding(provider.clone());
    three_sessions(&fixture);
    fixture.sync().await;
    fixture.session("p", "b").append_transcript([lines::user("more")]).unwrap();
    let new = fixture.session("p", "d");
    new.transcript([lines::user("d")]).unwrap();
    set_modified(&new.path().join("transcript.jsonl"), "2026-01-05T08:00:00Z");
    fixture.backend.reset_counts();
    provider.reset_counts();
    let seen = Seen::default();
    let report = sync(&fixture.storage, &fixture.options().with_dry_run(true), &seen).await.unwrap();
    let sessions = report.sessions;
    assert!(report.dry_run);
    assert_eq!((sessions.found, sessions.new, sessions.changed, sessions.unchanged), (4, 1, 1, 2));
    let size = |session: &str| {
        fs::metadata(fixture.session("p", session).path().join("transcript.jsonl")).unwrap().len()
    };
    assert_eq!(report.bytes, size("b") + size("d"));
    assert_eq!(*seen.begun.lock().unwrap(), Some((4, report.bytes)));
    let outcomes = seen.sessions.lock().unwrap().clone();
    assert_eq!(outcomes[0], ("b".to_owned(), SessionOutcome::Changed));
    assert_eq!(outcomes[3], ("d".to_owned(), SessionOutcome::New));
    assert_eq!(fixture.backend.writes(), 0);
    assert_eq!((fixture.backend.calls(Operation::UpdateIndex), provider.calls()), (0, 0));
    assert_eq!(stored(&fixture).await, ["a", "b", "c"]);
}

#[tokio::test]
async fn unchanged_sessions_need_no_query() {
    let fixture = Fixture::new();
    for n in 0..20 {
        fixture.session("p", &format!("s{n}")).transcript([lines::user("hello")]).unwrap();
    }
    fixture.sync().await;
    fixture.backend.reset_counts();
    assert_eq!(fixture.sync().await.sessions.unchanged, 20);
    let calls = |operation| fixture.backend.calls(operation);
    assert_eq!(
        (calls(Operation::GetSession), calls(Operation::Write), calls(Operation::MessageStates)),
        (0, 0, 0)
    );
    assert!(
        calls(Operation::SyncStates) <= 20 / 7 + 2,
        "one call a page, of which the memory backend has small ones"
    );
}

#[tokio::test]
async fn a_moved_project_folder_moves_the_session() {
    let fixture = Fixture::new();
    fixture.folder().transcript([lines::user("one")]).unwrap().events([lines::logger_event("a")]).unwrap();
    fixture.sync().await;
    let projects = fixture.home.path().join("projects");
    fs::rename(projects.join("p"), projects.join("q")).unwrap();
    let (report, read) = fixture.sync_and_count().await;
    assert_eq!((report.sessions.changed, report.messages.written, read), (1, 0, 0));
    assert_eq!(fixture.stored("s").await.unwrap().session.project_slug.as_str(), "q");
    assert_eq!(fixture.messages("s").await[0].project_slug.as_str(), "q");
    assert_eq!(fixture.sync().await.sessions.unchanged, 1);
}

#[tokio::test]
async fn the_longer_of_two_folders_of_a_session_is_read() {
    let fixture = Fixture::new();
    for (project, minute) in [("old", 1), ("new", 2)] {
        let folder = fixture.session(project, "s");
        folder.transcript([lines::user(project)]).unwrap();
        set_modified(&folder.path().join("transcript.jsonl"), &format!("2026-01-05T08:0{minute}:00Z"));
    }
    for expected in [1, 0] {
        let report = fixture.sync().await;
        assert_eq!((report.sessions.found, report.messages.written), (1, expected));
        assert_eq!((report.skipped[0].project.as_str(), report.skipped[0].file.as_deref()), ("old", None));
    }
    assert_eq!(fixture.texts().await, ["new"]);
}

#[tokio::test]
async fn only_unknown_folders_with_content_are_reported() {
    let fixture = Fixture::new();
    fixture.session("p", "not\nan id").transcript([lines::user("one")]).unwrap();
    fixture.session("p", "no session either").file("notes.txt", "x").unwrap();
    fixture.session("p", "s").metadata("{}").unwrap();
    fixture.session("empty", "t");
    fixture.home.session("p", "c").unwrap().file("config.md", "x").unwrap();
    let found = discover(fixture.home.path()).unwrap();
    let sessions: Vec<&str> = found.sessions.iter().map(|folder| folder.session.as_str()).collect();
    assert_eq!(sessions, ["s"]);
    assert_eq!((found.sessions[0].project.as_str(), found.sessions[0].bytes), ("p", 2));
    assert_eq!(found.rejected.len(), 1);
    let rejected = &found.rejected[0];
    assert_eq!((rejected.project.as_str(), rejected.session.as_deref()), ("p", Some("not\nan id")));
    assert_eq!(rejected.because, RejectedBecause::InvalidName);
    let report = fixture.sync().await;
    assert_eq!((report.sessions.found, report.skipped_count, report.failures.len()), (1, 0, 1));
    assert_eq!(report.failures[0].session.as_deref(), Some("not\nan id"));
}

/// Amplifier names sessions as it likes.
#[tokio::test]
async fn names_of_folders_are_ids() {
    let fixture = Fixture::new();
    for name in ["daily standup", "a+b@2", "naïve-1", "latest", "#1"] {
        fixture.session("p", name).transcript([lines::user(name)]).unwrap();
    }
    let report = fixture.sync().await;
    assert_eq!((report.sessions.new, report.skipped_count), (5, 0));
    assert_eq!(stored(&fixture).await, ["#1", "a+b@2", "daily standup", "latest", "naïve-1"]);
}

#[cfg(unix)]
#[tokio::test]
async fn a_folder_whose_name_is_not_utf8_is_reported() {
    use std::os::unix::ffi::OsStrExt;

    let fixture = Fixture::new();
    let folder = fixture.folder();
    folder.transcript([lines::user("one")]).unwrap();
    let other = folder.path().with_file_name(std::ffi::OsStr::from_bytes(b"s\xff"));
    fs::create_dir(&other).unwrap();
    fs::copy(folder.path().join("transcript.jsonl"), other.join("transcript.jsonl")).unwrap();
    let report = fixture.sync().await;
    assert_eq!((report.sessions.new, report.failures[0].session.as_deref()), (1, Some("s\u{fffd}")));
}

#[cfg(unix)]
#[tokio::test]
async fn links_are_followed_without_loops() {
    use std::os::unix::fs::symlink;

    let fixture = Fixture::new();
    let projects = fixture.home.path().join("projects");
    let folder = fixture.folder();
    // A session in another place, one of whose files lies in yet another.
    let elsewhere = tempfile::tempdir().unwrap();
    let other = elsewhere.path().join("sessions").join("other");
    fs::create_dir_all(&other).unwrap();
    fs::write(elsewhere.path().join("t.jsonl"), lines::user("two").raw().as_bytes()).unwrap();
    symlink(elsewhere.path().join("t.jsonl"), other.join("transcript.jsonl")).unwrap();
    symlink(elsewhere.path(), projects.join("linked")).unwrap();
    folder.transcript([lines::user("one")]).unwrap();
    symlink(&projects, projects.join("circle")).unwrap();
    symlink(projects.join("p"), projects.join("again")).unwrap();
    symlink(folder.path().parent().unwrap(), folder.path().parent().unwrap().join("up")).unwrap();
    symlink(Path::new("itself"), projects.join("itself")).unwrap();
    let report = fixture.sync().await;
    assert_eq!((report.sessions.new, report.skipped_count, report.failures.len()), (2, 1, 0));
    assert_eq!(report.skipped[0].project, "itself");
    assert_eq!(stored(&fixture).await, ["other", "s"]);
}
