//! The details of one session.

use amplifier_session_core::{
    Scope,
    backend::SkippedLine,
    model::Session,
    storage::{Addressed, AddressedLine},
};
use serde::{Deserialize, Serialize};

use crate::{
    Api, ApiAnswer, ApiError, Reach,
    ids::ShortIds,
    views::{Estimated, SessionView},
};

/// The details of one session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionRequest {
    /// The users whose sessions are read.
    #[serde(default)]
    pub scope: Reach,
    /// The address of the session.
    pub session: String,
    /// Whether the response has short ids, for a face that shows them.
    #[serde(default)]
    pub short_ids: bool,
}

/// A session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SessionResponse {
    /// The session.
    pub session: SessionView,
    /// The number of the message, if the address names one. The session may not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<u32>,
    /// Lines of its files that could not be read.
    pub skipped: Vec<SkippedLine>,
    /// The short ids of the session and its parent, if they were requested.
    #[serde(default, skip_serializing_if = "ShortIds::is_empty")]
    pub short_ids: ShortIds,
}

impl Api<'_> {
    /// The details of the session that an address names.
    ///
    /// # Errors
    ///
    /// [`ApiError`] if the request asks for too much; `SessionNotFound` if there is no such session, and `Validation`
    /// if there are several; errors of the store.
    #[crate::compiled_here]
    pub async fn session(&self, request: &SessionRequest) -> Result<ApiAnswer<SessionResponse>, ApiError> {
        let scope = self.caller.scope(request.scope)?;
        let mut notices = Vec::new();
        let Addressed { session, line, .. } = self.find(&scope, &request.session, &mut notices).await?;
        let mut response = self.details(&scope, &session).await?;
        response.message = match line {
            Some(AddressedLine::Message(sequence)) => Some(sequence),
            _ => None,
        };
        if !request.short_ids {
            response.short_ids.clear();
        }
        Ok(ApiAnswer { response, notices })
    }

    /// The details of a session, with short ids.
    pub(crate) async fn details(
        &self,
        scope: &Scope,
        session: &Session,
    ) -> Result<SessionResponse, ApiError> {
        Ok(SessionResponse {
            session: self.session_view(session).await?,
            message: None,
            skipped: self.storage.statistics().skipped_lines(scope, &session.session_id).await?,
            short_ids: self.short_ids_of(scope, std::slice::from_ref(session)).await?,
        })
    }

    /// A session, with whether its dates are estimates.
    pub(crate) async fn session_view(&self, session: &Session) -> Result<SessionView, ApiError> {
        let estimated = Estimated::of(self.storage, std::slice::from_ref(session)).await?;
        Ok(SessionView::with_estimates(session, &estimated))
    }
}
