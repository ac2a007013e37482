//! One search result: its names, its remarks, and its form as JSON.

use std::{
    borrow::Cow,
    collections::{BTreeSet, HashMap},
};

use amplifier_session_storage::{
    content::MessageLine,
    model::{ContentType, Session, SessionId, SessionKey},
    search::{MatchKind, SearchResult},
};
use serde::Serialize;

use super::{
    ids::{ShortIds, address, short},
    message::{self, MessageOptions},
    text::grouped,
};
use crate::cut::{self, Truncated};

/// Sessions of results, for their titles, and their short ids.
#[derive(Debug)]
pub(crate) struct ResultNames {
    sessions: HashMap<SessionKey, Session>,
    /// Short forms of their ids, unique in the store.
    short_ids: ShortIds,
}

impl ResultNames {
    pub(crate) fn new(sessions: Vec<Session>, short_ids: ShortIds) -> Self {
        Self { sessions: sessions.into_iter().map(|session| (session.key(), session)).collect(), short_ids }
    }

    /// The session of a result, if it can be read.
    pub(crate) fn session(&self, result: &SearchResult) -> Option<&Session> {
        self.sessions.get(&key_of(result))
    }

    pub(crate) fn title(&self, result: &SearchResult) -> Option<&str> {
        self.session(result).map(Session::title)
    }

    /// The title of a session, if it can be read.
    pub(crate) fn title_of(&self, key: &SessionKey) -> Option<&str> {
        self.sessions.get(key).map(Session::title)
    }

    /// The short id of a session.
    pub(crate) fn short_id_of<'a>(&'a self, id: &'a SessionId) -> &'a str {
        short(&self.short_ids, id)
    }

    /// The short id of the session.
    pub(crate) fn short_id<'a>(&'a self, result: &'a SearchResult) -> &'a str {
        short(&self.short_ids, &result.session_id)
    }

    /// The address of the message, for `show` and `context`.
    pub(crate) fn address(&self, result: &SearchResult) -> String {
        address(self.short_id(result), result.sequence)
    }
}

fn key_of(result: &SearchResult) -> SessionKey {
    SessionKey::new(result.user_id.clone(), result.session_id.clone())
}

/// A result as JSON.
#[derive(Debug, Serialize)]
pub(super) struct ResultView<'a> {
    /// The address for `show` and `context`.
    address: String,
    /// The title of the session.
    title: Option<&'a str>,
    #[serde(flatten)]
    result: Cow<'a, SearchResult>,
    /// How much of the message's text is shown, if it was cut.
    #[serde(skip_serializing_if = "Option::is_none")]
    truncated: Option<Truncated>,
}

impl<'a> ResultView<'a> {
    /// A result with its message cut to `max_chars`.
    pub(super) fn new(result: &'a SearchResult, names: &'a ResultNames, max_chars: Option<usize>) -> Self {
        let (result, truncated) = cut(result, max_chars);
        let title = names.sessions.get(&key_of(&result)).map(Session::title);
        Self { address: names.address(&result), title, result, truncated }
    }
}

/// The result with its message cut to `most` characters, and how much of it is shown if it was cut.
fn cut(result: &SearchResult, most: Option<usize>) -> (Cow<'_, SearchResult>, Option<Truncated>) {
    let shortened = most.zip(result.message.as_ref()).and_then(|(most, message)| {
        let mut message = message.clone();
        let truncated = cut::value_to(&mut message, most)?;
        let mut result = result.clone();
        result.message = Some(message);
        Some((result, truncated))
    });
    match shortened {
        Some((result, truncated)) => (Cow::Owned(result), Some(truncated)),
        None => (Cow::Borrowed(result), None),
    }
}

/// Notes about the value of a result that are not obvious from its text: that it has no word of the query, and where
/// else its text occurs.
pub(super) fn remarks(result: &SearchResult) -> Vec<String> {
    let similarity = result.similarity.filter(|_| result.match_kind == MatchKind::Similar);
    let mut remarks: Vec<String> =
        similarity.into_iter().map(|similarity| format!("similar {similarity:.2}")).collect();
    remarks.extend(result.by_title.then(|| "by its title".to_owned()));
    let others = result.also_in.iter().map(|repeat| (&repeat.user_id, &repeat.session_id));
    let others: BTreeSet<_> =
        others.filter(|other| *other != (&result.user_id, &result.session_id)).collect();
    match others.len() {
        0 => {}
        1 => remarks.push("also in another session".to_owned()),
        count => remarks.push(format!("also in {} other sessions", grouped(count as u64))),
    }
    remarks
}

pub(super) fn whole_message(result: &SearchResult, indent: &str, options: MessageOptions) -> Vec<String> {
    let line = result.message.as_ref().and_then(serde_json::Value::as_object);
    let body = |line: &serde_json::Map<_, _>| {
        message::body(&MessageLine::from_fields(line.clone(), result.role), options, indent)
    };
    line.map_or_else(Vec::new, body)
}

/// The name of a content type on a terminal.
pub(crate) fn label(content_type: ContentType) -> &'static str {
    match content_type {
        ContentType::UserQuery => "user",
        ContentType::AssistantResponse => "assistant",
        ContentType::AssistantThinking => "thinking",
        ContentType::ToolOutput => "tool output",
        ContentType::System => "system",
        ContentType::ToolCall => "tool call",
    }
}
