//! A store is compared with the folders that it was filled from.

use std::{fs, sync::Arc};

use amplifier_session_core::{
    backend::{RowChange, SessionChange, StorageBackendExt},
    model::{HostId, RawJson, SessionId, SessionKey, VectorState},
    storage::{EventDetail, RewindOptions},
};
use amplifier_session_sync::{NoProgress, VerifyOptions, VerifyReport, verify};
use amplifier_session_testkit::{FakeEmbedding, lines};

use crate::fixture::{Fixture, user};

impl Fixture {
    fn verify_options(&self) -> VerifyOptions {
        VerifyOptions::new(user(), HostId::new("host").unwrap()).with_root(Some(self.home.path().to_owned()))
    }

    pub(crate) async fn verify(&self) -> VerifyReport {
        verify(&self.storage, &self.verify_options(), &NoProgress).await.unwrap()
    }

    async fn repair(&self) -> VerifyReport {
        verify(&self.storage, &self.verify_options().with_repair(true), &NoProgress).await.unwrap()
    }
}

fn key() -> SessionKey {
    SessionKey::new(user(), SessionId::new("s").unwrap())
}

fn texts(report: &VerifyReport) -> Vec<String> {
    report.differences.iter().map(ToString::to_string).collect()
}

fn messages(texts: &[&str]) -> Vec<RawJson> {
    texts.iter().map(|text| lines::user(text).raw()).collect()
}

fn log(types: &[&str]) -> Vec<RawJson> {
    types.iter().map(|name| lines::logger_event(name).raw()).collect()
}

