//! Answers within a budget.

use amplifier_session_api::budget::{Items, Portion, largest_that_fits};
use amplifier_session_core::content::tokens::{count, count_up_to};
use serde::Deserialize;
use serde_json::Value;

use crate::{failure::CallFailure, parameters::Count};

/// The tokens of an answer by default.
const USUAL_TOKENS: usize = 2_000;
/// The most tokens of an answer.
const MOST_TOKENS: usize = 12_000;
/// The most characters of an answer: clients cut results after 50,000, or move them to files.
const MOST_CHARS: usize = 48_000;

/// The form of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum AnswerFormat {
    #[default]
    Text,
    Json,
}

/// The form and the size of an answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AnswerShape {
    tokens: usize,
    format: AnswerFormat,
}

/// The answer of a tool.
#[derive(Debug)]
pub(crate) struct ToolAnswer {
    /// The text, which is JSON if that was requested.
    pub(crate) text: String,
    /// Whether it is JSON.
    pub(crate) is_json: bool,
}

impl AnswerShape {
    pub(crate) fn new(budget: Option<Count>, format: Option<AnswerFormat>) -> Result<Self, CallFailure> {
        let tokens = match budget {
            None => USUAL_TOKENS,
            Some(Count(0)) => return Err(CallFailure::of_parameter("budget", "must be at least 1 token")),
            // More would be cut elsewhere, where nobody says so.
            Some(Count(tokens)) => tokens.min(MOST_TOKENS),
        };
        Ok(Self { tokens, format: format.unwrap_or_default() })
    }

    pub(crate) fn is_json(&self) -> bool {
        self.format == AnswerFormat::Json
    }

    /// The largest portion of `items` that fits. `text` and `json` make the answer with a portion; only the requested one
    /// is called.
    pub(crate) fn fit(
        &self,
        items: Items,
        text: impl Fn(Portion) -> String,
        json: impl Fn(Portion) -> Result<Value, CallFailure>,
    ) -> Result<ToolAnswer, CallFailure> {
        let fits = |text: &str| {
            text.chars().nth(MOST_CHARS - 1).is_none() && count_up_to(text, self.tokens).is_some()
        };
        let rendered = |portion| -> Result<String, CallFailure> {
            if !self.is_json() {
                return Ok(text(portion));
            }
            Ok(amplifier_session_api::text::escaped(&json(portion)?.to_string()))
        };
        match largest_that_fits(items, fits, rendered)? {
            Ok((_, text)) => Ok(ToolAnswer { text, is_json: self.is_json() }),
            Err(without_items) => {
                let least = count(&without_items);
                let problem =
                    format!("{} is too small: this answer needs at least {least} tokens", self.tokens);
                Err(CallFailure::of_parameter("budget", problem))
            }
        }
    }
}
