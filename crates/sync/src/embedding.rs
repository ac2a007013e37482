//! Making vectors beside the reading.

use amplifier_session_core::{Error, ErrorKind, Result, SessionStorage, model::UserId, storage::EmbedReport};
use tokio::{
    sync::mpsc::{self, Receiver, Sender},
    task::JoinSet,
};

/// Embeds what is stored while more is read. Stops when it is dropped.
#[derive(Debug)]
pub(crate) struct Embedder {
    news: Sender<()>,
    task: JoinSet<Result<EmbedReport>>,
}

impl Embedder {
    /// Starts; none where nothing makes vectors.
    pub(crate) fn start(storage: &SessionStorage, user: &UserId) -> Option<Self> {
        storage.embedding()?;
        // One word of news is enough: it is about all messages that owe vectors by then.
        let (news, waiting) = mpsc::channel(1);
        let mut task = JoinSet::new();
        task.spawn(embed(storage.clone(), user.clone(), waiting));
        Some(Self { news, task })
    }

    /// Tells that messages were stored. Never waits: reading must not be slowed by a slow provider.
    pub(crate) fn wake(&self) {
        // An error tells that the last news were not heard yet, or that the provider failed and is not asked again.
        let _ = self.news.try_send(());
    }

    /// Waits for the vectors of all that was stored.
    pub(crate) async fn finish(self) -> Result<EmbedReport> {
        let Self { news, mut task } = self;
        drop(news);
        match task.join_next().await {
            Some(Ok(report)) => report,
            Some(Err(source)) => {
                Err(Error::new(ErrorKind::Embedding, "embedding broke off").with_source(source))
            }
            None => Ok(EmbedReport::default()),
        }
    }
}

/// Embeds what the user's messages owe, again at all news and a last time when there will be none, or until the
/// provider fails. Many sessions make few large steps.
async fn embed(storage: SessionStorage, user: UserId, mut news: Receiver<()>) -> Result<EmbedReport> {
    let mut report = EmbedReport::default();
    let mut ended = false;
    while !ended && report.failure.is_none() {
        ended = news.recv().await.is_none();
        report.add(storage.embed_owed(&user, None).await?);
    }
    Ok(report)
}
