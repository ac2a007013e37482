//! Vector records: vectors of chunks of a message.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// The content type of a text in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ContentType {
    /// The user's text.
    UserQuery,
    /// The model's answer.
    AssistantResponse,
    /// The model's reasoning.
    AssistantThinking,
    /// The output of a tool.
    ToolOutput,
    /// Instructions to the model: found by full text on request, never embedded.
    System,
    /// A tool call: the name of the tool with the strings in its arguments. Found by full text, never embedded.
    ToolCall,
}

names! {
    ContentType {
        UserQuery: "user_query",
        AssistantResponse: "assistant_response",
        AssistantThinking: "assistant_thinking",
        ToolOutput: "tool_output",
        System: "system",
        ToolCall: "tool_call",
    }
}

impl ContentType {
    /// The content types that are embedded.
    pub const EMBEDDED: [Self; 4] =
        [Self::UserQuery, Self::AssistantResponse, Self::AssistantThinking, Self::ToolOutput];

    /// Whether it is a tool call or tool output.
    #[must_use]
    pub const fn is_of_tools(self) -> bool {
        matches!(self, Self::ToolOutput | Self::ToolCall)
    }

    /// A stable number for compact storage: the position in [`ContentType::ALL`].
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// The content type of a [`ContentType::code`].
    #[must_use]
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code)).copied()
    }
}

impl std::str::FromStr for ContentType {
    type Err = Error;

    /// Parses the stored name, or the short name that people type: `user`, `assistant`, `thinking`, `tool` or `output`,
    /// `call`, `system`. [`ContentTypes::parse`] includes tool calls in `tool`.
    fn from_str(text: &str) -> Result<Self> {
        match text {
            "user" | "user_query" => Ok(Self::UserQuery),
            "assistant" | "assistant_response" => Ok(Self::AssistantResponse),
            "thinking" | "assistant_thinking" => Ok(Self::AssistantThinking),
            "tool" | "output" | "tool_output" => Ok(Self::ToolOutput),
            "system" => Ok(Self::System),
            "call" | "tool_call" => Ok(Self::ToolCall),
            _ => {
                let names = "must be user, assistant, thinking, tool, tool_output, tool_call or system";
                Err(Error::validation("content_type", names).with("value", format_args!("{text:?}")))
            }
        }
    }
}

/// A set of content types.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ContentTypes(u8);

impl ContentTypes {
    /// The empty set.
    pub const NONE: Self = Self(0);

    /// The four that are embedded.
    #[must_use]
    pub fn embedded() -> Self {
        ContentType::EMBEDDED.into_iter().collect()
    }

    /// The default for searches: the four that are embedded, and tool calls.
    #[must_use]
    pub fn searched() -> Self {
        ContentType::EMBEDDED.into_iter().chain([ContentType::ToolCall]).collect()
    }

    /// The content types for a word that people type: `tool` is tool calls and tool output; any other word is one
    /// content type.
    ///
    /// # Errors
    ///
    /// `Validation` if there is no such content type.
    pub fn parse(text: &str) -> Result<Self> {
        match text {
            "tool" => Ok([ContentType::ToolOutput, ContentType::ToolCall].into_iter().collect()),
            _ => Ok([text.parse::<ContentType>()?].into_iter().collect()),
        }
    }

    /// The members of both sets.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether the set contains `content_type`.
    #[must_use]
    pub const fn contains(self, content_type: ContentType) -> bool {
        self.0 & (1 << content_type.code()) != 0
    }

    /// Whether the set is empty.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The members, in the order of [`ContentType::ALL`].
    pub fn iter(self) -> impl Iterator<Item = ContentType> {
        ContentType::ALL.into_iter().filter(move |content_type| self.contains(*content_type))
    }
}

impl FromIterator<ContentType> for ContentTypes {
    fn from_iter<I: IntoIterator<Item = ContentType>>(members: I) -> Self {
        Self(members.into_iter().fold(0, |set, member| set | (1 << member.code())))
    }
}

impl fmt::Debug for ContentTypes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

/// The space in which vectors can be compared: a model and its number of dimensions.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct EmbeddingSpace {
    /// The model's name, for example `text-embedding-3-large`.
    pub model: String,
    /// The length of each vector.
    pub dimensions: usize,
}

impl fmt::Display for EmbeddingSpace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({} dimensions)", self.model, self.dimensions)
    }
}

