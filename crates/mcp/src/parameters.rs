//! The parameters of the tools.
//!
//! Models write numbers as strings, and lists as words with commas: both are read. A parameter that does not exist is an
//! error that names those that do, because a filter that is ignored would make an answer wrong.

use std::{borrow::Cow, fmt, marker::PhantomData, str::FromStr};

use amplifier_session_api::Reach;
use amplifier_session_core::search::SearchMode;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, de, de::DeserializeOwned};
use serde_json::{Map, Value, json};

use crate::{answer::AnswerFormat, failure::CallFailure};

/// A number, which may be written as a string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Count(pub(crate) usize);

/// A switch, which may be written as a string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Switch(pub(crate) bool);

/// CommaList: a string with commas, or a list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct CommaList(pub(crate) Vec<String>);

/// Where to begin to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadFrom {
    Start,
    End,
    Message(u32),
}

/// The parameters of `search`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(extend("required" = ["query"]))]
pub(crate) struct SearchParameters {
    /// A question or words; also "a phrase", -word, file:PATH, tool:NAME, role:user
    pub(crate) query: Option<String>,
    /// Default: hybrid (words and meaning)
    pub(crate) mode: Option<ModeParameter>,
    /// Texts to search: user, assistant, thinking, tool_call, tool_output, system; default: all but system
    #[serde(rename = "in")]
    pub(crate) types: Option<CommaList>,
    /// Part of a project's name, or its folder
    pub(crate) project: Option<String>,
    /// Date: 7d, yesterday, 2026-01-31
    pub(crate) since: Option<String>,
    pub(crate) until: Option<String>,
    /// Only in this session
    pub(crate) session: Option<String>,
    /// Sessions to leave out
    pub(crate) not_session: Option<CommaList>,
    /// What to find: messages, or turns (a question with its last answer)
    pub(crate) unit: Option<UnitParameter>,
    /// Sessions; default: 10
    pub(crate) limit: Option<Count>,
    /// Tokens of the answer; default: 2000, at most 12000
    pub(crate) budget: Option<Count>,
    /// Go on, as the last answer says
    pub(crate) after: Option<Count>,
    pub(crate) format: Option<AnswerFormat>,
}

/// The parameters of `read`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(extend("required" = ["address"]))]
pub(crate) struct ReadParameters {
    /// A message (7f3c9a52#14), or a session (7f3c9a52, latest)
    pub(crate) address: Option<String>,
    /// Messages before it; default: 3
    pub(crate) before: Option<Count>,
    /// Messages after it; default: 3
    pub(crate) after: Option<Count>,
    /// In a session: start (default), end for its latest state, or the number of a message
    pub(crate) from: Option<ReadFrom>,
    /// In a session: only this turn
    pub(crate) turn: Option<Count>,
    /// Show thinking; default: false
    pub(crate) thinking: Option<Switch>,
    /// Show tool calls and output; default: true
    pub(crate) tools: Option<Switch>,
    /// Tokens of the answer; default: 2000
    pub(crate) budget: Option<Count>,
    pub(crate) format: Option<AnswerFormat>,
}

/// The parameters of `list`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ListParameters {
    /// CommaList of the title or description
    pub(crate) text: Option<String>,
    pub(crate) project: Option<String>,
    pub(crate) tag: Option<CommaList>,
    /// Changed since this date
    pub(crate) since: Option<String>,
    pub(crate) until: Option<String>,
    /// Only sub-agents and forks of this session
    pub(crate) parent: Option<String>,
    /// Default: 20
    pub(crate) limit: Option<Count>,
    pub(crate) budget: Option<Count>,
    /// Go on, as the last answer says
    pub(crate) after: Option<String>,
    pub(crate) format: Option<AnswerFormat>,
}

/// The parameters of `events`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct EventsParameters {
    pub(crate) session: Option<String>,
    /// Exact, such as tool:post
    #[serde(rename = "type")]
    pub(crate) event_type: Option<String>,
    pub(crate) tool: Option<String>,
    pub(crate) level: Option<LevelParameter>,
    /// CommaList of the error or summary
    pub(crate) text: Option<String>,
    pub(crate) project: Option<String>,
    pub(crate) since: Option<String>,
    pub(crate) until: Option<String>,
    /// Default: 50
    pub(crate) limit: Option<Count>,
    pub(crate) budget: Option<Count>,
    /// Go on, as the last answer says
    pub(crate) after: Option<String>,
    pub(crate) format: Option<AnswerFormat>,
}

/// The parameters of `statistics`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct StatisticsParameters {
    pub(crate) project: Option<String>,
    pub(crate) session: Option<String>,
    pub(crate) since: Option<String>,
    pub(crate) until: Option<String>,
    /// Default: model and tool
    pub(crate) by: Option<ByParameter>,
    pub(crate) budget: Option<Count>,
    pub(crate) format: Option<AnswerFormat>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ModeParameter {
    Hybrid,
    #[serde(alias = "full-text", alias = "words")]
    FullText,
    Semantic,
}

