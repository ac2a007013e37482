//! Numbers the turns of a conversation.

use serde_json::{Map, Value};

use super::{
    automatic::is_automatic,
    blocks::{block_text, block_type, blocks_of, is_media, is_text, is_tool_result},
    title::without_inserted,
};
use crate::model::Role;

/// Numbers the turns of a transcript, line by line in order.
///
/// If a line states its turn (`turn`, or `turn` in its `metadata`: an integer from 1), counting continues from there.
/// Otherwise, the first real user message starts turn 1, and each further one the next turn. All other lines belong to
/// the current turn, or to none before the first.
///
/// A user message is real if it contains more than tool results and text that programs insert on behalf of the user,
/// such as `<system-reminder>…</system-reminder>`, and if its metadata does not say that a program wrote it.
///
/// ```
/// use amplifier_session_core::{content::TurnCounter, model::Role};
/// use serde_json::json;
///
/// let mut turns = TurnCounter::new(None);
/// let mut turn = |role, line: serde_json::Value| turns.turn_of(line.as_object().unwrap(), role);
/// assert_eq!(turn(Role::System, json!({"content": "Be brief."})), None);
/// assert_eq!(turn(Role::User, json!({"content": "Hello"})), Some(1));
/// assert_eq!(turn(Role::Assistant, json!({"content": "Hello!"})), Some(1));
/// assert_eq!(turn(Role::User, json!({"content": "Thanks"})), Some(2));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TurnCounter {
    current: Option<u32>,
}

impl TurnCounter {
    /// Continues after a line with turn `last`; `None` at the beginning of a transcript.
    #[must_use]
    pub const fn new(last: Option<u32>) -> Self {
        Self { current: last }
    }

    /// The turn of the last line.
    #[must_use]
    pub const fn last(&self) -> Option<u32> {
        self.current
    }

    /// The turn of the next line, which has this role.
    pub fn turn_of(&mut self, line: &Map<String, Value>, role: Role) -> Option<u32> {
        if let Some(given) = given_turn(line) {
            self.current = Some(given);
        } else if role == Role::User && is_real(line) {
            self.current = Some(self.current.map_or(1, |turn| turn.saturating_add(1)));
        }
        self.current
    }
}

fn given_turn(line: &Map<String, Value>) -> Option<u32> {
    let in_metadata = || line.get("metadata").and_then(|metadata| metadata.get("turn"));
    let turn =
        |value: &Value| value.as_u64().and_then(|turn| u32::try_from(turn).ok()).filter(|turn| *turn >= 1);
    line.get("turn").and_then(turn).or_else(|| in_metadata().and_then(turn))
}

/// A warning about the turn that a line states, if it is not a whole number of at least 1.
pub(crate) fn unreadable_turn(line: &Map<String, Value>) -> Option<String> {
    if given_turn(line).is_some() {
        return None;
    }
    let in_metadata = || line.get("metadata").and_then(|metadata| metadata.get("turn"));
    let given = line.get("turn").filter(|turn| !turn.is_null()).or_else(in_metadata);
    let given = given.filter(|turn| !turn.is_null())?;
    Some(format!(
        "turn {} is invalid: turns are numbered from 1",
        given.to_string().chars().take(20).collect::<String>()
    ))
}

/// Whether the person wrote this user message.
pub(crate) fn is_real(line: &Map<String, Value>) -> bool {
    !is_automatic(line) && has_own_content(line)
}

/// Whether a user message contains more than tool results and inserted text. A program may have sent it.
pub(crate) fn has_own_content(line: &Map<String, Value>) -> bool {
    blocks_of(line).into_iter().any(is_own)
}

