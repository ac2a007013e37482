//! Callers and their rights.

use amplifier_session_core::{Scope, Viewer, model::UserId};
use serde::{Deserialize, Serialize};

use crate::ApiError;

/// Which sessions a request is about, and the most that a caller may ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reach {
    /// The caller's own sessions.
    #[default]
    Own,
    /// Also what others share with the caller.
    Visible,
    /// Everyone's.
    All,
}

impl Reach {
    /// The name in requests.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Own => "own",
            Self::Visible => "visible",
            Self::All => "all",
        }
    }
}

/// A right of a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AccessRight {
    /// Read sessions within the caller's reach.
    Read,
    /// Change the caller's own sessions.
    Write,
    /// Delete the caller's own sessions.
    Delete,
    /// Change what belongs to all users: import the sessions of others, rename a user, make all vectors again, and ignore
    /// findings of secrets. All other changes reach only the caller's own sessions.
    Admin,
}

impl AccessRight {
    /// All rights.
    pub const ALL: [Self; 4] = [Self::Read, Self::Write, Self::Delete, Self::Admin];

    /// The name in tokens and errors.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Delete => "delete",
            Self::Admin => "admin",
        }
    }
}

/// The user that a request comes from, with their rights. Only this type makes a [`Scope`] from a request, so that no
/// operation can read more than its caller may.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiCaller {
    viewer: Viewer,
    owner: Option<UserId>,
    reach: Reach,
    rights: Vec<AccessRight>,
}

impl ApiCaller {
    /// A user without teams and organisation, who may read their own sessions.
    #[must_use]
    pub fn new(user: UserId) -> Self {
        Self { viewer: Viewer::new(user), owner: None, reach: Reach::Own, rights: vec![AccessRight::Read] }
    }

    /// Sets the teams. Blank names are ignored.
    #[must_use]
    pub fn with_teams(mut self, teams: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.viewer = self.viewer.with_teams(teams);
        self
    }

    /// Sets the organisation. A blank name is ignored.
    #[must_use]
    pub fn with_org(mut self, org: Option<String>) -> Self {
        self.viewer = self.viewer.with_org(org);
        self
    }

    /// Sets which sessions the caller may ask for.
    #[must_use]
    pub fn with_reach(mut self, reach: Reach) -> Self {
        self.reach = reach;
        self
    }

    /// Sets the only owner whose sessions are read in a scope that reaches farther than the caller's own: several users may
    /// have a session with the same id. Default: all.
    #[must_use]
    pub fn with_owner(mut self, owner: Option<UserId>) -> Self {
        self.owner = owner;
        self
    }

    /// Sets what the caller may do.
    #[must_use]
    pub fn with_rights(mut self, rights: impl IntoIterator<Item = AccessRight>) -> Self {
        self.rights = rights.into_iter().collect();
        self
    }

    /// The caller's id.
    #[must_use]
    pub fn user(&self) -> &UserId {
        &self.viewer.user_id
    }

    /// The scope of a request that reads `requested`.
    ///
    /// # Errors
    ///
    /// [`ApiError::MissingRight`] without the right to read; [`ApiError::BeyondReach`] if it asks for more than the
    /// caller's reach.
    pub fn scope(&self, requested: Reach) -> Result<Scope, ApiError> {
        self.need(AccessRight::Read)?;
        if requested > self.reach {
            return Err(ApiError::BeyondReach { requested, reach: self.reach });
        }
        Ok(match requested {
            Reach::Own => Scope::User(self.user().clone()),
            Reach::Visible => Scope::Visible(self.viewer.clone().with_owner(self.owner.clone())),
            Reach::All => self.owner.clone().map_or(Scope::Everyone, Scope::User),
        })
    }

    /// The scope of superseded lines in a request that reads `requested`: the caller's own sessions, because only their owner
    /// may read what a session no longer has.
    ///
    /// # Errors
    ///
    /// As [`Self::scope`].
    pub fn scope_of_superseded(&self, requested: Reach) -> Result<Scope, ApiError> {
        self.scope(requested)?;
        self.scope(Reach::Own)
    }

    /// The scope of a request that changes or deletes sessions, which needs `right`: the caller's own sessions.
    ///
    /// # Errors
    ///
    /// [`ApiError::MissingRight`] without the right.
    pub fn scope_of_changes(&self, right: AccessRight) -> Result<Scope, ApiError> {
        self.need(right)?;
        Ok(Scope::User(self.user().clone()))
    }

