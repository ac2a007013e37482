//! The texts of turns, and the text that is embedded of each.

mod begun;
mod summaries;

use std::sync::Arc;

use serde_json::{Map, Value};

pub(super) use self::{
    begun::{BegunTurn, PROVIDERS, TurnReader, provider_name},
    summaries::{keep_stated, stated_by, summaries_from},
};
use crate::{
    Result,
    content::{MessageLine, Redactor, is_automatic, is_real},
    model::{ContentType, Message, Role},
};

/// At most this many characters of each side are embedded: more would blur the subject of the turn.
const EMBEDDED_CHARS: usize = 10_000;

/// If a text is cut off, this many characters after the cut are also searched for secrets, because the cut may split
/// one.
const MASKED_AFTER_CHARS: usize = 4_096;

/// The metadata field of a user's message that contains the summary of its turn.
const STATED_SUMMARY: &str = "turn_summary";

/// The two sides of a turn.
#[derive(Debug)]
pub(in crate::storage) struct TurnTexts {
    /// The first message with a text of the user.
    pub(in crate::storage) user: Message,
    pub(in crate::storage) user_text: String,
    /// The last message with a text of the assistant.
    pub(in crate::storage) assistant: Option<(Message, String)>,
    /// `turn_summary` in the metadata of the user's message.
    pub(in crate::storage) stated_summary: Option<String>,
}

/// The text that is embedded of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::storage) struct TurnContent {
    pub(in crate::storage) text: String,
    pub(in crate::storage) used_turn_summary: bool,
    pub(in crate::storage) secrets: u64,
}

impl TurnTexts {
    /// The text to embed: the user's text, and the summary or else the assistant's text. `None` if either is empty.
    pub(in crate::storage) fn content(
        &self,
        given_summary: Option<&str>,
        redactor: Option<&Arc<dyn Redactor>>,
    ) -> Result<Option<TurnContent>> {
        let summary = given_summary.or(self.stated_summary.as_deref());
        let answer = summary.or(self.assistant.as_ref().map(|(_, text)| text.as_str()));
        let Some(answer) = answer else { return Ok(None) };
        let mut secrets = 0;
        let mut side = |text: &str| -> Result<String> {
            let text = first_chars(text.trim(), EMBEDDED_CHARS + MASKED_AFTER_CHARS);
            let Some(redactor) = redactor else { return Ok(first_chars(text, EMBEDDED_CHARS).to_owned()) };
            let masked = redactor.mask(text)?;
            secrets += masked.secrets as u64;
            Ok(first_chars(&masked.text, EMBEDDED_CHARS).to_owned())
        };
        let (user, answer) = (side(&self.user_text)?, side(answer)?);
        if user.is_empty() || answer.is_empty() {
            return Ok(None);
        }
        let text = format!("User: {user}\nAssistant: {answer}");
        Ok(Some(TurnContent { text, used_turn_summary: summary.is_some(), secrets }))
    }
}

/// The summary that the line of a user's message states.
fn stated_summary(line: &Map<String, Value>) -> Option<String> {
    let summary = line.get("metadata")?.get(STATED_SUMMARY)?.as_str()?.trim();
    (!summary.is_empty()).then(|| summary.to_owned())
}

fn first_chars(text: &str, most: usize) -> &str {
    text.char_indices().nth(most).map_or(text, |(end, _)| text.get(..end).unwrap_or(text))
}

/// Groups the messages of a session into turns. The messages must come in order.
#[derive(Debug, Default)]
pub(in crate::storage) struct TurnCollector {
    turn: Option<u32>,
    open: Option<TurnTexts>,
}

impl TurnCollector {
    /// Adds the next message. Returns the turn before it, if that is complete and has a text of the user.
    pub(in crate::storage) fn push(&mut self, message: Message) -> Option<TurnTexts> {
        let complete = if message.turn == self.turn { None } else { self.open.take() };
        self.turn = message.turn;
        if self.turn.is_some() {
            self.add(message);
        }
        complete
    }

    /// Whether a text of the user was found in the last turn.
    pub(in crate::storage) fn has_user(&self) -> bool {
        self.open.is_some()
    }

    /// The last turn.
    pub(in crate::storage) fn finish(self) -> Option<TurnTexts> {
        self.open
    }

    fn add(&mut self, message: Message) {
        match &mut self.open {
            Some(open) => open.assistant = answer_of(message).or(open.assistant.take()),
            None => self.open = question_of(message),
        }
    }
}

/// A turn that begins with this message, if it has a text of the user.
pub(in crate::storage) fn question_of(message: Message) -> Option<TurnTexts> {
    if message.role != Role::User {
        return None;
    }
    let line = message.line();
    let user_text = side_text(&line, ContentType::UserQuery).filter(|_| is_real(line.fields()))?;
    let stated_summary = stated_summary(line.fields());
    Some(TurnTexts { user: message, user_text, assistant: None, stated_summary })
}

/// The message with its text, if it is one of the assistant that no program wrote.
pub(in crate::storage) fn answer_of(message: Message) -> Option<(Message, String)> {
    if message.role != Role::Assistant {
        return None;
    }
    let text = side_text(&message.line(), ContentType::AssistantResponse)?;
    Some((message, text))
}

fn side_text(line: &MessageLine, kind: ContentType) -> Option<String> {
    if is_automatic(line.fields()) {
        return None;
    }
    let text = line.texts().into_iter().find(|text| text.content_type == kind)?.text;
    Some(text).filter(|text| !text.trim().is_empty())
}
