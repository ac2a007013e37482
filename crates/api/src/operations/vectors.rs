//! Which messages have vectors, what making vectors costs, and making them.

use amplifier_session_core::{
    Scope,
    model::{ContentTypes, SessionId},
    storage::{EmbedReport, Estimate, EstimateOf, OnEmbedded, VectorStatus, VectorsOf},
};
use serde::{Deserialize, Serialize};

use crate::{
    AccessRight, Api, ApiAnswer, ApiError, Notice, Reach,
    views::{HasVectors, has_vectors},
};

/// The number of messages that have vectors, by model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct VectorStatusRequest {
    /// The users whose messages are counted.
    pub scope: Reach,
}

/// Which texts of each message of a session have vectors.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionVectorsRequest {
    /// The users whose sessions are read.
    #[serde(default)]
    pub scope: Reach,
    /// The session, by its address.
    pub session: String,
}

/// Which texts of each message of a session have vectors.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SessionVectorsResponse {
    /// The session.
    pub session_id: SessionId,
    /// Its messages, in order.
    pub messages: Vec<VectorsOfMessage>,
}

/// Which texts of a message have vectors.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VectorsOfMessage {
    /// The number of the message in the session.
    pub sequence: u32,
    /// For each content type that can be embedded, whether it has vectors.
    pub has_vectors: HasVectors,
}

/// Vectors of the caller's own messages, to make or to estimate.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EmbedRequest {
    /// Only this project: its slug, a part of it or a pattern, which may select several, or its folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Further projects: sessions of any of them, or of `project`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub projects: Vec<String>,
    /// Only this repository: its address, the end of the address, or a folder in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repo: Option<String>,
    /// Only this session, by its address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// All vectors, not only those that are missing.
    pub everything: bool,
}

/// A report of the messages that were embedded.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EmbedResponse {
    /// The report.
    #[serde(flatten)]
    pub report: EmbedReport,
    /// The reason why vectors are still missing, if they are.
    #[serde(rename = "owed_reason")]
    pub pending_reason: Option<String>,
}

/// An estimate of the work that embedding would take.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct EstimateResponse {
    /// The estimate.
    #[serde(flatten)]
    pub estimate: Estimate,
    /// The cost in the currency of the price, if there is a price.
    pub cost: Option<f64>,
}

impl Api<'_> {
    /// Counts the messages with and without vectors, by model.
    ///
    /// # Errors
    ///
    /// [`ApiError`] if the request asks for too much; errors of the store.
    #[crate::compiled_here]
    pub async fn vector_status(
        &self,
        request: &VectorStatusRequest,
    ) -> Result<ApiAnswer<VectorStatus>, ApiError> {
        let scope = self.caller.scope(request.scope)?;
        let response = self.storage.vectors().vector_status(&scope).await?;
        Ok(response.into())
    }

    /// Says which texts of each message of a session have vectors.
    ///
    /// # Errors
    ///
    /// [`ApiError`] if the request asks for too much; `SessionNotFound`; errors of the store.
    #[crate::compiled_here]
    pub async fn session_vectors(
        &self,
        request: &SessionVectorsRequest,
    ) -> Result<ApiAnswer<SessionVectorsResponse>, ApiError> {
        let scope = self.caller.scope(request.scope)?;
        let mut notices = Vec::new();
        let session = self.find(&scope, &request.session, &mut notices).await?.session;
        let types = self.vectors_of_messages(&scope, &session.session_id).await?;
        let of = |sequence| VectorsOfMessage {
            sequence,
            has_vectors: has_vectors(types.get(&sequence).copied().unwrap_or(ContentTypes::NONE)),
        };
        let messages = (0..session.message_count).map(of).collect();
        let response = SessionVectorsResponse { session_id: session.session_id, messages };
        Ok(ApiAnswer { response, notices })
    }

    /// Makes vectors with the model of the storage. `on_embedded` is called with the report so far after every step.
    ///
    /// With another model than that of the store's vectors, making all of them makes new ones for all users, which
    /// needs the right to administer.
    ///
    /// # Errors
    ///
    /// [`ApiError`] if a right is missing or the request is invalid; `Unsupported` without a model; errors of the
    /// store. If the model fails, the response has the reason.
    #[crate::compiled_here]
    pub async fn make_vectors<'a>(
        &'a self,
        request: &'a EmbedRequest,
        on_embedded: OnEmbedded<'a>,
    ) -> Result<ApiAnswer<EmbedResponse>, ApiError> {
        let right = if request.everything { AccessRight::Admin } else { AccessRight::Write };
        let scope = self.caller.scope_of_changes(right)?;
        let mut notices = Vec::new();
        let of = self.vectors_of(&scope, request, &mut notices).await?;
        let vectors = self.storage.vectors();
        let report = if request.everything {
            vectors.rebuild(&of, on_embedded).await?
        } else {
            vectors.backfill(&of, on_embedded).await?
        };
        let pending_reason = report.failure.as_ref().map(ToString::to_string);
        Ok(ApiAnswer { response: EmbedResponse { report, pending_reason }, notices })
    }

    /// Estimates what [`Api::make_vectors`] would embed, and what that would cost at `price` for a million tokens.
    ///
    /// # Errors
    ///
    /// [`ApiError`] if the right to read is missing or the request is invalid; `Unsupported` without a model; errors of
    /// the store.
    #[crate::compiled_here]
    pub async fn estimate_vectors(
        &self,
        request: &EmbedRequest,
        price: Option<f64>,
    ) -> Result<ApiAnswer<EstimateResponse>, ApiError> {
        let scope = self.caller.scope(Reach::Own)?;
        let mut notices = Vec::new();
        let of = self.vectors_of(&scope, request, &mut notices).await?;
        let what = if request.everything { EstimateOf::Everything } else { EstimateOf::Pending };
        let estimate = self.storage.vectors().estimate_embedding(&of, what).await?;
        let cost = price.map(|price| estimate.tokens as f64 / 1e6 * price);
        Ok(ApiAnswer { response: EstimateResponse { estimate, cost }, notices })
    }

    /// The caller's messages that a request is about.
    async fn vectors_of(
        &self,
        scope: &Scope,
        request: &EmbedRequest,
        notices: &mut Vec<Notice>,
    ) -> Result<VectorsOf, ApiError> {
        let EmbedRequest { project, projects, repo, session, .. } = request;
        let projects = project.iter().chain(projects);
        let sessions = self.sessions_of_any(scope, projects, repo.as_deref(), notices).await?;
        self.remark_unknown(scope, &sessions, notices).await?;
        let session = match session {
            Some(address) => Some(self.find(scope, address, notices).await?.session.session_id),
            None => None,
        };
        Ok(VectorsOf::user(self.caller.user().clone()).with_filter(sessions).with_session(session))
    }
}
