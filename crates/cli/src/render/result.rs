//! One search result: its remarks and its message.

use std::collections::BTreeSet;

use amplifier_session_storage::{
    content::MessageLine,
    model::ContentType,
    search::{MatchKind, SearchResult},
};

use super::{
    message::{self, MessageOptions},
    text::grouped,
};

/// Notes about the value of a result that are not obvious from its text: that it has no word of the query, and where
/// else its text occurs.
pub(super) fn remarks(result: &SearchResult) -> Vec<String> {
    let mut remarks: Vec<String> = similar(result.match_kind, result.similarity).into_iter().collect();
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

/// The mark of a result without any word of the query.
pub(super) fn similar(kind: MatchKind, similarity: Option<f32>) -> Option<String> {
    let similarity = similarity.map_or_else(String::new, |similarity| format!(" {similarity:.2}"));
    (kind == MatchKind::Similar).then(|| format!("similar{similarity}"))
}

/// A text field of a line in a pipe, with this mark in front. A field of its own would move others.
pub(super) fn marked(mark: Option<&str>, text: &str) -> String {
    mark.map_or_else(|| text.to_owned(), |mark| format!("({mark}) {text}"))
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
