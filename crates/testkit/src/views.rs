//! The views of messages and vectors have the same content as the library.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use amplifier_session_core::model::{Message, RawJson};
use serde_json::{Value, json};

use crate::{lines, samples};

/// The fields of all messages.
pub const FIELDS: &str = "SELECT CAST(content AS TEXT), CAST(metadata AS TEXT) FROM transcripts_with_content \
     ORDER BY sequence";

/// The texts of all vectors.
pub const TEXTS: &str = "SELECT CAST(sequence AS TEXT), content_type, CAST(span_start AS TEXT), CAST(span_end AS TEXT), \
     source_text FROM vectors_with_context";

/// Lines of every kind: awkward ones, long ones that a store compresses, with several blocks, with only tool calls, and
/// with NUL and escapes.
#[must_use]
pub fn messages() -> Vec<RawJson> {
    let long = "The cache is warm. ".repeat(2_000);
    let block = |text: &str| json!({"type": "text", "text": text});
    let of_tool = json!({"output": {"stdout": long}}).to_string();
    let own = [
        lines::user(&long),
        lines::thinking(&long, "Done."),
        lines::message("assistant", json!([block("first"), block("second é"), block(&long)])),
        lines::tool_call("bash", json!({"command": "ls"})),
        lines::tool(&of_tool),
        lines::user("a\0b \u{1}\u{2028}\"\\"),
    ];
    let own = own.into_iter().map(|line| line.with("metadata", json!({"n": 1})).raw());
    let escapes = [RawJson::from(r#"{"role":"user","content":"\ud800 \u0000\uD83D\uDE00 pear"}"#)];
    let awkward = samples::awkward_messages().into_iter().map(|(_, line)| line);
    let others = samples::messages_in_other_formats().into_iter().map(|(_, line)| line);
    own.chain(escapes).chain(awkward).chain(others).collect()
}

/// Compares the rows of [`FIELDS`] and [`TEXTS`] with the stored messages.
///
/// # Panics
///
/// If they differ.
pub fn check(messages: &[Message], fields: &[Vec<Option<String>>], texts: &[Vec<Option<String>>]) {
    assert_eq!(fields.len(), messages.len());
    for (message, fields) in messages.iter().zip(fields) {
        let found = fields.iter().map(|field| match field {
            Some(field) => serde_json::from_str(field).unwrap(),
            None => Value::Null,
        });
        assert_eq!(found.collect::<Vec<_>>(), [message.content(), message.metadata()], "{:?}", message.raw);
    }
    assert!(texts.len() > messages.len() / 2);
    for row in texts {
        let [Some(sequence), Some(content_type), Some(start), Some(end), Some(text)] = row.as_slice() else {
            panic!("{row:?}")
        };
        let message = &messages[sequence.parse::<usize>().unwrap()];
        let own = message.line().texts();
        let own = own.iter().find(|text| text.content_type.as_str() == content_type).unwrap();
        let (start, end): (usize, usize) = (start.parse().unwrap(), end.parse().unwrap());
        let own: String = own.text.chars().skip(start).take(end - start).collect();
        assert_eq!(*text, own, "{:?}", message.raw);
    }
}
