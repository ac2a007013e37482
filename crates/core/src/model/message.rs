//! Transcript messages.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{
    ContentType, Digest, HostId, MessageRef, ProjectSlug, RawJson, SessionId, SessionKey, TimeSource,
    Timestamp, UserId, time_fields,
};
use crate::{Error, ErrorField, Result};

/// The speaker of a message. Other programs use more names in their lines; [`Role::of`] reads them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The person, or a tool result in Anthropic's format.
    User,
    /// The model.
    Assistant,
    /// A tool's output.
    Tool,
    /// Instructions to the model.
    System,
    /// Instructions to the model, in OpenAI's newer format.
    Developer,
}

names! {
    Role { User: "user", Assistant: "assistant", Tool: "tool", System: "system", Developer: "developer" }
}

/// Other names of roles in use, in lower case, with the nearest role.
const OTHER_NAMES: [(&str, Role); 7] = [
    ("human", Role::User),
    ("ai", Role::Assistant),
    ("bot", Role::Assistant),
    ("model", Role::Assistant),
    ("function", Role::Tool),
    ("tool_result", Role::Tool),
    ("toolresult", Role::Tool),
];

impl std::str::FromStr for Role {
    type Err = Error;

    /// The role with this name, in any case, or the nearest one if it is a name that other programs use.
    fn from_str(text: &str) -> Result<Self> {
        let name = text.trim().to_ascii_lowercase();
        let other = || OTHER_NAMES.iter().find(|(other, _)| *other == name).map(|(_, role)| *role);
        Self::ALL.into_iter().find(|role| role.as_str() == name).or_else(other).ok_or_else(|| {
            Error::validation(ErrorField::Role, "must be user, assistant, tool, system or developer")
                .with("value", format_args!("{:?}", text.chars().take(40).collect::<String>()))
        })
    }
}

impl Role {
    /// The role of a transcript line.
    ///
    /// # Errors
    ///
    /// `Validation` if the line has no role that is known.
    pub fn of(line: &Map<String, Value>) -> Result<Self> {
        line.get("role").and_then(Value::as_str).unwrap_or_default().parse()
    }

    /// The role as the line writes it, if that is not [`Role::as_str`].
    #[must_use]
    pub fn written(self, line: &Map<String, Value>) -> Option<&str> {
        line.get("role").and_then(Value::as_str).filter(|written| *written != self.as_str())
    }
}

/// The state of a message's vectors. Written as its [`code`](VectorState::code).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "u8", into = "u8")]
pub enum VectorState {
    /// The message has text to embed, and its vectors are pending.
    Pending,
    /// Its vectors are stored, or a text could not be embedded.
    Stored,
    /// It has nothing to embed.
    Nothing,
    /// Its vectors are stored and must be made again.
    Outdated,
    /// It begins a turn. The vectors of its texts are stored; that of its turn is pending, and an outdated one may be
    /// stored.
    TurnPending,
}

impl VectorState {
    /// The state of a message with texts of these types before its vectors are made.
    #[must_use]
    pub fn before_embedding(content_types: impl IntoIterator<Item = ContentType>) -> Self {
        let mut content_types = content_types.into_iter();
        let is_embedded = content_types.any(|content_type| ContentType::EMBEDDED.contains(&content_type));
        if is_embedded { Self::Pending } else { Self::Nothing }
    }

    /// The state after its vectors are removed.
    #[must_use]
    pub fn without_vectors(self) -> Self {
        if self == Self::Nothing { Self::Nothing } else { Self::Pending }
    }

    /// Whether vectors of its texts are pending.
    #[must_use]
    pub fn is_pending(self) -> bool {
        matches!(self, Self::Pending | Self::Outdated)
    }

    /// Whether vectors of its texts are stored.
    #[must_use]
    pub fn has_stored(self) -> bool {
        matches!(self, Self::Stored | Self::TurnPending)
    }

    /// Its number in a store.
    #[must_use]
    pub fn code(self) -> u8 {
        match self {
            Self::Pending => 0,
            Self::Stored => 1,
            Self::Nothing => 2,
            Self::Outdated => 3,
            Self::TurnPending => 4,
        }
    }

