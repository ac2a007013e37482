//! Projects, with counts of their sessions.

use amplifier_session_core::{
    backend::SessionQuery,
    model::{DamagedRow, ProjectSlug},
};
use jiff::Zoned;
use serde::{Deserialize, Serialize};

use super::recent::RecentCounts;
use crate::{Api, ApiAnswer, ApiError, Reach, filter::RequestFilter};

/// A list of projects.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ProjectsRequest {
    /// The users whose sessions are read.
    pub scope: Reach,
    /// Which sessions. The period is that of their activity.
    #[serde(flatten)]
    pub filter: RequestFilter,
}

impl ProjectsRequest {
    /// Checks everything that needs no store.
    ///
    /// # Errors
    ///
    /// [`ApiError::Invalid`].
    pub fn check(&self, now: &Zoned) -> Result<(), ApiError> {
        self.filter.check(now)
    }
}

/// Projects.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProjectsResponse {
    /// The projects, most recent first.
    pub projects: Vec<ListedProject>,
    /// Sessions that can't be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub damaged: Vec<DamagedRow>,
}

/// A project in a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ListedProject {
    /// The project.
    pub project: ProjectSlug,
    /// Its sessions.
    #[serde(flatten)]
    pub counts: RecentCounts,
    /// The number of their users.
    pub users: u64,
}

impl Api<'_> {
    /// Lists projects, most recent first.
    ///
    /// # Errors
    ///
    /// [`ApiError`] if the request is invalid or asks for too much; errors of the store.
    #[crate::compiled_here]
    pub async fn projects(&self, request: &ProjectsRequest) -> Result<ApiAnswer<ProjectsResponse>, ApiError> {
        let scope = self.caller.scope(request.scope)?;
        let mut notices = Vec::new();
        let period = request.filter.period(self.now, &mut notices)?;
        let filter = self.filtered(&scope, &request.filter, &mut notices).await?;
        let query = SessionQuery::new(scope.clone())
            .with_filter(filter.clone())
            .active_in(period.since, period.until);
        let sessions = self.storage.sessions();
        let found = sessions.list_projects(query).await?;
        if found.is_empty() {
            self.why_nothing(&scope, &request.filter, &filter, &mut notices).await?;
        }
        let projects = found.iter().map(|activity| ListedProject {
            project: activity.of.clone(),
            counts: activity.into(),
            users: activity.across,
        });
        let response =
            ProjectsResponse { projects: projects.collect(), damaged: self.damaged_within(&scope) };
        Ok(ApiAnswer { response, notices })
    }
}
