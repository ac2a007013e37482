//! Copies of a session in other folders and on other machines: only a longer history replaces what is stored.

use std::{fs, path::Path};

use amplifier_session_core::{model::HostId, storage::SupersededLine};
use amplifier_session_sync::{SyncOptions, SyncReport, VerifyOptions, sync, verify};
use amplifier_session_testkit::lines::{self, Line};

use crate::fixture::{Fixture, set_modified, user};

const TRANSCRIPT: &str = "transcript.jsonl";

fn talk(texts: &[&str]) -> Vec<Line> {
    let line =
        |(n, text): (usize, &&str)| if n % 2 == 0 { lines::user(text) } else { lines::assistant(text) };
    texts.iter().enumerate().map(line).collect()
}

/// A copy of the root as it is now.
fn copied(fixture: &Fixture) -> tempfile::TempDir {
    fn copy(from: &Path, to: &Path) {
        fs::create_dir_all(to).unwrap();
        for entry in fs::read_dir(from).unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_dir() {
                copy(&entry.path(), &to.join(entry.file_name()));
            } else {
                fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
            }
        }
    }
    let folder = tempfile::tempdir().unwrap();
    copy(fixture.home.path(), folder.path());
    folder
}

fn transcript(root: &Path) -> std::path::PathBuf {
    root.join("projects/p/sessions/s").join(TRANSCRIPT)
}

fn append(root: &Path, texts: &[&str]) {
    let path = transcript(root);
    let mut content = fs::read(&path).unwrap();
    for text in texts {
        content.extend_from_slice(lines::user(text).raw().as_bytes());
        content.push(b'\n');
    }
    fs::write(path, content).unwrap();
}

async fn sync_root(fixture: &Fixture, root: &Path, host: &str) -> SyncReport {
    let options = SyncOptions::new(root.to_owned(), user(), HostId::new(host).unwrap());
    sync(&fixture.storage, &options, &amplifier_session_sync::NoProgress).await.unwrap()
}

async fn four_messages() -> Fixture {
    let fixture = Fixture::new();
    fixture.folder().transcript(talk(&["one", "two"])).unwrap();
    fixture.sync().await;
    fixture
}

async fn superseded(fixture: &Fixture) -> Vec<SupersededLine> {
    let query = amplifier_session_core::backend::SupersededQuery::new(crate::fixture::scope());
    let mut reader = fixture.storage.superseded().superseded_lines(query);
    let mut found = Vec::new();
    while let Some(lines) = reader.next().await.unwrap() {
        found.extend(lines);
    }
    found
}

#[tokio::test]
async fn an_older_copy_changes_nothing() {
    let fixture = four_messages().await;
    let old = copied(&fixture);
    append(fixture.home.path(), &["three", "four"]);
    fixture.sync().await;
    let stored = fixture.messages("s").await;
    // Also if it is the one that was changed last.
    set_modified(&transcript(old.path()), "2030-01-01T00:00:00Z");
    for _ in 0..2 {
        let report = sync_root(&fixture, old.path(), "host").await;
        let [copy] = report.skipped.as_slice() else { panic!("{report:?}") };
        assert!(copy.reason.starts_with("is a copy with no more than what was read from "), "{copy:?}");
        assert_eq!((report.sessions.changed, report.messages.removed), (0, 0));
        assert_eq!(fixture.messages("s").await, stored);
        assert_eq!(fixture.sync().await.sessions.changed, 0);
    }
    assert!(superseded(&fixture).await.is_empty());
    let options =
        VerifyOptions::new(user(), HostId::new("host").unwrap()).with_root(Some(old.path().to_owned()));
    let report = verify(&fixture.storage, &options, &amplifier_session_sync::NoProgress).await.unwrap();
    assert_eq!((report.difference_count, report.copies.len()), (0, 1));
}

#[tokio::test]
async fn a_longer_copy_is_the_history() {
    let fixture = four_messages().await;
    let other = copied(&fixture);
    append(other.path(), &["three"]);
    assert_eq!(sync_root(&fixture, other.path(), "desktop").await.messages.written, 1);
    assert_eq!(fixture.texts().await, ["one", "two", "three"]);
    // The first folder is the copy now.
    assert_eq!(fixture.sync().await.skipped.len(), 1);
    assert_eq!(fixture.texts().await.len(), 3);
    // Until it is longer again.
    append(fixture.home.path(), &["three", "four"]);
    assert_eq!(fixture.sync().await.messages.written, 1);
    assert_eq!(fixture.texts().await, ["one", "two", "three", "four"]);
}

#[tokio::test]
async fn two_diverged_copies_do_not_rewrite_the_session_in_turn() {
    let fixture = four_messages().await;
    let other = copied(&fixture);
    append(fixture.home.path(), &["here"]);
    append(other.path(), &["there", "and more"]);
    fixture.sync().await;
    let stored = fixture.messages("s").await;
    for _ in 0..3 {
        let report = sync_root(&fixture, other.path(), "desktop").await;
        assert!(report.skipped[0].reason.starts_with("differs from line 3 on from "), "{report:?}");
        assert_eq!((report.messages.written, report.messages.removed), (0, 0));
        assert_eq!(fixture.sync().await.messages.written, 0);
        assert_eq!(fixture.messages("s").await, stored);
    }
    // A person can choose the other one. Nothing is lost.
    let host = HostId::new("desktop").unwrap();
    let options = SyncOptions::new(other.path().to_owned(), user(), host).with_accept_removals(true);
    sync(&fixture.storage, &options, &amplifier_session_sync::NoProgress).await.unwrap();
    assert_eq!(fixture.texts().await, ["one", "two", "there", "and more"]);
    assert_eq!(superseded(&fixture).await.len(), 1);
}

#[tokio::test]
async fn of_two_folders_in_a_root_the_longer_history_wins() {
    let fixture = Fixture::new();
    let (long, short) = (fixture.session("p", "s"), fixture.session("q", "s"));
    long.transcript(talk(&["one", "two", "three", "four"])).unwrap();
    short.transcript(talk(&["one", "two"])).unwrap();
    for path in [long.path(), short.path()] {
        // Whichever is newer.
        set_modified(&path.join(TRANSCRIPT), "2030-01-01T00:00:00Z");
        let report = fixture.sync().await;
        assert_eq!(report.skipped.len(), 1);
        assert!(report.skipped[0].reason.contains("has a longer history"), "{report:?}");
        assert_eq!(fixture.texts().await.len(), 4);
    }
    assert!(superseded(&fixture).await.is_empty());
}

#[tokio::test]
async fn a_moved_folder_is_the_session() {
    let fixture = four_messages().await;
    let folder = fixture.home.path().join("projects");
    fs::create_dir_all(folder.join("q/sessions")).unwrap();
    fs::rename(folder.join("p/sessions/s"), folder.join("q/sessions/s")).unwrap();
    // It was also rewound.
    fixture.session("q", "s").transcript(talk(&["one", "else"])).unwrap();
    let report = fixture.sync().await;
    assert_eq!((report.skipped.len(), report.messages.superseded), (0, 1));
    assert_eq!(fixture.texts().await, ["one", "else"]);
}
