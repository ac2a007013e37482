//! `restore`.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use amplifier_session_storage::{
    OpenOptions, Scope, SessionStorage,
    backend::{SequenceRange, SessionCursor, SessionQuery, StorageBackendExt},
    model::Digest,
    open,
};
use amplifier_session_testkit::erasure::contents;
use rusqlite::Connection;

use crate::{call::Ran, support::Home};

const SESSION: &str = "38e6d1f5-c290-4a7b-8f14-d6b93e0a5c72";

/// The digests of all messages and events of a store, by session.
async fn digests(storage: &SessionStorage) -> BTreeMap<String, (Vec<Digest>, Vec<Digest>)> {
    let mut digests = BTreeMap::new();
    let mut query = SessionQuery::new(Scope::Everyone);
    loop {
        let page = storage.sessions().search_sessions(&query).await.unwrap();
        for session in &page {
            let messages = storage.backend().message_states(&session.key()).await.unwrap();
            let messages = messages.into_iter().map(|message| message.digest).collect();
            let mut events = Vec::new();
            while events.len() < session.event_count as usize {
                let range = SequenceRange { start: events.len() as u32, limit: 10_000 };
                events.extend(storage.backend().event_digests(&session.key(), range).await.unwrap());
            }
            digests.insert(session.session_id.to_string(), (messages, events));
        }
        match page.last() {
            Some(last) if page.len() == query.limit => query.after = Some(SessionCursor::from(last)),
            _ => return digests,
        }
    }
}

/// Syncs the sessions in `root`, restores them to another folder, compares the files, and syncs that folder into an
/// empty store, which then has the same digests.
pub(crate) async fn come_back(root: &Path, sessions: usize) {
    let home = Home::new();
    let root = root.to_str().unwrap();
    home.ok(&["sync", "--root", root, "--embedding", "none"]);
    let to = home.path().join("restored");
    let report = home.json(&["restore", "--to", to.to_str().unwrap()]);
    assert_eq!((&report["sessions"], &report["differing"]), (&sessions.into(), &serde_json::json!([])));
    let (original, restored) = (contents(&Path::new(root).join("projects")), contents(&to.join("projects")));
    assert!(original == restored, "{:?} for {:?}", restored.keys(), original.keys());
    let other = ["--store", "sqlite:~/other.sqlite", "--embedding", "none"];
    home.ok(&[&["sync", "--root", to.to_str().unwrap()], &other[..]].concat());
    let store = async |file: PathBuf| {
        let url = format!("sqlite:{}", file.display());
        digests(&open(&url, OpenOptions::default()).await.unwrap()).await
    };
    let before = store(home.amplifier().join("sessions.sqlite")).await;
    assert!(before == store(home.path().join("other.sqlite")).await);
    assert_eq!(before.len(), sessions);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_samples_come_back() {
    come_back(&Path::new(env!("CARGO_MANIFEST_DIR")).join("samples"), 12).await;
}

#[test]
fn output() {
    let home = Home::without_vectors();
    let to = home.path().join("restored").display().to_string();
    home.shows("restore", &["restore", "--to", &to]);
    home.shows_json("restore_unchanged_json", &["restore", "38e6d1f5", "2b6e0d94", "--to", &to]);
    let transcript = Path::new(&to)
        .join("projects/-home-dana-storefront-web/sessions")
        .join(SESSION)
        .join("transcript.jsonl");
    fs::write(&transcript, "{}\n").unwrap();
    let project = ["restore", "--to", &to, "--project", "-home-dana-storefront-web"];
    home.shows("restore_existing", &project);
    home.shows("restore_overwrite", &[&project[..], &["--overwrite"]].concat());
    home.shows("restore_nothing", &["restore", "--to", "/missing", "--user", "nobody"]);
    assert_eq!(home.run(&["restore", "ffff", "--to", &to]).code, 1);
    assert_eq!(home.run(&["restore"]).code, 2);
}

#[test]
fn lines_that_are_not_what_was_stored_are_left_out() {
    let home = Home::without_vectors();
    let store = Connection::open(home.amplifier().join("sessions.sqlite")).unwrap();
    // One flipped bit in each.
    for table in ["transcripts", "events"] {
        let changed = store.execute(
            &format!(
                "UPDATE {table} SET raw = replace(raw, '\"', '#') WHERE session_id = ?1 AND sequence = 2"
            ),
            [SESSION],
        );
        assert_eq!(changed.unwrap(), 1);
    }
    drop(store);
    let to = home.path().join("restored");
    let ran: Ran = home.run_json(&["restore", SESSION, "--to", to.to_str().unwrap()]);
    assert_eq!(ran.code, 1, "{}", ran.all());
    let kinds: Vec<_> =
        ran.json()["damaged"].as_array().unwrap().iter().map(|row| row["kind"].clone()).collect();
    assert_eq!(kinds, ["message", "event"], "{}", ran.all());
    let found = contents(&to);
    let original = contents(&home.amplifier().join("projects"));
    for (path, content) in &found {
        let whole = &original[path.strip_prefix("projects").unwrap()];
        let lines =
            |text: &[u8]| String::from_utf8(text.to_owned()).unwrap().lines().map(str::to_owned).collect();
        let (mut whole, content): (Vec<String>, Vec<String>) = (lines(whole), lines(content));
        if path.extension().unwrap() == "jsonl" {
            whole.remove(2);
        }
        assert_eq!(content, whole, "{path:?}");
    }
}
