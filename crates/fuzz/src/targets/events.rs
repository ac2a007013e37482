//! Event logs: `events.jsonl`.

use amplifier_session_core::{Scope, storage::EventLines};
use amplifier_session_testkit::samples::awkward_events;

use crate::{
    Target,
    workplace::{ana, assert_kept, joined, samples, session, storage, synced, wait},
};

pub(super) const TARGET: Target = Target {
    name: "events",
    seeds: || [samples("events.jsonl"), vec![joined(awkward_events())]].concat(),
    tokens: &[
        "{\"ts\":\"2026-01-05T08:00:00Z\",\"event\":\"",
        "{\"event\":\"tool:post\",\"timestamp\":",
        "\"data\":{",
        "\"type\":\"",
        "\"event_id\":\"",
        "\"result\":{\"success\":false,\"output\":",
        "\"error\":{",
        "\"usage\":{",
        "\"cost_usd\":",
        "\"duration_ms\":",
        "\"turn\":",
        "\"lvl\":\"ERROR\"",
        "llm:response",
        "prompt:submit",
        "tool:error",
        "\\ud800",
        "NaN",
        "Infinity",
        "\r\n",
        "[[[[[[[[[[[[[[[[",
    ],
    caught: &[],
    check,
};

fn check(input: &[u8]) {
    let storage = storage();
    let transcript =
        b"{\"role\":\"user\",\"content\":\"hello\"}\n{\"role\":\"assistant\",\"content\":\"hi\"}\n";
    let report = synced(&storage, &[("transcript.jsonl", transcript), ("events.jsonl", input)]);
    let scope = Scope::from(ana());
    let lines = EventLines::default().with_limit(100_000).with_payload(true);
    let read = wait(storage.reading().get_event_lines(&scope, &session(), lines)).unwrap();
    let stored: Vec<_> = read.into_iter().map(|event| event.raw.unwrap()).collect();
    assert_kept(input, &stored, report.skipped_count);
    wait(storage.statistics().get_statistics(&scope, &Default::default())).unwrap();
}
