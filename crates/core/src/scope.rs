//! Who is reading, and how far they see.

use crate::model::{Session, UserId};

/// What a read may return. There is no value that means everyone by accident.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Scope {
    /// The data of one user.
    User(UserId),
    /// Everybody's data: for administrators.
    Everyone,
}

impl Scope {
    /// Whether `session` lies within the scope.
    #[must_use]
    pub fn allows(&self, session: &Session) -> bool {
        self.user().is_none_or(|user| *user == session.user_id)
    }

    /// The only user whose data the scope holds, if it is limited to one.
    #[must_use]
    pub fn user(&self) -> Option<&UserId> {
        match self {
            Self::User(user) => Some(user),
            Self::Everyone => None,
        }
    }
}

impl From<UserId> for Scope {
    fn from(user: UserId) -> Self {
        Self::User(user)
    }
}
