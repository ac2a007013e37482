//! Which texts a transcript line holds.
//!
//! | role | in the line | content type |
//! | --- | --- | --- |
//! | user | string, `text` blocks | user query |
//! | user | `tool_result` blocks | tool output |
//! | assistant | string, `text` blocks | assistant response |
//! | assistant | `thinking` and `reasoning` blocks and fields | assistant thinking |
//! | tool | string, content blocks, else the value as compact JSON | tool output |
//! | system, developer | string, `text` blocks | system |
//!
//! Tool calls, redacted thinking and images have no text. What has another shape than expected is passed over:
//! the line itself is stored whatever it looks like.

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::model::{ContentType, Role};

/// How many characters of a tool's output are embedded unless the configuration says otherwise.
pub const TOOL_OUTPUT_LIMIT: usize = 10_000;

/// Stands between the blocks of one text.
const BLANK_LINE: &str = "\n\n";

/// All that a message says of one content type. Spans of chunks count the characters of this text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtractedText {
    /// What it is.
    pub content_type: ContentType,
    /// The text; blocks are joined by a blank line. Never blank.
    pub text: String,
}

/// The texts of a transcript line whose role is `role`: at most one of each content type, none of them blank,
/// in the order of [`ContentType::ALL`].
#[must_use]
pub fn extract(line: &Map<String, Value>, role: Role) -> Vec<ExtractedText> {
    let mut texts = Texts::default();
    let content = line.get("content").unwrap_or(&Value::Null);
    match role {
        Role::User => add_user(content, &mut texts),
        Role::Assistant => add_assistant(line, content, &mut texts),
        Role::Tool => texts.add(ContentType::ToolOutput, &tool_output(content)),
        Role::System | Role::Developer => {
            elements(content)
                .iter()
                .filter_map(block_text)
                .for_each(|text| texts.add(ContentType::System, text));
        }
    }
    texts.finish()
}

/// The part of `text` that is embedded: a tool's output up to its first `limit_chars` characters, nothing of a
/// system message, everything else whole.
#[must_use]
pub fn embeddable(text: &ExtractedText, limit_chars: usize) -> &str {
    match text.content_type {
        ContentType::ToolOutput => match text.text.char_indices().nth(limit_chars) {
            Some((end, _)) => text.text.get(..end).unwrap_or_default(),
            None => &text.text,
        },
        ContentType::System => "",
        ContentType::UserQuery | ContentType::AssistantResponse | ContentType::AssistantThinking => {
            &text.text
        }
    }
}

#[derive(Default)]
struct Texts(Vec<ExtractedText>);

impl Texts {
    fn add(&mut self, content_type: ContentType, text: &str) {
        if text.trim().is_empty() {
            return;
        }
        match self.0.iter_mut().find(|known| known.content_type == content_type) {
            Some(known) => {
                known.text.push_str(BLANK_LINE);
                known.text.push_str(text);
            }
            None => self.0.push(ExtractedText { content_type, text: text.to_owned() }),
        }
    }

    fn has(&self, content_type: ContentType) -> bool {
        self.0.iter().any(|known| known.content_type == content_type)
    }

    fn finish(mut self) -> Vec<ExtractedText> {
        self.0.sort_by_key(|text| text.content_type);
        self.0
    }
}

fn add_user(content: &Value, texts: &mut Texts) {
    for block in elements(content) {
        if let Some(text) = block_text(block) {
            texts.add(ContentType::UserQuery, text);
        } else if is_tool_result(block) {
            texts.add(ContentType::ToolOutput, &tool_output(result_of(block)));
        }
    }
}

fn add_assistant(line: &Map<String, Value>, content: &Value, texts: &mut Texts) {
    let thinking = ContentType::AssistantThinking;
    for block in elements(content) {
        match block_type(block) {
            Some("thinking") => texts.add(thinking, string_field(block, "thinking").unwrap_or_default()),
            Some("reasoning") => add_reasoning(block, texts),
            _ => texts.add(ContentType::AssistantResponse, block_text(block).unwrap_or_default()),
        }
    }
    for part in line.get("thinking").map_or(&[][..], elements) {
        texts.add(thinking, string_field(part, "thinking").or_else(|| part_text(part)).unwrap_or_default());
    }
    if let Some(reasoning) = line.get("reasoning") {
        add_reasoning(reasoning, texts);
    }
    // Amplifier's orchestrators keep the first thinking block a second time beside `content`, and it is the only
    // place where `content` is a string.
    if !texts.has(thinking) {
        let block = line.get("thinking_block").unwrap_or(&Value::Null);
        texts.add(thinking, string_field(block, "thinking").unwrap_or_default());
    }
}

