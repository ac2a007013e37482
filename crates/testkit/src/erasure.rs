//! A session whose words are searched for in the bytes of files after it was deleted.

#![allow(clippy::unwrap_used, clippy::missing_panics_doc, reason = "tests fail by panicking")]

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use amplifier_session_core::{
    Scope, SessionStorage,
    backend::{SessionChange, prelude::*},
    model::{
        Digest, LineKind, MetadataFile, Payload, RawJson, SessionKey, SupersededPiece, SupersededReason,
        SupersededRef,
    },
    search::{SearchMode, SearchOptions},
    storage::SessionEdit,
};
use memchr::memmem;
use serde_json::json;

use crate::{
    lines::{self, Line},
    store::{target, whole},
};

/// One word for each field of the secret session, searched for as bytes. The id of the session is missing, because the
/// store remembers it so that syncs skip the session.
pub const WORDS: [&str; 11] = [
    "quondammessage",
    "quondamthought",
    "quondamoutput",
    "quondamevent",
    "quondamsummary",
    "quondamfield",
    "quondamname",
    "quondamtag",
    "quondamprompt",
    "quondamskipped",
    "quondamsuperseded",
];

/// Pseudorandom numbers as text, which does not compress.
#[must_use]
pub fn noise(seed: usize, length: usize) -> String {
    let mut state = seed as u64 + 1;
    let mut text = String::new();
    while text.len() < length {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        text.push_str(&format!("{:x} ", state >> 16));
    }
    text
}

fn secret_messages(count: usize) -> Vec<Line> {
    let mut messages = vec![lines::user("quondamprompt, and what to do about it")];
    messages.extend((1..count).map(|n| match n % 3 {
        0 => lines::user(&format!("quondammessage {}", noise(n, 50 * n))),
        1 => lines::thinking(&format!("quondamthought {n}"), &format!("quondammessage {}", noise(n, 40))),
        _ => lines::tool(&format!("quondamoutput {}", noise(n, 1_000 * (n - 2)))),
    }));
    messages
}

/// Small events, compressed ones (above 4 KiB) and one in chunks (above 400 KB).
#[must_use]
pub fn secret_events(count: usize) -> Vec<Line> {
    let event = |n: usize| {
        let length = [100, 6_000, 1_500][n % 3];
        let data =
            json!({"tool_name": "quondamsummary", "note": format!("quondamevent {}", noise(n, length))});
        lines::logger_event("tool:post").data(data)
    };
    let large = json!({"note": format!("quondamevent {}", noise(77, 600_000))});
    (0..count).map(event).chain([lines::logger_event("llm:response").data(large)]).collect()
}

/// Writes other sessions in between, so that rows of many sessions share pages.
pub async fn bystander(storage: &SessionStorage, n: usize) {
    let target = target(&format!("bystander-{n}"));
    let messages = (0..6).map(|m| lines::user(&format!("harmless {m} {}", noise(m + n, 90 * m)))).collect();
    storage.ingestion().sync_transcript_lines(&target, whole(messages)).await.unwrap();
    let event = |m| lines::logger_event("plain").data(json!({"note": format!("harmless {}", noise(m, 300))}));
    storage.ingestion().sync_event_lines(&target, whole((0..8).map(event).collect())).await.unwrap();
}

/// Writes the secret session, and others in between.
pub async fn fill(storage: &SessionStorage) -> SessionKey {
    let secret = target("quondam-session");
    for n in 0..12 {
        bystander(storage, n).await;
        storage.ingestion().sync_transcript_lines(&secret, whole(secret_messages(4 + 4 * n))).await.unwrap();
        storage.ingestion().sync_event_lines(&secret, whole(secret_events(3 + 3 * n))).await.unwrap();
        bystander(storage, n + 100).await;
    }
    let mut ingest = storage.ingestion().ingest(secret.clone()).await.unwrap();
    let metadata = json!({"name": "first name", "quondamfield": "quondamfield", "tags": ["a"]}).to_string();
    ingest
        .set_metadata(vec![MetadataFile { name: "metadata.json".into(), raw: RawJson::new(metadata) }])
        .unwrap();
    ingest.commit().await.unwrap();
    let edit = SessionEdit::default().set_name("quondamname").set_tags(["quondamtag", "quondamskipped"]);
    storage.sessions().update_session(&secret.key, &edit).await.unwrap();
    supersede(storage, &secret.key).await;
    secret.key
}

