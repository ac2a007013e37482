//! Sessions, messages and events as JSON.

use std::collections::{BTreeMap, HashSet};

use amplifier_session_storage::{
    SessionStorage,
    model::{
        ContentType, ContentTypes, Event, Message, RawJson, Role, Session, SessionKey, TimeSource, Timestamp,
    },
};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::{
    cut::{self, Truncated},
    failure::Failure,
    render::ids::address,
};

/// A session with its title.
#[derive(Debug, Serialize)]
pub(crate) struct SessionView<'a> {
    #[serde(flatten)]
    session: &'a Session,
    /// The name, else the beginning of the first user message, else the id.
    title: &'a str,
    /// Whether `created` and `updated` are estimates; absent if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    dates_estimated: Option<bool>,
}

impl<'a> From<&'a Session> for SessionView<'a> {
    fn from(session: &'a Session) -> Self {
        Self { session, title: session.title(), dates_estimated: None }
    }
}

impl<'a> SessionView<'a> {
    /// A session with `dates_estimated`, if it is one of `estimated`.
    pub(crate) fn with_estimates(session: &'a Session, estimated: &Estimated) -> Self {
        Self { dates_estimated: Some(estimated.has(session)), ..Self::from(session) }
    }
}

/// Sessions whose dates are estimates.
#[derive(Debug, Default)]
pub(crate) struct Estimated(HashSet<SessionKey>);

impl Estimated {
    /// The sessions among `sessions` whose dates are estimates.
    pub(crate) async fn of(storage: &SessionStorage, sessions: &[Session]) -> Result<Self, Failure> {
        Ok(Self(storage.sessions().estimated_dates(sessions).await?))
    }

    /// Whether the dates of a session are estimates.
    pub(crate) fn has(&self, session: &Session) -> bool {
        !self.0.is_empty() && self.0.contains(&session.key())
    }
}

/// A session after a change.
#[derive(Debug, Serialize)]
pub(crate) struct ChangedView<'a> {
    session: SessionView<'a>,
}

impl<'a> From<&'a Session> for ChangedView<'a> {
    fn from(session: &'a Session) -> Self {
        Self { session: SessionView::from(session) }
    }
}

/// A message with its original line.
#[derive(Debug, Serialize)]
pub(crate) struct MessageView {
    id: String,
    /// The address for `show` and `context`.
    address: String,
    sequence: u32,
    turn: Option<u32>,
    role: Role,
    /// The role as the line writes it, if that is another name.
    #[serde(skip_serializing_if = "Option::is_none")]
    written_role: Option<String>,
    ts: Timestamp,
    /// Whether `ts` is an estimate.
    ts_estimated: bool,
    /// Where `ts` comes from.
    ts_source: TimeSource,
    /// Which of the four content types that can be embedded have vectors.
    #[serde(skip_serializing_if = "Option::is_none")]
    has_vectors: Option<HasVectors>,
    /// The transcript line.
    message: Option<Box<RawValue>>,
    /// How much of the line's text is shown, if it was cut.
    #[serde(skip_serializing_if = "Option::is_none")]
    truncated: Option<Truncated>,
}

/// For each content type, whether it has vectors.
pub(crate) type HasVectors = BTreeMap<&'static str, bool>;

/// Which of the content types that can be embedded are among `types`.
pub(crate) fn has_vectors(types: ContentTypes) -> HasVectors {
    ContentType::EMBEDDED.into_iter().map(|kind| (kind.as_str(), types.contains(kind))).collect()
}

impl MessageView {
    /// Adds which of its texts have vectors.
    pub(crate) fn with_vectors(mut self, types: Option<&ContentTypes>) -> Self {
        self.has_vectors = Some(has_vectors(types.copied().unwrap_or(ContentTypes::NONE)));
        self
    }

    /// A message of the session with the short id `session`, cut to `max_chars` characters.
    pub(crate) fn new(message: &Message, session: &str, max_chars: Option<usize>) -> Self {
        let (shown, truncated) = match cut::line(&message.raw, max_chars) {
            Some((shown, truncated)) => (Some(shown), Some(truncated)),
            None => (line(&message.raw), None),
        };
        Self {
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
            message: shown,
            truncated,
        }
    }
}

/// An event, with its line if requested.
#[derive(Debug, Serialize)]
pub(crate) struct EventView<'a> {
    #[serde(flatten)]
    event: &'a Event,
    /// The address for `show`.
    address: String,
    /// The line of the event log.
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<Box<RawValue>>,
}

impl<'a> EventView<'a> {
    /// An event, with its line if there is one.
    pub(crate) fn new(event: &'a Event, raw: Option<&RawJson>, address: String) -> Self {
        Self { event, address, line: raw.and_then(line) }
    }
}

/// The line byte for byte if it is valid JSON in valid UTF-8 that every program can read, or else repaired.
pub(crate) fn line(raw: &RawJson) -> Option<Box<RawValue>> {
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
