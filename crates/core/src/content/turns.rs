//! Which turn of the conversation a line belongs to.

use serde_json::{Map, Value};

use super::extract::{block_text, block_type, elements};
use crate::model::Role;

/// The most characters that [`first_prompt`] returns.
pub const FIRST_PROMPT_CHARS: usize = 120;

/// How the texts begin that Amplifier's hooks put into the conversation in the user's name.
const REMINDER: &str = "<system-reminder>";

/// Numbers the turns of a transcript, line by line in order.
///
/// A line that gives its turn (`turn`, or `turn` in its `metadata`: an integer from 1 on) is believed, and
/// counting goes on from there. Otherwise the first real user message starts turn 1 and each further one the
/// next; all other lines belong to the current turn, and to none before the first.
///
/// A user message is real if the person wrote it: it holds more than tool results and texts that begin with
/// `<system-reminder>`.
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
    /// Continues after a line of turn `last`; `None` at the beginning of a transcript.
    #[must_use]
    pub const fn new(last: Option<u32>) -> Self {
        Self { current: last }
    }

    /// The turn of the next line, whose role is `role`.
    pub fn turn_of(&mut self, line: &Map<String, Value>, role: Role) -> Option<u32> {
        if let Some(given) = given_turn(line) {
            self.current = Some(given);
        } else if role == Role::User && is_real(line) {
            self.current = Some(self.current.map_or(1, |turn| turn.saturating_add(1)));
        }
        self.current
    }
}

/// The beginning of a real user message, at most [`FIRST_PROMPT_CHARS`] characters in one line; `None` for
/// every other line, and when the message is without text.
#[must_use]
pub fn first_prompt(line: &Map<String, Value>) -> Option<String> {
    if line.get("role").and_then(Value::as_str) != Some(Role::User.as_str()) {
        return None;
    }
    let content = line.get("content")?;
    let own = elements(content).iter().filter_map(block_text).filter(|text| !is_reminder(text));
    let mut prompt = String::new();
    for word in own.flat_map(str::split_whitespace) {
        if !prompt.is_empty() {
            prompt.push(' ');
        }
        // A word can be a megabyte long.
        prompt.extend(word.chars().take(FIRST_PROMPT_CHARS + 1));
        if prompt.chars().count() > FIRST_PROMPT_CHARS {
            return Some(shortened(&prompt));
        }
    }
    (!prompt.is_empty()).then_some(prompt)
}

fn shortened(prompt: &str) -> String {
    let kept: String = prompt.chars().take(FIRST_PROMPT_CHARS - 1).collect();
    format!("{}…", kept.trim_end())
}

fn given_turn(line: &Map<String, Value>) -> Option<u32> {
    let in_metadata = || line.get("metadata").and_then(|metadata| metadata.get("turn"));
    let turn =
        |value: &Value| value.as_u64().and_then(|turn| u32::try_from(turn).ok()).filter(|turn| *turn >= 1);
    line.get("turn").and_then(turn).or_else(|| in_metadata().and_then(turn))
}

/// Whether the person wrote this user message.
fn is_real(line: &Map<String, Value>) -> bool {
    line.get("content").is_some_and(|content| elements(content).iter().any(is_own))
}

/// Whether a block of a user message comes from the person: a text, or something like an image.
fn is_own(block: &Value) -> bool {
    match block_text(block) {
        Some(text) => !text.trim().is_empty() && !is_reminder(text),
        None => block_type(block).is_some_and(|name| name != "text" && name != "tool_result"),
    }
}

fn is_reminder(text: &str) -> bool {
    text.trim_start().starts_with(REMINDER)
}