/// One embedded chunk of one content type of a message.
///
/// The embedded text is not stored a second time: it is the characters `span_start..span_end` of the message's text of
/// this content type.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct VectorRecord {
    /// The content type of the text.
    pub content_type: ContentType,
    /// The index among the chunks of this text, from 0.
    pub chunk_index: u32,
    /// The number of chunks of the text.
    pub total_chunks: u32,
    /// The first character of the chunk.
    pub span_start: u32,
    /// One past its last character.
    pub span_end: u32,
    /// Its length in `cl100k_base` tokens.
    pub token_count: u32,
    /// Its vector, of unit length.
    pub vector: Vec<f32>,
}

impl VectorRecord {
    /// Checks the rules of the schema against the store's `space`.
    ///
    /// # Errors
    ///
    /// `Validation` naming the field that breaks a rule.
    pub fn validate(&self, space: &EmbeddingSpace) -> Result<()> {
        if !ContentType::EMBEDDED.contains(&self.content_type) {
            return Err(Error::validation("content_type", "system messages and tool calls are not embedded"));
        }
        if self.chunk_index >= self.total_chunks {
            return Err(Error::validation("chunk_index", "must be less than total_chunks"));
        }
        if self.span_end <= self.span_start {
            return Err(Error::validation("span_end", "must be greater than span_start"));
        }
        if self.token_count == 0 {
            return Err(Error::validation("token_count", "must be greater than 0"));
        }
        if self.vector.len() != space.dimensions {
            let (found, expected) = (self.vector.len(), space.dimensions);
            return Err(Error::validation(
                "vector",
                format!("has {found} dimensions, but the store has {expected}"),
            ));
        }
        if !self.vector.iter().all(|x| x.is_finite()) {
            return Err(Error::validation("vector", "contains a number that is not finite"));
        }
        Ok(())
    }
}

impl fmt::Debug for VectorRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "VectorRecord({} {}/{}, {}..{}, {} dimensions)",
            self.content_type,
            self.chunk_index,
            self.total_chunks,
            self.span_start,
            self.span_end,
            self.vector.len()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_names_lead_back() {
        for content_type in ContentType::ALL {
            assert_eq!(ContentType::from_code(content_type.code()), Some(content_type));
            assert_eq!(content_type.as_str().parse::<ContentType>().unwrap(), content_type);
        }
        assert_eq!(ContentType::from_code(6), None);
        assert!("answer".parse::<ContentType>().is_err());
    }

    #[test]
    fn sets_contain_their_elements() {
        let set: ContentTypes = [ContentType::ToolOutput, ContentType::UserQuery].into_iter().collect();
        assert_eq!(set.iter().collect::<Vec<_>>(), [ContentType::UserQuery, ContentType::ToolOutput]);
        assert!(ContentTypes::NONE.is_empty());
        assert!(!ContentTypes::embedded().contains(ContentType::System));
        assert!(!ContentTypes::searched().contains(ContentType::System));
    }

    #[test]
    fn tool_is_what_went_in_and_what_came_out() {
        let tool: Vec<ContentType> = ContentTypes::parse("tool").unwrap().iter().collect();
        assert_eq!(tool, [ContentType::ToolOutput, ContentType::ToolCall]);
        let call: Vec<ContentType> = ContentTypes::parse("tool_call").unwrap().iter().collect();
        assert_eq!(call, [ContentType::ToolCall]);
        assert!(ContentTypes::parse("tools").is_err());
    }

    #[test]
    fn records_that_break_a_rule_name_the_field() {
        let space = EmbeddingSpace { model: "m".into(), dimensions: 2 };
        let good = VectorRecord {
            content_type: ContentType::UserQuery,
            chunk_index: 0,
            total_chunks: 1,
            span_start: 0,
            span_end: 5,
            token_count: 1,
            vector: vec![0.6, 0.8],
        };
        good.validate(&space).unwrap();
        let field =
            |record: VectorRecord| record.validate(&space).unwrap_err().context("field").unwrap().to_owned();
        assert_eq!(field(VectorRecord { chunk_index: 1, ..good.clone() }), "chunk_index");
        assert_eq!(field(VectorRecord { span_end: 0, ..good.clone() }), "span_end");
        assert_eq!(field(VectorRecord { token_count: 0, ..good.clone() }), "token_count");
        assert_eq!(field(VectorRecord { vector: vec![1.0], ..good.clone() }), "vector");
        assert_eq!(field(VectorRecord { vector: vec![f32::NAN, 1.0], ..good.clone() }), "vector");
        assert_eq!(field(VectorRecord { content_type: ContentType::System, ..good }), "content_type");
    }
}
