//! Usage of models, counts of messages, and the rows of a session.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::meta::Generations;
use crate::model::{Cost, Digest, Event, Role, Timestamp, VectorState};

/// The type of events about a submitted prompt.
pub const PROMPT: &str = "prompt:submit";

/// The type of events with the usage of a model call.
pub const RESPONSE: &str = "llm:response";

/// The field of `usage` in a summary that says that the line has a cost that can't be read.
pub const UNREADABLE_COST: &str = "unreadable_cost";

/// The field of a summary with the session that the line names, if it is not the one in whose log it is.
pub const SESSION_ID: &str = "session_id";

/// The field of a summary with the id of the model call that the line reports.
pub const REQUEST_ID: &str = "request_id";

/// The prefixes of event types that repeat the usage of a response: blocks of an answer, debug logs of it, and the
/// provider's own event. Their usage counts only in sessions without a [`RESPONSE`] that reports usage.
pub const REPEATS: [&str; 3] = ["content_block:", "llm:response:", "provider:response"];

/// When something happened according to an event, and with which model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventTime {
    /// The sequence of the event.
    pub sequence: u32,
    /// The type of the event.
    pub event_type: String,
    /// The time of the event.
    pub ts: Timestamp,
    /// Whether `ts` is an estimate.
    pub ts_estimated: bool,
    /// The tool call that it is about.
    pub tool_call_id: Option<String>,
    /// The model that it is about.
    pub model: Option<String>,
    /// A digest of the submitted prompt: `prompt_digest` of its summary.
    pub prompt_digest: Option<u64>,
    /// Whether it is about a call that a program made by itself, for example to name the session:
    /// [`is_background`] of its summary. Such a call tells nothing about the conversation.
    pub is_background: bool,
}

/// The line of an event, and what it says about times, if that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventState {
    /// The digest of the line.
    pub digest: Digest,
    /// When it happened.
    pub time: Option<EventTime>,
}

impl EventState {
    /// The state of an event, with its time or without.
    #[must_use]
    pub fn of(event: Event, with_time: bool) -> Self {
        Self { digest: event.digest, time: with_time.then(|| event.into()) }
    }
}

/// Whether the summary of an event says that a program made the model call by itself.
#[must_use]
pub fn is_background(summary: &Map<String, Value>) -> bool {
    ["purpose", "origin_module"].iter().any(|name| summary.contains_key(*name))
}

impl From<Event> for EventTime {
    fn from(event: Event) -> Self {
        Self {
            sequence: event.sequence,
            tool_call_id: event.summary.get("tool_call_id").and_then(Value::as_str).map(str::to_owned),
            prompt_digest: event.summary.get("prompt_digest").and_then(Value::as_u64),
            is_background: is_background(&event.summary),
            event_type: event.event_type,
            ts: event.ts,
            ts_estimated: event.ts_estimated,
            model: event.model,
        }
    }
}

/// The usage of models: sums of the usage in the summaries of events.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Usage {
    /// The number of events that report usage: answered model calls.
    pub calls: u64,
    /// Input tokens.
    pub input_tokens: u64,
    /// Output tokens.
    pub output_tokens: u64,
    /// Tokens read from the provider's cache.
    pub cache_read_tokens: u64,
    /// Tokens written to the provider's cache.
    pub cache_write_tokens: u64,
    /// The reported cost, in the provider's currency (US dollars for all that report it).
    pub cost: Cost,
    /// The number of calls that report a cost: those that `cost` covers.
    pub priced_calls: u64,
    /// The number of calls with a cost that can't be read: no number, negative, or with a comma or a currency sign.
    pub unreadable_costs: u64,
}

impl Usage {
    /// The usage in the summary of an event.
    #[must_use]
    pub fn of(summary: &Map<String, Value>) -> Self {
        let Some(usage) = summary.get("usage").and_then(Value::as_object) else { return Self::default() };
        let number = |name| usage.get(name).and_then(Value::as_f64).unwrap_or(0.0);
        let cost = usage.get("cost").map(Cost::from_json);
        let is_unreadable = cost == Some(None) || usage.contains_key(UNREADABLE_COST);
        let cost = cost.flatten();
        Self {
            calls: 1,
            input_tokens: number("input_tokens") as u64,
            output_tokens: number("output_tokens") as u64,
            cache_read_tokens: number("cache_read_tokens") as u64,
            cache_write_tokens: number("cache_write_tokens") as u64,
            cost: cost.unwrap_or_default(),
            priced_calls: u64::from(cost.is_some()),
            unreadable_costs: u64::from(is_unreadable),
        }
    }

    /// Input and output tokens.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }

    /// The cost, if at least one call reports it.
    #[must_use]
    pub fn known_cost(&self) -> Option<Cost> {
        Some(self.cost).filter(|_| self.priced_calls > 0)
    }

