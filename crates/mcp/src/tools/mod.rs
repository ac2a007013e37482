//! The tools: a file each.

pub(crate) mod events;
pub(crate) mod list;
pub(crate) mod read;
pub(crate) mod search;
pub(crate) mod statistics;

use amplifier_session_api::{Notice, Reach, incomplete::IncompleteReason};
use rmcp::model::{Tool, ToolAnnotations};
use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::{Map, Value};

use crate::{
    OpenedSessions,
    parameters::{
        self, CommaList, EventsParameters, ListParameters, ReadParameters, SearchParameters,
        StatisticsParameters,
    },
    remarks, words,
};

/// A tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ToolName {
    Search,
    Read,
    List,
    Events,
    Statistics,
}

impl ToolName {
    pub(crate) const ALL: [Self; 5] = [Self::Search, Self::Read, Self::List, Self::Events, Self::Statistics];

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Search => "search",
            Self::Read => "read",
            Self::List => "list",
            Self::Events => "events",
            Self::Statistics => "statistics",
        }
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.as_str() == name)
    }

    /// The tool with its description and parameters, for a caller who reaches so far.
    pub(crate) fn definition(self, reach: Reach) -> Tool {
        let (description, mut schema) = match self {
            Self::Search => (words::SEARCH, schema::<SearchParameters>()),
            Self::Read => (words::READ, schema::<ReadParameters>()),
            Self::List => (words::LIST, schema::<ListParameters>()),
            Self::Events => (words::EVENTS, schema::<EventsParameters>()),
            Self::Statistics => (words::STATISTICS, schema::<StatisticsParameters>()),
        };
        if let (Some(scope), Some(Value::Object(properties))) =
            (parameters::scope_schema(reach), schema.get_mut("properties"))
        {
            properties.insert(parameters::SCOPE.to_owned(), scope);
        }
        let hints = ToolAnnotations::new().read_only(true).idempotent(true);
        Tool::new(self.as_str(), description, schema).with_annotations(hints)
    }
}

/// The schema of parameters, without what says nothing to a model.
fn schema<T: JsonSchema>() -> Map<String, Value> {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    shorten(&mut schema);
    match schema {
        Value::Object(schema) => schema,
        _ => Map::new(),
    }
}

/// Removes titles and defaults, and that a parameter may be `null`, which it may be as well as absent.
fn shorten(schema: &mut Value) {
    let Value::Object(schema) = schema else { return };
    schema.retain(|key, _| !matches!(key.as_str(), "title" | "default"));
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|of| of != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            schema.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(values)) = schema.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    if let Some(Value::Array(choices)) = schema.get_mut("anyOf") {
        choices.retain(|choice| choice.get("type") != Some(&"null".into()));
        if let [Value::Object(only)] = choices.as_slice() {
            let only = only.clone();
            schema.shift_remove("anyOf");
            let described = schema.contains_key("description");
            schema.extend(only.into_iter().filter(|(key, _)| key != "description" || !described));
        }
    }
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        properties.values_mut().for_each(shorten);
    }
}

/// A text that says something.
pub(crate) fn given(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.trim().is_empty())
}

/// The words of a parameter.
pub(crate) fn all(words: Option<CommaList>) -> Vec<String> {
    words.unwrap_or_default().0
}

/// The remarks about an answer, each once: those of the store, those of the operation, and what may be missing.
pub(crate) fn all_remarks(
    opened: &OpenedSessions,
    notices: &[Notice],
    incomplete: &[IncompleteReason],
) -> Vec<String> {
    let mut said: Vec<String> = opened.notices().iter().chain(notices).filter_map(remarks::notice).collect();
    said.extend(incomplete.iter().chain(opened.unread()).map(remarks::incomplete));
    let mut once: Vec<String> = Vec::new();
    said.into_iter().for_each(|remark| {
        if !once.contains(&remark) {
            once.push(remark)
        }
    });
    once
}

/// Remarks as lines.
pub(crate) fn remark_lines(remarks: &[String]) -> String {
    remarks
        .iter()
        .map(|remark| format!("note: {}\n", amplifier_session_api::text::one_line(remark)))
        .collect()
}

#[cfg(test)]
mod tests {
    use amplifier_session_core::content::tokens::count;

    use super::*;

    #[test]
    fn the_definitions_are_short() {
        for (reach, most) in [(Reach::Own, 1_500), (Reach::All, 1_750)] {
            let tools = ToolName::ALL.map(|tool| tool.definition(reach));
            let json = serde_json::to_string(&tools).unwrap();
            assert!(count(&json) < most, "{} tokens: {json}", count(&json));
        }
        for instructions in [words::instructions(false), words::instructions(true)] {
            assert!(instructions.len() < 2_000, "{}", instructions.len());
        }
    }

    #[test]
    fn every_tool_only_reads_and_refuses_other_parameters() {
        for tool in ToolName::ALL.map(|tool| tool.definition(Reach::All)) {
            let hints = tool.annotations.unwrap();
            assert_eq!((hints.read_only_hint, hints.idempotent_hint), (Some(true), Some(true)));
            assert_eq!((hints.open_world_hint, tool.output_schema), (None, None));
            assert_eq!(tool.input_schema["additionalProperties"], false, "{}", tool.name);
            for (name, parameter) in tool.input_schema["properties"].as_object().unwrap() {
                assert!(parameter["type"].is_string(), "{name} of {}: {parameter}", tool.name);
            }
        }
    }

    #[test]
    fn a_scope_can_be_chosen_only_if_there_is_more_than_one() {
        for tool in ToolName::ALL {
            let scopes = |reach| tool.definition(reach).input_schema["properties"]["scope"]["enum"].clone();
            assert!(tool.definition(Reach::Own).input_schema["properties"].get("scope").is_none());
            assert_eq!(scopes(Reach::Visible), serde_json::json!(["own", "visible"]));
            assert_eq!(scopes(Reach::All), serde_json::json!(["own", "visible", "all"]));
        }
    }
}
