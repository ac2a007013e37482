//! Remarks about a store that a face has opened.

use amplifier_session_core::{SessionStorage, model::UserId};

use crate::{ApiCaller, ApiError, CallerPlace, Notice, Reach};

/// The remark that the store can only be read, if it is so.
#[must_use]
pub fn read_only(storage: &SessionStorage, place: CallerPlace<'_>) -> Option<Notice> {
    let reason = storage.backend().info().read_only?;
    Some(Notice::ReadOnlyStore { reason: place.reason(reason) })
}

/// The remark that the store belongs to another user than `caller`, if it does: the account has probably changed. The
/// other user is named only to callers who may read everyone's sessions.
///
/// # Errors
///
/// [`ApiError::NotTheUser`] if the store refuses the rows of the caller; errors of the store.
#[crate::compiled_here]
pub async fn other_user(storage: &SessionStorage, caller: &ApiCaller) -> Result<Option<Notice>, ApiError> {
    let user = caller.user();
    let is_other = |other: &UserId| other != user;
    let named = |other: UserId| Some(other).filter(|_| caller.scope(Reach::All).is_ok());
    if let Some(only) = storage.backend().info().only_user.filter(is_other) {
        return Err(ApiError::NotTheUser { only: named(only), user: user.clone() });
    }
    let owner = storage.users().pinned_user().await?.filter(is_other);
    Ok(owner.map(|owner| Notice::StoreOfOtherUser { owner: named(owner), user: user.clone() }))
}