    /// Whether some calls report a cost, but not all of them do so readably.
    #[must_use]
    pub fn has_partial_cost(&self) -> bool {
        self.priced_calls < self.calls && self.priced_calls + self.unreadable_costs > 0
    }

    /// The usage of a number of calls about which nothing else is known.
    #[must_use]
    pub fn of_calls(calls: u64) -> Self {
        Self { calls, ..Self::default() }
    }

    /// Adds another usage. Sums saturate, because the numbers in logs are not validated.
    pub fn add(&mut self, other: Self) {
        self.calls += other.calls;
        self.input_tokens = self.input_tokens.saturating_add(other.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(other.output_tokens);
        self.cache_read_tokens = self.cache_read_tokens.saturating_add(other.cache_read_tokens);
        self.cache_write_tokens = self.cache_write_tokens.saturating_add(other.cache_write_tokens);
        self.cost += other.cost;
        self.priced_calls += other.priced_calls;
        self.unreadable_costs += other.unreadable_costs;
    }
}

/// The number of messages of a role in a quarter of an hour. Quarters of an hour can be added up to the days of any time
/// zone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageCount {
    /// The beginning of the quarter: [`Timestamp::quarter_hour`].
    pub quarter: Timestamp,
    /// The role.
    pub role: Role,
    /// How many there are.
    pub messages: u64,
}

impl MessageCount {
    /// Counts messages one by one, for backends whose database can't do it. The counts are in order of time and role.
    #[must_use]
    pub fn of(messages: impl IntoIterator<Item = (Timestamp, Role)>) -> Vec<Self> {
        let mut counts: BTreeMap<(Timestamp, &str), Self> = BTreeMap::new();
        for (ts, role) in messages {
            let quarter = ts.quarter_hour();
            let count = counts.entry((quarter, role.as_str()));
            count.or_insert(Self { quarter, role, messages: 0 }).messages += 1;
        }
        counts.into_values().collect()
    }
}

/// The rows of one kind in a session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct RowSpan {
    /// How many there are.
    pub count: u64,
    /// The highest sequence; without gaps, it is `count - 1`.
    pub last_sequence: Option<u32>,
    /// The time of the earliest.
    pub first_ts: Option<Timestamp>,
    /// The time of the latest.
    pub last_ts: Option<Timestamp>,
}

impl RowSpan {
    /// Counts a row.
    pub fn add(&mut self, sequence: u32, ts: Timestamp) {
        self.count += 1;
        self.last_sequence = self.last_sequence.max(Some(sequence));
        self.first_ts = Some(self.first_ts.map_or(ts, |first| first.min(ts)));
        self.last_ts = self.last_ts.max(Some(ts));
    }
}

/// The stored rows of a session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct RowCounts {
    /// Its messages.
    pub messages: RowSpan,
    /// Its events.
    pub events: RowSpan,
    /// Its vectors of texts in the current generation.
    pub vectors: u64,
    /// Its vectors of turns in the current generation.
    #[serde(skip)]
    pub turn_vectors: u64,
    /// Messages with pending vectors of the current generation.
    pub pending_vectors: u64,
    /// The time when a message was last stored.
    pub synced_at: Option<Timestamp>,
}

/// Counts of messages by the state of their vectors.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct VectorCounts {
    /// Messages with something to embed.
    pub embeddable: u64,
    /// Messages with nothing to embed.
    pub nothing: u64,
    /// The counts for each generation, by its number.
    pub generations: BTreeMap<u32, GenerationCounts>,
}

impl VectorCounts {
    /// Counts a message. `is_made` says whether a generation has vectors of its current line.
    pub fn add_message(&mut self, state: VectorState, held: &Generations, is_made: impl Fn(u32) -> bool) {
        if state == VectorState::Nothing {
            self.nothing += 1;
            return;
        }
        self.embeddable += 1;
        for number in held.numbers() {
            let is_current = number == held.current_number();
            let is_pending = if is_current { state.is_pending() } else { !is_made(number) };
            if is_pending {
                self.generations.entry(number).or_default().pending += 1;
            }
        }
    }

    /// Counts the vectors of one message in a generation, and the reason why one of its texts has none.
    pub fn add_vectors(&mut self, generation: u32, vectors: u64, failure: Option<&str>) {
        let counts = self.generations.entry(generation).or_default();
        counts.vectors += vectors;
        counts.messages += u64::from(vectors > 0);
        if let Some(reason) = failure {
            *counts.failed.entry(reason.to_owned()).or_default() += 1;
        }
    }
}

/// The progress of one generation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GenerationCounts {
    /// Messages with vectors in it.
    pub messages: u64,
    /// Its vectors of texts.
    pub vectors: u64,
    /// Messages with pending vectors in it; 0 in a generation that is neither the current nor the next one.
    #[serde(rename = "owing")]
    pub pending: u64,
    /// Messages with a text that could not be embedded, by reason.
    pub failed: BTreeMap<String, u64>,
}