/// Adds the `content` and `summary` of a reasoning block, or what a bare string or list of parts says.
fn add_reasoning(reasoning: &Value, texts: &mut Texts) {
    let fields = ["content", "summary"].into_iter().filter_map(|name| reasoning.get(name));
    let parts = elements(reasoning).iter().chain(fields.flat_map(elements));
    parts.filter_map(part_text).for_each(|text| texts.add(ContentType::AssistantThinking, text));
}

/// What a tool returned: a string, the texts of content blocks, else compact JSON.
fn tool_output(content: &Value) -> Cow<'_, str> {
    match content {
        Value::Null => Cow::Borrowed(""),
        Value::String(text) => Cow::Borrowed(text),
        Value::Array(items) if items.is_empty() => Cow::Borrowed(""),
        Value::Object(fields) if fields.is_empty() => Cow::Borrowed(""),
        _ if elements(content).iter().all(is_content_block) => {
            let texts =
                elements(content).iter().map(content_block_text).filter(|text| !text.trim().is_empty());
            Cow::Owned(texts.collect::<Vec<_>>().join(BLANK_LINE))
        }
        other => Cow::Owned(other.to_string()),
    }
}

/// Whether a piece of a tool's output is a block of a message and not data that happens to be JSON.
fn is_content_block(block: &Value) -> bool {
    match block_type(block) {
        Some("text") => string_field(block, "text").is_some(),
        Some("image") => true,
        _ => is_tool_result(block),
    }
}

fn content_block_text(block: &Value) -> Cow<'_, str> {
    if is_tool_result(block) {
        tool_output(result_of(block))
    } else {
        Cow::Borrowed(block_text(block).unwrap_or_default())
    }
}

/// The items of a list; any other value is a list of itself.
pub(super) fn elements(value: &Value) -> &[Value] {
    match value {
        Value::Array(items) => items,
        other => std::slice::from_ref(other),
    }
}

pub(super) fn block_type(block: &Value) -> Option<&str> {
    string_field(block, "type")
}

/// The text of a string or a `text` block.
pub(super) fn block_text(block: &Value) -> Option<&str> {
    match block {
        Value::String(text) => Some(text),
        _ if block_type(block) == Some("text") => string_field(block, "text"),
        _ => None,
    }
}

fn is_tool_result(block: &Value) -> bool {
    block_type(block) == Some("tool_result")
}

/// The text of a string or of anything with a `text`: parts of reasoning go by several type names.
fn part_text(part: &Value) -> Option<&str> {
    part.as_str().or_else(|| string_field(part, "text"))
}

/// What a `tool_result` block holds: `content` in Anthropic's format, `output` in Amplifier's.
fn result_of(block: &Value) -> &Value {
    ["content", "output"]
        .into_iter()
        .filter_map(|name| block.get(name))
        .find(|value| !value.is_null())
        .unwrap_or(&Value::Null)
}