    /// The state of a [`VectorState::code`].
    #[must_use]
    pub fn from_code(code: u8) -> Option<Self> {
        [Self::Pending, Self::Stored, Self::Nothing, Self::Outdated, Self::TurnPending]
            .into_iter()
            .find(|state| state.code() == code)
    }
}

impl From<VectorState> for u8 {
    fn from(state: VectorState) -> Self {
        state.code()
    }
}

impl TryFrom<u8> for VectorState {
    type Error = Error;
    fn try_from(code: u8) -> Result<Self> {
        Self::from_code(code)
            .ok_or_else(|| Error::validation(ErrorField::Vectors, format!("unknown state {code}")))
    }
}

/// One line of a transcript.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// The owner.
    pub user_id: UserId,
    /// The machine it was recorded on.
    pub host_id: HostId,
    /// The project of its session.
    pub project_slug: ProjectSlug,
    /// Its session.
    pub session_id: SessionId,
    /// The number of the line among the valid lines of the transcript, from 0.
    pub sequence: u32,
    /// The speaker.
    pub role: Role,
    /// The conversation turn, from 1; `None` before the first user message.
    pub turn: Option<u32>,
    /// When it was written.
    pub ts: Timestamp,
    /// Where `ts` comes from.
    pub ts_source: TimeSource,
    /// When it was last stored.
    pub synced_at: Timestamp,
    /// The state of its vectors.
    pub vectors: VectorState,
    /// The digest of the line.
    pub digest: Digest,
    /// The original line.
    pub raw: RawJson,
}

impl Message {
    /// `{session_id}_msg_{sequence}`, unique per user.
    #[must_use]
    pub fn id(&self) -> String {
        format!("{}_msg_{}", self.session_id, self.sequence)
    }

    /// Whether `ts` is an estimate: neither the line nor an event states it.
    #[must_use]
    pub const fn ts_estimated(&self) -> bool {
        self.ts_source.is_estimated()
    }

    /// Session and sequence.
    #[must_use]
    pub fn message_ref(&self) -> MessageRef {
        MessageRef::new(SessionKey::new(self.user_id.clone(), self.session_id.clone()), self.sequence)
    }
}

/// The state of a stored message that a sync compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct MessageState {
    /// The digest of the line. If digest and turn are the same, the message is not written.
    pub digest: Digest,
    /// Its turn.
    pub turn: Option<u32>,
    /// Its time.
    pub ts: Timestamp,
    /// Where `ts` comes from.
    #[serde(flatten, with = "time_fields")]
    pub ts_source: TimeSource,
}

impl MessageState {
    /// When the line was first seen, if that is its time. It is kept if the line moves or its turn changes.
    #[must_use]
    pub fn first_seen(&self) -> Option<Timestamp> {
        (self.ts_source == TimeSource::File).then_some(self.ts)
    }
}

/// A new time for a stored message that does not change otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retimed {
    /// The message.
    pub sequence: u32,
    /// Its time.
    pub ts: Timestamp,
    /// Where `ts` comes from.
    pub ts_source: TimeSource,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn other_names_of_roles_are_read_as_the_nearest_one() {
        for (name, role) in [
            ("user", Role::User),
            ("User", Role::User),
            ("HUMAN", Role::User),
            ("assistant", Role::Assistant),
            ("ai", Role::Assistant),
            ("AI", Role::Assistant),
            ("model", Role::Assistant),
            ("bot", Role::Assistant),
            ("function", Role::Tool),
            ("toolResult", Role::Tool),
            ("System", Role::System),
            ("developer", Role::Developer),
        ] {
            let line = json!({"role": name});
            let line = line.as_object().unwrap();
            assert_eq!(Role::of(line).unwrap(), role, "{name}");
            let written = Some(name).filter(|name| *name != role.as_str());
            assert_eq!(role.written(line), written);
        }
        for line in [json!({}), json!({"role": ""}), json!({"role": 5}), json!({"role": "narrator"})] {
            let error = Role::of(line.as_object().unwrap()).unwrap_err();
            assert_eq!(error.field(), Some(ErrorField::Role), "{line}");
        }
    }
}
