//! Events: the log of a session.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Digest, HostId, ProjectSlug, SessionId, SessionKey, Timestamp, UserId};
use crate::text::holds_words;

/// The level of an event, least serious first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "UPPERCASE")]
pub enum Level {
    /// Details for developers.
    Debug,
    /// Normal operation.
    #[default]
    Info,
    /// A warning.
    Warn,
    /// An error.
    Error,
}

names! {
    Level { Debug: "DEBUG", Info: "INFO", Warn: "WARN", Error: "ERROR" }
}

impl Level {
    /// Parses a level, ignoring case, with the other names in use: `WARNING`, `ERR`, `CRITICAL`, `FATAL`, `TRACE`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        match text.to_ascii_uppercase().as_str() {
            "TRACE" | "DEBUG" => Some(Self::Debug),
            "INFO" | "NOTICE" => Some(Self::Info),
            "WARN" | "WARNING" => Some(Self::Warn),
            "ERR" | "ERROR" | "CRITICAL" | "FATAL" => Some(Self::Error),
            _ => None,
        }
    }
}

/// One line of an event log, without its payload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Event {
    /// The id in the line, or else `{session_id}_evt_{sequence}`; unique per user.
    pub event_id: String,
    /// The owner.
    pub user_id: UserId,
    /// The machine it was recorded on.
    pub host_id: HostId,
    /// The project of its session.
    pub project_slug: ProjectSlug,
    /// Its session.
    pub session_id: SessionId,
    /// The number of the line among the valid lines of the log, from 0.
    pub sequence: u32,
    /// The type, for example `llm:request`.
    pub event_type: String,
    /// When it happened.
    pub ts: Timestamp,
    /// Whether `ts` is an estimate: the time when the line was first seen.
    pub ts_estimated: bool,
    /// The conversation turn, from 1.
    pub turn: Option<u32>,
    /// The level.
    pub level: Level,
    /// The tool it is about.
    pub tool_name: Option<String>,
    /// The kind of error it reports.
    pub error_type: Option<String>,
    /// The model it is about.
    pub model: Option<String>,
    /// The provider it is about.
    pub provider: Option<String>,
    /// Fields that are safe to show and query; never `content`, `data`, `messages` or `full_response`.
    pub summary: Map<String, Value>,
    /// Whether the payload is stored in chunks.
    pub is_chunked: bool,
    /// The number of chunks.
    pub chunk_count: Option<u32>,
    /// The size of the `data` field as JSON, in bytes.
    pub data_size_bytes: u64,
    /// When it was stored; `None` if an earlier version stored it.
    #[serde(skip)]
    pub synced_at: Option<Timestamp>,
    /// Digest of the line.
    #[serde(skip)]
    pub digest: Digest,
}

impl Event {
    /// The id of an event whose line has none that can be used. It is derived from the address of the event, and no other
    /// event has it.
    #[must_use]
    pub fn derived_id(session: &SessionId, sequence: u32) -> String {
        format!("{session}_evt_{sequence}")
    }

    /// Whether its id is the derived one.
    #[must_use]
    pub fn has_derived_id(&self) -> bool {
        self.event_id == Self::derived_id(&self.session_id, self.sequence)
    }

    /// User and session.
    #[must_use]
    pub fn key(&self) -> SessionKey {
        SessionKey::new(self.user_id.clone(), self.session_id.clone())
    }

    /// The part of the type before the first colon: `llm` for `llm:request`. The whole type if it has no colon.
    #[must_use]
    pub fn category(&self) -> &str {
        self.event_type.split(':').next().unwrap_or(&self.event_type)
    }

    /// Whether the event reports a failure: its level is `ERROR`, it has an error type, or its summary has `has_error`.
    #[must_use]
    pub fn failed(&self) -> bool {
        self.level == Level::Error
            || self.error_type.is_some()
            || self.summary.get("has_error").and_then(Value::as_bool) == Some(true)
    }

    /// [`event_mentions`] of this event.
    #[must_use]
    pub fn mentions(&self, words: &str) -> bool {
        event_mentions(self.error_type.as_deref(), &self.summary, words)
    }
}

/// An event type as it is stored: dots become colons, unless it has colons already.
pub(crate) fn normalised_type(name: &str) -> String {
    if name.contains(':') { name.to_owned() } else { name.replace('.', ":") }
}

/// Whether an event contains every word of `words` in its kind of error or in a string of its summary, such as the
/// error message, as a whole word or within a longer one. Case and accents are ignored.
#[must_use]
pub fn event_mentions(error_type: Option<&str>, summary: &Map<String, Value>, words: &str) -> bool {
    fn collect<'a>(value: &'a Value, texts: &mut Vec<&'a str>) {
        match value {
            Value::String(text) => texts.push(text),
            Value::Array(items) => items.iter().for_each(|item| collect(item, texts)),
            // Names of models and tools and error messages are all at the top level, or in a list there.
            _ => {}
        }
    }
    let mut texts: Vec<&str> = error_type.into_iter().collect();
    summary.values().for_each(|value| collect(value, &mut texts));
    holds_words(&texts, words)
}

/// The stored form of an event's line. `core` compresses and splits lines; a backend stores the bytes unchanged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Payload {
    /// Not stored, according to the configuration.
    None,
    /// The original line.
    Plain(Vec<u8>),
    /// The line, compressed with zstd.
    Zstd(Vec<u8>),
    /// The line in pieces, in order, each compressed with zstd.
    Chunks(Vec<Vec<u8>>),
}

impl Payload {
    /// The number of stored bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match self {
            Self::None => 0,
            Self::Plain(bytes) | Self::Zstd(bytes) => bytes.len(),
            Self::Chunks(chunks) => chunks.iter().map(Vec::len).sum(),
        }
    }
}

/// An event with its payload, as a backend stores it.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredEvent {
    /// The fields.
    pub event: Event,
    /// The line.
    pub payload: Payload,
}

impl StoredEvent {
    /// An event with this payload. Sets the fields that count its chunks.
    #[must_use]
    pub fn new(mut event: Event, payload: Payload) -> Self {
        event.chunk_count = match &payload {
            Payload::Chunks(chunks) => Some(chunks.len() as u32),
            Payload::None | Payload::Plain(_) | Payload::Zstd(_) => None,
        };
        event.is_chunked = event.chunk_count.is_some();
        Self { event, payload }
    }
}