fn string_field<'a>(value: &'a Value, name: &str) -> Option<&'a str> {
    value.get(name)?.as_str()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn texts(role: Role, line: Value) -> Vec<(ContentType, String)> {
        let line = line.as_object().unwrap();
        extract(line, role).into_iter().map(|text| (text.content_type, text.text)).collect()
    }

    /// The texts of a line that has only `content`.
    fn of_content(role: Role, content: Value) -> Vec<(ContentType, String)> {
        texts(role, json!({"role": role, "content": content}))
    }

    fn one(content_type: ContentType, text: &str) -> Vec<(ContentType, String)> {
        vec![(content_type, text.to_owned())]
    }

    #[test]
    fn user_text_is_a_query() {
        let query = |text| one(ContentType::UserQuery, text);
        assert_eq!(of_content(Role::User, json!("Fix it")), query("Fix it"));
        let blocks = json!([{"type": "text", "text": "Fix"}, {"type": "image", "source": {"data": "aGk="}},
            {"type": "text", "text": "this"}]);
        assert_eq!(of_content(Role::User, blocks), query("Fix\n\nthis"));
        assert_eq!(of_content(Role::User, json!(["Fix", "this"])), query("Fix\n\nthis"));
    }

    #[test]
    fn user_tool_results_are_tool_output() {
        let blocks = json!([
            {"type": "tool_result", "tool_use_id": "1", "content": "plain"},
            {"type": "tool_result", "tool_use_id": "2", "content": [{"type": "text", "text": "in a block"}]},
            {"type": "tool_result", "tool_use_id": "3", "content": {"exit": 1}},
            {"type": "tool_result", "tool_call_id": "4", "output": "Amplifier's"},
            {"type": "tool_result", "tool_use_id": "5", "content": null},
            {"type": "text", "text": "and now?"},
        ]);
        let output = "plain\n\nin a block\n\n{\"exit\":1}\n\nAmplifier's".to_owned();
        let expected = [(ContentType::UserQuery, "and now?".to_owned()), (ContentType::ToolOutput, output)];
        assert_eq!(of_content(Role::User, blocks), expected);
    }

    #[test]
    fn assistant_text_is_a_response() {
        assert_eq!(of_content(Role::Assistant, json!("Done.")), one(ContentType::AssistantResponse, "Done."));
        let blocks = json!([{"type": "text", "text": "One."}, {"type": "text", "text": "Two."}]);
        assert_eq!(of_content(Role::Assistant, blocks), one(ContentType::AssistantResponse, "One.\n\nTwo."));
    }

    #[test]
    fn assistant_thinking_comes_from_blocks_and_fields() {
        let thinking = |text| one(ContentType::AssistantThinking, text);
        let block =
            json!([{"type": "thinking", "thinking": "Hm.", "signature": "x", "content": ["opaque", "id"]}]);
        assert_eq!(of_content(Role::Assistant, block), thinking("Hm."));
        assert_eq!(texts(Role::Assistant, json!({"content": null, "thinking": "Hm."})), thinking("Hm."));
        let several = json!({"thinking": ["Hm.", {"type": "thinking", "thinking": "Well."}]});
        assert_eq!(texts(Role::Assistant, several), thinking("Hm.\n\nWell."));
    }

    #[test]
    fn reasoning_is_thinking() {
        let thinking = |text| one(ContentType::AssistantThinking, text);
        let block = json!([{"type": "reasoning", "content": [{"type": "reasoning_text", "text": "A."}, "B."],
            "summary": [{"type": "summary_text", "text": "C."}], "encrypted_content": "x"}]);
        assert_eq!(of_content(Role::Assistant, block), thinking("A.\n\nB.\n\nC."));
        for reasoning in [json!("A."), json!(["A."]), json!({"content": "A."}), json!({"summary": ["A."]})] {
            assert_eq!(
                texts(Role::Assistant, json!({"content": "", "reasoning": reasoning})),
                thinking("A.")
            );
        }
    }

    #[test]
    fn a_thinking_block_beside_the_content_counts_once() {
        let block = json!({"type": "thinking", "thinking": "Hm.", "signature": "x"});
        let expected = [(ContentType::AssistantResponse, "Done."), (ContentType::AssistantThinking, "Hm.")];
        for content in [json!("Done."), json!([block, {"type": "text", "text": "Done."}])] {
            let found = texts(Role::Assistant, json!({"content": content, "thinking_block": block}));
            assert_eq!(found, expected.map(|(content_type, text)| (content_type, text.to_owned())));
        }
    }

    #[test]
    fn calls_redacted_thinking_and_images_have_no_text() {
        let blocks = json!([
            {"type": "tool_call", "id": "1", "name": "bash", "input": {"command": "ls"}},
            {"type": "tool_use", "id": "2", "name": "bash", "input": {"text": "ls"}},
            {"type": "redacted_thinking", "data": "x"},
            {"type": "image", "source": {"data": "x"}, "text": "x"},
        ]);
        assert!(of_content(Role::Assistant, blocks.clone()).is_empty());
        assert!(of_content(Role::User, blocks).is_empty());
        let calls = json!({"content": "", "tool_calls": [{"function": {"name": "bash", "arguments": "{}"}}]});
        assert!(texts(Role::Assistant, calls).is_empty());
    }

    #[test]
    fn tool_output_is_text_or_compact_json() {
        let output = |text| one(ContentType::ToolOutput, text);
        assert_eq!(of_content(Role::Tool, json!("{\"a\": 1}")), output("{\"a\": 1}"));
        let blocks =
            json!([{"type": "text", "text": "one"}, {"type": "image"}, {"type": "text", "text": "two"}]);
        assert_eq!(of_content(Role::Tool, blocks), output("one\n\ntwo"));
        assert_eq!(
            of_content(Role::Tool, json!({"b": [1, "é"], "a": null})),
            output(r#"{"b":[1,"é"],"a":null}"#)
        );
        assert_eq!(of_content(Role::Tool, json!(["a.rs", "b.rs"])), output(r#"["a.rs","b.rs"]"#));
        assert_eq!(of_content(Role::Tool, json!([{"type": "file"}])), output(r#"[{"type":"file"}]"#));
        assert_eq!(of_content(Role::Tool, json!(false)), output("false"));
        let nested = json!([{"type": "tool_result", "tool_use_id": "1", "content": "inner"}]);
        assert_eq!(of_content(Role::Tool, nested), output("inner"));
    }

    #[test]
    fn instructions_are_system_text() {
        for role in [Role::System, Role::Developer] {
            assert_eq!(of_content(role, json!("Be brief.")), one(ContentType::System, "Be brief."));
            let blocks = json!([{"type": "text", "text": "Be"}, {"type": "text", "text": "brief."}]);
            assert_eq!(of_content(role, blocks), one(ContentType::System, "Be\n\nbrief."));
        }
    }

    #[test]
    fn blank_and_odd_content_is_nothing() {
        let odd = [
            json!(null),
            json!(""),
            json!(" \n"),
            json!([]),
            json!({}),
            json!([[]]),
            json!([null, 1, {}, [[]]]),
            json!([{"type": "text"}, {"type": "text", "text": null}, {"type": "text", "text": " "}, {"type": 5}]),
        ];
        for role in [Role::User, Role::Assistant, Role::System] {
            for content in &odd {
                assert!(of_content(role, content.clone()).is_empty(), "{role} {content}");
            }
            assert!(texts(role, json!({})).is_empty());
        }
        for content in [json!(null), json!(""), json!([]), json!({}), json!([{"type": "image"}])] {
            assert!(of_content(Role::Tool, content.clone()).is_empty(), "{content}");
        }
        assert!(texts(Role::Assistant, json!({"thinking": 5, "reasoning": {"content": 5}})).is_empty());
    }

    #[test]
    fn keys_are_not_text() {
        let found = of_content(
            Role::Assistant,
            json!([{"type": "text", "text": "value", "citations": [{"title": "t"}]}]),
        );
        assert_eq!(found, one(ContentType::AssistantResponse, "value"));
    }

    #[test]
    fn only_tool_output_is_cut_before_embedding_and_system_is_not_embedded() {
        let part = |content_type, text: &str, limit| {
            embeddable(&ExtractedText { content_type, text: text.to_owned() }, limit).to_owned()
        };
        assert_eq!(part(ContentType::ToolOutput, "éèà", 2), "éè");
        assert_eq!(part(ContentType::ToolOutput, "éèà", 3), "éèà");
        assert_eq!(part(ContentType::ToolOutput, "éèà", 0), "");
        assert_eq!(part(ContentType::AssistantThinking, "éèà", 2), "éèà");
        assert_eq!(part(ContentType::System, "éèà", 2), "");
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "\\PC{0,8}".prop_map(Value::from),
            prop::sample::select(&["text", "thinking", "reasoning", "tool_result", "image"][..])
                .prop_map(Value::from),
        ];
        leaf.prop_recursive(5, 64, 5, |inner| {
            let key =
                prop::sample::select(&["type", "text", "content", "thinking", "summary", "output", "x"][..]);
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::vec((key, inner), 0..5).prop_map(|fields| Value::Object(
                    fields.into_iter().map(|(k, v)| (k.to_owned(), v)).collect()
                )),
            ]
        })
    }

    proptest! {
        #[test]
        fn any_shape_is_taken(content in any_json(), thinking in any_json(), reasoning in any_json()) {
            let line = json!({"content": content, "thinking": thinking, "reasoning": reasoning});
            for role in Role::ALL {
                let found = extract(line.as_object().unwrap(), role);
                prop_assert!(found.iter().all(|text| !text.text.trim().is_empty()));
                prop_assert!(found.windows(2).all(|pair| pair[0].content_type < pair[1].content_type));
            }
        }
    }
}
