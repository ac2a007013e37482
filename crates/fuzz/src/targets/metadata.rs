//! Metadata: `metadata.json`.

use amplifier_session_core::{
    Scope,
    model::{RawJson, SessionKey},
};
use amplifier_session_testkit::samples::awkward_metadata;

use crate::{
    Target,
    workplace::{ana, samples, session, storage, synced, wait},
};

pub(super) const TARGET: Target = Target {
    name: "metadata",
    seeds: || {
        let awkward = awkward_metadata().into_iter().map(|(_, file)| file.into_bytes());
        samples("metadata.json").into_iter().chain(awkward).collect()
    },
    tokens: &[
        "\"name\":",
        "\"tags\":[",
        "\"parent_id\":\"",
        "\"forked_from_turn\":",
        "\"created\":\"",
        "\"updated\":",
        "\"bundle\":",
        "\"working_dir\":\"",
        "\"model\":",
        "2026-01-05T08:00:00Z",
        "-009999-01-01T00:00:00Z",
        "null",
        "\\ud800",
        "NaN",
        "\u{feff}",
        "[[[[[[[[[[[[[[[[",
    ],
    caught: &[],
    check,
};

fn check(input: &[u8]) {
    let storage = storage();
    let transcript = b"{\"role\":\"user\",\"content\":\"hello\"}\n";
    let report = synced(&storage, &[("metadata.json", input), ("transcript.jsonl", transcript)]);
    let text = input.strip_prefix(b"\xef\xbb\xbf").unwrap_or(input);
    let key = SessionKey::new(ana(), session());
    let stored = wait(storage.backend().get_session(&key)).unwrap().unwrap();
    let files: Vec<_> = stored.metadata_files.iter().map(|file| file.raw.as_bytes()).collect();
    match RawJson::new(text).parse_object() {
        Ok(_) => assert_eq!((files, report.skipped_count), (vec![text], 0)),
        Err(_) => assert_eq!((files.len(), report.skipped_count), (0, 1)),
    }
    wait(storage.statistics().get_statistics(&Scope::from(ana()), &Default::default())).unwrap();
}
