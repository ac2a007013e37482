//! Lists the secrets in stored sessions.

use std::cmp::Reverse;

use amplifier_session_core::{
    Scope,
    backend::SessionQuery,
    model::{DamagedRow, ProjectSlug, Session, SessionId, SessionKey, UserId},
    storage::{AddressedLine, SecretIn, SecretsAtRest, SessionSecrets, StoredSecret},
};
use serde::{Deserialize, Serialize};

use crate::{
    Api, ApiAnswer, ApiError, Notice, Reach,
    ids::{ShortIds, address, address_of_event, short},
};

/// The number of sessions that are listed at once.
const PAGE: usize = 1_000;

/// A search for secrets in all lines of sessions.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SecretsRequest {
    /// The users whose sessions are read.
    pub scope: Reach,
    /// The addresses of the sessions. By default, all sessions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sessions: Vec<String>,
    /// Only this project: its slug, a part of it or a pattern, which may select several, or its folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Further projects: sessions of any of them, or of `project`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub projects: Vec<String>,
    /// Only this repository: its address, the end of the address, or a folder in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repo: Option<String>,
    /// The treatment of secrets in stored lines; with `off`, nothing is searched. By default as the store is set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redact: Option<SecretsAtRest>,
    /// Whether the response has short ids, for a face that shows them.
    pub short_ids: bool,
}

/// Is called after each session, with the number of sessions that were searched and that of all sessions.
pub type OnSearched<'a> = &'a mut (dyn FnMut(u64, u64) + Send);

/// The secrets in sessions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SecretsResponse {
    /// The treatment of secrets in stored lines.
    pub redact: SecretsAtRest,
    /// The number of sessions that were searched.
    pub searched: u64,
    /// The number of secrets.
    pub count: u64,
    /// The number of findings that are ignored.
    pub ignored: u64,
    /// The sessions with secrets, beginning with the most certain secrets.
    pub sessions: Vec<SessionWithSecrets>,
    /// The short ids of the sessions, if they were requested.
    #[serde(default, skip_serializing_if = "ShortIds::is_empty")]
    pub short_ids: ShortIds,
    /// Rows that can't be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub damaged: Vec<DamagedRow>,
}

/// A session with secrets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SessionWithSecrets {
    /// The owner.
    pub user_id: UserId,
    /// The session.
    pub session_id: SessionId,
    /// Its project.
    pub project_slug: ProjectSlug,
    /// The number of its secrets.
    pub count: u64,
    /// The secrets, the most certain first.
    pub secrets: Vec<FoundSecret>,
}

/// A secret that was found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FoundSecret {
    /// The address of its message or event. That of a secret in a metadata file or a superseded line is the session's.
    pub address: String,
    /// The secret.
    #[serde(flatten)]
    pub secret: StoredSecret,
}

impl SessionWithSecrets {
    fn new(found: SessionSecrets, short_ids: &ShortIds) -> Self {
        let SessionSecrets { user_id, session_id, project_slug, count, secrets, .. } = found;
        let id = short(short_ids, &session_id);
        let secrets = secrets.into_iter().map(|secret| FoundSecret::new(secret, id)).collect();
        Self { user_id, session_id, project_slug, count, secrets }
    }
}

impl FoundSecret {
    /// A secret of the session with the short id `session`.
    fn new(secret: StoredSecret, session: &str) -> Self {
        let address = match (secret.kind, secret.sequence) {
            _ if secret.superseded_at.is_some() => session.to_owned(),
            (SecretIn::Message, Some(sequence)) => address(session, sequence),
            (SecretIn::Event, Some(sequence)) => address_of_event(session, sequence),
            _ => session.to_owned(),
        };
        Self { address, secret }
    }
}

/// Whether the secret is in the addressed line; without a line, any is.
pub(crate) fn is_at(secret: &StoredSecret, line: Option<AddressedLine>) -> bool {
    match line {
        Some(AddressedLine::Message(sequence)) => {
            secret.kind == SecretIn::Message && secret.sequence == Some(sequence)
        }
        Some(AddressedLine::Event(sequence)) => {
            secret.kind == SecretIn::Event && secret.sequence == Some(sequence)
        }
        _ => true,
    }
}

impl Api<'_> {
    /// Lists the secrets in sessions. Reads all of their lines, which takes a while in a large store.
    ///
    /// # Errors
    ///
    /// [`ApiError`] if the request asks for too much; `SessionNotFound`; `Unsupported` if secrets can't be found;
    /// errors of the store.
    #[crate::compiled_here]
    pub async fn secrets<'a>(
        &'a self,
        request: &'a SecretsRequest,
        on_searched: OnSearched<'a>,
    ) -> Result<ApiAnswer<SecretsResponse>, ApiError> {
        let scope = self.caller.scope(request.scope)?;
        let mut notices = Vec::new();
        let redact = match request.redact {
            Some(chosen) => chosen,
            None => self.storage.secrets().secrets_at_rest().await?,
        };
        let keys = match redact {
            SecretsAtRest::Off => Vec::new(),
            _ => self.searched(&scope, request, &mut notices).await?,
        };
        let (mut searched, all) = (0, keys.len() as u64);
        let mut one_more = || {
            searched += 1;
            on_searched(searched, all);
        };
        let mut found = self.storage.secrets().secrets_of_sessions(&keys, &mut one_more).await?;
        let damaged = found.iter_mut().flat_map(|session| std::mem::take(&mut session.damaged)).collect();
        let ignored = found.iter().map(|session| session.ignored).sum();
        found.retain(|session| session.count > 0);
        // The secrets of a session begin with the most certain one.
        found.sort_by_key(|session| Reverse(session.secrets.first().map(|secret| secret.certainty)));
        let count = found.iter().map(|session| session.count).sum();
        let ids = found.iter().map(|session| &session.session_id);
        let mut short_ids = self.storage.sessions().short_ids(&scope, ids).await?;
        let sessions =
            found.into_iter().map(|session| SessionWithSecrets::new(session, &short_ids)).collect();
        if !request.short_ids {
            short_ids.clear();
        }
        let response =
            SecretsResponse { redact, searched: all, count, ignored, sessions, short_ids, damaged };
        Ok(ApiAnswer { response, notices })
    }

    /// As [`Self::secrets`], without progress.
    ///
    /// # Errors
    ///
    /// As [`Self::secrets`].
    #[crate::compiled_here]
    pub async fn list_secrets(
        &self,
        request: &SecretsRequest,
    ) -> Result<ApiAnswer<SecretsResponse>, ApiError> {
        self.secrets(request, &mut |_, _| ()).await
    }

    /// The requested sessions.
    async fn searched(
        &self,
        scope: &Scope,
        request: &SecretsRequest,
        notices: &mut Vec<Notice>,
    ) -> Result<Vec<SessionKey>, ApiError> {
        let SecretsRequest { project, projects, repo, .. } = request;
        let projects = project.iter().chain(projects);
        let named = self.sessions_of_any(scope, projects, repo.as_deref(), notices).await?;
        let sessions = if request.sessions.is_empty() {
            let query = SessionQuery::new(scope.clone()).with_filter(named.clone()).with_limit(PAGE);
            let all = self.storage.sessions().all_sessions(query).await?;
            if all.is_empty() {
                self.remark_unknown(scope, &named, notices).await?;
                notices.extend(self.only_others(scope).await?);
            }
            all
        } else {
            let mut sessions = self.find_all(scope, &request.sessions, notices).await?;
            sessions.retain(|session| named.admits(session));
            sessions
        };
        Ok(sessions.iter().map(Session::key).collect())
    }
}
