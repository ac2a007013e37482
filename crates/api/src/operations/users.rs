//! The caller, and the users of the store; and renaming users.

use amplifier_session_core::{Scope, backend::SessionQuery, model::UserId, storage::SessionStatistics};
use serde::{Deserialize, Serialize};

use super::recent::RecentUser;
use crate::{Api, ApiAnswer, ApiError, Reach};

/// The caller, and the users of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct UsersRequest {
    /// The users whose sessions are counted in the list of users.
    pub scope: Reach,
}

/// The caller, and the users of the store.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UsersResponse {
    /// The caller.
    pub user_id: UserId,
    /// The user who first wrote the store, if the caller may know them.
    pub store_user_id: Option<UserId>,
    /// The counts of the caller's own sessions.
    #[serde(flatten)]
    pub counts: SessionStatistics,
    /// The users with sessions, most recent first, if the scope includes more than one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub users: Option<Vec<RecentUser>>,
}

/// A new id for a user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RenameUserRequest {
    /// The id in the store.
    pub old: UserId,
    /// The new id.
    pub new: UserId,
}

/// A user with a new id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RenameUserResponse {
    /// The id that the user had.
    pub old: UserId,
    /// The new id.
    pub new: UserId,
    /// The number of sessions that belong to the new id now.
    pub sessions: u64,
}

impl Api<'_> {
    /// Describes the caller, and lists the users within the scope. Only callers who may read everyone's sessions learn
    /// that another user first wrote the store.
    ///
    /// # Errors
    ///
    /// [`ApiError`] if the request asks for too much; errors of the store.
    #[crate::compiled_here]
    pub async fn users(&self, request: &UsersRequest) -> Result<ApiAnswer<UsersResponse>, ApiError> {
        let scope = self.caller.scope(request.scope)?;
        let own = self.caller.scope(Reach::Own)?;
        let is_known = |user: &UserId| user == self.caller.user() || self.caller.scope(Reach::All).is_ok();
        let sessions = self.storage.sessions();
        let users = match scope {
            Scope::User(_) => None,
            _ => {
                let found = sessions.list_users(SessionQuery::new(scope)).await?;
                Some(found.iter().map(RecentUser::from).collect())
            }
        };
        let response = UsersResponse {
            user_id: self.caller.user().clone(),
            store_user_id: self.storage.users().pinned_user().await?.filter(is_known),
            counts: sessions.get_session_statistics(&own, None).await?,
            users,
        };
        Ok(response.into())
    }

    /// Changes the owner of all sessions of a user.
    ///
    /// # Errors
    ///
    /// [`ApiError::MissingRight`] without the right to administer; `Conflict` if both users have a session or an event
    /// with the same id: then nothing is changed; errors of the store.
    #[crate::compiled_here]
    pub async fn rename_user(
        &self,
        request: &RenameUserRequest,
    ) -> Result<ApiAnswer<RenameUserResponse>, ApiError> {
        self.caller.scope_of_all_changes()?;
        let RenameUserRequest { old, new } = request.clone();
        let sessions = self.storage.users().rename_user(&old, &new).await?;
        self.storage.update_index().await?;
        Ok(RenameUserResponse { old, new, sessions }.into())
    }
}
