//! The end of a session that is taken from another store, and its result.

use super::intake::ReceiveResult;
use crate::{
    model::{ProjectSlug, RawJson, SessionKey, TurnSummary},
    storage::ingest::IngestReport,
};

/// The end of a session.
#[derive(Debug)]
pub(super) struct ReceivedEnd {
    pub(super) key: SessionKey,
    /// Whether the sending store has more rows.
    pub(super) is_part: bool,
    /// The summaries of turns to set.
    pub(super) summaries: Vec<TurnSummary>,
    /// Events to post to this store, as they were to the sending one, and the project of the session there.
    pub(super) posted: (ProjectSlug, Vec<RawJson>),
    pub(super) created: bool,
    pub(super) has_other_fields: bool,
    pub(super) kept: u64,
    /// The numbers of messages and events after the stored ones.
    pub(super) new: (u64, u64),
}

impl ReceivedEnd {
    /// The result for the session.
    pub(super) fn result(&self, report: &IngestReport) -> ReceiveResult {
        let superseded = self.kept + report.messages_superseded + report.events_superseded;
        let events = report.events_written + self.posted.1.len() as u64;
        let rows = report.messages_written + events + superseded;
        if !self.created && rows == 0 && !self.has_other_fields {
            return ReceiveResult::Unchanged;
        }
        ReceiveResult::Stored {
            created: self.created,
            messages: report.messages_written,
            events,
            superseded,
            secrets_masked: report.secrets_masked,
        }
    }

    /// The expected result of a dry run.
    pub(super) fn expected(&self) -> ReceiveResult {
        let (messages, events) = self.new;
        if !self.created && messages + events == 0 {
            return ReceiveResult::Unchanged;
        }
        ReceiveResult::Stored { created: self.created, messages, events, superseded: 0, secrets_masked: 0 }
    }
}
