//! Summaries of turns.

use amplifier_session_core::model::{Digest, SessionId, SessionKey, Timestamp, TurnSummary, UserId};
use serde::{Deserialize, Serialize};

use super::{Document, kind};
use crate::ids;

/// It has no `sequence`, so changes of rows do not remove it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct SummaryFields {
    pub(crate) user_id_session_id: String,
    user_id: UserId,
    session_id: SessionId,
    pub(crate) user_sequence: u32,
    pub(crate) digest: Digest,
    turn_summary: String,
    is_stated: bool,
    set_at: Timestamp,
}

/// A summary of a turn.
pub(crate) type SummaryDocument = Document<SummaryFields>;

impl SummaryDocument {
    pub(crate) fn new(of: &TurnSummary) -> Self {
        let fields = SummaryFields {
            user_id_session_id: ids::partition(&of.session),
            user_id: of.session.user_id.clone(),
            session_id: of.session.session_id.clone(),
            user_sequence: of.user_sequence,
            digest: of.digest,
            turn_summary: of.text.clone(),
            is_stated: of.is_stated,
            set_at: of.set_at,
        };
        Self::of(kind::SUMMARY, format!("summary-{}", of.user_sequence), fields)
    }

    pub(crate) fn into_summary(self) -> TurnSummary {
        let SummaryFields {
            user_id, session_id, user_sequence, digest, turn_summary, is_stated, set_at, ..
        } = self.fields;
        TurnSummary {
            session: SessionKey::new(user_id, session_id),
            user_sequence,
            digest,
            text: turn_summary,
            is_stated,
            set_at,
        }
    }
}
