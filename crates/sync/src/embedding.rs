//! Making vectors beside the reading.

use amplifier_session_core::{
    Error, ErrorKind, Result, SessionStorage,
    model::{SessionId, UserId},
    storage::EmbedReport,
};
use tokio::{
    sync::mpsc::{self, Receiver, Sender},
    task::JoinSet,
};

/// How many sessions may wait for their vectors. One that finds no room is not lost: its vectors are owed, and the
/// pass at the end makes them.
const WAITING: usize = 64;

/// Embeds sessions while others are read. Stops when it is dropped.
#[derive(Debug)]
pub(crate) struct Embedder {
    sessions: Sender<SessionId>,
    task: JoinSet<Result<EmbedReport>>,
}

impl Embedder {
    /// Starts; none where nothing makes vectors.
    pub(crate) fn start(storage: &SessionStorage, user: &UserId) -> Option<Self> {
        storage.embedding()?;
        let (sessions, waiting) = mpsc::channel(WAITING);
        let mut task = JoinSet::new();
        task.spawn(embed(storage.clone(), user.clone(), waiting));
        Some(Self { sessions, task })
    }

    /// Hands over a session whose messages are stored. Never waits: reading must not be slowed by a slow provider.
    pub(crate) fn offer(&self, session: &SessionId) {
        // An error tells that there is no room, or that the provider failed and is not asked again.
        let _ = self.sessions.try_send(session.clone());
    }

    /// Waits for the sessions that were handed over.
    pub(crate) async fn finish(self) -> Result<EmbedReport> {
        let Self { sessions, mut task } = self;
        drop(sessions);
        match task.join_next().await {
            Some(Ok(report)) => report,
            Some(Err(source)) => {
                Err(Error::new(ErrorKind::Embedding, "embedding broke off").with_source(source))
            }
            None => Ok(EmbedReport::default()),
        }
    }
}

/// Embeds session by session until there are no more, or the provider fails.
async fn embed(
    storage: SessionStorage,
    user: UserId,
    mut sessions: Receiver<SessionId>,
) -> Result<EmbedReport> {
    let mut report = EmbedReport::default();
    while let Some(session) = sessions.recv().await {
        report.add(storage.embed_owed(&user, Some(&session)).await?);
        if report.failure.is_some() {
            break;
        }
    }
    Ok(report)
}
