//! Summaries of turns.

use super::{Digest, SessionKey, Timestamp};

/// A summary of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnSummary {
    /// The session.
    pub session: SessionKey,
    /// The sequence of the user's message.
    pub user_sequence: u32,
    /// The digest of that message's line: the summary is about this line.
    pub digest: Digest,
    /// The summary.
    pub text: String,
    /// Whether the line itself states it, as `turn_summary` in its metadata. Otherwise, a user set it.
    pub is_stated: bool,
    /// When it was set.
    pub set_at: Timestamp,
}
