//! Sets summaries of turns.

use amplifier_session_core::{
    ErrorKind,
    model::TurnSummary,
    storage::{GivenSummary, SummaryReport},
};
use serde::{Deserialize, Serialize};

use crate::{AccessRight, Api, ApiAnswer, ApiError, InvalidRequest};

/// Summaries of turns. If one is invalid, nothing is stored.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SummariesRequest {
    /// The summaries.
    pub summaries: Vec<SummaryOfTurn>,
}

/// A summary to set. Other fields are ignored, because lines of files may have more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SummaryOfTurn {
    /// The id or the address of a message of the turn.
    pub message_id: String,
    /// The summary, at most 10,000 characters.
    pub text: String,
}

/// The result of setting summaries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SummariesResponse {
    /// The number of summaries that were stored.
    pub summaries: u64,
    /// The number of those that were equal to the stored ones.
    pub unchanged: u64,
    /// The number of turns that were embedded again.
    pub turns: u64,
    /// The reason why some turns could not be embedded. Their vectors are pending.
    pub pending_reason: Option<String>,
}

impl From<SummaryReport> for SummariesResponse {
    fn from(report: SummaryReport) -> Self {
        Self {
            summaries: report.summaries,
            unchanged: report.unchanged,
            turns: report.embedded.turns,
            pending_reason: report.embedded.failure.as_ref().map(ToString::to_string),
        }
    }
}

impl Api<'_> {
    /// Sets summaries of turns in the caller's sessions, and embeds these turns again.
    ///
    /// # Errors
    ///
    /// [`InvalidRequest::WrongSummary`] for the first summary that is invalid; [`ApiError::MissingRight`] without the
    /// right to write; errors of the store.
    #[crate::compiled_here]
    pub async fn summaries(
        &self,
        request: &SummariesRequest,
    ) -> Result<ApiAnswer<SummariesResponse>, ApiError> {
        self.caller.scope_of_changes(AccessRight::Write)?;
        let mut summaries = Vec::with_capacity(request.summaries.len());
        for (position, summary) in request.summaries.iter().enumerate() {
            summaries.push(self.resolved(position, summary).await?);
        }
        let report = self.storage.turns().set_summaries(summaries).await?;
        Ok(SummariesResponse::from(report).into())
    }

    async fn resolved(&self, position: usize, summary: &SummaryOfTurn) -> Result<TurnSummary, ApiError> {
        let given = GivenSummary { message: summary.message_id.clone(), text: summary.text.clone() };
        let resolved = self.storage.turns().resolve_summary(self.caller.user(), &given).await;
        resolved.map_err(|reason| match reason.kind() {
            ErrorKind::Validation | ErrorKind::SessionNotFound => {
                InvalidRequest::WrongSummary { position, reason }.into()
            }
            _ => reason.into(),
        })
    }
}
