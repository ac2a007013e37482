//! Sessions, messages and events as JSON.

use std::collections::{BTreeMap, HashSet};

use amplifier_session_core::{
    Result, SessionStorage,
    content::MessageLine,
    model::{
        ContentType, ContentTypes, Event, Message, RawJson, Role, Session, SessionKey, SessionSource,
        TimeSource, Timestamp,
    },
};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::{
    cut::{self, Truncated},
    ids::address,
};

/// A session with its title.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SessionView {
    /// The session.
    #[serde(flatten)]
    pub session: Session,
    /// The name, else the beginning of the first user message, else the id.
    pub title: String,
    /// Whether `created` and `updated` are estimates; absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dates_estimated: Option<bool>,
}

impl From<&Session> for SessionView {
    fn from(session: &Session) -> Self {
        Self { session: session.clone(), title: session.title().to_owned(), dates_estimated: None }
    }
}

impl SessionView {
    /// A session with `dates_estimated`, if it is one of `estimated`.
    #[must_use]
    pub fn with_estimates(session: &Session, estimated: &Estimated) -> Self {
        Self { dates_estimated: Some(estimated.has(session)), ..Self::from(session) }
    }

    /// Whether its dates are known to be estimates.
    #[must_use]
    pub fn is_estimated(&self) -> bool {
        self.dates_estimated == Some(true)
    }
}

/// Sessions whose dates are estimates.
#[derive(Debug, Default)]
pub struct Estimated(HashSet<SessionKey>);

impl Estimated {
    /// The sessions among `sessions` whose dates are estimates.
    ///
    /// # Errors
    ///
    /// Errors of the store.
    #[crate::compiled_here]
    pub async fn of(storage: &SessionStorage, sessions: &[Session]) -> Result<Self> {
        Ok(Self(storage.sessions().estimated_dates(sessions).await?))
    }

    /// Those among sessions of which it is known.
    pub(crate) fn among<'a>(known: impl Iterator<Item = &'a SessionView>) -> Self {
        Self(known.filter(|view| view.is_estimated()).map(|view| view.session.key()).collect())
    }

    /// Whether the dates of a session are estimates.
    #[must_use]
    pub fn has(&self, session: &Session) -> bool {
        !self.0.is_empty() && self.0.contains(&session.key())
    }
}

/// A session after a change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ChangedView {
    /// The session.
    pub session: SessionView,
}

impl From<&Session> for ChangedView {
    fn from(session: &Session) -> Self {
        Self { session: SessionView::from(session) }
    }
}

/// A line of a transcript or an event log. In JSON, it is as [`line()`] returns it, or `null`.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LineView(#[cfg_attr(feature = "schema", schemars(with = "serde_json::Value"))] pub RawJson);

impl Serialize for LineView {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        line(&self.0).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for LineView {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let line = Option::<Box<RawValue>>::deserialize(deserializer)?;
        Ok(Self(line.map_or_else(RawJson::default, |line| RawJson::new(line.get()))))
    }
}

/// A message with its original line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MessageView {
    /// The id.
    pub id: String,
    /// The address for `show`.
    pub address: String,
    /// The number in the session.
    pub sequence: u32,
    /// The turn.
    pub turn: Option<u32>,
    /// The role.
    pub role: Role,
    /// The role as the line writes it, if that is another name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written_role: Option<String>,
    /// The time when it was written.
    pub ts: Timestamp,
    /// Whether `ts` is an estimate.
    pub ts_estimated: bool,
    /// The source of `ts`.
    pub ts_source: TimeSource,
    /// Which of the four content types that can be embedded have vectors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub has_vectors: Option<HasVectors>,
    /// The transcript line.
    pub message: LineView,
    /// The part of the line's text that is shown, if it was cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub truncated: Option<Truncated>,
}

/// For each content type, whether it has vectors.
pub type HasVectors = BTreeMap<String, bool>;

/// Which of the content types that can be embedded are among `types`.
#[must_use]
pub fn has_vectors(types: ContentTypes) -> HasVectors {
    ContentType::EMBEDDED.into_iter().map(|kind| (kind.as_str().to_owned(), types.contains(kind))).collect()
}

impl MessageView {
    /// Adds which of its texts have vectors.
    #[must_use]
    pub fn with_vectors(mut self, types: Option<&ContentTypes>) -> Self {
        self.has_vectors = Some(has_vectors(types.copied().unwrap_or(ContentTypes::NONE)));
        self
    }

    /// A message of the session with the short id `session`, cut to `max_chars` characters.
    #[must_use]
    pub fn new(message: &Message, session: &str, max_chars: Option<usize>) -> Self {
        let view = Self {
            id: message.id(),
            address: address(session, message.sequence),
            sequence: message.sequence,
            turn: message.turn,
            role: message.role,
            written_role: message.written_role(),
            ts: message.ts,
            ts_estimated: message.ts_estimated(),
            ts_source: message.ts_source,
            has_vectors: None,
            message: LineView(message.raw.clone()),
            truncated: None,
        };
        view.cut(max_chars)
    }

    /// The message cut to `max_chars` characters, if it has more.
    #[must_use]
    pub fn cut(mut self, max_chars: Option<usize>) -> Self {
        if let Some((shown, truncated)) = cut::line(&self.message.0, max_chars) {
            self.message = LineView(RawJson::new(shown.get()));
            self.truncated = Some(truncated);
        }
        self
    }

    /// The line, read by the rules of the program that wrote it.
    #[must_use]
    pub fn line(&self) -> MessageLine {
        // The id of a message begins with that of its session.
        let (source, _) = SessionSource::split(&self.id);
        MessageLine::stored(&self.message.0, self.role, source)
    }
}

/// An event, with its line if requested.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EventView {
    /// The event.
    #[serde(flatten)]
    pub event: Event,
    /// The address for `show`.
    pub address: String,
    /// The line of the event log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<LineView>,
}

impl EventView {
    /// An event, with its line if there is one.
    #[must_use]
    pub fn new(event: &Event, raw: Option<&RawJson>, address: String) -> Self {
        Self { event: event.clone(), address, line: raw.cloned().map(LineView) }
    }
}

/// The line byte for byte if it is valid JSON in valid UTF-8 that every program can read, or else repaired.
#[must_use]
pub fn line(raw: &RawJson) -> Option<Box<RawValue>> {
    let text = || std::str::from_utf8(raw.as_bytes()).ok().filter(|_| !raw.is_deep());
    let exact = text().and_then(|text| RawValue::from_string(text.to_owned()).ok());
    exact.or_else(|| serde_json::value::to_raw_value(&raw.parse().ok()?).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_exact_or_repaired() {
        let shown = |bytes: &[u8]| line(&RawJson::new(bytes)).map(|line| line.get().to_owned());
        let exact = r#"{"n":1.10,"b":[1e400,"\ud800"],"a":"café"}"#;
        assert_eq!(shown(exact.as_bytes()).as_deref(), Some(exact));
        assert_eq!(shown(b"{\"a\":\"caf\xe9\"}").as_deref(), Some("{\"a\":\"caf\u{fffd}\"}"));
        assert_eq!(shown(b"{\"a\":[NaN,1]}").as_deref(), Some("{\"a\":[null,1]}"));
        let deep = format!("{{\"a\":1,\"b\":{}{}}}", "[".repeat(9_999), "]".repeat(9_999));
        assert!(shown(deep.as_bytes()).is_some_and(|shown| shown.len() < 400));
        assert_eq!(shown(b"{"), None);
    }
}
