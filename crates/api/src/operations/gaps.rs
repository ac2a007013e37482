//! Missing messages and events.

use amplifier_session_core::{
    Scope,
    backend::SessionQuery,
    model::{Session, SessionId, UserId},
    storage::Gaps,
};
use serde::{Deserialize, Serialize};

use crate::{Api, ApiAnswer, ApiError, Notice, Reach};

/// Number of sessions listed at a time.
const PAGE: usize = 100;

/// Sequences of sessions without a row.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct GapsRequest {
    /// The users whose sessions are read.
    pub scope: Reach,
    /// Only these sessions, by their addresses; all of them if empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sessions: Vec<String>,
}

/// All gaps.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GapsResponse {
    /// The number of sessions that were examined.
    pub sessions: u64,
    /// The number of missing messages.
    pub missing_messages: u64,
    /// The number of missing events.
    pub missing_events: u64,
    /// The gaps.
    pub gaps: Vec<Gap>,
}

/// Sequences without a row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Gap {
    /// The owner of the session.
    pub user_id: UserId,
    /// The session.
    pub session_id: SessionId,
    /// The kind of rows.
    pub row: GapRows,
    /// The first missing sequence.
    pub first: u32,
    /// The last one.
    pub last: u32,
}

/// A kind of rows that can be missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum GapRows {
    /// Messages.
    Messages,
    /// Events.
    Events,
}

impl GapsResponse {
    fn add(&mut self, session: &Session, found: Gaps) {
        let (messages, events) = found.count();
        self.sessions += 1;
        self.missing_messages += messages;
        self.missing_events += events;
        for (row, gaps) in [(GapRows::Messages, found.messages), (GapRows::Events, found.events)] {
            self.gaps.extend(gaps.into_iter().map(|(first, last)| Gap {
                user_id: session.user_id.clone(),
                session_id: session.session_id.clone(),
                row,
                first,
                last,
            }));
        }
    }
}

impl Api<'_> {
    /// Finds the sequences of sessions that have no row.
    ///
    /// # Errors
    ///
    /// [`ApiError`] if the request asks for too much; `SessionNotFound`; errors of the store.
    #[crate::compiled_here]
    pub async fn gaps(&self, request: &GapsRequest) -> Result<ApiAnswer<GapsResponse>, ApiError> {
        let scope = self.caller.scope(request.scope)?;
        let mut notices = Vec::new();
        let mut response = GapsResponse::default();
        for session in self.named_or_all(&scope, &request.sessions, &mut notices).await? {
            let found = self.storage.verification().missing_rows(&session).await?;
            response.add(&session, found);
        }
        Ok(ApiAnswer { response, notices })
    }

    async fn named_or_all(
        &self,
        scope: &Scope,
        addresses: &[String],
        notices: &mut Vec<Notice>,
    ) -> Result<Vec<Session>, ApiError> {
        if addresses.is_empty() {
            let query = SessionQuery::new(scope.clone()).with_limit(PAGE);
            return Ok(self.storage.sessions().all_sessions(query).await?);
        }
        self.find_all(scope, addresses, notices).await
    }
}
