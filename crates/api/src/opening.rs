//! Remarks about a store that a face has opened.

use amplifier_session_core::{SessionStorage, model::UserId};

use crate::{ApiError, Notice};

/// The remark that the store can only be read, if it is so.
#[must_use]
pub fn read_only(storage: &SessionStorage) -> Option<Notice> {
    storage.backend().info().read_only.map(|reason| Notice::ReadOnlyStore { reason })
}

/// The remark that the store belongs to another user than `user`, if it does: the account has probably changed.
///
/// # Errors
///
/// [`ApiError::NotTheUser`] if the store refuses the rows of `user`; errors of the store.
pub async fn other_user(storage: &SessionStorage, user: &UserId) -> Result<Option<Notice>, ApiError> {
    let is_other = |other: &UserId| other != user;
    if let Some(only) = storage.backend().info().only_user.filter(is_other) {
        return Err(ApiError::NotTheUser { only, user: user.clone() });
    }
    let owner = storage.users().pinned_user().await?.filter(is_other);
    Ok(owner.map(|owner| Notice::StoreOfOtherUser { owner, user: user.clone() }))
}
