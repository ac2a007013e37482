//! Archives as JSON lines.

use amplifier_session_core::{
    Error, ErrorKind, Result, Scope, SessionStorage,
    search::SearchMode,
    storage::{ImportOptions, ImportReport, JsonLinesReader},
};
use amplifier_session_testkit::samples::{awkward_events, awkward_messages};

use crate::{
    Target,
    workplace::{exported, found, joined, samples, storage, synced, wait},
};

pub(super) const TARGET: Target = Target {
    name: "archive",
    seeds,
    tokens: &[
        "{\"record\":\"archive\",\"format\":1,\"writer\":\"\"}\n",
        "{\"record\":\"again\"}\n",
        "{\"record\":\"end\",\"messages\":0,\"events\":0}\n",
        "{\"record\":\"complete\",\"sessions\":1}\n",
        "\"raw_hex\":\"7b7d\"",
        "\"raw\":",
        "\"sync_state\":\"",
        "\"turn\":",
        "\"sequence\":",
        "\"ts\":",
        "null",
        "\"message_count\":",
        "\"vectors\":",
        "9999-12-31T23:59:59Z",
        "-009999-01-01T00:00:00Z",
    ],
    caught: &[],
    check,
};

/// A few archives, each of one session.
fn seeds() -> Vec<Vec<u8>> {
    let transcripts = samples("transcript.jsonl");
    let events = samples("events.jsonl");
    let mut seeds: Vec<_> = transcripts
        .iter()
        .zip(&events)
        .take(3)
        .map(|(transcript, events)| archive(transcript, events))
        .collect();
    seeds.push(archive(&joined(awkward_messages()), &joined(awkward_events())));
    seeds
}

fn archive(transcript: &[u8], events: &[u8]) -> Vec<u8> {
    let storage = storage();
    synced(&storage, &[("metadata.json", b"{}"), ("transcript.jsonl", transcript), ("events.jsonl", events)]);
    exported(&storage).unwrap()
}

fn check(input: &[u8]) {
    let storage = storage();
    match imported(&storage, input) {
        Ok(_) => assert_usable(&storage),
        Err(error) => assert_names_place(&error, "line"),
    }
}

fn imported(storage: &SessionStorage, archive: &[u8]) -> Result<ImportReport> {
    wait(storage.archive().import_sessions(&mut JsonLinesReader::new(archive), &ImportOptions::default()))
}

/// Imported sessions can be read, and their own archive is the same again in the next store.
pub(super) fn assert_usable(storage: &SessionStorage) {
    let archive = exported(storage).unwrap();
    let other = self::storage();
    imported(&other, &archive).unwrap();
    let again = exported(&other).unwrap();
    assert_eq!(String::from_utf8_lossy(&again), String::from_utf8_lossy(&archive));
    wait(storage.statistics().get_statistics(&Scope::Everyone, &Default::default())).unwrap();
    found(storage, "what is the order of the basket", SearchMode::Hybrid).unwrap();
}

/// An error about the content says where it is.
pub(super) fn assert_names_place(error: &Error, unit: &str) {
    assert_eq!(error.kind(), ErrorKind::Validation, "{error}");
    assert!(error.context(unit).is_some() || error.to_string().contains("is empty"), "{error}");
}
