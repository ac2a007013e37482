//! Messages cut to a maximum length, for readers who pay for every character.

use amplifier_session_core::{model::RawJson, search::SearchResult};
use serde::{Deserialize, Serialize};
use serde_json::{Value, value::RawValue};

/// A message with more values than this is cut at its end; others are cut in each long text.
const MOST_VALUES: usize = 200;
/// Texts up to this length under a key in [`STRUCTURE`] are neither cut nor counted.
const SHORT: usize = 200;
/// Keys with information about a message, as opposed to its content.
const STRUCTURE: [&str; 12] = [
    "role",
    "type",
    "id",
    "name",
    "tool",
    "tool_name",
    "tool_call_id",
    "tool_use_id",
    "timestamp",
    "ts",
    "turn",
    "model",
];

/// The part of a message's text that is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Truncated {
    /// Number of characters shown.
    pub shown: usize,
    /// Total number of characters.
    pub of: usize,
}

/// The line, cut to about `most` characters of text, and how much of it remains. `None` if it is short enough.
#[must_use]
pub fn line(raw: &RawJson, most: Option<usize>) -> Option<(Box<RawValue>, Truncated)> {
    let most = most.filter(|most| raw.as_bytes().len() > *most)?;
    let mut value = raw.parse().ok()?;
    let truncated = value_to(&mut value, most)?;
    Some((serde_json::value::to_raw_value(&value).ok()?, truncated))
}

/// Cuts the snippet of a result to `chars` characters.
pub fn snippet(result: &mut SearchResult, chars: usize) {
    if let Some((end, _)) = result.snippet.char_indices().nth(chars) {
        result.snippet.truncate(end);
        result.snippet.push('…');
        result.highlights.retain(|(_, end)| *end as usize <= chars);
    }
}

/// Cuts `value` to about `most` characters of text. Returns `None` if it is short enough.
pub fn value_to(value: &mut Value, most: usize) -> Option<Truncated> {
    let (mut values, mut size, mut texts) = (0, 0, Vec::new());
    each(value, None, &mut |value| {
        values += 1;
        let length = length(value);
        size += length;
        texts.extend(value.is_string().then_some(length));
    });
    if values > MOST_VALUES {
        let (of, mut left) = (size, most);
        if of <= most {
            return None;
        }
        prune(value, None, &mut left);
        return Some(Truncated { shown: most - left, of });
    }
    let of: usize = texts.iter().sum();
    if of <= most {
        return None;
    }
    let each_most = fair_share(texts, most);
    let mut shown = 0;
    each(value, None, &mut |value| {
        if let Value::String(text) = value {
            shown += shorten(text, each_most);
        }
    });
    Some(Truncated { shown, of })
}

/// The first `most` characters of `text`, and the number of characters after them.
#[must_use]
pub fn beginning(text: &str, most: usize) -> (&str, usize) {
    match text.char_indices().nth(most) {
        None => (text, 0),
        Some((end, _)) => {
            let (shown, rest) = text.split_at(end);
            (shown, rest.chars().count())
        }
    }
}

/// The length to which to cut each text so that together they have `most` characters. Short ones stay complete.
fn fair_share(mut lengths: Vec<usize>, most: usize) -> usize {
    lengths.sort_unstable();
    let (mut left, mut texts) = (most, lengths.len());
    for length in lengths {
        let share = left / texts.max(1);
        if length > share {
            return share;
        }
        left -= length;
        texts -= 1;
    }
    usize::MAX
}

/// Cuts `text`, with an ellipsis as its last character. Returns the number of characters that remain.
fn shorten(text: &mut String, most: usize) -> usize {
    let (shown, left_out) = beginning(text, most);
    if left_out == 0 {
        return text.chars().count();
    }
    let kept = most.saturating_sub(1);
    *text = shown.chars().take(kept).chain((most > 0).then_some('…')).collect();
    kept
}