/// Adds superseded lines to a session. Returns the names of the pieces.
pub async fn supersede(storage: &SessionStorage, key: &SessionKey) -> Vec<SupersededRef> {
    let piece = |n: u32| {
        let data = format!("quondamsuperseded {}", noise(n as usize, 9_000)).into_bytes();
        SupersededPiece {
            session: key.clone(),
            id: SupersededPiece::new_id(LineKind::Event, n, Digest::of(&data), 0),
            kind: LineKind::Event,
            first_sequence: n,
            last_sequence: n,
            lines: 1,
            bytes: data.len() as u64,
            superseded_at: storage.now(),
            reason: SupersededReason::Compacted,
            data,
        }
    };
    let stored = storage.backend().get_session(key).await.unwrap().unwrap();
    let mut change = SessionChange::new(stored.session, Some(stored.version));
    change.superseded = (0..5).map(piece).collect();
    let pieces = change.superseded.iter().map(SupersededPiece::piece_ref).collect();
    storage.backend().write_one(change).await.unwrap();
    pieces
}

/// Parts of the stored form of a session's events. Compressed events contain no words.
pub async fn stored_pieces(
    backend: &dyn StorageBackend,
    key: &SessionKey,
) -> BTreeMap<&'static str, Vec<u8>> {
    let sequences: Vec<u32> = (0..100).collect();
    let mut pieces = BTreeMap::new();
    let middle = |bytes: &[u8]| bytes[bytes.len() / 2..][..24].to_vec();
    for (_, payload) in backend.event_payloads(key, &sequences).await.unwrap() {
        match payload {
            Payload::Plain(bytes) => pieces.insert("plain", middle(&bytes)),
            Payload::Zstd(bytes) => pieces.insert("compressed", middle(&bytes)),
            Payload::Chunks(chunks) => pieces.insert("chunk", middle(&chunks[1])),
            Payload::None => None,
        };
    }
    assert_eq!(pieces.len(), 3);
    pieces
}

/// All files in a folder and its subfolders.
#[must_use]
pub fn files(folder: &Path) -> Vec<PathBuf> {
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    paths.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// The contents of all files in a folder and its subfolders, by their path in it.
#[must_use]
pub fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let content = |file: PathBuf| (file.strip_prefix(folder).unwrap().to_owned(), fs::read(&file).unwrap());
    files(folder).into_iter().map(content).collect()
}

/// The names of all files in a folder and its subfolders that contain `bytes`. This process must not have any of them
/// open, because closing a file would release its locks.
#[must_use]
pub fn files_with(folder: &Path, bytes: &[u8]) -> Vec<String> {
    let name = |file: &PathBuf| file.strip_prefix(folder).unwrap().display().to_string();
    let has_bytes = |file: &&PathBuf| memmem::find(&fs::read(file).unwrap(), bytes).is_some();
    files(folder).iter().filter(has_bytes).map(name).collect()
}

/// The words and pieces of the secret session that remain in a folder, with their files.
#[must_use]
pub fn traces(folder: &Path, pieces: &BTreeMap<&'static str, Vec<u8>>) -> Vec<(String, Vec<String>)> {
    let words = WORDS.map(|word| (word, word.as_bytes().to_vec()));
    let pieces = pieces.iter().map(|(name, bytes)| (*name, bytes.clone()));
    let looked_for = words.into_iter().chain(pieces);
    let found = looked_for.map(|(name, bytes)| (name.to_owned(), files_with(folder, &bytes)));
    found.filter(|(_, files)| !files.is_empty()).collect()
}

/// Deletes a session. Returns whether it existed.
pub async fn delete(storage: &SessionStorage, key: &SessionKey) -> bool {
    let project = target("any").project_slug;
    storage.sessions().delete_session(&key.user_id, &project, &key.session_id).await.unwrap()
}

/// The number of results of a search for a word.
pub async fn search(storage: &SessionStorage, word: &str) -> usize {
    let options = SearchOptions::new(word).with_mode(SearchMode::FullText);
    storage.search().search_transcripts(&Scope::Everyone, &options).await.unwrap().results.len()
}
