//! Masks the secrets at an address in the store.

use amplifier_session_core::{
    Error,
    model::{Digest, SessionId},
    storage::{Addressed, StoredSecret},
};
use serde::{Deserialize, Serialize};

use super::secrets::is_at;
use crate::{AccessRight, Api, ApiAnswer, ApiError};

/// A preview of the secrets at an address that [`Api::purge_secrets`] would mask.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PurgePreviewRequest {
    /// The address of a message or an event, or of a session for all of its lines.
    pub address: String,
}

/// The secrets that would be masked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PurgePreview {
    /// The address of the request.
    pub address: String,
    /// The session.
    pub session_id: SessionId,
    /// All secrets in the lines, also ignored ones, and in lines of the session with the same text.
    pub secrets: Vec<StoredSecret>,
    /// The digests of the lines.
    pub lines: Vec<Digest>,
}

/// Masks all secrets in lines of a session in the store, and keeps them masked. This can't be undone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PurgeSecretsRequest {
    /// The address of the preview, which the response repeats.
    pub address: String,
    /// The id of the session, such as that in a preview.
    pub session_id: SessionId,
    /// The digests of the lines, as [`PurgePreview::lines`] has them: what a person has confirmed.
    pub lines: Vec<Digest>,
}

impl From<PurgePreview> for PurgeSecretsRequest {
    fn from(PurgePreview { address, session_id, lines, .. }: PurgePreview) -> Self {
        Self { address, session_id, lines }
    }
}

/// The secrets that were masked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PurgeSecretsResponse {
    /// The address of the request.
    pub address: String,
    /// The number of secrets.
    pub purged: u64,
}

impl Api<'_> {
    /// The secrets that [`Api::purge_secrets`] would mask: those in lines at the address with a secret that is not
    /// ignored. Needs the right to write.
    ///
    /// # Errors
    ///
    /// As [`Api::purge_secrets`].
    #[crate::compiled_here]
    pub async fn purge_secrets_preview(
        &self,
        request: &PurgePreviewRequest,
    ) -> Result<ApiAnswer<PurgePreview>, ApiError> {
        let scope = self.caller.scope_of_changes(AccessRight::Write)?;
        let mut notices = Vec::new();
        let Addressed { session, line, .. } = self.find(&scope, &request.address, &mut notices).await?;
        let ignored = self.storage.secrets().ignored_secrets().await?;
        let found = self.storage.secrets().all_session_secrets(&scope, &session.session_id).await?;
        let mut secrets = found.secrets;
        let lines = lines(
            secrets.iter().filter(|&secret| is_at(secret, line) && !ignored.contains_digest(&secret.digest)),
        );
        secrets.retain(|secret| lines.contains(&secret.line_digest));
        let (address, session_id) = (request.address.clone(), session.session_id);
        Ok(ApiAnswer { response: PurgePreview { address, session_id, secrets, lines }, notices })
    }

    /// Masks secrets in one of the caller's sessions in the store. Needs the right to write.
    ///
    /// # Errors
    ///
    /// [`ApiError`] if the request asks for too much; `SessionNotFound`; `Unsupported` if secrets can't be found;
    /// errors of the store. If it is interrupted, repeating it completes it.
    #[crate::compiled_here]
    pub async fn purge_secrets(
        &self,
        request: &PurgeSecretsRequest,
    ) -> Result<ApiAnswer<PurgeSecretsResponse>, ApiError> {
        let scope = self.caller.scope_of_changes(AccessRight::Write)?;
        let id = &request.session_id;
        let session = self.storage.sessions().get_session(&scope, id).await?;
        let session = session.ok_or_else(|| Error::session_not_found(id))?;
        let mut secrets = self.storage.secrets().all_session_secrets(&scope, id).await?.secrets;
        secrets.retain(|secret| request.lines.contains(&secret.line_digest));
        if !secrets.is_empty() {
            self.storage.secrets().purge_secrets(&session.key(), &lines(&secrets)).await?;
        }
        let response =
            PurgeSecretsResponse { address: request.address.clone(), purged: secrets.len() as u64 };
        Ok(ApiAnswer { response, notices: Vec::new() })
    }
}

/// The digests of the lines, each once: a line may have several secrets.
fn lines<'a>(secrets: impl IntoIterator<Item = &'a StoredSecret>) -> Vec<Digest> {
    let mut lines = Vec::new();
    for secret in secrets {
        if !lines.contains(&secret.line_digest) {
            lines.push(secret.line_digest);
        }
    }
    lines
}
