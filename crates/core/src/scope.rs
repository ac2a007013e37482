//! Scopes of reads.

use crate::{
    model::{Session, UserId, Visibility},
    text::composed,
};

/// The sessions that a read may return. There is no default, so nothing returns everyone's sessions by accident.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Scope {
    /// The sessions that one user owns, shared or not.
    User(UserId),
    /// The sessions that a person may see: their own, and sessions that others share with them.
    Visible(Viewer),
    /// All sessions, for administrators.
    Everyone,
}

/// A person who reads, with the groups they belong to.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Viewer {
    /// The person.
    pub user_id: UserId,
    /// The person's teams.
    pub team_ids: Vec<String>,
    /// The person's organisation.
    pub org_id: Option<String>,
    /// The only owner whose sessions are read, of those that the person may see. Default: all.
    pub owner: Option<UserId>,
}

impl Viewer {
    /// A person without teams and organisation.
    #[must_use]
    pub fn new(user_id: UserId) -> Self {
        Self { user_id, team_ids: Vec::new(), org_id: None, owner: None }
    }

    /// Sets the teams. Blank names are ignored, so that they match nothing by accident.
    #[must_use]
    pub fn with_teams(mut self, team_ids: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let teams = team_ids.into_iter().map(|team| composed(&team.into()).into_owned());
        self.team_ids = teams.filter(|team| is_named(team)).collect();
        self
    }

    /// Sets the organisation. A blank name is ignored.
    #[must_use]
    pub fn with_org(mut self, org_id: Option<String>) -> Self {
        self.org_id = org_id.filter(|org| is_named(org)).map(|org| composed(&org).into_owned());
        self
    }

    /// Sets the only owner whose sessions are read: several users may have a session with the same id.
    #[must_use]
    pub fn with_owner(mut self, owner: Option<UserId>) -> Self {
        self.owner = owner;
        self
    }

    /// Whether sessions of this owner are read, as far as the person may see them.
    #[must_use]
    pub fn reads_of(&self, owner: &UserId) -> bool {
        self.owner.as_ref().is_none_or(|only| only == owner)
    }

    /// Whether the person may see `session`: it is their own, public, or shared with one of their teams or their
    /// organisation.
    #[must_use]
    pub fn may_see(&self, session: &Session) -> bool {
        self.is_among(SessionReaders::from(session))
    }

    fn is_among(&self, shared: SessionReaders<'_>) -> bool {
        let is_shared = || match shared.visibility {
            Visibility::Private => false,
            Visibility::Team => shared.team_ids.iter().any(|team| self.team_ids.contains(team)),
            Visibility::Org => shared.org_id.is_some() && shared.org_id == self.org_id.as_deref(),
            Visibility::Public => true,
        };
        self.reads_of(shared.owner) && (*shared.owner == self.user_id || is_shared())
    }
}

/// Those who can see a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionReaders<'a> {
    /// The owner.
    pub owner: &'a UserId,
    /// Who else.
    pub visibility: Visibility,
    /// The teams, for [`Visibility::Team`].
    pub team_ids: &'a [String],
    /// The organisation, for [`Visibility::Org`].
    pub org_id: Option<&'a str>,
}

impl<'a> From<&'a Session> for SessionReaders<'a> {
    fn from(session: &'a Session) -> Self {
        Self {
            owner: &session.user_id,
            visibility: session.visibility,
            team_ids: &session.team_ids,
            org_id: session.org_id.as_deref(),
        }
    }
}

fn is_named(group: &str) -> bool {
    !group.trim().is_empty()
}

impl Scope {
    /// Whether `session` is in the scope.
    #[must_use]
    pub fn allows(&self, session: &Session) -> bool {
        self.covers(SessionReaders::from(session))
    }

    /// Whether a session of which only this is known is in the scope.
    #[must_use]
    pub fn covers(&self, shared: SessionReaders<'_>) -> bool {
        match self {
            Self::User(user) => user == shared.owner,
            Self::Visible(viewer) => viewer.is_among(shared),
            Self::Everyone => true,
        }
    }
}

impl From<UserId> for Scope {
    fn from(user: UserId) -> Self {
        Self::User(user)
    }
}

impl From<Viewer> for Scope {
    fn from(viewer: Viewer) -> Self {
        Self::Visible(viewer)
    }
}
