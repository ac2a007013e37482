//! Recently active projects, with their newest sessions.

use std::collections::BTreeMap;

use amplifier_session_core::{
    Scope,
    backend::{SessionQuery, Usage},
    model::{DamagedRow, ProjectSlug, Session, Timestamp, UserId},
    storage::{Activity, SessionOrder, SortedProject, SortedSession},
};
use jiff::Zoned;
use serde::{Deserialize, Serialize};

use crate::{
    Api, ApiAnswer, ApiError, InvalidRequest, Notice, Reach, dates::DatePeriod, filter::RequestFilter,
    ids::ShortIds, operations::sessions::ListedSession, views::Estimated,
};

/// The beginning of the period if none is requested.
const PERIOD: &str = "7d";

/// Recently active projects and users.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RecentRequest {
    /// The users whose sessions are read.
    pub scope: Reach,
    /// Which sessions. The period is that of their activity; without one, it is the last 7 days.
    #[serde(flatten)]
    pub filter: RequestFilter,
    /// The order of the projects, and of the sessions of each.
    pub sort: SessionOrder,
    /// Maximum number of sessions of each project.
    pub limit: usize,
    /// Whether the response has short ids, for a face that shows them.
    pub short_ids: bool,
}

impl Default for RecentRequest {
    fn default() -> Self {
        Self {
            scope: Reach::default(),
            filter: RequestFilter::default(),
            sort: SessionOrder::Updated,
            limit: 3,
            short_ids: false,
        }
    }
}

impl RecentRequest {
    /// Checks everything that needs no store.
    ///
    /// # Errors
    ///
    /// [`ApiError::Invalid`].
    pub fn check(&self, now: &Zoned) -> Result<(), ApiError> {
        if self.limit == 0 {
            return Err(InvalidRequest::NothingToList.into());
        }
        self.period(now, &mut Vec::new())?;
        self.filter.sessions().map(|_| ())
    }

    fn period(&self, now: &Zoned, notices: &mut Vec<Notice>) -> Result<DatePeriod, ApiError> {
        let RequestFilter { since, until, .. } = &self.filter;
        let days = until.is_none().then_some(PERIOD);
        DatePeriod::parse(since.as_deref().or(days), until.as_deref(), &self.filter.now(now)?, notices)
    }
}

/// Recently active projects and users.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RecentResponse {
    /// From when on; 1970 if the request has only an end.
    pub since: Timestamp,
    /// Until when, if the request has an end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// The projects in the requested order, by default the most recent first.
    pub projects: Vec<RecentProject>,
    /// The users, if the scope includes more than one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub users: Option<Vec<RecentUser>>,
    /// Sessions that can't be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub damaged: Vec<DamagedRow>,
    /// The short ids of the sessions, if they were requested.
    #[serde(default, skip_serializing_if = "ShortIds::is_empty")]
    pub short_ids: ShortIds,
}

/// A project with its first sessions in the requested order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RecentProject {
    /// The project.
    pub project: ProjectSlug,
    /// Its active sessions.
    #[serde(flatten)]
    pub counts: RecentCounts,
    /// The number of their users.
    pub users: u64,
    /// The usage of the model calls of these sessions, if the projects are sorted by cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// The sum of the durations of these sessions, if the projects are sorted by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_seconds: Option<u64>,
    /// Its first sessions in the requested order, by default the newest.
    pub newest: Vec<ListedSession>,
}

/// A user.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RecentUser {
    /// The user.
    pub user_id: UserId,
    /// Their active sessions.
    #[serde(flatten)]
    pub counts: RecentCounts,
    /// The number of their projects.
    pub projects: u64,
}

/// The active sessions of a project or a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RecentCounts {
    /// Their number.
    pub sessions: u64,
    /// The number of their messages.
    pub messages: u64,
    /// The number of their events.
    pub events: u64,
    /// The time when the first of them began.
    pub first: Timestamp,
    /// The time of the last change of one of them.
    pub last: Timestamp,
}

impl<T> From<&Activity<T>> for RecentCounts {
    fn from(activity: &Activity<T>) -> Self {
        let Activity { sessions, messages, events, first, last, .. } = *activity;
        Self { sessions, messages, events, first, last }
    }
}

impl From<&Activity<UserId>> for RecentUser {
    fn from(activity: &Activity<UserId>) -> Self {
        Self { user_id: activity.of.clone(), counts: activity.into(), projects: activity.across }
    }
}

impl Api<'_> {
    /// Lists projects that were active recently, and in a scope of several users also the users.
    ///
    /// # Errors
    ///
    /// [`ApiError`] if the request is invalid or asks for too much; errors of the store.
    #[crate::compiled_here]
    pub async fn recent(&self, request: &RecentRequest) -> Result<ApiAnswer<RecentResponse>, ApiError> {
        let scope = self.caller.scope(request.scope)?;
        request.check(self.now)?;
        let mut notices = Vec::new();
        let DatePeriod { since, until } = request.period(self.now, &mut notices)?;
        let sessions = self.storage.sessions();
        let filter = self.filtered(&scope, &request.filter, &mut notices).await?;
        let active = SessionQuery::new(scope.clone()).with_filter(filter.clone()).active_in(since, until);
        let found = self.sorted_projects(&active, request).await?;
        let users = match scope {
            Scope::User(_) => None,
            _ => Some(sessions.list_users(active).await?),
        };
        if found.is_empty() {
            self.why_nothing(&scope, &request.filter, &filter, &mut notices).await?;
        }
        let listed = found.iter().flat_map(|(_, project)| &project.sessions);
        let shown: Vec<Session> = listed.map(|sorted| sorted.session.clone()).collect();
        let estimated = Estimated::of(self.storage, &shown).await?;
        let short_ids = if request.short_ids {
            sessions.short_ids(&scope, shown.iter().map(|session| &session.session_id)).await?
        } else {
            ShortIds::new()
        };
        let of_list = |sorted: &SortedSession| ListedSession::of_list(sorted, request.sort, &estimated);
        let projects = found.iter().map(|(activity, sorted)| RecentProject {
            project: activity.of.clone(),
            counts: activity.into(),
            users: activity.across,
            usage: sorted.usage,
            duration_seconds: Some(sorted.duration_seconds)
                .filter(|_| request.sort == SessionOrder::Duration),
            newest: sorted.sessions.iter().map(of_list).collect(),
        });
        let response = RecentResponse {
            since: since.unwrap_or(Timestamp::from_micros(0)),
            until,
            projects: projects.collect(),
            users: users.map(|users| users.iter().map(RecentUser::from).collect()),
            damaged: self.damaged_within(&scope),
            short_ids,
        };
        Ok(ApiAnswer { response, notices })
    }

    /// The projects of active sessions in the requested order, each with its activity.
    async fn sorted_projects(
        &self,
        active: &SessionQuery,
        request: &RecentRequest,
    ) -> Result<Vec<(Activity<ProjectSlug>, SortedProject)>, ApiError> {
        let activities = self.storage.sessions().list_projects(active.clone()).await?;
        let mut activities: BTreeMap<ProjectSlug, Activity<ProjectSlug>> =
            activities.into_iter().map(|activity| (activity.of.clone(), activity)).collect();
        let query = active.clone().with_limit(request.limit);
        let sorted = self.storage.statistics().sorted_projects(query, request.sort).await?;
        let with_activity = |project: SortedProject| Some((activities.remove(&project.project)?, project));
        Ok(sorted.into_iter().filter_map(with_activity).collect())
    }
}
