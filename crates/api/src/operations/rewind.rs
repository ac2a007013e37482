//! Removes the last turns of a session.

use amplifier_session_core::{
    Error, Scope,
    model::{Session, SessionId},
    storage::{RewindOptions, RewindReport},
};
use serde::{Deserialize, Serialize};

use crate::{AccessRight, Api, ApiAnswer, ApiError, ids::ShortIds, views::SessionView};

/// A preview of a rewind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RewindPreviewRequest {
    /// The address of the session.
    pub session: String,
    /// The last turn to keep. With 0, only what comes before the first turn stays.
    pub to_turn: u32,
    /// Whether to keep all events.
    #[serde(default)]
    pub keep_events: bool,
    /// Whether the response has the short id of the session, for a face that shows it.
    #[serde(default)]
    pub short_ids: bool,
}

/// A rewind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RewindRequest {
    /// The id of the session, such as that in a preview.
    pub session_id: SessionId,
    /// The last turn to keep. With 0, only what comes before the first turn stays.
    pub to_turn: u32,
    /// Whether to keep all events.
    #[serde(default)]
    pub keep_events: bool,
    /// The rows in the preview that someone agreed to. If more would be removed, because the session has grown, nothing
    /// is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most: Option<RemovedRows>,
}

/// A rewind, or a preview.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RewindResponse {
    /// The session as it is now.
    pub session: SessionView,
    /// The last turn to keep.
    pub to_turn: u32,
    /// Whether this is a preview.
    pub dry_run: bool,
    /// The last turn before the rewind, if there was one.
    pub last_turn: Option<u32>,
    /// The rows that were removed; in a preview, those that would be.
    pub removed: RemovedRows,
    /// The folder that the session was read from, if known. Its files are not changed.
    pub folder: Option<String>,
    /// In a preview, the short id of the session, if it was requested.
    #[serde(default, skip_serializing_if = "ShortIds::is_empty")]
    pub short_ids: ShortIds,
}

/// Numbers of rows that a rewind removes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RemovedRows {
    /// The number of turns.
    pub turns: u64,
    /// The number of messages.
    pub messages: u64,
    /// The number of the messages that have vectors.
    pub messages_with_vectors: u64,
    /// The number of events.
    pub events: u64,
}

impl RemovedRows {
    /// Whether there is nothing to remove.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.messages == 0 && self.events == 0
    }
}

impl From<&RewindReport> for RemovedRows {
    fn from(report: &RewindReport) -> Self {
        let RewindReport { turns, messages, messages_with_vectors, events, .. } = *report;
        Self { turns, messages, messages_with_vectors, events }
    }
}

impl From<RemovedRows> for RewindReport {
    fn from(rows: RemovedRows) -> Self {
        let mut report = Self::default();
        report.turns = rows.turns;
        report.messages = rows.messages;
        report.messages_with_vectors = rows.messages_with_vectors;
        report.events = rows.events;
        report
    }
}

impl Api<'_> {
    /// Reports what [`Self::rewind`] would remove from one of the caller's sessions.
    ///
    /// # Errors
    ///
    /// [`ApiError::MissingRight`] without the right to delete; `SessionNotFound`; `Rewind` if the turns can't be
    /// removed; errors of the store.
    #[crate::compiled_here]
    pub async fn rewind_preview(
        &self,
        request: &RewindPreviewRequest,
    ) -> Result<ApiAnswer<RewindResponse>, ApiError> {
        let scope = self.caller.scope_of_changes(AccessRight::Delete)?;
        let mut notices = Vec::new();
        let session = self.find(&scope, &request.session, &mut notices).await?.session;
        let options =
            RewindOptions::to_turn(request.to_turn).with_keep_events(request.keep_events).with_dry_run(true);
        let mut response = self.rewound(&scope, session, &options).await?;
        if request.short_ids {
            let id = &response.session.session.session_id;
            response.short_ids = self.storage.sessions().short_ids(&scope, [id]).await?;
        }
        Ok(ApiAnswer { response, notices })
    }

    /// Removes everything after a turn from one of the caller's sessions: messages, their vectors, and events.
    ///
    /// # Errors
    ///
    /// As [`Self::rewind_preview`]; `Rewind` if more would be removed than [`RewindRequest::at_most`].
    #[crate::compiled_here]
    pub async fn rewind(&self, request: &RewindRequest) -> Result<ApiAnswer<RewindResponse>, ApiError> {
        let scope = self.caller.scope_of_changes(AccessRight::Delete)?;
        let id = &request.session_id;
        let session = self.storage.sessions().get_session(&scope, id).await?;
        let session = session.ok_or_else(|| Error::session_not_found(id))?;
        let options = RewindOptions::to_turn(request.to_turn)
            .with_keep_events(request.keep_events)
            .with_at_most(request.at_most.map(RewindReport::from));
        let response = self.rewound(&scope, session, &options).await?;
        Ok(response.into())
    }

    async fn rewound(
        &self,
        scope: &Scope,
        before: Session,
        options: &RewindOptions,
    ) -> Result<RewindResponse, ApiError> {
        let key = before.key();
        let report = self.storage.ingestion().rewind(&key, options).await?;
        let session = if options.dry_run {
            None
        } else {
            self.storage.sessions().get_session(scope, &key.session_id).await?
        };
        Ok(RewindResponse {
            session: SessionView::from(&session.unwrap_or(before)),
            to_turn: options.to_turn,
            dry_run: options.dry_run,
            last_turn: report.last_turn,
            removed: RemovedRows::from(&report),
            folder: self.folder_of(&key).await,
            short_ids: ShortIds::new(),
        })
    }
}
