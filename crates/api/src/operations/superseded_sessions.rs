//! Lists sessions with superseded lines, which are no longer in their files.

use std::cmp::Reverse;

use amplifier_session_core::{backend::SupersededQuery, storage::SupersededSession};
use jiff::Zoned;
use serde::{Deserialize, Serialize};

use super::is_zero;
use crate::{
    Api, ApiAnswer, ApiError, FoundKind, InvalidRequest, Notice, Reach, filter::RequestFilter, ids::ShortIds,
};

/// A list of sessions with superseded lines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SupersededSessionsRequest {
    /// The users whose sessions are read.
    pub scope: Reach,
    /// Which sessions. The period is the time when a line of a session was last superseded.
    #[serde(flatten)]
    pub filter: RequestFilter,
    /// Maximum number of sessions.
    pub limit: usize,
    /// The number of the first sessions that an earlier response had, and that this one does not have.
    #[serde(skip_serializing_if = "is_zero")]
    pub skip: usize,
    /// Whether the response has short ids, for a face that shows them.
    pub short_ids: bool,
}

impl Default for SupersededSessionsRequest {
    fn default() -> Self {
        Self {
            scope: Reach::default(),
            filter: RequestFilter::default(),
            limit: 50,
            skip: 0,
            short_ids: false,
        }
    }
}

impl SupersededSessionsRequest {
    /// Checks everything that needs no store.
    ///
    /// # Errors
    ///
    /// [`ApiError::Invalid`].
    pub fn check(&self, now: &Zoned) -> Result<(), ApiError> {
        if self.limit == 0 {
            return Err(InvalidRequest::NothingToList.into());
        }
        self.filter.check(now)
    }
}

/// Sessions with superseded lines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SupersededSessionsResponse {
    /// The sessions, the last superseded first.
    pub sessions: Vec<SupersededSession>,
    /// The number of sessions without the limit.
    pub count: usize,
    /// The short ids of the sessions, if they were requested.
    #[serde(default, skip_serializing_if = "ShortIds::is_empty")]
    pub short_ids: ShortIds,
}

impl Api<'_> {
    /// Lists sessions with superseded lines.
    ///
    /// # Errors
    ///
    /// [`ApiError`] if the request is invalid or asks for too much; errors of the store.
    #[crate::compiled_here]
    pub async fn superseded_sessions(
        &self,
        request: &SupersededSessionsRequest,
    ) -> Result<ApiAnswer<SupersededSessionsResponse>, ApiError> {
        let scope = self.caller.scope_of_superseded(request.scope)?;
        let mut notices = Vec::new();
        request.check(self.now)?;
        let period = request.filter.period(self.now, &mut notices)?;
        let filter = self.filtered(&scope, &request.filter, &mut notices).await?;
        let query = SupersededQuery::new(scope.clone()).with_filter(filter);
        let mut sessions = self.storage.superseded().superseded_sessions(&query).await?;
        sessions.retain(|session| period.contains(session.last_superseded_at));
        sessions.sort_by_key(|session| Reverse(session.last_superseded_at));
        let count = sessions.len();
        sessions.drain(..request.skip.min(count));
        sessions.truncate(request.limit);
        if sessions.is_empty() {
            notices.push(Notice::NothingFound { what: FoundKind::SupersededSession, nearest: None });
        }
        let short_ids = if request.short_ids {
            let ids = sessions.iter().map(|session| &session.session_id);
            self.storage.sessions().short_ids(&scope, ids).await?
        } else {
            ShortIds::new()
        };
        Ok(ApiAnswer { response: SupersededSessionsResponse { sessions, count, short_ids }, notices })
    }
}
