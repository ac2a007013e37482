//! Filters for sessions and messages.

use std::collections::BTreeSet;

use crate::{
    model::{ProjectSlug, Repository, Role, Session, SessionId, SessionKey, SessionSource, Timestamp},
    text::composed,
};

/// A filter for sessions, which must match all fields. The default is all sessions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionFilter {
    /// Only this project.
    pub project: Option<ProjectSlug>,
    /// Only sessions of one of these projects.
    pub projects: Option<BTreeSet<ProjectSlug>>,
    /// Only sessions of one of these repositories.
    pub repositories: Option<BTreeSet<Repository>>,
    /// Only this session (of every user in scope who has a session with this id).
    pub session: Option<SessionId>,
    /// Only this bundle.
    pub bundle: Option<String>,
    /// Only sessions that this program wrote.
    pub source: Option<SessionSource>,
    /// Only sessions with all of these tags.
    pub tags: Vec<String>,
    /// Only sessions with at least this many turns.
    pub min_turns: Option<u32>,
    /// Only sessions with at most this many turns.
    pub max_turns: Option<u32>,
    /// Only these sessions.
    pub only: Option<BTreeSet<SessionKey>>,
    /// Not these sessions.
    pub without: BTreeSet<SessionKey>,
}

impl SessionFilter {
    optional_setters! {
        /// Only this project.
        with_project(project: ProjectSlug);
        /// Only this session.
        with_session(session: SessionId);
        /// Only sessions that this program wrote.
        with_source(source: SessionSource);
        /// Only sessions with at least this many turns.
        with_min_turns(min_turns: u32);
        /// Only sessions with at most this many turns.
        with_max_turns(max_turns: u32);
    }

    /// Also only sessions of the project and the repositories of the filter `project`, and not those that it leaves out.
    #[must_use]
    pub fn within(mut self, project: &Self) -> Self {
        self.project = project.project.clone().or(self.project);
        self.projects = match (self.projects, &project.projects) {
            (Some(one), Some(other)) => Some(one.intersection(other).cloned().collect()),
            (one, other) => one.or_else(|| other.clone()),
        };
        self.repositories = project.repositories.clone().or(self.repositories);
        self.without.extend(project.without.iter().cloned());
        self
    }

    /// The projects that it admits; `None` if it admits all.
    #[must_use]
    pub fn named_projects(&self) -> Option<BTreeSet<&ProjectSlug>> {
        match (&self.project, &self.projects) {
            (Some(one), Some(any)) => Some(any.iter().filter(|project| *project == one).collect()),
            (Some(one), None) => Some([one].into()),
            (None, any) => any.as_ref().map(|any| any.iter().collect()),
        }
    }

    /// Only sessions of one of these projects.
    #[must_use]
    pub fn with_projects(mut self, projects: impl IntoIterator<Item = ProjectSlug>) -> Self {
        self.projects = Some(projects.into_iter().collect());
        self
    }

    /// Only sessions of one of these repositories.
    #[must_use]
    pub fn with_repositories(mut self, repositories: impl IntoIterator<Item = Repository>) -> Self {
        self.repositories = Some(repositories.into_iter().collect());
        self
    }

    /// Only this bundle.
    #[must_use]
    pub fn with_bundle(mut self, bundle: impl Into<Option<String>>) -> Self {
        self.bundle = bundle.into().map(|bundle| composed(&bundle).into_owned());
        self
    }

    /// Only these sessions.
    #[must_use]
    pub fn with_only(mut self, only: impl IntoIterator<Item = SessionKey>) -> Self {
        self.only = Some(only.into_iter().collect());
        self
    }

    /// Also not this session.
    #[must_use]
    pub fn excluding(mut self, session: SessionKey) -> Self {
        self.without.insert(session);
        self
    }

    /// Only sessions with all of `tags`.
    #[must_use]
    pub fn with_tags(mut self, tags: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.tags = tags.into_iter().map(|tag| composed(&tag.into()).into_owned()).collect();
        self
    }

    /// Whether `session` matches.
    #[must_use]
    pub fn admits(&self, session: &Session) -> bool {
        self.project.as_ref().is_none_or(|project| *project == session.project_slug)
            && self.projects.as_ref().is_none_or(|any| any.contains(&session.project_slug))
            && self
                .repositories
                .as_ref()
                .is_none_or(|any| session.repository.as_ref().is_some_and(|of| any.contains(of)))
            && self.session.as_ref().is_none_or(|id| *id == session.session_id)
            && self.bundle.as_ref().is_none_or(|bundle| session.bundle.as_ref() == Some(bundle))
            && self.source.is_none_or(|source| session.source == source)
            && self.tags.iter().all(|tag| session.tags.contains(tag))
            && self.min_turns.is_none_or(|least| session.turn_count >= least)
            && self.max_turns.is_none_or(|most| session.turn_count <= most)
            && self.only.as_ref().is_none_or(|only| only.contains(&session.key()))
            && (self.without.is_empty() || !self.without.contains(&session.key()))
    }

    /// Whether the filter needs more than a name (of the project or of a session), which is stored with every message.
    #[must_use]
    pub fn needs_session(&self) -> bool {
        let Self {
            project: _,
            projects,
            repositories,
            session: _,
            bundle,
            source,
            tags,
            min_turns,
            max_turns,
            only,
            without: _,
        } = self;
        let needs_row = bundle.is_some() || source.is_some() || min_turns.is_some() || max_turns.is_some();
        needs_row || projects.is_some() || repositories.is_some() || !tags.is_empty() || only.is_some()
    }
}

/// A filter for messages, which must match all fields. The default is all messages.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct SearchFilter {
    /// Only messages of these sessions.
    pub sessions: SessionFilter,
    /// Only this role.
    pub role: Option<Role>,
    /// Only messages at this time or later.
    pub since: Option<Timestamp>,
    /// Only messages before this time.
    pub until: Option<Timestamp>,
}

impl SearchFilter {
    setters! {
        /// Only messages of these sessions.
        with_sessions(sessions: SessionFilter);
    }

    /// Whether it admits all messages of a session or none.
    #[must_use]
    pub fn admits_whole_sessions(&self) -> bool {
        self.role.is_none() && self.since.is_none() && self.until.is_none()
    }

    /// Only this project.
    #[must_use]
    pub fn with_project(mut self, project: ProjectSlug) -> Self {
        self.sessions.project = Some(project);
        self
    }

    /// Only this session.
    #[must_use]
    pub fn with_session(mut self, session: SessionId) -> Self {
        self.sessions.session = Some(session);
        self
    }

    optional_setters! {
        /// Only messages with this role.
        with_role(role: Role);
        /// Only messages at `since` or later.
        with_since(since: Timestamp);
        /// Only messages before `until`.
        with_until(until: Timestamp);
    }

    /// Whether a message with this role and time matches, regardless of its session.
    #[must_use]
    pub fn admits_message(&self, role: Role, ts: Timestamp) -> bool {
        self.role.is_none_or(|wanted| wanted == role)
            && self.since.is_none_or(|since| ts >= since)
            && self.until.is_none_or(|until| ts < until)
    }
}