fn is_structure(key: Option<&str>, value: &Value) -> bool {
    let is_short = value.as_str().is_none_or(|text| text.len() <= SHORT);
    key.is_some_and(|key| STRUCTURE.contains(&key)) && is_short && !value.is_array() && !value.is_object()
}

/// Visits the leaves that count.
fn each(value: &mut Value, key: Option<&str>, visit: &mut impl FnMut(&mut Value)) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| each(item, None, visit)),
        Value::Object(fields) => fields.iter_mut().for_each(|(key, value)| each(value, Some(key), visit)),
        value if is_structure(key, value) => {}
        value => visit(value),
    }
}

fn length(value: &Value) -> usize {
    match value {
        Value::String(text) => text.chars().count(),
        value => value.to_string().len(),
    }
}

/// Keeps the first `left` characters and removes the rest.
fn prune(value: &mut Value, key: Option<&str>, left: &mut usize) {
    match value {
        Value::Array(items) => items.retain_mut(|item| {
            let keep = *left > 0;
            if keep {
                prune(item, None, left);
            }
            keep
        }),
        Value::Object(fields) => fields.retain(|key, value| {
            let keep = *left > 0 || is_structure(Some(key), value);
            if keep {
                prune(value, Some(key), left);
            }
            keep
        }),
        value if is_structure(key, value) => {}
        Value::String(text) => *left = left.saturating_sub(shorten(text, *left)),
        value => *left = left.saturating_sub(length(value)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn long_texts_are_cut_and_short_ones_stay() {
        let mut message = json!({"role": "assistant", "content": [
            {"type": "thinking", "thinking": "é".repeat(3_000)}, {"type": "text", "text": "short"}]});
        let cut = value_to(&mut message, 1_000).unwrap();
        assert_eq!(cut, Truncated { shown: 999, of: 3_005 });
        assert_eq!(message["content"][1]["text"], "short");
        assert!(message["content"][0]["thinking"].as_str().unwrap().ends_with("éé…"));
        assert_eq!(
            (&message["role"], &message["content"][0]["type"]),
            (&json!("assistant"), &json!("thinking"))
        );
    }

    #[test]
    fn short_messages_are_unchanged() {
        let mut message = json!({"role": "user", "content": "x".repeat(1_000)});
        let before = message.clone();
        assert_eq!(value_to(&mut message, 1_000), None);
        assert_eq!(message, before);
        assert_eq!(value_to(&mut message, 999), Some(Truncated { shown: 998, of: 1_000 }));
    }

    #[test]
    fn a_message_with_many_values_is_cut_at_its_end() {
        let many: Vec<Value> = (0..5_000).map(|n| json!({"n": n, "text": "word"})).collect();
        let mut message = json!({"role": "tool", "content": many, "name": "bash"});
        let cut = value_to(&mut message, 1_000).unwrap();
        assert!(cut.shown <= 1_000 && cut.of > 20_000, "{cut:?}");
        assert!(message.to_string().len() < 5_000);
        assert_eq!((&message["role"], &message["name"]), (&json!("tool"), &json!("bash")));
    }

    #[test]
    fn a_line_is_cut_only_if_it_is_too_long() {
        let raw =
            RawJson::new(format!("{{\"role\":\"user\",\"content\":\"{}\"}}", "x".repeat(50)).as_bytes());
        assert!(line(&raw, None).is_none() && line(&raw, Some(50)).is_none());
        let (cut, truncated) = line(&raw, Some(10)).unwrap();
        assert_eq!(cut.get(), r#"{"role":"user","content":"xxxxxxxxx…"}"#);
        assert_eq!(truncated, Truncated { shown: 9, of: 50 });
    }

    #[test]
    fn lengths_are_in_characters() {
        assert_eq!(beginning("日本語", 2), ("日本", 1));
        assert_eq!(beginning("ab", 2), ("ab", 0));
    }
}
