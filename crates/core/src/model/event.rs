//! Events: the log beside a transcript.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Digest, HostId, ProjectSlug, SessionId, Timestamp, UserId};
use crate::text::holds_words;

/// How serious an event is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Level {
    /// Details for developers.
    Debug,
    /// The ordinary course of things.
    #[default]
    Info,
    /// Something to look at.
    Warn,
    /// Something failed.
    Error,
}

impl Level {
    /// All levels, least serious first.
    pub const ALL: [Self; 4] = [Self::Debug, Self::Info, Self::Warn, Self::Error];

    /// The name as it is stored.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Debug => "DEBUG",
            Self::Info => "INFO",
            Self::Warn => "WARN",
            Self::Error => "ERROR",
        }
    }

    /// Reads a level in any case, with the other names in use: `WARNING`, `ERR`, `CRITICAL`, `FATAL`, `TRACE`.
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
pub struct Event {
    /// The id that the line gives, else `{session_id}_evt_{sequence}`; unique per user.
    pub event_id: String,
    /// The owner.
    pub user_id: UserId,
    /// The machine it was recorded on.
    pub host_id: HostId,
    /// The project of its session.
    pub project_slug: ProjectSlug,
    /// Its session.
    pub session_id: SessionId,
    /// 0-based number of the line among the good lines of the log.
    pub sequence: u32,
    /// What happened, for example `llm:request`.
    pub event_type: String,
    /// When it happened.
    pub ts: Timestamp,
    /// Whether `ts` is the time at which the line was first seen, for want of a better one.
    pub ts_estimated: bool,
    /// Conversation turn, from 1.
    pub turn: Option<u32>,
    /// How serious it is.
    pub level: Level,
    /// The tool it is about.
    pub tool_name: Option<String>,
    /// The kind of error it reports.
    pub error_type: Option<String>,
    /// The model it is about.
    pub model: Option<String>,
    /// The provider it is about.
    pub provider: Option<String>,
    /// Fields that are safe to show and to query; never `content`, `data`, `messages` or `full_response`.
    pub summary: Map<String, Value>,
    /// Whether the payload is stored in chunks.
    pub is_chunked: bool,
    /// Into how many.
    pub chunk_count: Option<u32>,
    /// Size of the `data` field as JSON, in bytes.
    pub data_size_bytes: u64,
    /// When it was stored. Earlier versions did not record it.
    #[serde(skip)]
    pub synced_at: Option<Timestamp>,
    /// Digest of the line.
    #[serde(skip)]
    pub digest: Digest,
}

impl Event {
    /// What stands before the first colon of the type: `llm` of `llm:request`. The whole type where it has none.
    #[must_use]
    pub fn category(&self) -> &str {
        category(&self.event_type)
    }

    /// Whether the event tells of a failure: its level is `ERROR`, it names an error, or its summary has `has_error`.
    #[must_use]
    pub fn failed(&self) -> bool {
        self.level == Level::Error
            || self.error_type.is_some()
            || self.summary.get("has_error").and_then(Value::as_bool) == Some(true)
    }

    /// [`event_says`] of this event.
    #[must_use]
    pub fn says(&self, words: &str) -> bool {
        event_says(self.error_type.as_deref(), &self.summary, words)
    }
}

/// Whether every word of `words` stands in what an event says of itself: its kind of error, or a text of its summary, such as
/// the error's message, whole or as part of a longer word. Case and accents make no difference.
#[must_use]
pub fn event_says(error_type: Option<&str>, summary: &Map<String, Value>, words: &str) -> bool {
    fn collect<'a>(value: &'a Value, texts: &mut Vec<&'a str>) {
        match value {
            Value::String(text) => texts.push(text),
            Value::Array(items) => items.iter().for_each(|item| collect(item, texts)),
            // Names of models and tools, words of errors: they all lie at the top, or in a list there.
            _ => {}
        }
    }
    let mut texts: Vec<&str> = error_type.into_iter().collect();
    summary.values().for_each(|value| collect(value, &mut texts));
    holds_words(&texts, words)
}

/// What stands before the first colon of an event type.
#[must_use]
pub fn category(event_type: &str) -> &str {
    event_type.split(':').next().unwrap_or(event_type)
}

/// The stored form of an event's line. How lines are compressed and cut is decided in `core`; a backend keeps
/// the bytes as they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Payload {
    /// Not kept, by configuration.
    None,
    /// The line as it came in.
    Plain(Vec<u8>),
    /// The line, compressed with zstd.
    Zstd(Vec<u8>),
    /// The line in pieces, in order, each compressed with zstd.
    Chunks(Vec<Vec<u8>>),
}

/// An event with its payload, as a backend stores it.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredEvent {
    /// The fields.
    pub event: Event,
    /// The line.
    pub payload: Payload,
}
