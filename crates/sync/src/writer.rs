//! Writes sessions while others are read, in the order in which they were read.

use std::sync::Arc;

use amplifier_session_core::{
    Error, ErrorKind, Result, SessionStorage,
    storage::{IngestReport, SessionIngest},
};
use tokio::{
    sync::{
        OwnedSemaphorePermit, Semaphore,
        mpsc::{self, UnboundedReceiver, UnboundedSender},
        oneshot,
    },
    task::JoinSet,
};

/// The maximum size of the sessions that may wait to be written or be written at the same time. A larger session is
/// written alone.
const WAITING_KIB: usize = 16 * 1024;
/// The maximum number of sessions in one write. Searches can run between two writes.
const MAX_SESSIONS: usize = 16;

/// Writes sessions while more are read: writing waits for the disk, and reading for the processor. Sessions that arrive
/// during a write are written together. Stops when it is dropped.
#[derive(Debug)]
pub(crate) struct BackgroundWriter {
    queue: UnboundedSender<Job>,
    room: Arc<Semaphore>,
    _task: JoinSet<()>,
}

/// A session to write, where to send the result, and the room that it takes until then.
#[derive(Debug)]
struct Job {
    ingest: SessionIngest,
    reply: oneshot::Sender<Result<IngestReport>>,
    room: Option<OwnedSemaphorePermit>,
}

/// A session that will be written.
#[derive(Debug)]
pub(crate) struct Writing(oneshot::Receiver<Result<IngestReport>>);

impl BackgroundWriter {
    pub(crate) fn start(storage: &SessionStorage) -> Self {
        let (queue, jobs) = mpsc::unbounded_channel();
        let mut task = JoinSet::new();
        task.spawn(write(storage.clone(), jobs));
        Self { queue, room: Arc::new(Semaphore::new(WAITING_KIB)), _task: task }
    }

    /// Queues a session for writing. Waits while there is too much in the queue.
    pub(crate) async fn commit(&self, ingest: SessionIngest) -> Writing {
        let kib = (ingest.pending_bytes() / 1024).clamp(1, WAITING_KIB) as u32;
        // The semaphore is never closed, so there will be room.
        let room = Arc::clone(&self.room).acquire_many_owned(kib).await.ok();
        let (reply, outcome) = oneshot::channel();
        // If the writer has stopped, the reply is dropped, and `Writing::done` returns an error.
        let _ = self.queue.send(Job { ingest, reply, room });
        Writing(outcome)
    }
}

impl Writing {
    /// Waits until the session is written, and returns the report.
    ///
    /// # Errors
    ///
    /// As [`SessionIngest::commit`].
    pub(crate) async fn done(self) -> Result<IngestReport> {
        self.0.await.unwrap_or_else(|source| {
            Err(Error::new(ErrorKind::StorageIo, "writing sessions was interrupted").with_source(source))
        })
    }
}

async fn write(storage: SessionStorage, mut jobs: UnboundedReceiver<Job>) {
    let mut waiting = Vec::new();
    while jobs.recv_many(&mut waiting, MAX_SESSIONS).await > 0 {
        storage.backend().yield_to_searches().await;
        let (ingests, replies): (Vec<_>, Vec<_>) =
            waiting.drain(..).map(|job| (job.ingest, (job.reply, job.room))).unzip();
        for ((reply, room), outcome) in replies.into_iter().zip(storage.ingestion().commit_all(ingests).await)
        {
            // If the sync was cancelled, nobody receives the reply.
            let _ = reply.send(outcome);
            drop(room);
        }
    }
}
