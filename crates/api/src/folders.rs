//! The folders that sessions were read from.

use std::path::PathBuf;

use amplifier_session_core::{backend::StoredSession, model::SessionKey};
use amplifier_session_sync::source_folder;

use crate::Api;

/// The folder that a session was read from, if known.
pub(crate) fn folder_of(stored: &StoredSession) -> Option<String> {
    let folder: PathBuf = source_folder(stored.sync_state.as_ref()?)?;
    Some(folder.to_string_lossy().into_owned())
}

impl Api<'_> {
    /// The folder that a session was read from. It is only for information, so errors are ignored.
    pub(crate) async fn folder_of(&self, key: &SessionKey) -> Option<String> {
        folder_of(&self.storage.backend().get_session(key).await.ok()??)
    }
}
