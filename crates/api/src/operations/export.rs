//! Writes sessions to an archive, to copy them to a store of any kind.

use std::io::Write;

use amplifier_session_core::storage::{ExportReport, JsonLinesWriter};
use serde::{Deserialize, Serialize};

use crate::{Api, ApiAnswer, ApiError, FoundKind, Notice, Reach};

/// An export of sessions, by default of all in the scope.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ExportRequest {
    /// The users whose sessions are read.
    pub scope: Reach,
    /// Only this session: its address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Only this project: its slug, a part of it or a pattern, which may select several, or its folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Further projects: sessions of any of them, or of `project`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub projects: Vec<String>,
    /// Only this repository: its address, the end of the address, or a folder in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repo: Option<String>,
    /// Whether the archive has the vectors of messages and turns.
    pub vectors: bool,
}

impl Api<'_> {
    /// Writes sessions to `out` as JSON lines, in small pieces. [`Self::import`] reads them.
    ///
    /// # Errors
    ///
    /// [`ApiError`] if the request is invalid or asks for too much; `SessionNotFound`; `StorageIo` with the cause if
    /// `out` fails; errors of the store.
    #[crate::compiled_here]
    pub async fn export(
        &self,
        request: &ExportRequest,
        out: &mut (dyn Write + Send),
    ) -> Result<ApiAnswer<ExportReport>, ApiError> {
        let scope = self.caller.scope(request.scope)?;
        let mut notices = Vec::new();
        let ExportRequest { project, projects, repo, .. } = request;
        let projects = project.iter().chain(projects);
        let sessions = self.sessions_of_any(&scope, projects, repo.as_deref(), &mut notices).await?;
        let filter = match &request.session {
            None => sessions.clone(),
            Some(address) => {
                let found = self.find(&scope, address, &mut notices).await?.session;
                // Several users may have a session of this id.
                sessions.clone().with_only(vec![found.key()])
            }
        };
        let mut archive = JsonLinesWriter::new(out).with_vectors(request.vectors);
        let report = self.storage.archive().export_sessions(&scope, filter, &mut archive).await?;
        if report.sessions == 0 && report.damaged.is_empty() {
            notices.push(Notice::NothingFound { what: FoundKind::ExportedSession, nearest: None });
            self.remark_unknown(&scope, &sessions, &mut notices).await?;
        }
        Ok(ApiAnswer { response: report, notices })
    }
}
