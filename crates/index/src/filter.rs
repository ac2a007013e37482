//! Which rows a query looks at.

use amplifier_session_core::{
    Scope,
    backend::{TextQuery, VectorQuery},
    model::{ContentType, ContentTypes, Role, Timestamp},
    search::SearchFilter,
};

/// The conditions of a query. A row is looked at when all three parts admit it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Filter<'a> {
    scope: &'a Scope,
    filter: &'a SearchFilter,
    content_types: ContentTypes,
}

impl<'a> From<&'a TextQuery> for Filter<'a> {
    fn from(query: &'a TextQuery) -> Self {
        Self { scope: &query.scope, filter: &query.filter, content_types: query.content_types }
    }
}

impl<'a> From<&'a VectorQuery> for Filter<'a> {
    fn from(query: &'a VectorQuery) -> Self {
        Self { scope: &query.scope, filter: &query.filter, content_types: query.content_types }
    }
}

impl<'a> Filter<'a> {
    /// The only user, if there is one.
    pub(crate) fn user(&self) -> Option<&'a str> {
        self.scope.user().map(|user| user.as_str())
    }

    /// The only project, if there is one.
    pub(crate) fn project(&self) -> Option<&'a str> {
        self.filter.project.as_ref().map(|project| project.as_str())
    }

    /// The only session id, if there is one.
    pub(crate) fn session(&self) -> Option<&'a str> {
        self.filter.session.as_ref().map(|session| session.as_str())
    }

    pub(crate) fn admits_session(&self, user: &str, project: &str, session: &str) -> bool {
        self.user().is_none_or(|wanted| wanted == user)
            && self.project().is_none_or(|wanted| wanted == project)
            && self.session().is_none_or(|wanted| wanted == session)
    }

    pub(crate) fn admits_message(&self, role: Role, ts: Timestamp) -> bool {
        self.filter.admits_message(role, ts)
    }

    pub(crate) fn admits_content(&self, content_type: ContentType) -> bool {
        self.content_types.contains(content_type)
    }

    /// Whether every content type that has vectors is admitted.
    pub(crate) fn admits_all_vectors(&self) -> bool {
        ContentType::EMBEDDED.into_iter().all(|content_type| self.admits_content(content_type))
    }

    /// Whether every message of an admitted session is admitted, whatever its role and time.
    pub(crate) fn admits_all_messages(&self) -> bool {
        self.filter.role.is_none() && self.filter.since.is_none() && self.filter.until.is_none()
    }
}