impl From<ModeParameter> for SearchMode {
    fn from(mode: ModeParameter) -> Self {
        match mode {
            ModeParameter::Hybrid => Self::Hybrid,
            ModeParameter::FullText => Self::FullText,
            ModeParameter::Semantic => Self::Semantic,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum UnitParameter {
    Message,
    Turn,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LevelParameter {
    #[serde(alias = "DEBUG")]
    Debug,
    #[serde(alias = "INFO")]
    Info,
    #[serde(alias = "WARN", alias = "warning")]
    Warn,
    #[serde(alias = "ERROR")]
    Error,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ByParameter {
    Day,
    Week,
    Month,
    Project,
    Bundle,
    Model,
    Tool,
    #[serde(alias = "event_type")]
    Event,
}

/// The parameter that says whose sessions a call reads. Tools have it if the caller reaches farther than their own.
pub(crate) const SCOPE: &str = "scope";

/// The scopes of a caller who reaches so far; none if there is no choice.
fn scopes(reach: Reach) -> &'static [Reach] {
    match reach {
        Reach::Own => &[],
        Reach::Visible => &[Reach::Own, Reach::Visible],
        Reach::All => &[Reach::Own, Reach::Visible, Reach::All],
    }
}

/// The schema of [`SCOPE`], if there is a choice.
pub(crate) fn scope_schema(reach: Reach) -> Option<Value> {
    let names: Vec<&str> = scopes(reach).iter().map(|scope| scope.as_str()).collect();
    let about = "Whose sessions: own (default), visible (also shared with you), all";
    (!names.is_empty()).then(|| json!({"type": "string", "enum": names, "description": about}))
}

/// Removes [`SCOPE`] from the arguments. Without a choice, it stays, and is an unknown parameter.
pub(crate) fn take_scope(
    arguments: &mut Map<String, Value>,
    reach: Reach,
) -> Result<Option<Reach>, CallFailure> {
    let known = scopes(reach);
    if known.is_empty() {
        return Ok(None);
    }
    let Some(scope) = arguments.shift_remove(SCOPE).filter(|scope| !scope.is_null()) else { return Ok(None) };
    let named = scope.as_str().and_then(|name| {
        known.iter().copied().find(|scope| scope.as_str().eq_ignore_ascii_case(name.trim()))
    });
    let names: Vec<&str> = known.iter().map(|scope| scope.as_str()).collect();
    let wrong = || CallFailure::of_parameter(SCOPE, format!("must be one of {}", names.join(", ")));
    named.map(Some).ok_or_else(wrong)
}

/// Reads the parameters of a call.
pub(crate) fn read<T: DeserializeOwned>(arguments: Map<String, Value>) -> Result<T, CallFailure> {
    let whole = serde_json::from_value::<T>(Value::Object(arguments.clone()));
    whole.map_err(|error| {
        // The error does not say which parameter it is about.
        let wrong = arguments.into_iter().find_map(|(name, value)| {
            let alone = Map::from_iter([(name.clone(), value)]);
            Some((name, serde_json::from_value::<T>(Value::Object(alone)).err()?))
        });
        match wrong {
            Some((name, error)) => CallFailure::of_parameter(&name, problem(&error)),
            None => CallFailure::new(problem(&error)),
        }
    })
}

fn problem(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.strip_prefix("unknown field ").and_then(|rest| rest.split_once(", expected ")) {
        Some((_, known)) => format!("unknown parameter; known are {}", known.trim_start_matches("one of ")),
        None => text,
    }
}

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextOrValue("a number, 0 or greater", PhantomData))
    }
}

impl<'de> Deserialize<'de> for Switch {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextOrValue("true or false", PhantomData))
    }
}

impl<'de> Deserialize<'de> for ReadFrom {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextOrValue("start, end, or the number of a message", PhantomData))
    }
}

impl<'de> Deserialize<'de> for CommaList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(WordsVisitor)
    }
}

impl FromStr for Count {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        text.parse().map(Self).map_err(drop)
    }
}

impl FromStr for Switch {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        text.to_ascii_lowercase().parse().map(Self).map_err(drop)
    }
}

impl FromStr for ReadFrom {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text.to_ascii_lowercase().as_str() {
            "start" => Ok(Self::Start),
            "end" => Ok(Self::End),
            number => number.trim_start_matches('#').parse().map(Self::Message).map_err(drop),
        }
    }
}

