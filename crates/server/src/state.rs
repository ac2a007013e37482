//! What all requests of a server share.

use std::{
    hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher},
    sync::Arc,
};

use tokio::sync::{Mutex, OwnedMutexGuard, watch};

use crate::{
    audit::AuditLog,
    call::ServedStore,
    documentation::Documentation,
    limits::RequestLimits,
    metrics::ServerMetrics,
    problem::HttpProblem,
    quota::StorageQuota,
    routes::HttpRoute,
    settings::{ServerLimits, ServerSettings},
    sign_in::{SignIn, SignedIn},
};

/// What all requests of a server share.
#[derive(Debug)]
pub(crate) struct ServerState {
    store: ServedStore,
    pub(crate) sign_in: SignIn,
    pub(crate) limits: RequestLimits,
    pub(crate) sizes: ServerLimits,
    pub(crate) audit: Option<AuditLog>,
    /// How much each user may store, unless their token says otherwise.
    pub(crate) quota: StorageQuota,
    pub(crate) metrics: ServerMetrics,
    pub(crate) documentation: Documentation,
    /// Held while a session of a user is changed, so that no other request changes it after its version was checked.
    changes: Vec<Arc<Mutex<()>>>,
    is_stopping: watch::Sender<bool>,
}

/// The number of users whose sessions can be changed at the same time, at most.
const CHANGES: usize = 64;

impl ServerState {
    pub(crate) fn new(
        store: ServedStore,
        sign_in: SignIn,
        settings: &ServerSettings,
        audit: Option<AuditLog>,
    ) -> Self {
        let (sizes, quota) = (settings.limits.clone(), settings.quota);
        let (limits, documentation) = (RequestLimits::new(&sizes), Documentation::new());
        let changes = std::iter::repeat_with(Arc::default).take(CHANGES).collect();
        let is_stopping = watch::Sender::new(false);
        Self {
            store,
            sign_in,
            limits,
            sizes,
            audit,
            quota,
            metrics: ServerMetrics::new(),
            documentation,
            changes,
            is_stopping,
        }
    }

    /// The handles on the store, which only `call.rs` can use.
    pub(crate) fn store(&self) -> &ServedStore {
        &self.store
    }

    /// Waits until no other request changes a session of this user.
    pub(crate) async fn begin_change(&self, user: &str) -> Option<OwnedMutexGuard<()>> {
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(user);
        let place = usize::try_from(hash % CHANGES as u64).unwrap_or_default();
        Some(self.changes.get(place)?.clone().lock_owned().await)
    }

    /// The caller of a running request for `route`, with their current rights: their token may have been revoked or changed
    /// since it began.
    pub(crate) fn again(&self, signed_in: &SignedIn, route: &HttpRoute) -> Result<SignedIn, HttpProblem> {
        let signed_in = self.sign_in.again(signed_in, self.store.timestamp())?;
        signed_in.check_rights(route)?;
        Ok(signed_in)
    }

    /// The server is not ready from now on.
    pub(crate) fn stop(&self) {
        self.is_stopping.send_replace(true);
    }

    /// Waits until the server is told to stop.
    pub(crate) async fn stopped(&self) {
        // The other end is here, so it is not gone.
        let _ = self.is_stopping.subscribe().wait_for(|is_stopping| *is_stopping).await;
    }

    pub(crate) async fn is_ready(&self) -> bool {
        !*self.is_stopping.borrow() && self.store.answers().await
    }
}
