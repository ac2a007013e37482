//! Makes vectors while sessions are read.

use amplifier_session_core::{Error, ErrorKind, Result, SessionStorage, model::UserId, storage::EmbedReport};
use tokio::{
    sync::mpsc::{self, Receiver, Sender},
    task::JoinSet,
};

/// Embeds stored messages while more are read. Stops when it is dropped.
#[derive(Debug)]
pub(crate) struct Embedder {
    stored: Sender<()>,
    task: JoinSet<Result<EmbedReport>>,
}

impl Embedder {
    /// Starts the task, if there is an embedding provider.
    pub(crate) fn start(storage: &SessionStorage, user: &UserId) -> Option<Self> {
        storage.embedding()?;
        // One notification is enough: the task embeds all messages that are pending when it runs.
        let (stored, notifications) = mpsc::channel(1);
        let mut task = JoinSet::new();
        task.spawn(embed(storage.clone(), user.clone(), notifications));
        Some(Self { stored, task })
    }

    /// Signals that messages were stored. Never waits: a slow provider must not slow down reading.
    pub(crate) fn wake(&self) {
        // An error means that the last notification was not received yet, or that the provider failed and is no longer
        // used.
        let _ = self.stored.try_send(());
    }

    /// Waits for the vectors of all stored messages.
    pub(crate) async fn finish(self) -> Result<EmbedReport> {
        let Self { stored, mut task } = self;
        drop(stored);
        match task.join_next().await {
            Some(Ok(report)) => report,
            Some(Err(source)) => {
                Err(Error::new(ErrorKind::Embedding, "embedding was interrupted").with_source(source))
            }
            None => Ok(EmbedReport::default()),
        }
    }
}

/// Embeds the user's pending messages at each notification, and once more after the last one, or until the provider
/// fails. Many sessions are embedded in a few large steps.
async fn embed(
    storage: SessionStorage,
    user: UserId,
    mut notifications: Receiver<()>,
) -> Result<EmbedReport> {
    let mut report = EmbedReport::default();
    let mut ended = false;
    while !ended && report.failure.is_none() {
        ended = notifications.recv().await.is_none();
        report.add(storage.vectors().embed_pending(&user, None).await?);
    }
    Ok(report)
}
