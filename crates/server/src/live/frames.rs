//! The frames of both sides, as JSON.

use amplifier_session_api::{
    Reach,
    operations::changes::{ChangeView, ChangedRows},
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::problem::HttpProblem;

/// A frame of a client.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum ClientFrame {
    /// Begins a subscription.
    Subscribe(SubscribeFrame),
    /// Ends one. Clients that follow the first description of the protocol say `unsubscribed`.
    #[serde(alias = "unsubscribed")]
    Unsubscribe(UnsubscribeFrame),
    /// Asks for a `pong`, for clients that can't send pings of the protocol.
    Ping,
}

/// What a subscription is about.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SubscribeFrame {
    /// Chosen by the client. All frames about the subscription have it.
    pub(super) id: u64,
    #[serde(default)]
    pub(super) scope: Reach,
    /// Only sessions of this project, by its slug.
    #[serde(default)]
    pub(super) project: Option<String>,
    /// Only this session, by its whole id.
    #[serde(default)]
    pub(super) session: Option<String>,
    /// What frames say about a session. By default everything.
    #[serde(default)]
    pub(super) of: Option<Vec<ChangePart>>,
    /// The cursor after which it begins. By default, it begins now.
    #[serde(default)]
    pub(super) after: Option<String>,
}

/// A part of what frames say about a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ChangePart {
    /// Its project, title and time.
    Sessions,
    /// The number of its messages, and which of them may have changed.
    Messages,
    /// The number of its events, and which of them may have changed.
    Events,
}

/// The end of a subscription.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct UnsubscribeFrame {
    pub(super) id: u64,
}

/// A frame of the server.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum ServerFrame<'a> {
    /// The subscription has begun.
    Ready { id: u64, cursor: &'a str },
    /// A session has changed.
    Change(ChangeFrame<'a>),
    /// The changes until this cursor are unknown.
    Reset { id: u64, cursor: &'a str },
    /// The changes between these cursors are not sent, because they are too many.
    Lagged { id: u64, since: &'a str, cursor: &'a str },
    /// The subscription has ended; no frame about it follows.
    Unsubscribed { id: u64 },
    /// The answer to a ping.
    Pong,
}

/// A session has changed. What is new in it can be read where it always is, so that the scope is checked there.
#[derive(Debug, Serialize)]
pub(super) struct ChangeFrame<'a> {
    id: u64,
    /// Go on after it, if this is the last frame that arrives.
    cursor: &'a str,
    session: ChangedKey<'a>,
    /// Whether it is gone, or may not be read any more. Nothing else is known then.
    removed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    messages: Option<ChangedRows>,
    #[serde(skip_serializing_if = "Option::is_none")]
    events: Option<ChangedRows>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<&'a str>,
}

#[derive(Debug, Serialize)]
struct ChangedKey<'a> {
    user_id: &'a str,
    session_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    project_slug: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    updated: Option<String>,
}

impl<'a> ChangeFrame<'a> {
    /// The frame for a subscription.
    pub(super) fn new(asked: &SubscribeFrame, change: &'a ChangeView, cursor: &'a str) -> Self {
        let says = |part| asked.of.as_ref().is_none_or(|parts| parts.contains(&part));
        let view = change.session.as_ref();
        let described = view.filter(|_| says(ChangePart::Sessions));
        Self {
            id: asked.id,
            cursor,
            session: ChangedKey {
                user_id: change.user_id.as_str(),
                session_id: change.session_id.as_str(),
                project_slug: described.map(|view| view.session.project_slug.as_str()),
                title: described.map(|view| view.title.as_str()),
                updated: described.map(|view| view.session.updated.to_string()),
            },
            removed: change.removed,
            messages: change.messages.filter(|_| says(ChangePart::Messages)),
            events: change.events.filter(|_| says(ChangePart::Events)),
            version: change.version.as_deref(),
        }
    }
}

/// A frame of the server as text.
pub(super) fn text(frame: &ServerFrame<'_>) -> Result<String, HttpProblem> {
    serde_json::to_string(frame).map_err(|error| HttpProblem::internal(error.to_string()))
}

/// A problem as a frame: `error`, with the fields of the answers over HTTP. Without an id, it is about a frame that names
/// no subscription.
pub(super) fn error_text(id: Option<u64>, problem: &HttpProblem) -> String {
    let mut frame = json!({"type": "error", "id": id});
    if let (Value::Object(frame), Value::Object(problem)) = (&mut frame, problem.object()) {
        frame.extend(problem.into_iter().filter(|(name, _)| !matches!(name.as_str(), "type" | "title")));
    }
    frame.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<ClientFrame, serde_json::Error> {
        serde_json::from_str(text)
    }

    #[test]
    fn frames_of_clients_are_read() {
        let whole = r#"{"type":"subscribe","id":1,"scope":"visible","project":"shop","session":null,
            "of":["sessions","messages","events"],"after":null}"#;
        let ClientFrame::Subscribe(frame) = read(whole).unwrap() else { panic!("another frame") };
        assert_eq!((frame.id, frame.scope, frame.project.as_deref()), (1, Reach::Visible, Some("shop")));
        let ClientFrame::Subscribe(frame) = read(r#"{"type":"subscribe","id":2}"#).unwrap() else {
            panic!("another frame");
        };
        assert_eq!((frame.scope, frame.of, frame.after), (Reach::Own, None, None));
        assert_eq!(read(r#"{"type":"ping"}"#).unwrap(), ClientFrame::Ping);
        let ended = ClientFrame::Unsubscribe(UnsubscribeFrame { id: 2 });
        assert_eq!(read(r#"{"type":"unsubscribe","id":2}"#).unwrap(), ended);
        assert_eq!(read(r#"{"type":"unsubscribed","id":2}"#).unwrap(), ended);
    }

    #[test]
    fn other_frames_are_errors() {
        for text in [
            "",
            "{",
            "[]",
            r#"{"id":1}"#,
            r#"{"type":"subscribe"}"#,
            r#"{"type":"subscribe","id":-1}"#,
            r#"{"type":"subscribe","id":1,"scope":"everything"}"#,
            r#"{"type":"subscribe","id":1,"projekt":"shop"}"#,
            r#"{"type":"unsubscribe"}"#,
            r#"{"type":"delete","id":1}"#,
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_problem_is_a_frame() {
        let problem = HttpProblem::of_parameter("after", "it is no cursor");
        let frame: Value = serde_json::from_str(&error_text(Some(3), &problem)).unwrap();
        let expected = json!({
            "type": "error", "id": 3, "status": 400, "detail": "it is no cursor", "kind": "validation",
            "retryable": false, "field": "after",
        });
        assert_eq!(frame, expected);
    }
}
