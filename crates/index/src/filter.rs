//! Determines which rows a query searches.

use std::{collections::HashSet, sync::Arc};

use amplifier_session_core::{
    Result, Scope,
    model::{ContentType, ContentTypes, Role, Timestamp},
    search::{SearchFilter, SessionFilter},
};

use crate::rows::{RowSession, Rows, SessionOfRow};

/// The conditions of a query in one snapshot of the rows. A row is searched if its session, its message and its
/// content type are all admitted.
///
/// The index knows the owner, the project and the id of a session. If a scope or a filter needs more (visibility, tags,
/// turns), the matching sessions are requested from the rows: these fields change without any change of a message, and
/// unsharing a session must take effect at once.
#[derive(Debug)]
pub(crate) struct Filter<'a> {
    scope: &'a Scope,
    filter: &'a SearchFilter,
    content_types: ContentTypes,
    /// The keys of the admitted sessions, if names are not sufficient.
    sessions: Option<HashSet<u64>>,
    /// The keys of the sessions that are excluded by name, if names are otherwise sufficient.
    excluded: HashSet<u64>,
}

impl<'a> Filter<'a> {
    pub(crate) fn new(
        scope: &'a Scope,
        filter: &'a SearchFilter,
        content_types: ContentTypes,
        rows: &mut dyn Rows,
    ) -> Result<Self> {
        // For an unknown scope, names are not sufficient.
        let names_tell =
            matches!(scope, Scope::User(_) | Scope::Everyone) && !filter.sessions.needs_session();
        let mut keys = |filter: &SessionFilter| -> Result<HashSet<u64>> {
            Ok(rows.session_keys(scope, filter)?.into_iter().collect())
        };
        let sessions = if names_tell { None } else { Some(keys(&filter.sessions)?) };
        // A few excluded sessions are looked up, instead of all others.
        let without = &filter.sessions.without;
        let excluded = match &sessions {
            None if !without.is_empty() => {
                keys(&SessionFilter::default().with_only(without.iter().cloned()))?
            }
            _ => HashSet::new(),
        };
        Ok(Self { scope, filter, content_types, sessions, excluded })
    }

    /// The only user, if there is one.
    pub(crate) fn user(&self) -> Option<&'a str> {
        match self.scope {
            Scope::User(user) => Some(user.as_str()),
            _ => None,
        }
    }

    /// The only project, if there is one.
    pub(crate) fn project(&self) -> Option<&'a str> {
        self.filter.sessions.project.as_ref().map(|project| project.as_str())
    }

    /// The only session id, if there is one.
    pub(crate) fn session(&self) -> Option<&'a str> {
        self.filter.sessions.session.as_ref().map(|session| session.as_str())
    }

    /// The keys of all admitted sessions, if names are not sufficient.
    pub(crate) fn session_keys(&self) -> Option<&HashSet<u64>> {
        self.sessions.as_ref()
    }

    pub(crate) fn admits_session(&self, session: SessionOfRow<'_>) -> bool {
        self.user().is_none_or(|wanted| wanted == session.user)
            && self.project().is_none_or(|wanted| wanted == session.project)
            && self.session().is_none_or(|wanted| wanted == session.session)
            && self.admits_key(session.key)
    }

    /// Whether a session is admitted by its key, regardless of names.
    pub(crate) fn admits_key(&self, key: u64) -> bool {
        self.sessions.as_ref().is_none_or(|keys| keys.contains(&key)) && !self.excluded.contains(&key)
    }

    /// Whether every key is admitted.
    pub(crate) fn admits_all_keys(&self) -> bool {
        self.sessions.is_none() && self.excluded.is_empty()
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

    /// Whether every message of an admitted session is admitted, regardless of role and time.
    pub(crate) fn admits_all_messages(&self) -> bool {
        self.filter.role.is_none() && self.filter.since.is_none() && self.filter.until.is_none()
    }
}

/// The filter fields of a row in the tail.
#[derive(Debug, Clone)]
pub(crate) struct FilterFields {
    session: Arc<RowSession>,
    role: Role,
    pub(crate) ts: Timestamp,
    pub(crate) content_type: ContentType,
}

impl FilterFields {
    pub(crate) fn admitted_by(&self, filter: &Filter<'_>) -> bool {
        filter.admits_content(self.content_type)
            && filter.admits_message(self.role, self.ts)
            && filter.admits_session(self.session.of_row())
    }
}

/// Makes filter fields. Consecutive rows of a session share its names.
#[derive(Debug, Default)]
pub(crate) struct FilterFieldsBuilder {
    last: Option<Arc<RowSession>>,
}

impl FilterFieldsBuilder {
    pub(crate) fn of(
        &mut self,
        session: SessionOfRow<'_>,
        role: Role,
        ts: Timestamp,
        content_type: ContentType,
    ) -> FilterFields {
        let known = self.last.take().filter(|last| last.of_row() == session);
        let session = known.unwrap_or_else(|| Arc::new(RowSession::from(session)));
        self.last = Some(Arc::clone(&session));
        FilterFields { session, role, ts, content_type }
    }
}
