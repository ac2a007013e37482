//! Which sessions were deleted.

use std::collections::{HashMap, HashSet};

use crate::{
    Result,
    backend::StorageBackend,
    model::{SessionId, SessionKey, UserId},
};

/// The sessions that were deleted from a store, read once per user: writing a session makes the store forget that it was
/// deleted.
#[derive(Debug, Default)]
pub(super) struct DeletedSessions(HashMap<UserId, HashSet<SessionId>>);

impl DeletedSessions {
    /// Whether the session was deleted.
    pub(super) async fn contains(&mut self, backend: &dyn StorageBackend, key: &SessionKey) -> Result<bool> {
        if !self.0.contains_key(&key.user_id) {
            let deleted = backend.deleted_sessions(&key.user_id).await?;
            self.0.insert(key.user_id.clone(), deleted.into_iter().collect());
        }
        Ok(self.0.get(&key.user_id).is_some_and(|deleted| deleted.contains(&key.session_id)))
    }
}
