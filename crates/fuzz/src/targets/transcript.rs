//! Transcripts: `transcript.jsonl`.

use amplifier_session_core::{
    Scope,
    content::{ChunkSettings, MessageLine, chunk},
    model::{Role, SessionSource},
    search::SearchMode,
};
use amplifier_session_testkit::samples::awkward_messages;

use crate::{
    Target,
    workplace::{ana, assert_kept, found, joined, lines_of, samples, session, storage, synced, wait},
};

pub(super) const TARGET: Target = Target {
    name: "transcript",
    seeds: || [samples("transcript.jsonl"), vec![joined(awkward_messages())]].concat(),
    tokens: &[
        "{\"role\":\"user\",\"content\":",
        "\"role\":\"tool\",",
        "\"content\":[",
        "{\"type\":\"text\",\"text\":\"",
        "{\"type\":\"thinking\",\"thinking\":\"",
        "{\"type\":\"tool_call\",\"name\":\"",
        "{\"type\":\"tool_result\",",
        "\"metadata\":{\"timestamp\":\"2026-01-05T08:00:00Z\"}",
        "\"tool_calls\":[",
        "\"turn\":",
        "\\ud800",
        "\\u0000",
        "\r\n",
        "```\n",
        "NaN",
        "[[[[[[[[[[[[[[[[",
        "<system-reminder>",
        "\u{feff}",
        "\u{2028}",
        "é́",
        "👍🏽",
    ],
    caught: &[],
    check,
};

fn check(input: &[u8]) {
    let storage = storage();
    let report = synced(&storage, &[("metadata.json", b"{}"), ("transcript.jsonl", input)]);
    let read =
        wait(storage.reading().get_transcript_lines(&Scope::from(ana()), &session(), None, 100_000)).unwrap();
    let stored: Vec<_> = read.into_iter().map(|message| message.raw).collect();
    assert_kept(input, &stored, report.skipped_count);
    for line in &stored {
        let read = |role| MessageLine::stored(line, role, SessionSource::default());
        read(Role::Assistant).called_tools().iter().for_each(|call| drop(call.text()));
        for text in Role::ALL.into_iter().flat_map(|role| read(role).texts()) {
            let settings =
                ChunkSettings { threshold_tokens: 48, target_tokens: 32, ..ChunkSettings::default() };
            let chunks = chunk(text.content_type, &text.text, &settings);
            assert!(chunks.iter().all(|chunk| text.text.contains(chunk.text)));
        }
    }
    // Words of the text find it, whatever they are.
    for line in lines_of(input).into_iter().take(2) {
        found(&storage, &String::from_utf8_lossy(line), SearchMode::Hybrid).unwrap();
    }
}
