//! Vector records: vectors of chunks of a message.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::{Digest, SessionKey, Timestamp};
use crate::{Error, ErrorField, Result};

/// The content type of a text in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
                Err(Error::validation(ErrorField::ContentType, names).with("value", format_args!("{text:?}")))
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

/// The text that a vector was made from: a text of its message, or the turn that its message begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum VectorText {
    /// The message's text of this content type.
    Content(ContentType),
    /// The turn: the user's message, and the last answer or the summary.
    Turn,
}

impl VectorText {
    /// All texts of a message that may have vectors.
    pub const ALL: [Self; 5] = [
        Self::Content(ContentType::UserQuery),
        Self::Content(ContentType::AssistantResponse),
        Self::Content(ContentType::AssistantThinking),
        Self::Content(ContentType::ToolOutput),
        Self::Turn,
    ];

    /// The stored name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Content(content_type) => content_type.as_str(),
            Self::Turn => "turn",
        }
    }

    /// The content type under which a search reports it. A turn is found as the user's message that begins it.
    #[must_use]
    pub const fn content_type(self) -> ContentType {
        match self {
            Self::Content(content_type) => content_type,
            Self::Turn => ContentType::UserQuery,
        }
    }
}

impl From<ContentType> for VectorText {
    fn from(content_type: ContentType) -> Self {
        Self::Content(content_type)
    }
}

impl From<VectorText> for String {
    fn from(text: VectorText) -> Self {
        text.as_str().to_owned()
    }
}

impl TryFrom<String> for VectorText {
    type Error = Error;

    fn try_from(name: String) -> Result<Self> {
        name.parse()
    }
}

impl std::str::FromStr for VectorText {
    type Err = Error;

    /// Parses the stored name.
    fn from_str(name: &str) -> Result<Self> {
        if name == Self::Turn.as_str() { Ok(Self::Turn) } else { name.parse().map(Self::Content) }
    }
}

impl fmt::Display for VectorText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The space in which vectors can be compared: a model and its number of dimensions.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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

/// One vector of a message: of a chunk of one of its texts, or of the turn that it begins.
///
/// The embedded text of a chunk is not stored a second time: it is the characters `span_start..span_end` of the
/// message's text. A turn has one vector for all of its text, which [`EmbeddedTurn`] has.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct VectorRecord {
    /// The text.
    #[serde(rename = "content_type")]
    pub text: VectorText,
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
    /// How the text of a turn was made. `None` for other texts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<Box<EmbeddedTurn>>,
}

impl VectorRecord {
    /// The vector of a turn. Its number of tokens is an estimate.
    #[must_use]
    pub fn of_turn(turn: EmbeddedTurn, vector: Vec<f32>) -> Self {
        const CHARACTERS_A_TOKEN: u32 = 4;
        let length = turn.content_used.chars().count() as u32;
        Self {
            text: VectorText::Turn,
            chunk_index: 0,
            total_chunks: 1,
            span_start: 0,
            span_end: length,
            token_count: length.div_ceil(CHARACTERS_A_TOKEN),
            vector,
            turn: Some(Box::new(turn)),
        }
    }

    /// Whether the vector can be compared with others: it has length 1, or 0 if the model knows no word of the text.
    #[must_use]
    pub fn has_unit_length(&self) -> bool {
        /// The tolerance.
        const UNIT: f64 = 1e-2;
        let length = self.length();
        length == 0.0 || (length - 1.0).abs() <= UNIT
    }

    /// The length of the vector.
    #[must_use]
    pub fn length(&self) -> f64 {
        self.vector.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt()
    }

    /// Checks the rules of the schema against the store's `space`.
    ///
    /// # Errors
    ///
    /// `Validation` naming the field that breaks a rule.
    pub fn validate(&self, space: &EmbeddingSpace) -> Result<()> {
        if !VectorText::ALL.contains(&self.text) {
            return Err(Error::validation(
                ErrorField::ContentType,
                "system messages and tool calls are not embedded",
            ));
        }
        if self.turn.is_some() != (self.text == VectorText::Turn) {
            return Err(Error::validation(
                ErrorField::ContentType,
                "only the vector of a turn has the text of a turn",
            ));
        }
        if self.turn.as_ref().is_some_and(|turn| turn.content_hash != EmbeddedTurn::hash(&turn.content_used))
        {
            return Err(Error::validation(ErrorField::ContentHash, "must be the SHA-256 of content_used"));
        }
        if self.chunk_index >= self.total_chunks {
            return Err(Error::validation(ErrorField::ChunkIndex, "must be less than total_chunks"));
        }
        if self.span_end <= self.span_start {
            return Err(Error::validation(ErrorField::SpanEnd, "must be greater than span_start"));
        }
        if self.token_count == 0 {
            return Err(Error::validation(ErrorField::TokenCount, "must be greater than 0"));
        }
        if self.vector.len() != space.dimensions {
            let (found, expected) = (self.vector.len(), space.dimensions);
            return Err(Error::validation(
                ErrorField::Vector,
                format!("has {found} dimensions, but the store has {expected}"),
            ));
        }
        if !self.vector.iter().all(|x| x.is_finite()) {
            return Err(Error::validation(ErrorField::Vector, "contains a number that is not finite"));
        }
        Ok(())
    }
}

