//! Masks the secrets at an address in the store.

use amplifier_session_core::{
    model::{Digest, SessionKey},
    storage::{Addressed, StoredSecret},
};
use serde::{Deserialize, Serialize};

use super::secrets::is_at;
use crate::{AccessRight, Api, ApiAnswer, ApiError, Notice};

/// Masks secrets in the store, and keeps them masked. This can't be undone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PurgeSecretsRequest {
    /// The address of a message or an event, or of a session for all of its lines.
    pub address: String,
    /// Only secrets in lines with these digests, as [`PurgePreview::lines`] has them: what a person has confirmed. By
    /// default all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<Vec<Digest>>,
}

impl PurgeSecretsRequest {
    /// Masks all secrets at an address.
    #[must_use]
    pub fn new(address: impl Into<String>) -> Self {
        Self { address: address.into(), lines: None }
    }
}

/// The secrets that a request would mask.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PurgePreview {
    /// The address of the request.
    pub address: String,
    /// The secrets.
    pub secrets: Vec<StoredSecret>,
    /// The digests of their lines.
    pub lines: Vec<Digest>,
}

/// The secrets that were masked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PurgeSecretsResponse {
    /// The address of the request.
    pub address: String,
    /// The number of secrets.
    pub purged: u64,
}

impl Api<'_> {
    /// The secrets that [`Api::purge_secrets`] would mask. Needs the right to write.
    ///
    /// # Errors
    ///
    /// As [`Api::purge_secrets`].
    pub async fn purge_secrets_preview(
        &self,
        request: &PurgeSecretsRequest,
    ) -> Result<ApiAnswer<PurgePreview>, ApiError> {
        let mut notices = Vec::new();
        let (_, secrets) = self.secrets_to_purge(request, &mut notices).await?;
        let response = PurgePreview { address: request.address.clone(), lines: lines(&secrets), secrets };
        Ok(ApiAnswer { response, notices })
    }

    /// Masks secrets in the store. Needs the right to write.
    ///
    /// # Errors
    ///
    /// [`ApiError`] if the request asks for too much; `SessionNotFound`; `Unsupported` if secrets can't be found;
    /// errors of the store. If it is interrupted, repeating it completes it.
    pub async fn purge_secrets(
        &self,
        request: &PurgeSecretsRequest,
    ) -> Result<ApiAnswer<PurgeSecretsResponse>, ApiError> {
        let mut notices = Vec::new();
        let (session, secrets) = self.secrets_to_purge(request, &mut notices).await?;
        if !secrets.is_empty() {
            self.storage.secrets().purge_secrets(&session, &lines(&secrets)).await?;
        }
        let response =
            PurgeSecretsResponse { address: request.address.clone(), purged: secrets.len() as u64 };
        Ok(ApiAnswer { response, notices })
    }

    async fn secrets_to_purge(
        &self,
        request: &PurgeSecretsRequest,
        notices: &mut Vec<Notice>,
    ) -> Result<(SessionKey, Vec<StoredSecret>), ApiError> {
        let scope = self.caller.scope_of_changes(AccessRight::Write)?;
        let Addressed { session, line, .. } = self.find(&scope, &request.address, notices).await?;
        let found = self.storage.secrets().session_secrets(&scope, &session.session_id).await?;
        let mut secrets = found.secrets;
        secrets.retain(|secret| {
            let is_confirmed = request.lines.as_ref().is_none_or(|lines| lines.contains(&secret.line_digest));
            is_confirmed && is_at(secret, line)
        });
        Ok((session.key(), secrets))
    }
}

/// The digests of the lines, each once: a line may have several secrets.
fn lines(secrets: &[StoredSecret]) -> Vec<Digest> {
    let mut lines = Vec::new();
    for secret in secrets {
        if !lines.contains(&secret.line_digest) {
            lines.push(secret.line_digest);
        }
    }
    lines
}
