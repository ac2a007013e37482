//! The one way from the bytes of a transcript line to its content.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{
    ExtractedText, ToolCall,
    extract::{extract, shown_texts},
    title::first_prompt,
    tool_call::called_tools,
    tool_result::results_in,
};
use crate::{
    Result,
    model::{Message, RawJson, Role, SessionSource},
};

/// A transcript line, read by the rules of the program that wrote it.
#[derive(Debug, Clone, PartialEq)]
pub struct MessageLine {
    role: Role,
    fields: Map<String, Value>,
}

impl MessageLine {
    /// Reads a line of a session of `source`. The role is the one that the line states.
    ///
    /// # Errors
    ///
    /// `Validation` if the bytes are not one JSON object or state no role that is known.
    pub fn parse(raw: &RawJson, source: SessionSource) -> Result<Self> {
        let fields = fields(raw, source)?;
        Ok(Self { role: Role::of(&fields)?, fields })
    }

    /// Reads a line whose role is known.
    ///
    /// # Errors
    ///
    /// `Validation` if the bytes are not one JSON object.
    pub fn with_role(raw: &RawJson, role: Role, source: SessionSource) -> Result<Self> {
        Ok(Self { role, fields: fields(raw, source)? })
    }

    /// As [`Self::with_role`], for a stored line. A line that can't be read has no fields.
    #[must_use]
    pub fn stored(raw: &RawJson, role: Role, source: SessionSource) -> Self {
        Self { role, fields: fields(raw, source).unwrap_or_default() }
    }

    /// A line that was read before, from its [`MessageLine::fields`].
    #[must_use]
    pub fn from_fields(fields: Map<String, Value>, role: Role) -> Self {
        Self { role, fields }
    }

    /// The speaker.
    #[must_use]
    pub fn role(&self) -> Role {
        self.role
    }

    /// The fields, in Amplifier's format.
    #[must_use]
    pub fn fields(&self) -> &Map<String, Value> {
        &self.fields
    }

    /// The texts: at most one per content type, never blank, in the order of
    /// [`ContentType::ALL`](crate::model::ContentType::ALL).
    #[must_use]
    pub fn texts(&self) -> Vec<ExtractedText> {
        extract(&self.fields, self.role)
    }

    /// As [`Self::texts`], with a note about each image and other file: the texts to show to a person.
    #[must_use]
    pub fn shown_texts(&self) -> Vec<ExtractedText> {
        shown_texts(&self.fields, self.role)
    }

    /// The tool calls, in order.
    #[must_use]
    pub fn called_tools(&self) -> Vec<ToolCall<'_>> {
        called_tools(&self.fields)
    }

    /// The tools that the message calls, and the tool whose output it is, in lower case.
    #[must_use]
    pub fn used_tools(&self) -> BTreeSet<String> {
        let is_output = self.role == Role::Tool;
        let fields = ["name", "tool_name", "tool"].into_iter().filter(|_| is_output);
        let named = fields.filter_map(|field| self.fields.get(field).and_then(Value::as_str));
        let called = self.called_tools();
        named.chain(called.iter().map(|call| call.name)).map(str::to_ascii_lowercase).collect()
    }

    /// The tool calls whose results are in the line: the id of each, and whether the result is an error.
    #[must_use]
    pub(crate) fn tool_results(&self) -> Vec<(&str, bool)> {
        results_in(&self.fields)
    }

    /// The beginning of the prompt, if a person wrote one in this line.
    #[must_use]
    pub fn first_prompt(&self) -> Option<String> {
        first_prompt(&self.fields)
    }
}

/// The fields of a line in Amplifier's format, from which everything else is derived.
fn fields(raw: &RawJson, source: SessionSource) -> Result<Map<String, Value>> {
    match source {
        // Both programs write the same lines.
        SessionSource::Amplifier | SessionSource::AmplifierAgent => raw.parse_object(),
    }
}

impl Message {
    /// Its line, read. A line that can't be read has no fields.
    #[must_use]
    pub fn line(&self) -> MessageLine {
        MessageLine::stored(&self.raw, self.role, self.session_id.source())
    }

    /// The `content` field: a string or structured JSON, or `null` if the line has no such field.
    #[must_use]
    pub fn content(&self) -> Value {
        self.field("content")
    }

    /// The `metadata` field, or `null` if the line has no such field.
    #[must_use]
    pub fn metadata(&self) -> Value {
        self.field("metadata")
    }

    /// The role as the line writes it, if that is not the name of [`Self::role`].
    #[must_use]
    pub fn written_role(&self) -> Option<String> {
        self.role.written(self.line().fields()).map(str::to_owned)
    }

    fn field(&self, name: &str) -> Value {
        self.line().fields.remove(name).unwrap_or(Value::Null)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ContentType;

    #[test]
    fn a_stored_line_need_not_be_readable() {
        let source = SessionSource::default();
        let raw = RawJson::from(r#"{"role":"human","content":"a pear"}"#);
        let line = MessageLine::parse(&raw, source).unwrap();
        assert_eq!((line.role(), line.texts()[0].text.as_str()), (Role::User, "a pear"));
        assert_eq!(line.first_prompt().as_deref(), Some("a pear"));
        // The role of a stored message counts, not the one that its line states.
        assert_eq!(
            MessageLine::stored(&raw, Role::Tool, source).texts()[0].content_type,
            ContentType::ToolOutput
        );
        for text in ["", "[]", "{\"role\":"] {
            let raw = RawJson::from(text);
            assert!(
                MessageLine::parse(&raw, source).is_err()
                    && MessageLine::with_role(&raw, Role::User, source).is_err()
            );
            assert!(MessageLine::stored(&raw, Role::User, source).fields().is_empty());
        }
        assert!(MessageLine::parse(&RawJson::from(r#"{"role":"narrator"}"#), source).is_err());
    }
}
