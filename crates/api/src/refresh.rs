//! Reads what changed on this machine before a request is answered, if that is fast.

use std::path::PathBuf;

use amplifier_session_core::model::{HostId, SessionId};
use amplifier_session_sync::{RefreshLimits, Refreshed, SyncOptions, is_root, refresh, watchers};

use crate::{AccessRight, Api, ApiError};

/// The folders of the caller's sessions on this machine.
#[derive(Debug, Clone, PartialEq)]
pub struct RefreshSources {
    /// The roots. Folders that are not roots are skipped.
    pub roots: Vec<PathBuf>,
    /// The folder with captures that are not in the folders of their sessions.
    pub captures: Option<PathBuf>,
    /// Globs of `<project>/<session>` that are left out.
    pub exclude: Vec<String>,
    /// This machine.
    pub host: HostId,
    /// The longest time that it may take.
    pub limits: RefreshLimits,
}

impl Api<'_> {
    /// Reads what changed since the last sync, if that is fast: see [`refresh`]. `None` if there is nothing to do: if
    /// the store can't be written, belongs to another user, or is kept up to date by a watcher, or if there are no
    /// roots.
    ///
    /// # Errors
    ///
    /// [`ApiError::MissingRight`] without the right to write; errors of the store.
    #[crate::compiled_here]
    pub async fn refresh(&self, sources: &RefreshSources) -> Result<Option<Refreshed>, ApiError> {
        self.caller.scope_of_changes(AccessRight::Write)?;
        let (storage, user) = (self.storage, self.caller.user());
        if storage.backend().info().read_only.is_some() {
            return Ok(None);
        }
        let mut roots: Vec<PathBuf> = sources.roots.iter().filter(|root| is_root(root)).cloned().collect();
        // Reading the store of another user must not add a second owner to it.
        let is_own = storage.users().pinned_user().await?.as_ref() == Some(user);
        if !is_own || roots.is_empty() {
            return Ok(None);
        }
        let options = SyncOptions::new("", user.clone(), sources.host.clone());
        let watchers = watchers(storage).await?;
        roots.retain(|root| {
            let of_root = options.clone().with_roots([root]);
            !watchers
                .iter()
                .any(|watcher| watcher.follows(&of_root) && watcher.is_running_here(storage.now()))
        });
        if roots.is_empty() {
            return Ok(None);
        }
        let options = options
            .with_roots(roots)
            .with_captures(sources.captures.clone())
            .with_exclude(sources.exclude.clone());
        Ok(Some(refresh(storage, &options, sources.limits).await?))
    }

    /// Makes the pending vectors of the caller's sessions with the model of the storage.
    ///
    /// # Errors
    ///
    /// [`ApiError::MissingRight`] without the right to write; errors of the store.
    #[crate::compiled_here]
    pub async fn embed_pending(&self, sessions: &[SessionId]) -> Result<(), ApiError> {
        self.caller.scope_of_changes(AccessRight::Write)?;
        for session in sessions {
            self.storage.vectors().embed_pending(self.caller.user(), Some(session)).await?;
        }
        Ok(())
    }
}
