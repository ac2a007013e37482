//! Makes vectors in the background, so that syncs do not wait for them.

use std::{sync::Arc, time::Duration};

use amplifier_session_core::{SessionStorage, content::tokens, model::UserId, storage::EmbedReport};
use tokio::{sync::Notify, task::JoinSet, time::timeout};

use super::observer::{WatchEvent, WatchObserver};

/// How long to wait after the provider has failed.
const RETRY: Duration = Duration::from_secs(60);

/// After this time without new messages, memory that only embedding needs is freed.
const REST: Duration = Duration::from_secs(10);

/// Makes the vectors of stored messages. Stops when it is dropped.
#[derive(Debug)]
pub(super) struct Embedding {
    stored: Vec<Arc<Notify>>,
    _tasks: JoinSet<()>,
}

impl Embedding {
    /// Starts a task for each user, if there is an embedding provider.
    pub(super) fn start(
        storage: &SessionStorage,
        users: impl IntoIterator<Item = UserId>,
        target: &str,
        observer: &Arc<dyn WatchObserver>,
    ) -> Option<Self> {
        storage.embedding()?;
        let (mut all, mut tasks) = (Vec::new(), JoinSet::new());
        for user in users {
            let stored = Arc::new(Notify::new());
            all.push(Arc::clone(&stored));
            let storage = storage.clone();
            let (target, observer) = (target.to_owned(), Arc::clone(observer));
            tasks.spawn(async move {
                loop {
                    let report = embed(&storage, &user).await;
                    let failed = report.failure.is_some();
                    if failed || report.messages > 0 {
                        observer.event(&WatchEvent::Embedded { target: &target, report: &report });
                    }
                    if failed {
                        tokio::time::sleep(RETRY).await;
                    } else if timeout(REST, stored.notified()).await.is_err() {
                        // The next message loads it again.
                        tokens::unload();
                        stored.notified().await;
                    }
                }
            });
        }
        Some(Self { stored: all, _tasks: tasks })
    }

    /// Signals that messages were stored.
    pub(super) fn wake(&self) {
        self.stored.iter().for_each(|stored| stored.notify_one());
    }
}

/// Makes all pending vectors of a user.
pub(super) async fn embed(storage: &SessionStorage, user: &UserId) -> EmbedReport {
    let embedded = match storage.vectors().embed_pending(user, None).await {
        Ok(report) if report.messages > 0 => storage.update_index().await.map(|()| report),
        other => other,
    };
    embedded.unwrap_or_else(|error| {
        let mut report = EmbedReport::default();
        report.failure = Some(error);
        report
    })
}
