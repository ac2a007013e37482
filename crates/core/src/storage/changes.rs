//! The feed of changed sessions.

use std::time::Duration;

use super::store::ChangeFeed;
use crate::{
    Result, Scope,
    backend::{ChangeCursor, ChangePage, SessionChanged, StorageBackendExt},
};

impl ChangeFeed<'_> {
    /// The cursor of now. Take it before listing the sessions of the scope: whatever changes meanwhile comes after it.
    ///
    /// # Errors
    ///
    /// Errors of the backend.
    pub async fn begin(self, scope: &Scope) -> Result<ChangeCursor> {
        Ok(self.store.backend.changes(scope, None, 1).await?.cursor)
    }

    /// The sessions of `scope` that changed after a cursor: see [`Changes`](crate::backend::Changes). At most `limit`; an
    /// empty page means that there are no more now. If the page is a [`reset`](ChangePage::reset), all sessions must be
    /// listed again.
    ///
    /// # Errors
    ///
    /// Errors of the backend.
    pub async fn after(self, scope: &Scope, cursor: &ChangeCursor, limit: usize) -> Result<ChangePage> {
        self.masked(self.store.backend.changes(scope, Some(cursor), limit).await?)
    }

    /// As [`Self::after`], but waits up to `patience` until there are changes. Returns an empty page after that time.
    ///
    /// # Errors
    ///
    /// Errors of the backend.
    pub async fn wait(
        self,
        scope: &Scope,
        cursor: &ChangeCursor,
        limit: usize,
        patience: Duration,
    ) -> Result<ChangePage> {
        self.masked(self.store.backend.wait_for_changes(scope, cursor, limit, patience).await?)
    }

    fn masked(self, mut page: ChangePage) -> Result<ChangePage> {
        for changed in &mut page.changes {
            if let SessionChanged::Written { session, .. } = changed {
                self.store.mask_session(session)?;
            }
        }
        Ok(page)
    }
}
