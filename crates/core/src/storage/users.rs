//! The users of a store.

use super::store::StoreUsers;
use crate::{
    Result,
    backend::{StorageBackendExt, meta},
    model::UserId,
};

impl StoreUsers<'_> {
    /// The user who first wrote the store, if any.
    ///
    /// # Errors
    ///
    /// `Validation` if the stored name is not a user id; errors of the backend.
    pub async fn pinned_user(self) -> Result<Option<UserId>> {
        self.store.backend.meta().await?.get(meta::USER_ID).map(UserId::new).transpose()
    }

    /// Pins `user` as the store's user unless another user is pinned. Returns the pinned user.
    ///
    /// # Errors
    ///
    /// `Validation` if the stored name is not a user id; errors of the backend.
    pub async fn pin_user(self, user: &UserId) -> Result<UserId> {
        UserId::new(self.store.backend.put_meta_if_absent(meta::USER_ID, user.as_str()).await?)
    }

    /// Changes the owner of all sessions of `from` to `to`, for a user whose id has changed. Returns the number of
    /// sessions. If `from` is pinned as the store's user, `to` is pinned instead.
    ///
    /// # Errors
    ///
    /// `Conflict` if both have a session or an event with the same id: then nothing is changed; errors of the backend.
    pub async fn rename_user(self, from: &UserId, to: &UserId) -> Result<u64> {
        let renamed = if from == to { 0 } else { self.store.backend.rename_user(from, to).await? };
        self.store.backend.replace_meta(meta::USER_ID, from.as_str(), to.as_str()).await?;
        Ok(renamed)
    }
}
