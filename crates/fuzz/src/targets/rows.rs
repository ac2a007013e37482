//! Streams of sessions from another store.

use amplifier_session_core::{
    ErrorKind, Result, Scope, SessionStorage,
    backend::SessionQuery,
    storage::{ReceiveOptions, ReceivedSession, RowEncoder, RowSink, SendRows},
};
use amplifier_session_testkit::{
    KeptBytes,
    samples::{awkward_events, awkward_messages},
};

use super::archive::assert_usable;
use crate::{
    Target,
    workplace::{joined, samples, storage, synced, wait},
};

pub(super) const TARGET: Target = Target {
    name: "rows",
    seeds,
    tokens: &[
        "{\"record\":\"archive\",\"format\":1,\"writer\":\"\",\"checksums\":true}\n",
        "{\"record\":\"again\"}\n",
        "{\"record\":\"end\",\"messages\":0,\"events\":0,\"is_part\":true}\n",
        "{\"record\":\"complete\",\"sessions\":1}\n",
        "\"transfer\":",
        "\"before\":{\"messages\":{\"count\":1,",
        "\"following\":{\"messages\":\"\",\"events\":\"\"}",
        "\"digest\":\"00000000000000000000000000000000\"",
        "\"raw_hex\":\"7b7d\"",
        "\"edited\":[\"name\"]",
        "\"sequence\":",
        "null",
    ],
    caught: &[],
    check,
};

/// The streams of a few sessions.
fn seeds() -> Vec<Vec<u8>> {
    let (transcripts, events) = (samples("transcript.jsonl"), samples("events.jsonl"));
    let pairs = transcripts.iter().zip(&events).take(3);
    let mut seeds: Vec<_> = pairs.map(|(transcript, events)| stream(transcript, events)).collect();
    seeds.push(stream(&joined(awkward_messages()), &joined(awkward_events())));
    seeds
}

fn stream(transcript: &[u8], events: &[u8]) -> Vec<u8> {
    let storage = storage();
    synced(&storage, &[("metadata.json", b"{}"), ("transcript.jsonl", transcript), ("events.jsonl", events)]);
    wait(sent(&storage)).unwrap()
}

async fn sent(storage: &SessionStorage) -> Result<Vec<u8>> {
    let (mut encoder, mut bytes) = (RowEncoder::new()?, KeptBytes::default());
    for session in storage.backend().list_sessions(&SessionQuery::new(Scope::Everyone)).await? {
        storage.exchange().send(&SendRows::new(session.key()), &mut encoder, &mut bytes).await?;
    }
    encoder.end(&mut bytes).await?;
    Ok(bytes.0)
}

fn check(input: &[u8]) {
    let storage = storage();
    // Twice: what is left of a broken stream must not be in the way of the next one.
    for _ in 0..2 {
        if let Err(error) = wait(taken(&storage, input)) {
            assert_eq!(error.kind(), ErrorKind::Validation, "{error}");
        }
    }
    assert_usable(&storage);
}

async fn taken(storage: &SessionStorage, input: &[u8]) -> Result<Vec<ReceivedSession>> {
    let mut intake = storage.exchange().receive(ReceiveOptions::default());
    for piece in input.chunks(1_000) {
        intake.put(piece.to_vec()).await?;
    }
    intake.finish().await
}
