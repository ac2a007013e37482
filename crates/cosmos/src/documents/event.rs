//! An event, and the chunks of a large payload.

use amplifier_session_core::{
    Error, ErrorKind, Result,
    model::{Digest, Event, Payload, StoredEvent, Timestamp},
};
use serde::{Deserialize, Serialize};

use super::{Bytes, Document, kind};
use crate::ids;

/// The fields that a query selects to read events without their payloads.
pub(crate) const EVENT_FIELDS: &str = "c.id, c.type, c.user_id_session_id, c.event_id, c.user_id, c.session_id, \
    c.host_id, c.project_slug, c.sequence, c.event_type, c.ts, c.ts_estimated, c.turn, c.level, c.tool_name, \
    c.error_type, c.model, c.provider, c.summary, c.is_chunked, c.chunk_count, c.data_size_bytes, c.synced_at, c.digest";

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct EventDocumentFields {
    pub(crate) user_id_session_id: String,
    #[serde(flatten)]
    event: Event,
    #[serde(default)]
    synced_at: Option<Timestamp>,
    digest: Digest,
    /// `None` if the query does not select it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    payload: Option<PayloadDocument>,
}

pub(crate) type EventDocument = Document<EventDocumentFields>;

impl EventDocument {
    pub(crate) fn new(stored: &StoredEvent, chunks: &[ChunkDocument]) -> Self {
        let event = stored.event.clone();
        let payload = match &stored.payload {
            Payload::None => PayloadDocument::None,
            Payload::Plain(line) => PayloadDocument::Plain { line: Bytes::of(line) },
            Payload::Zstd(line) => PayloadDocument::Zstd { line: Bytes::binary(line) },
            Payload::Chunks(_) => {
                PayloadDocument::Chunks { ids: chunks.iter().map(|chunk| chunk.id.clone()).collect() }
            }
        };
        let id = ids::event(&event.session_id, event.sequence);
        let (synced_at, digest) = (event.synced_at, event.digest);
        let user_id_session_id = ids::partition(&event.key());
        Self::of(
            kind::EVENT,
            id,
            EventDocumentFields { user_id_session_id, event, synced_at, digest, payload: Some(payload) },
        )
    }

    pub(crate) fn into_event(self) -> Event {
        let EventDocumentFields { event, synced_at, digest, .. } = self.fields;
        Event { synced_at, digest, ..event }
    }
}

/// The line of an event.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "form", rename_all = "snake_case")]
pub(crate) enum PayloadDocument {
    /// Not stored.
    None,
    Plain {
        line: Bytes,
    },
    Zstd {
        line: Bytes,
    },
    /// In the documents with these ids, in order.
    Chunks {
        ids: Vec<String>,
    },
}

impl PayloadDocument {
    /// The payload; `chunks` are the existing ones of its chunks.
    pub(crate) fn into_payload(self, chunks: Vec<ChunkDocument>) -> Result<Payload> {
        Ok(match self {
            Self::None => Payload::None,
            Self::Plain { line } => Payload::Plain(line.into_bytes()?),
            Self::Zstd { line } => Payload::Zstd(line.into_bytes()?),
            Self::Chunks { ids } if ids.len() != chunks.len() => {
                return Err(Error::new(ErrorKind::Damaged, "chunks of an event's payload are missing"));
            }
            Self::Chunks { .. } => {
                let chunks = chunks.into_iter().map(|chunk| chunk.fields.data.into_bytes());
                Payload::Chunks(chunks.collect::<Result<_>>()?)
            }
        })
    }
}

/// A chunk of a payload, compressed.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ChunkFields {
    user_id_session_id: String,
    /// Absent, like the two numbers, in documents of earlier versions.
    #[serde(default)]
    event_id: String,
    #[serde(default)]
    chunk_index: u32,
    #[serde(default)]
    total_chunks: u32,
    data: Bytes,
}

pub(crate) type ChunkDocument = Document<ChunkFields>;

/// The chunks of an event's payload. Their ids contain its digest, so that another writer of the session cannot overwrite
/// them with other content.
pub(crate) fn chunks_of(StoredEvent { event, payload }: &StoredEvent) -> Vec<ChunkDocument> {
    let Payload::Chunks(chunks) = payload else { return Vec::new() };
    let digest = Digest::of(&chunks.concat());
    let total_chunks = u32::try_from(chunks.len()).unwrap_or(u32::MAX);
    let numbered = chunks.iter().zip(0..);
    numbered
        .map(|(data, chunk_index)| {
            let fields = ChunkFields {
                user_id_session_id: ids::partition(&event.key()),
                event_id: event.event_id.clone(),
                chunk_index,
                total_chunks,
                data: Bytes::binary(data),
            };
            let id = ids::event_chunk(&event.session_id, event.sequence, digest, chunk_index);
            ChunkDocument::of(kind::CHUNK, id, fields)
        })
        .collect()
}