/// Whether a block of a user message comes from the person: a text, or something like an image.
fn is_own(block: &Value) -> bool {
    match block_text(block) {
        Some(text) => !without_inserted(text).is_empty(),
        None => match block_type(block) {
            Some(name) => !is_text(name) && !is_tool_result(block),
            None => is_media(block),
        },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The turns of lines of one transcript.
    fn turns(lines: &[Value]) -> Vec<Option<u32>> {
        let mut counter = TurnCounter::default();
        let turn_of = |line: &Value| {
            let role = line["role"].as_str().unwrap().parse().unwrap();
            counter.turn_of(line.as_object().unwrap(), role)
        };
        lines.iter().map(turn_of).collect()
    }

    fn user(content: Value) -> Value {
        json!({"role": "user", "content": content})
    }

    #[test]
    fn each_real_user_message_starts_a_turn() {
        let lines = [
            json!({"role": "system", "content": "Be brief."}),
            json!({"role": "assistant", "content": "Hello!"}),
            user(json!("one")),
            json!({"role": "assistant", "content": [{"type": "tool_call"}]}),
            json!({"role": "tool", "content": "output"}),
            user(json!("two")),
            json!({"role": "developer", "content": "x"}),
        ];
        assert_eq!(turns(&lines), [None, None, Some(1), Some(1), Some(1), Some(2), Some(2)]);
    }

    #[test]
    fn inserted_messages_start_no_turn() {
        let result = json!({"type": "tool_result", "tool_use_id": "1", "content": "x"});
        let reminder = json!({"type": "text", "text": "<system-reminder>x</system-reminder>"});
        for content in [
            json!([result]),
            json!([result, reminder]),
            json!("<system-reminder>be careful</system-reminder>"),
            json!("\n  <system-reminder>be careful"),
            json!("<local-command-stdout>Bye!</local-command-stdout>"),
            json!("[Request interrupted by user]"),
            json!([reminder]),
            json!([{"type": "text"}, 5, null, {}]),
            json!(" "),
            json!(null),
            json!({}),
        ] {
            assert_eq!(turns(&[user(content.clone())]), [None], "{content}");
            assert_eq!(turns(&[user(json!("one")), user(content.clone())]), [Some(1), Some(1)], "{content}");
        }
    }

    #[test]
    fn other_messages_of_a_person_start_a_turn() {
        let result = json!({"type": "tool_result", "content": "x"});
        let reminder = json!({"type": "text", "text": "<system-reminder>x</system-reminder>"});
        let text = json!({"type": "text", "text": "Why?"});
        for content in [
            json!([result, text]),
            json!([reminder, text]),
            json!([{"type": "image"}]),
            json!(["Why?"]),
            json!("<system-reminder>be careful</system-reminder>\n\nWhere does the pelican nest?"),
        ] {
            assert_eq!(turns(&[user(content.clone())]), [Some(1)], "{content}");
        }
    }

    #[test]
    fn messages_in_other_formats_start_a_turn_if_a_person_wrote_them() {
        for line in [
            json!({"role": "human", "content": "Why?"}),
            json!({"role": "User", "content": [{"type": "input_text", "text": "Why?"}]}),
            json!({"role": "user", "parts": [{"text": "Why?"}]}),
            json!({"role": "user", "parts": [{"inlineData": {"mimeType": "image/png", "data": "x"}}]}),
            json!({"role": "user", "content": {"text": "Why?"}}),
        ] {
            assert_eq!(turns(std::slice::from_ref(&line)), [Some(1)], "{line}");
        }
        for line in [
            json!({"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {}}}]}),
            json!({"role": "user", "content": [{"type": "function_call_output", "output": "x"}]}),
            json!({"role": "user", "content": [{"type": "input_text"}]}),
            json!({"role": "user", "content": "Why?", "metadata": {"ephemeral": true}}),
        ] {
            assert_eq!(turns(std::slice::from_ref(&line)), [None], "{line}");
        }
    }

    #[test]
    fn a_stated_turn_is_used() {
        let lines = [
            json!({"role": "user", "content": "a", "turn": 3}),
            json!({"role": "assistant", "content": "b"}),
            user(json!("c")),
            json!({"role": "assistant", "content": "d", "metadata": {"turn": 7}}),
            json!({"role": "tool", "content": "e"}),
            user(json!("f")),
        ];
        assert_eq!(turns(&lines), [Some(3), Some(3), Some(4), Some(7), Some(7), Some(8)]);
    }

    #[test]
    fn an_invalid_turn_is_ignored() {
        for turn in [json!(null), json!(0), json!(-1), json!(1.5), json!("2"), json!(5_000_000_000_u64)] {
            let line = json!({"role": "user", "content": "a", "turn": turn, "metadata": {"turn": turn}});
            assert_eq!(turns(&[line]), [Some(1)], "{turn}");
        }
        let both = json!({"role": "user", "content": "a", "turn": null, "metadata": {"turn": 2}});
        assert_eq!(turns(&[both]), [Some(2)]);
    }

    #[test]
    fn counting_continues_after_the_last_turn() {
        let line = user(json!("next"));
        let next = |last| TurnCounter::new(last).turn_of(line.as_object().unwrap(), Role::User);
        assert_eq!(next(None), Some(1));
        assert_eq!(next(Some(5)), Some(6));
        assert_eq!(next(Some(u32::MAX)), Some(u32::MAX));
    }
}
