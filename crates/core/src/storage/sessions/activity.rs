//! Users and projects that were active in a period.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::PAGE;
use crate::{
    Result,
    backend::SessionQuery,
    model::{ProjectSlug, Session, Timestamp, UserId},
    storage::store::SessionCatalog,
};

/// A user or a project with its active sessions.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Activity<T> {
    /// The user or the project.
    pub of: T,
    /// The number of active sessions.
    pub sessions: u64,
    /// The number of messages of these sessions.
    pub messages: u64,
    /// The number of events of these sessions.
    pub events: u64,
    /// The number of users of a project, or projects of a user.
    pub across: u64,
    /// When the first of the sessions began.
    pub first: Timestamp,
    /// When a session last changed.
    pub last: Timestamp,
}

impl SessionCatalog<'_> {
    /// The users with sessions that `query` selects, most recent first. Its limit does not matter.
    ///
    /// # Errors
    ///
    /// Errors of the backend.
    pub async fn list_users(self, query: SessionQuery) -> Result<Vec<Activity<UserId>>> {
        let of = |session: &Session| (session.user_id.clone(), session.project_slug.to_string());
        self.activity(query, of).await
    }

    async fn activity<T: Ord + Clone>(
        self,
        query: SessionQuery,
        of: impl Fn(&Session) -> (T, String),
    ) -> Result<Vec<Activity<T>>> {
        let query = query.with_limit(PAGE);
        let mut found: BTreeMap<T, (Activity<T>, BTreeSet<String>)> = BTreeMap::new();
        let count = |page: Vec<Session>| {
            for session in page {
                let (of, across) = of(&session);
                let new = || (Activity::new(of.clone(), &session), BTreeSet::new());
                let (activity, others) = found.entry(of.clone()).or_insert_with(new);
                activity.add(&session);
                others.insert(across);
            }
        };
        self.store.each_page(query, count).await?;
        let found = found.into_values();
        let mut found: Vec<Activity<T>> =
            found.map(|(activity, others)| Activity { across: others.len() as u64, ..activity }).collect();
        found.sort_by_key(|activity| std::cmp::Reverse(activity.last));
        Ok(found)
    }
}

impl SessionCatalog<'_> {
    /// The projects with sessions that `query` selects, most recent first. Its limit does not matter.
    ///
    /// # Errors
    ///
    /// Errors of the backend.
    pub async fn list_projects(self, query: SessionQuery) -> Result<Vec<Activity<ProjectSlug>>> {
        let of = |session: &Session| (session.project_slug.clone(), session.user_id.to_string());
        self.activity(query, of).await
    }
}

impl<T> Activity<T> {
    fn new(of: T, session: &Session) -> Self {
        let (first, last) = (session.created, session.updated);
        Self { of, sessions: 0, messages: 0, events: 0, across: 0, first, last }
    }

    fn add(&mut self, session: &Session) {
        self.sessions += 1;
        self.messages += u64::from(session.message_count);
        self.events += u64::from(session.event_count);
        self.first = self.first.min(session.created);
        self.last = self.last.max(session.updated);
    }
}
