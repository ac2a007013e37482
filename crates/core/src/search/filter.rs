//! Which sessions, messages and events a read looks at.

use crate::model::{ProjectSlug, Role, Session, SessionId, Timestamp};

/// Which sessions. Every field narrows it; the default is all of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionFilter {
    /// Only this project.
    pub project: Option<ProjectSlug>,
    /// Only this session (of every user in scope who has one of this id).
    pub session: Option<SessionId>,
    /// Only this bundle.
    pub bundle: Option<String>,
    /// Only sessions that carry all of these tags.
    pub tags: Vec<String>,
    /// Only sessions of so many turns or more.
    pub min_turns: Option<u32>,
    /// Only sessions of so many turns or fewer.
    pub max_turns: Option<u32>,
}

impl SessionFilter {
    /// Narrows to a project.
    #[must_use]
    pub fn with_project(mut self, project: impl Into<Option<ProjectSlug>>) -> Self {
        self.project = project.into();
        self
    }

    /// Narrows to a session.
    #[must_use]
    pub fn with_session(mut self, session: impl Into<Option<SessionId>>) -> Self {
        self.session = session.into();
        self
    }

    /// Narrows to a bundle.
    #[must_use]
    pub fn with_bundle(mut self, bundle: impl Into<Option<String>>) -> Self {
        self.bundle = bundle.into();
        self
    }

    /// Narrows to sessions that carry all of `tags`.
    #[must_use]
    pub fn with_tags(mut self, tags: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.tags = tags.into_iter().map(Into::into).collect();
        self
    }

    /// Narrows to sessions of so many turns or more.
    #[must_use]
    pub fn with_min_turns(mut self, min_turns: impl Into<Option<u32>>) -> Self {
        self.min_turns = min_turns.into();
        self
    }

    /// Narrows to sessions of so many turns or fewer.
    #[must_use]
    pub fn with_max_turns(mut self, max_turns: impl Into<Option<u32>>) -> Self {
        self.max_turns = max_turns.into();
        self
    }

    /// Whether `session` passes.
    #[must_use]
    pub fn admits(&self, session: &Session) -> bool {
        self.project.as_ref().is_none_or(|project| *project == session.project_slug)
            && self.session.as_ref().is_none_or(|id| *id == session.session_id)
            && self.bundle.as_ref().is_none_or(|bundle| session.bundle.as_ref() == Some(bundle))
            && self.tags.iter().all(|tag| session.tags.contains(tag))
            && self.min_turns.is_none_or(|least| session.turn_count >= least)
            && self.max_turns.is_none_or(|most| session.turn_count <= most)
    }

    /// Whether the filter asks for more of a session than its project and its id, which are known of every message.
    #[must_use]
    pub fn needs_session(&self) -> bool {
        self.bundle.is_some() || !self.tags.is_empty() || self.min_turns.is_some() || self.max_turns.is_some()
    }
}

/// Which messages a search looks at. Every field narrows it; the default is all of them.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct SearchFilter {
    /// Only messages of these sessions.
    pub sessions: SessionFilter,
    /// Only this role.
    pub role: Option<Role>,
    /// Only messages of this time or later.
    pub since: Option<Timestamp>,
    /// Only messages before this time.
    pub until: Option<Timestamp>,
}

impl SearchFilter {
    /// Narrows to messages of certain sessions.
    #[must_use]
    pub fn with_sessions(mut self, sessions: SessionFilter) -> Self {
        self.sessions = sessions;
        self
    }

    /// Narrows to a project.
    #[must_use]
    pub fn with_project(mut self, project: ProjectSlug) -> Self {
        self.sessions.project = Some(project);
        self
    }

    /// Narrows to a session.
    #[must_use]
    pub fn with_session(mut self, session: SessionId) -> Self {
        self.sessions.session = Some(session);
        self
    }

    /// Narrows to a role.
    #[must_use]
    pub fn with_role(mut self, role: Role) -> Self {
        self.role = Some(role);
        self
    }

    /// Narrows to messages of `since` or later.
    #[must_use]
    pub fn with_since(mut self, since: Timestamp) -> Self {
        self.since = Some(since);
        self
    }

    /// Narrows to messages before `until`.
    #[must_use]
    pub fn with_until(mut self, until: Timestamp) -> Self {
        self.until = Some(until);
        self
    }

    /// Whether a message with this role and time passes the message's part of the filter.
    #[must_use]
    pub fn admits_message(&self, role: Role, ts: Timestamp) -> bool {
        self.role.is_none_or(|wanted| wanted == role)
            && self.since.is_none_or(|since| ts >= since)
            && self.until.is_none_or(|until| ts < until)
    }
}
