//! Writing beside the reading, in the order in which sessions were read.

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

/// How much may wait to be written, or be on the way. A session with more is written all the same, alone.
const WAITING_KIB: usize = 16 * 1024;
/// How many sessions are written together at most. Between two writes searches have their turn.
const TOGETHER: usize = 16;

/// Writes sessions while more are read: the store waits for a disk, and reading for a processor. What came while
/// others were written is written together. Stops when it is dropped.
#[derive(Debug)]
pub(crate) struct Writer {
    queue: UnboundedSender<Job>,
    room: Arc<Semaphore>,
    _task: JoinSet<()>,
}

/// A session to write, where to tell what came of it, and the room that it takes until then.
#[derive(Debug)]
struct Job {
    ingest: SessionIngest,
    told: oneshot::Sender<Result<IngestReport>>,
    room: Option<OwnedSemaphorePermit>,
}

/// A session that will be written.
#[derive(Debug)]
pub(crate) struct Writing(oneshot::Receiver<Result<IngestReport>>);

impl Writer {
    pub(crate) fn start(storage: &SessionStorage) -> Self {
        let (queue, jobs) = mpsc::unbounded_channel();
        let mut task = JoinSet::new();
        task.spawn(write(storage.clone(), jobs));
        Self { queue, room: Arc::new(Semaphore::new(WAITING_KIB)), _task: task }
    }

    /// Has a session written. Waits while there is too much before it.
    pub(crate) async fn commit(&self, ingest: SessionIngest) -> Writing {
        let kib = (ingest.pending_bytes() / 1024).clamp(1, WAITING_KIB) as u32;
        // Never closed, so that there is always room some day.
        let room = Arc::clone(&self.room).acquire_many_owned(kib).await.ok();
        let (told, outcome) = oneshot::channel();
        // Where the writer has gone the answer is dropped, which `Writing::done` tells.
        let _ = self.queue.send(Job { ingest, told, room });
        Writing(outcome)
    }
}

impl Writing {
    /// What was written.
    ///
    /// # Errors
    ///
    /// Those of [`SessionIngest::commit`].
    pub(crate) async fn done(self) -> Result<IngestReport> {
        self.0.await.unwrap_or_else(|source| {
            Err(Error::new(ErrorKind::StorageIo, "writing sessions broke off").with_source(source))
        })
    }
}

async fn write(storage: SessionStorage, mut jobs: UnboundedReceiver<Job>) {
    let mut waiting = Vec::new();
    while jobs.recv_many(&mut waiting, TOGETHER).await > 0 {
        storage.backend().give_way().await;
        let (ingests, tell): (Vec<_>, Vec<_>) =
            waiting.drain(..).map(|job| (job.ingest, (job.told, job.room))).unzip();
        for ((told, room), outcome) in tell.into_iter().zip(storage.commit_all(ingests).await) {
            // Nobody listens any more when the sync was broken off.
            let _ = told.send(outcome);
            drop(room);
        }
    }
}