    /// The scope of a request that changes the sessions of all users, which needs [`AccessRight::Admin`].
    ///
    /// # Errors
    ///
    /// [`ApiError::MissingRight`] without the right.
    pub fn scope_of_all_changes(&self) -> Result<Scope, ApiError> {
        self.need(AccessRight::Admin)?;
        Ok(Scope::Everyone)
    }

    /// Whether the caller has the right.
    #[must_use]
    pub fn has(&self, right: AccessRight) -> bool {
        self.rights.contains(&right)
    }

    /// The caller's rights.
    #[must_use]
    pub fn rights(&self) -> &[AccessRight] {
        &self.rights
    }

    /// The most that the caller may ask for.
    #[must_use]
    pub fn reach(&self) -> Reach {
        self.reach
    }

    /// The caller with their teams and organisation.
    #[must_use]
    pub fn viewer(&self) -> &Viewer {
        &self.viewer
    }

    fn need(&self, right: AccessRight) -> Result<(), ApiError> {
        if self.has(right) { Ok(()) } else { Err(ApiError::MissingRight(right)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ana() -> ApiCaller {
        ApiCaller::new(UserId::new("ana").unwrap())
    }

    #[test]
    fn a_request_within_the_reach_gets_its_scope() {
        let caller = ana().with_teams(["payments"]).with_reach(Reach::All);
        let user = UserId::new("ana").unwrap();
        assert_eq!(caller.scope(Reach::Own).unwrap(), Scope::User(user.clone()));
        let viewer = Viewer::new(user).with_teams(["payments"]);
        assert_eq!(caller.scope(Reach::Visible).unwrap(), Scope::Visible(viewer));
        assert_eq!(caller.scope(Reach::All).unwrap(), Scope::Everyone);
    }

    #[test]
    fn an_owner_narrows_what_is_read_and_widens_nothing() {
        let ben = UserId::new("ben").unwrap();
        let caller = ana().with_reach(Reach::All).with_owner(Some(ben.clone()));
        assert_eq!(caller.scope(Reach::All).unwrap(), Scope::User(ben.clone()));
        let viewer = Viewer::new(caller.user().clone()).with_owner(Some(ben));
        assert_eq!(caller.scope(Reach::Visible).unwrap(), Scope::Visible(viewer));
        let own = Scope::User(caller.user().clone());
        assert_eq!(caller.scope(Reach::Own).unwrap(), own);
        assert_eq!(caller.scope_of_superseded(Reach::All).unwrap(), own);
        let writer = caller.clone().with_rights(AccessRight::ALL);
        assert_eq!(writer.scope_of_changes(AccessRight::Delete).unwrap(), own);
        assert!(caller.with_reach(Reach::Visible).scope(Reach::All).is_err());
    }

    #[test]
    fn a_request_beyond_the_reach_fails() {
        for (reach, requested) in
            [(Reach::Own, Reach::Visible), (Reach::Own, Reach::All), (Reach::Visible, Reach::All)]
        {
            let failed = ana().with_reach(reach).scope(requested).unwrap_err();
            assert!(matches!(failed, ApiError::BeyondReach { .. }), "{failed}");
        }
    }

    #[test]
    fn changes_need_their_right_and_reach_only_own_sessions() {
        let reader = ana().with_reach(Reach::All);
        assert!(matches!(
            reader.scope_of_changes(AccessRight::Write),
            Err(ApiError::MissingRight(AccessRight::Write))
        ));
        let writer = reader.with_rights([AccessRight::Write]);
        let own = Scope::User(UserId::new("ana").unwrap());
        assert_eq!(writer.scope_of_changes(AccessRight::Write).unwrap(), own);
        assert!(writer.scope_of_changes(AccessRight::Delete).is_err());
        assert!(writer.scope(Reach::Own).is_err());
        assert!(matches!(writer.scope_of_all_changes(), Err(ApiError::MissingRight(AccessRight::Admin))));
        let admin = writer.with_rights([AccessRight::Admin]);
        assert_eq!(admin.scope_of_all_changes().unwrap(), Scope::Everyone);
    }
}