/// A session with metadata, four messages and three events.
async fn synced() -> Fixture {
    let fixture = Fixture::new().with_embedding(Arc::new(FakeEmbedding::new()));
    let folder = fixture.folder();
    folder.metadata(r#"{"name":"a"}"#).unwrap();
    folder.transcript(messages(&["one", "two", "three", "four"])).unwrap();
    folder.events(log(&["a", "b", "c"])).unwrap();
    fixture.sync().await;
    assert_is_clean(&fixture).await;
    fixture
}

async fn assert_is_clean(fixture: &Fixture) -> VerifyReport {
    let report = fixture.verify().await;
    assert_eq!((texts(&report), report.difference_count), (Vec::new(), 0));
    report
}

/// Verifies, expects these differences, repairs them, and expects that store and disk are equal.
async fn differs(fixture: &Fixture, expected: &[&str]) {
    let report = fixture.verify().await;
    assert_eq!(texts(&report), expected);
    assert!(!report.is_clean() && report.left.is_none());
    let report = fixture.repair().await;
    assert_eq!((texts(&report).len(), report.left, report.left_count), (expected.len(), Some(Vec::new()), 0));
    assert_is_clean(fixture).await;
}

#[tokio::test]
async fn a_synced_folder_has_no_difference() {
    let report = assert_is_clean(&synced().await).await;
    assert_eq!((report.sessions, report.on_disk, report.messages, report.events), (1, 1, 4, 3));
    assert_eq!((report.lines, report.vectors, report.pending_vectors), (7, 4, 0));
}

#[tokio::test]
async fn what_the_store_does_not_have_is_found_by_line() {
    let fixture = synced().await;
    let since = "(the file has changed since it was synced)";
    fixture.folder().append_transcript(messages(&["five", "six"])).unwrap();
    fixture.folder().append_events(log(&["d"])).unwrap();
    differs(
        &fixture,
        &[
            &format!("transcript.jsonl:5-6: not in the store {since}"),
            &format!("events.jsonl:4: not in the store {since}"),
        ],
    )
    .await;
    fixture.folder().transcript(messages(&["one", "2", "three", "new", "four", "five", "six"])).unwrap();
    fixture.folder().metadata(r#"{"name":"b"}"#).unwrap();
    differs(
        &fixture,
        &[
            &format!("metadata.json: it differs from the stored one {since}"),
            &format!("transcript.jsonl:2: the line is not the one that is stored as message 1 {since}"),
            &format!("transcript.jsonl:4: not in the store {since}"),
        ],
    )
    .await;
    fixture.folder().transcript(messages(&["one", "2"])).unwrap();
    let gone = format!("transcript.jsonl: messages 2-6: stored, but not in the file {since}");
    differs(&fixture, &[&gone]).await;
    assert_eq!(fixture.texts().await, ["one", "2"]);
}

#[tokio::test]
async fn a_session_that_is_not_stored_is_found_and_read() {
    let fixture = synced().await;
    fixture.session("p", "t").transcript(messages(&["of t"])).unwrap();
    let path = fixture.session("p", "t").path().display().to_string();
    differs(&fixture, &[&format!("the session in {path} is not in the store")]).await;
    assert_eq!(fixture.messages("t").await.len(), 1);
    // A folder in another project is the same session.
    let to = fixture.home.path().join("projects/q/sessions");
    fs::create_dir_all(&to).unwrap();
    fs::rename(fixture.session("p", "t").path(), to.join("t")).unwrap();
    differs(&fixture, &["it is stored in project p; its folder is in q"]).await;
}

#[tokio::test]
async fn damage_that_digests_hide_is_written_again() {
    let fixture = synced().await;
    let stored = fixture.stored("s").await.unwrap();
    let mut message = fixture.messages("s").await.remove(2);
    message.raw = lines::user("THREE").raw();
    message.vectors = VectorState::Pending;
    let mut change = SessionChange::new(stored.session, Some(stored.version));
    change.messages = RowChange { put: vec![message], truncate: None };
    fixture.storage.backend().write_one(change).await.unwrap();
    // A sync does not notice.
    assert_eq!(fixture.sync().await.messages.written, 0);
    differs(&fixture, &["message 2: the stored line of a message is not what was written"]).await;
    assert_eq!(fixture.texts().await, ["one", "two", "three", "four"]);
}

#[tokio::test]
async fn deleted_sessions_and_those_without_a_folder_are_known() {
    let fixture = synced().await;
    fixture.session("p", "t").transcript(messages(&["of t"])).unwrap();
    fixture.sync().await;
    fixture.storage.backend().delete_session(&key()).await.unwrap();
    fs::remove_dir_all(fixture.session("p", "t").path()).unwrap();
    let known = assert_is_clean(&fixture).await.known;
    assert_eq!((known.deleted_sessions, known.without_folder), (1, 1));
}

#[tokio::test]
async fn rewound_sessions_are_known_and_stay_rewound() {
    let fixture = synced().await;
    let options = RewindOptions::to_turn(2).with_keep_events(true);
    fixture.storage.ingestion().rewind(&key(), &options).await.unwrap();
    assert_eq!(assert_is_clean(&fixture).await.known.rewound_lines, 2);
    // A repair of something else does not bring them back.
    let stored = fixture.stored("s").await.unwrap();
    let mut change = SessionChange::new(stored.session.clone(), Some(stored.version));
    change.session.turn_count = 9;
    change.messages.put = vec![fixture.messages("s").await.remove(0)];
    change.messages.put[0].raw = lines::user("flipped").raw();
    fixture.storage.backend().write_one(change).await.unwrap();
    assert_eq!(fixture.repair().await.left, Some(Vec::new()));
    assert_eq!(fixture.texts().await, ["one", "two"]);
    assert_eq!(assert_is_clean(&fixture).await.known.rewound_lines, 2);
    let (report, read) = fixture.sync_and_count().await;
    assert_eq!((report.sessions.unchanged, read, fixture.texts().await.len()), (1, 0, 2));
}

#[tokio::test]
async fn kept_rows_of_damaged_files_are_known() {
    let fixture = synced().await;
    let lines = messages(&["one", "two"]);
    let cut = [lines[0].as_bytes(), b"\n", &lines[1].as_bytes()[..9]].concat();
    fixture.folder().file("transcript.jsonl", &cut).unwrap();
    let report = fixture.verify().await;
    assert_eq!(
        texts(&report),
        [
            "transcript.jsonl: messages 1-3: stored, but not in the file (the file has changed since it was synced)"
        ]
    );
    // A repair removes nothing that is nowhere else.
    assert!(fixture.repair().await.is_clean());
    assert_eq!(fixture.texts().await.len(), 4);
    assert_eq!(assert_is_clean(&fixture).await.known.kept_rows, 3);
    fixture.folder().remove("transcript.jsonl").unwrap();
    assert_eq!(assert_is_clean(&fixture).await.known.kept_rows, 4);
}

#[tokio::test]
async fn messages_that_the_backup_lacks_while_an_append_is_pending_are_known() {
    let fixture = synced().await;
    let lines = messages(&["one", "two", "three"]);
    let backup: String = lines.iter().map(|line| line.to_text().into_owned() + "\n").collect();
    fixture.folder().file("transcript.jsonl.append-pending", "").unwrap();
    fixture.folder().file("transcript.jsonl.backup", backup).unwrap();
    fixture.sync().await;
    assert_eq!(assert_is_clean(&fixture).await.known.kept_rows, 1);
    assert_eq!(fixture.texts().await.len(), 4);
}

#[tokio::test]
async fn lines_that_cannot_be_read_are_known() {
    let fixture = Fixture::new();
    let good = lines::user("good").raw();
    let content =
        [&b"not json\n"[..], good.as_bytes(), b"\n{\"role\":\"nobody\"}\n\n{\"role\":\"us"].concat();
    fixture.folder().file("transcript.jsonl", content).unwrap();
    fixture.folder().file("metadata.json", "{").unwrap();
    fixture.sync().await;
    let report = assert_is_clean(&fixture).await;
    assert_eq!((report.messages, report.known.skipped_lines), (1, 3));
}

#[tokio::test]
async fn a_store_that_keeps_less_of_events_has_no_difference() {
    for (detail, events) in [(EventDetail::Summary, 3), (EventDetail::None, 0)] {
        let mut fixture = Fixture::new();
        fixture.keep_events(detail);
        fixture.folder().transcript(messages(&["one"])).unwrap().events(log(&["a", "b", "c"])).unwrap();
        fixture.sync().await;
        // As the next process, which knows it from the store.
        fixture.keep_events(EventDetail::Full);
        assert_eq!(assert_is_clean(&fixture).await.events, events);
        assert!(fixture.repair().await.is_clean());
        assert_eq!(fixture.events("s").await.len() as u64, events);
    }
}

#[tokio::test]
async fn only_chosen_sessions_are_compared() {
    let fixture = synced().await;
    fixture.session("q", "t").transcript(messages(&["of t"])).unwrap();
    fixture.sync().await;
    fixture.folder().append_transcript(messages(&["five"])).unwrap();
    let options = fixture.verify_options();
    let of = async |options: VerifyOptions| {
        let report = verify(&fixture.storage, &options, &NoProgress).await.unwrap();
        (report.sessions, report.difference_count)
    };
    assert_eq!(of(options.clone()).await, (2, 1));
    let t = Some(vec![SessionId::new("t").unwrap()]);
    assert_eq!(of(options.clone().with_sessions(t)).await, (1, 0));
    let of_projects = |slugs: &[&str]| {
        options.clone().with_projects(Some(slugs.iter().map(|slug| slug.parse().unwrap()).collect()))
    };
    assert_eq!(of(of_projects(&["q"])).await, (1, 0));
    assert_eq!(of(of_projects(&["p", "q"])).await, (2, 1));
    assert_eq!(of(options.clone().with_root(None)).await, (2, 0));
    assert_eq!(of(options.with_exclude(["p/*"])).await, (2, 0));
}
