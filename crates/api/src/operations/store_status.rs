//! Whether a store is kept up to date.

use amplifier_session_core::Scope;
use amplifier_session_sync::{WatcherState, watchers};
use serde::{Deserialize, Serialize};

use super::statistics::StoreVectors;
use crate::{Api, ApiAnswer, ApiError, Reach};

/// Whether the store is kept up to date. What folders have that the store lacks is known only where the folders are:
/// see [`root_status`](amplifier_session_sync::root_status).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct StoreStatusRequest {
    /// The users whose watchers and messages are read. Only a request for everyone's includes watchers of others.
    pub scope: Reach,
}

/// Whether the store is kept up to date.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StoreStatusResponse {
    /// The watchers, in any order.
    pub watchers: Vec<KnownWatcher>,
    /// The vectors of the store.
    pub vectors: StoreVectors,
}

/// A watcher that the store knows of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KnownWatcher {
    /// Whether it seems to run.
    pub running: bool,
    /// Its state when it was last seen.
    #[serde(flatten)]
    pub watcher: WatcherState,
}

impl Api<'_> {
    /// Says which watchers keep the store up to date, and which vectors are pending.
    ///
    /// # Errors
    ///
    /// [`ApiError`] if the request asks for too much; errors of the store.
    #[crate::compiled_here]
    pub async fn store_status(
        &self,
        request: &StoreStatusRequest,
    ) -> Result<ApiAnswer<StoreStatusResponse>, ApiError> {
        let scope = self.caller.scope(request.scope)?;
        let now = self.storage.now();
        let is_within =
            |watcher: &WatcherState| scope == Scope::Everyone || watcher.user == self.caller.user().as_str();
        let watchers = watchers(self.storage).await?.into_iter().filter(is_within);
        let watchers =
            watchers.map(|watcher| KnownWatcher { running: watcher.is_running(now), watcher }).collect();
        let vectors = self.store_vectors(&scope).await?;
        Ok(StoreStatusResponse { watchers, vectors }.into())
    }
}