/// Reads a value from a string, a number or a boolean.
struct TextOrValue<T>(&'static str, PhantomData<T>);

impl<T: FromStr> TextOrValue<T> {
    fn parsed<E: de::Error>(&self, text: &str) -> Result<T, E> {
        text.trim().parse().map_err(|_| E::custom(format!("must be {}, not {text:?}", self.0)))
    }
}

impl<T: FromStr> de::Visitor<'_> for TextOrValue<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        self.parsed(text)
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<T, E> {
        self.parsed(&value.to_string())
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<T, E> {
        self.parsed(&number.to_string())
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<T, E> {
        self.parsed(&number.to_string())
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<T, E> {
        // `10.0` is 10.
        self.parsed(&number.to_string())
    }
}

struct WordsVisitor;

impl<'de> de::Visitor<'de> for WordsVisitor {
    type Value = CommaList;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("words, separated by commas")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<CommaList, E> {
        let words = text.split(',').map(str::trim).filter(|word| !word.is_empty());
        Ok(CommaList(words.map(str::to_owned).collect()))
    }

    fn visit_seq<A: de::SeqAccess<'de>>(self, mut list: A) -> Result<CommaList, A::Error> {
        let mut words = Vec::new();
        while let Some(word) = list.next_element()? {
            words.push(word);
        }
        Ok(CommaList(words))
    }
}

/// Schemas of one type, within the parameters.
macro_rules! schemas {
    ($($name:ident: $schema:expr;)*) => {
        $(impl JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                $schema
            }
        })*
    };
}

schemas! {
    Count: json_schema!({"type": "integer"});
    Switch: json_schema!({"type": "boolean"});
    CommaList: json_schema!({"type": "string"});
    ReadFrom: json_schema!({"type": "string"});
}

#[cfg(test)]
mod tests {
    use super::*;

    fn search(arguments: Value) -> Result<SearchParameters, String> {
        let Value::Object(arguments) = arguments else { return Err(String::new()) };
        read(arguments).map_err(|failure: CallFailure| failure.text())
    }

    #[test]
    fn numbers_and_lists_may_be_strings() {
        let read = search(serde_json::json!({
            "query": "pool", "limit": "5", "budget": 3000.0, "in": "user, tool_call", "not_session": ["a", "b"],
            "after": null, "mode": "full_text"}))
        .unwrap();
        assert_eq!((read.limit, read.budget, read.after), (Some(Count(5)), Some(Count(3_000)), None));
        assert_eq!(read.types, Some(CommaList(vec!["user".to_owned(), "tool_call".to_owned()])));
        assert_eq!(read.not_session, Some(CommaList(vec!["a".to_owned(), "b".to_owned()])));
    }

    #[test]
    fn mistakes_name_the_parameter() {
        let wrong = |arguments| search(arguments).unwrap_err();
        assert_eq!(
            wrong(serde_json::json!({"query": "pool", "limit": "many"})),
            "error: limit: must be a number, 0 or greater, not \"many\""
        );
        assert_eq!(
            wrong(serde_json::json!({"query": 1})),
            "error: query: invalid type: integer `1`, expected a string"
        );
        let unknown = wrong(serde_json::json!({"query": "pool", "scope": "all"}));
        assert!(
            unknown.starts_with("error: scope: unknown parameter; known are `query`, `mode`"),
            "{unknown}"
        );
        let mode = wrong(serde_json::json!({"mode": "fuzzy"}));
        assert!(mode.starts_with("error: mode: unknown variant `fuzzy`, expected one of `hybrid`"), "{mode}");
    }

    #[test]
    fn reading_begins_at_a_place() {
        let from = |value: Value| serde_json::from_value::<ReadFrom>(value).ok();
        assert_eq!(from("END".into()), Some(ReadFrom::End));
        assert_eq!(from("#12".into()), Some(ReadFrom::Message(12)));
        assert_eq!(from(7.into()), Some(ReadFrom::Message(7)));
        assert_eq!((from("middle".into()), from((-1).into())), (None, None));
    }

    #[test]
    fn a_scope_is_at_most_the_reach() {
        let scope = |value: Value, reach| {
            let mut arguments = Map::from_iter([(SCOPE.to_owned(), value)]);
            let taken = take_scope(&mut arguments, reach).map_err(|failure| failure.text());
            (taken, arguments.is_empty())
        };
        assert_eq!(scope("visible".into(), Reach::All), (Ok(Some(Reach::Visible)), true));
        assert_eq!(scope(Value::Null, Reach::All), (Ok(None), true));
        let refused = "error: scope: must be one of own, visible".to_owned();
        for wrong in [json!("all"), json!("everything"), json!(1)] {
            assert_eq!(scope(wrong, Reach::Visible).0, Err(refused.clone()));
        }
        // It is an unknown parameter then.
        assert_eq!(scope("all".into(), Reach::Own), (Ok(None), false));
    }
}
