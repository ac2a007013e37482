//! An event, and the chunks of a large payload.

use amplifier_session_core::{
    Error, ErrorKind, Result,
    model::{Digest, Event, HostId, Level, Payload, ProjectSlug, SessionId, StoredEvent, Timestamp, UserId},
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Bytes, digest_of_hex, hex, kind};
use crate::ids;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct EventDocument {
    pub(crate) id: String,
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) user_id_session_id: String,
    pub(crate) event_id: String,
    pub(crate) user_id: UserId,
    pub(crate) session_id: SessionId,
    host_id: HostId,
    pub(crate) project_slug: ProjectSlug,
    pub(crate) sequence: u32,
    event_type: String,
    ts: Timestamp,
    ts_estimated: bool,
    turn: Option<u32>,
    level: Level,
    tool_name: Option<String>,
    error_type: Option<String>,
    model: Option<String>,
    provider: Option<String>,
    summary: Map<String, Value>,
    is_chunked: bool,
    chunk_count: Option<u32>,
    data_size_bytes: u64,
    #[serde(default)]
    synced_at: Option<Timestamp>,
    digest: String,
    /// Absent where a query leaves it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) payload: Option<PayloadDocument>,
    #[serde(rename = "_etag", default, skip_serializing)]
    pub(crate) etag: String,
}

/// Everything of an event but its payload, for a query's `SELECT`.
pub(crate) const FIELDS: &str = "c.id, c.type, c.user_id_session_id, c.event_id, c.user_id, c.session_id, c.host_id, \
    c.project_slug, c.sequence, c.event_type, c.ts, c.ts_estimated, c.turn, c.level, c.tool_name, c.error_type, \
    c.model, c.provider, c.summary, c.is_chunked, c.chunk_count, c.data_size_bytes, c.synced_at, c.digest";

/// The line of an event.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "form", rename_all = "snake_case")]
pub(crate) enum PayloadDocument {
    /// Not kept.
    None,
    Plain {
        line: Bytes,
    },
    Zstd {
        line: Bytes,
    },
    /// In documents of these ids, in order.
    Chunks {
        ids: Vec<String>,
    },
}

impl PayloadDocument {
    pub(crate) fn chunks(&self) -> &[String] {
        match self {
            Self::Chunks { ids } => ids,
            _ => &[],
        }
    }
}

/// A chunk of a payload, compressed.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ChunkDocument {
    pub(crate) id: String,
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) user_id_session_id: String,
    /// The id of its event. What earlier versions wrote does not have it, nor the numbers.
    #[serde(default)]
    event_id: String,
    #[serde(default)]
    chunk_index: u32,
    #[serde(default)]
    total_chunks: u32,
    pub(crate) data: Bytes,
}

/// The chunks of an event's payload. Their ids tell the line, so that no other writer of the session spoils them.
pub(crate) fn chunks_of(stored: &StoredEvent, partition: &str) -> Vec<ChunkDocument> {
    let Payload::Chunks(chunks) = &stored.payload else { return Vec::new() };
    let digest = hex(Digest::of(&chunks.concat()));
    let total_chunks = u32::try_from(chunks.len()).unwrap_or(u32::MAX);
    let numbered = chunks.iter().zip(0..);
    numbered
        .map(|(data, chunk_index)| ChunkDocument {
            id: ids::event_chunk(&stored.event.session_id, stored.event.sequence, &digest, chunk_index),
            kind: kind::CHUNK.to_owned(),
            user_id_session_id: partition.to_owned(),
            event_id: stored.event.event_id.clone(),
            chunk_index,
            total_chunks,
            data: Bytes::binary(data),
        })
        .collect()
}

impl EventDocument {
    pub(crate) fn new(stored: &StoredEvent, partition: &str, chunks: &[ChunkDocument]) -> Self {
        let event = stored.event.clone();
        let payload = match &stored.payload {
            Payload::None => PayloadDocument::None,
            Payload::Plain(line) => PayloadDocument::Plain { line: Bytes::of(line) },
            Payload::Zstd(line) => PayloadDocument::Zstd { line: Bytes::binary(line) },
            Payload::Chunks(_) => {
                PayloadDocument::Chunks { ids: chunks.iter().map(|chunk| chunk.id.clone()).collect() }
            }
        };
        Self {
            id: ids::event(&event.session_id, event.sequence),
            kind: kind::EVENT.to_owned(),
            user_id_session_id: partition.to_owned(),
            digest: hex(event.digest),
            event_id: event.event_id,
            user_id: event.user_id,
            session_id: event.session_id,
            host_id: event.host_id,
            project_slug: event.project_slug,
            sequence: event.sequence,
            event_type: event.event_type,
            ts: event.ts,
            ts_estimated: event.ts_estimated,
            turn: event.turn,
            level: event.level,
            tool_name: event.tool_name,
            error_type: event.error_type,
            model: event.model,
            provider: event.provider,
            summary: event.summary,
            is_chunked: event.is_chunked,
            chunk_count: event.chunk_count,
            data_size_bytes: event.data_size_bytes,
            synced_at: event.synced_at,
            payload: Some(payload),
            etag: String::new(),
        }
    }

    pub(crate) fn into_event(self) -> Result<Event> {
        Ok(Event {
            digest: digest_of_hex(&self.digest)?,
            event_id: self.event_id,
            user_id: self.user_id,
            host_id: self.host_id,
            project_slug: self.project_slug,
            session_id: self.session_id,
            sequence: self.sequence,
            event_type: self.event_type,
            ts: self.ts,
            ts_estimated: self.ts_estimated,
            turn: self.turn,
            level: self.level,
            tool_name: self.tool_name,
            error_type: self.error_type,
            model: self.model,
            provider: self.provider,
            summary: self.summary,
            is_chunked: self.is_chunked,
            chunk_count: self.chunk_count,
            data_size_bytes: self.data_size_bytes,
            synced_at: self.synced_at,
        })
    }
}

/// A payload that lies in chunks, or here.
pub(crate) fn payload(document: PayloadDocument, chunks: Vec<ChunkDocument>) -> Result<Payload> {
    Ok(match document {
        PayloadDocument::None => Payload::None,
        PayloadDocument::Plain { line } => Payload::Plain(line.into_bytes()?),
        PayloadDocument::Zstd { line } => Payload::Zstd(line.into_bytes()?),
        PayloadDocument::Chunks { ids } => {
            if ids.len() != chunks.len() {
                return Err(Error::new(ErrorKind::StorageIo, "chunks of an event's payload are missing"));
            }
            Payload::Chunks(chunks.into_iter().map(|chunk| chunk.data.into_bytes()).collect::<Result<_>>()?)
        }
    })
}