impl fmt::Debug for VectorRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "VectorRecord({} {}/{}, {}..{}, {} dimensions)",
            self.text,
            self.chunk_index,
            self.total_chunks,
            self.span_start,
            self.span_end,
            self.vector.len()
        )
    }
}

/// How the text of a turn was made that has a vector: the user's text, and the last answer or the summary of the turn.
/// The vector belongs to the user's message.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EmbeddedTurn {
    /// A UUID: see [`EmbeddedTurn::new_id`].
    pub id: String,
    /// The sequence of the assistant's message. `None` if the turn has a summary and no answer.
    pub assistant_sequence: Option<u32>,
    /// The kind of provider: `local` if the model ran on this machine, `service` otherwise.
    pub provider: String,
    /// The text that was embedded.
    pub content_used: String,
    /// The SHA-256 of this text, in hexadecimal digits.
    pub content_hash: String,
    /// Whether the text has a summary in place of the assistant's answer.
    pub used_turn_summary: bool,
    /// When the vector was made.
    pub created_at: Timestamp,
}

impl EmbeddedTurn {
    /// A UUID of version 8 for the vector of the turn that a user's message begins. It also depends on the time,
    /// because after a user is renamed, another user may have the same session.
    #[must_use]
    pub fn new_id(
        session: &SessionKey,
        user_sequence: u32,
        provider: &str,
        model: &str,
        created_at: Timestamp,
    ) -> String {
        let SessionKey { user_id, session_id } = session;
        let name = format!(
            "{user_id}\0{session_id}\0{user_sequence}\0{provider}\0{model}\0{}",
            created_at.as_micros()
        );
        let mut bytes = Digest::of(name.as_bytes()).0;
        bytes[6] = bytes[6] & 0x0f | 0x80;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        let digits = format!("{:?}", Digest(bytes));
        let group = |start: usize, end: usize| digits.get(start..end).unwrap_or_default();
        [group(0, 8), group(8, 12), group(12, 16), group(16, 20), group(20, 32)].join("-")
    }

    /// The SHA-256 of a text, in hexadecimal digits.
    #[must_use]
    pub fn hash(content: &str) -> String {
        Sha256::digest(content.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// Without the text.
impl fmt::Debug for EmbeddedTurn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, assistant_sequence, provider, content_hash, .. } = self;
        write!(f, "EmbeddedTurn({id}, {assistant_sequence:?}: {provider}, {content_hash})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{SessionId, UserId};

    #[test]
    fn ids_are_uuids_and_hashes_are_sha_256() {
        let session = SessionKey::new(UserId::new("ana").unwrap(), SessionId::new("s").unwrap());
        let id = |user, at| EmbeddedTurn::new_id(&session, user, "local", "m", Timestamp::from_micros(at));
        assert!(SessionId::new(id(0, 1)).unwrap().is_uuid(), "{}", id(0, 1));
        assert_eq!(id(0, 1), id(0, 1));
        assert!(id(0, 1) != id(1, 1) && id(0, 1) != id(0, 2));
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(EmbeddedTurn::hash("abc"), abc);
    }

    #[test]
    fn a_turn_is_no_content_type() {
        for text in VectorText::ALL {
            assert_eq!(text.as_str().parse::<VectorText>().unwrap(), text);
        }
        assert!("turn".parse::<ContentType>().is_err() && ContentTypes::parse("turn").is_err());
    }

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
            text: ContentType::UserQuery.into(),
            chunk_index: 0,
            total_chunks: 1,
            span_start: 0,
            span_end: 5,
            token_count: 1,
            vector: vec![0.6, 0.8],
            turn: None,
        };
        good.validate(&space).unwrap();
        let field = |record: VectorRecord| record.validate(&space).unwrap_err().field().unwrap();
        assert_eq!(field(VectorRecord { chunk_index: 1, ..good.clone() }), ErrorField::ChunkIndex);
        assert_eq!(field(VectorRecord { span_end: 0, ..good.clone() }), ErrorField::SpanEnd);
        assert_eq!(field(VectorRecord { token_count: 0, ..good.clone() }), ErrorField::TokenCount);
        assert_eq!(field(VectorRecord { vector: vec![1.0], ..good.clone() }), ErrorField::Vector);
        assert_eq!(field(VectorRecord { vector: vec![f32::NAN, 1.0], ..good.clone() }), ErrorField::Vector);
        for text in [ContentType::System.into(), VectorText::Turn] {
            assert_eq!(field(VectorRecord { text, ..good.clone() }), ErrorField::ContentType);
        }
    }
}
