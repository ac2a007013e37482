//! Stored rows that can't be read.

use serde::{Deserialize, Serialize};

use super::{SessionId, SessionKey, UserId};
use crate::Error;

/// The kind of a damaged row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RowKind {
    /// A session, or data stored with it.
    Session,
    /// A message.
    Message,
    /// An event, or its payload.
    Event,
}

impl RowKind {
    /// The name in output.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Message => "message",
            Self::Event => "event",
        }
    }
}

/// A stored row that can't be read.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct DamagedRow {
    /// Its kind.
    pub kind: RowKind,
    /// The owner of its session.
    pub user_id: UserId,
    /// Its session.
    pub session_id: SessionId,
    /// Its sequence; `None` for the session itself.
    pub sequence: Option<u32>,
    /// The reason.
    pub reason: String,
}

impl DamagedRow {
    pub(crate) fn of_session(key: &SessionKey, error: &Error) -> Self {
        Self::new(RowKind::Session, key, None, error)
    }

    pub(crate) fn new(kind: RowKind, key: &SessionKey, sequence: Option<u32>, error: &Error) -> Self {
        let SessionKey { user_id, session_id } = key.clone();
        Self { kind, user_id, session_id, sequence, reason: error.message().to_owned() }
    }
}
