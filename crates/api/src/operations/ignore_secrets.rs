//! Ignores harmless findings, which are then no longer listed or masked.

use amplifier_session_core::{model::Digest, storage::Addressed};
use serde::{Deserialize, Serialize};

use super::secrets::is_at;
use crate::{AccessRight, Api, ApiAnswer, ApiError};

/// Ignores the findings at an address, wherever they occur, or no longer ignores them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IgnoreSecretsRequest {
    /// The address of a message or an event, or of a session for all of its lines.
    pub address: String,
    /// Whether to ignore them, or else to list and mask them again.
    pub ignore: bool,
}

/// The change that was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IgnoreSecretsResponse {
    /// The address of the request.
    pub address: String,
    /// The number of findings that were changed.
    #[serde(flatten)]
    pub change: IgnoredChange,
    /// The number of findings at the address.
    #[serde(default)]
    pub found: usize,
}

/// The number of findings that are now ignored, or no longer ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum IgnoredChange {
    /// They are ignored now.
    Ignored(u64),
    /// They are no longer ignored.
    Unignored(u64),
}

impl Api<'_> {
    /// Ignores findings in one of the caller's sessions, or no longer ignores them. Needs the rights to write and to
    /// administer the store: its list of ignored findings applies to the sessions of all users.
    ///
    /// # Errors
    ///
    /// [`ApiError`] if the request asks for too much; `SessionNotFound`; `Unsupported` if secrets can't be found;
    /// errors of the store.
    #[crate::compiled_here]
    pub async fn ignore_secrets(
        &self,
        request: &IgnoreSecretsRequest,
    ) -> Result<ApiAnswer<IgnoreSecretsResponse>, ApiError> {
        let scope = self.caller.scope_of_changes(AccessRight::Write)?;
        self.caller.scope_of_all_changes()?;
        let mut notices = Vec::new();
        let Addressed { session, line, .. } = self.find(&scope, &request.address, &mut notices).await?;
        let secrets = self.storage.secrets();
        let found = secrets.all_session_secrets(&scope, &session.session_id).await?.secrets;
        let findings: Vec<Digest> =
            found.iter().filter(|secret| is_at(secret, line)).map(|secret| secret.digest).collect();
        let count = secrets.ignore_secrets(&findings, request.ignore).await?;
        let change =
            if request.ignore { IgnoredChange::Ignored(count) } else { IgnoredChange::Unignored(count) };
        let response =
            IgnoreSecretsResponse { address: request.address.clone(), change, found: findings.len() };
        Ok(ApiAnswer { response, notices })
    }
}
