//! Sessions and projects in other orders than that of their last change.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashMap, HashSet},
};

use serde::{Deserialize, Serialize};

use super::copied::Brief;
use crate::{
    Result, Scope,
    backend::{SessionQuery, Usage},
    model::{Cost, ProjectSlug, Session, SessionKey},
    search::{EventFilter, SessionFilter},
    storage::{sessions::PAGE, store::StoreStatistics},
};

/// An order of sessions and projects. Ties are in order of the last change, newest first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SessionOrder {
    /// By the last change, newest first.
    #[default]
    Updated,
    /// By the cost of model calls, highest first. Those without a known cost are last.
    Cost,
    /// By the number of messages, most first.
    Messages,
    /// By the time from the beginning to the last change, longest first.
    Duration,
}

names! {
    SessionOrder { Updated: "updated", Cost: "cost", Messages: "messages", Duration: "duration" }
}

/// A session of a sorted list.
#[derive(Debug, Clone, PartialEq)]
pub struct SortedSession {
    /// The session.
    pub session: Session,
    /// The usage of its model calls, if it is sorted by cost. A call that several sessions report is one of the first.
    pub usage: Option<Usage>,
}

/// A project of a sorted list.
#[derive(Debug, Clone, PartialEq)]
pub struct SortedProject {
    /// The project.
    pub project: ProjectSlug,
    /// The usage of its sessions, if it is sorted by cost.
    pub usage: Option<Usage>,
    /// The number of messages of its sessions.
    pub messages: u64,
    /// The sum of the durations of its sessions, in seconds.
    pub duration_seconds: u64,
    /// The first of its sessions in the same order.
    pub sessions: Vec<SortedSession>,
}

/// The value by which something is sorted, the largest first. `None` is less than any cost.
type SortedValue = (Option<Cost>, u64);

impl SessionOrder {
    fn size(self, usage: Option<&Usage>, messages: u64, duration_seconds: u64) -> SortedValue {
        match self {
            Self::Updated => (None, 0),
            Self::Cost => (usage.and_then(Usage::known_cost), 0),
            Self::Messages => (None, messages),
            Self::Duration => (None, duration_seconds),
        }
    }

    /// Sorts sessions that are in order of their last change, and keeps the first.
    fn sort(self, sessions: &mut Vec<SortedSession>, limit: usize) {
        let size = |of: &SortedSession| {
            self.size(of.usage.as_ref(), of.session.message_count.into(), of.session.duration_seconds())
        };
        sessions.sort_by_key(|session| Reverse(size(session)));
        sessions.truncate(limit);
    }
}

impl StoreStatistics<'_> {
    /// The first sessions that `query` finds in this order, up to its limit. All of them are sorted, in pages, so the
    /// query must not continue after a session.
    ///
    /// # Errors
    ///
    /// Errors of the backend.
    pub async fn sorted_sessions(
        self,
        query: SessionQuery,
        order: SessionOrder,
    ) -> Result<Vec<SortedSession>> {
        let (limit, usage) = (query.limit, self.usage_for(&query, order).await?);
        let mut first = Vec::new();
        self.store
            .each_page(query.with_limit(PAGE), |page| {
                first.extend(page.into_iter().map(|session| with_usage(session, usage.as_ref())));
                order.sort(&mut first, limit);
            })
            .await?;
        Ok(first)
    }

    /// The projects of the sessions that `query` finds, in this order, each with its first sessions up to the query's limit.
    ///
    /// # Errors
    ///
    /// Errors of the backend.
    pub async fn sorted_projects(
        self,
        query: SessionQuery,
        order: SessionOrder,
    ) -> Result<Vec<SortedProject>> {
        let (limit, usage) = (query.limit, self.usage_for(&query, order).await?);
        let mut places: HashMap<ProjectSlug, usize> = HashMap::new();
        let mut projects: Vec<SortedProject> = Vec::new();
        self.store
            .each_page(query.with_limit(PAGE), |page| {
                for session in page {
                    let place = *places.entry(session.project_slug.clone()).or_insert(projects.len());
                    if place == projects.len() {
                        projects.push(SortedProject::new(&session, usage.is_some()));
                    }
                    if let Some(project) = projects.get_mut(place) {
                        project.add(with_usage(session, usage.as_ref()));
                        order.sort(&mut project.sessions, limit);
                    }
                }
            })
            .await?;
        let size = |of: &SortedProject| order.size(of.usage.as_ref(), of.messages, of.duration_seconds);
        projects.sort_by_key(|project| Reverse(size(project)));
        Ok(projects)
    }

    /// The usage of each session that `query` may find, if it is needed for the order.
    async fn usage_for(
        self,
        query: &SessionQuery,
        order: SessionOrder,
    ) -> Result<Option<BTreeMap<SessionKey, Usage>>> {
        match order {
            SessionOrder::Cost => self.usage_of_sessions(&query.scope, &query.filter).await.map(Some),
            SessionOrder::Updated | SessionOrder::Messages | SessionOrder::Duration => Ok(None),
        }
    }

    /// The usage of each session that has any. The sum is the usage of the [statistics](super::Statistics): a call that
    /// several sessions report counts for one of them.
    async fn usage_of_sessions(
        self,
        scope: &Scope,
        sessions: &SessionFilter,
    ) -> Result<BTreeMap<SessionKey, Usage>> {
        let (mut briefs, mut logged) = (Vec::new(), HashSet::new());
        let query = SessionQuery::new(scope.clone()).with_filter(sessions.clone()).with_limit(PAGE);
        self.store
            .each_page(query, |page| {
                let with_events = page.iter().filter(|session| session.event_count > 0);
                logged.extend(with_events.map(|session| session.session_id.to_string()));
                briefs.extend(page.iter().map(Brief::of));
            })
            .await?;
        let mut events = EventFilter::default().with_sessions(sessions.clone());
        let shared = self.shared_rows(scope, sessions, &briefs, &events).await?;
        events.sessions.without.extend(shared.counted);
        let mut counts = self.event_counts(scope, &events, &briefs).await?;
        counts.append(shared.counts);
        let mut usage: BTreeMap<SessionKey, Usage> = BTreeMap::new();
        for of in counts.sessions {
            // The log of that session has the calls too.
            if of.of_session.is_none_or(|session| !logged.contains(&session)) {
                usage.entry(of.session).or_default().add(of.usage);
            }
        }
        Ok(usage)
    }
}

impl SortedProject {
    fn new(session: &Session, with_usage: bool) -> Self {
        Self {
            project: session.project_slug.clone(),
            usage: with_usage.then(Usage::default),
            messages: 0,
            duration_seconds: 0,
            sessions: Vec::new(),
        }
    }

    fn add(&mut self, sorted: SortedSession) {
        if let (Some(usage), Some(of_session)) = (&mut self.usage, sorted.usage) {
            usage.add(of_session);
        }
        self.messages += u64::from(sorted.session.message_count);
        self.duration_seconds += sorted.session.duration_seconds();
        self.sessions.push(sorted);
    }
}

fn with_usage(session: Session, usage: Option<&BTreeMap<SessionKey, Usage>>) -> SortedSession {
    let usage = usage.map(|usage| usage.get(&session.key()).copied().unwrap_or_default());
    SortedSession { session, usage }
}
