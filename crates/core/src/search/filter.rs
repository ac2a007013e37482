//! Filters for sessions and messages.

use crate::model::{ProjectSlug, Role, Session, SessionId, Timestamp};

/// A filter for sessions, which must match all fields. The default is all sessions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionFilter {
    /// Only this project.
    pub project: Option<ProjectSlug>,
    /// Only this session (of every user in scope who has a session with this id).
    pub session: Option<SessionId>,
    /// Only this bundle.
    pub bundle: Option<String>,
    /// Only sessions with all of these tags.
    pub tags: Vec<String>,
    /// Only sessions with at least this many turns.
    pub min_turns: Option<u32>,
    /// Only sessions with at most this many turns.
    pub max_turns: Option<u32>,
}

impl SessionFilter {
    /// Only this project.
    #[must_use]
    pub fn with_project(mut self, project: impl Into<Option<ProjectSlug>>) -> Self {
        self.project = project.into();
        self
    }

    /// Only this session.
    #[must_use]
    pub fn with_session(mut self, session: impl Into<Option<SessionId>>) -> Self {
        self.session = session.into();
        self
    }

    /// Only this bundle.
    #[must_use]
    pub fn with_bundle(mut self, bundle: impl Into<Option<String>>) -> Self {
        self.bundle = bundle.into();
        self
    }

    /// Only sessions with all of `tags`.
    #[must_use]
    pub fn with_tags(mut self, tags: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.tags = tags.into_iter().map(Into::into).collect();
        self
    }

    /// Only sessions with at least this many turns.
    #[must_use]
    pub fn with_min_turns(mut self, min_turns: impl Into<Option<u32>>) -> Self {
        self.min_turns = min_turns.into();
        self
    }

    /// Only sessions with at most this many turns.
    #[must_use]
    pub fn with_max_turns(mut self, max_turns: impl Into<Option<u32>>) -> Self {
        self.max_turns = max_turns.into();
        self
    }

    /// Whether `session` matches.
    #[must_use]
    pub fn admits(&self, session: &Session) -> bool {
        self.project.as_ref().is_none_or(|project| *project == session.project_slug)
            && self.session.as_ref().is_none_or(|id| *id == session.session_id)
            && self.bundle.as_ref().is_none_or(|bundle| session.bundle.as_ref() == Some(bundle))
            && self.tags.iter().all(|tag| session.tags.contains(tag))
            && self.min_turns.is_none_or(|least| session.turn_count >= least)
            && self.max_turns.is_none_or(|most| session.turn_count <= most)
    }

    /// Whether the filter needs more than the project and the id of a session, which are stored with every message.
    #[must_use]
    pub fn needs_session(&self) -> bool {
        self.bundle.is_some() || !self.tags.is_empty() || self.min_turns.is_some() || self.max_turns.is_some()
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
    /// Only messages of these sessions.
    #[must_use]
    pub fn with_sessions(mut self, sessions: SessionFilter) -> Self {
        self.sessions = sessions;
        self
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

    /// Only messages with this role.
    #[must_use]
    pub fn with_role(mut self, role: Role) -> Self {
        self.role = Some(role);
        self
    }

    /// Only messages at `since` or later.
    #[must_use]
    pub fn with_since(mut self, since: Timestamp) -> Self {
        self.since = Some(since);
        self
    }

    /// Only messages before `until`.
    #[must_use]
    pub fn with_until(mut self, until: Timestamp) -> Self {
        self.until = Some(until);
        self
    }

    /// Whether a message with this role and time matches, regardless of its session.
    #[must_use]
    pub fn admits_message(&self, role: Role, ts: Timestamp) -> bool {
        self.role.is_none_or(|wanted| wanted == role)
            && self.since.is_none_or(|since| ts >= since)
            && self.until.is_none_or(|until| ts < until)
    }
}
