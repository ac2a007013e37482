//! Sends the sessions of a user to another store.

use std::collections::{BTreeMap, HashMap};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::{
    extent::{ExtentPage, ExtentQuery, SessionExtent},
    intake::{ReceiveResult, ReceivedSession},
    plan::rows_to_send,
    selection::PushSelection,
    send::{SendRows, SentRows},
    wire::{RowEncoder, RowSink},
};
use crate::{
    ErrorKind, Result,
    backend::StoredSession,
    model::{ProjectSlug, SessionId, SessionKey, UserId},
    storage::store::{SessionExchange, StoreContext},
    text::counted,
};

/// The most attempts to send a session that can't be stored, or changes meanwhile.
const ATTEMPTS: u32 = 3;

/// A store that takes sessions.
#[async_trait]
pub trait RowTarget: Send + Sync {
    /// The extents of a user's sessions.
    ///
    /// # Errors
    ///
    /// Errors of the store, or of the connection to it.
    async fn extents(&self, query: &ExtentQuery) -> Result<ExtentPage>;

    /// Begins to send a stream of sessions. `include_deleted` stores them also if they were deleted from the store.
    ///
    /// # Errors
    ///
    /// As [`Self::extents`].
    async fn upload(&self, include_deleted: bool) -> Result<Box<dyn RowUpload>>;
}

/// A stream of sessions that is being sent.
#[async_trait]
pub trait RowUpload: RowSink {
    /// Ends the stream. Returns what became of each session, after it is stored.
    ///
    /// # Errors
    ///
    /// As [`RowTarget::extents`].
    async fn finish(self: Box<Self>) -> Result<Vec<ReceivedSession>>;
}

/// Options of a push.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PushOptions {
    /// The user whose sessions are sent.
    pub user_id: UserId,
    /// The choice among them.
    pub selection: PushSelection,
    /// Whether nothing is sent, and the report only says what would be. Default: no.
    pub dry_run: bool,
    /// Whether sessions are sent that were deleted from the other store. Default: no.
    pub include_deleted: bool,
    /// The size of a stream after which another one begins, in bytes. A longer session is sent in parts. Default:
    /// 32 MB.
    pub stream_bytes: u64,
}

impl PushOptions {
    /// All sessions of Amplifier of a user.
    #[must_use]
    pub fn new(user_id: UserId) -> Self {
        let selection = PushSelection::default();
        Self { user_id, selection, dry_run: false, include_deleted: false, stream_bytes: 32 << 20 }
    }

    setters! {
        /// Sets which sessions are sent.
        with_selection(selection: PushSelection);
        /// Sets whether nothing is sent.
        with_dry_run(dry_run: bool);
        /// Sets whether sessions are sent that were deleted from the other store.
        with_include_deleted(include_deleted: bool);
        /// Sets the size of a stream.
        with_stream_bytes(stream_bytes: u64);
    }
}

/// The progress of a push or a pull.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TransferProgress {
    /// The number of sessions that were compared or sent.
    pub done: u64,
    /// The number of sessions.
    pub total: u64,
    /// The number of bytes that were sent.
    pub bytes: u64,
}

/// The report of a push.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PushReport {
    /// The number of sessions that were stored.
    pub sessions: u64,
    /// The number of sessions that the other store had already.
    pub unchanged: u64,
    /// The number of sessions that were not selected.
    pub excluded: u64,
    /// The number of messages that were stored.
    pub messages: u64,
    /// The number of events that were stored.
    pub events: u64,
    /// The number of lines that were stored as superseded lines.
    pub superseded: u64,
    /// The number of secrets that the other store masked in lines.
    pub secrets_masked: u64,
    /// The number of bytes that were sent, before compression.
    pub bytes: u64,
    /// The sessions that would be sent, if nothing is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub planned: Vec<PlannedTransfer>,
    /// Sessions that were deleted from the other store, and were not stored again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deleted: Vec<SessionId>,
    /// Sessions that could not be sent or stored. The next push tries again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<TransferFailure>,
}

/// A session that would be sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedTransfer {
    /// The id.
    pub session_id: SessionId,
    /// The project.
    pub project_slug: ProjectSlug,
    /// The title.
    pub title: String,
    /// The number of messages.
    pub messages: u32,
    /// The number of events.
    pub events: u32,
    /// Whether the other store lacks the session.
    pub is_new: bool,
}

/// A session that could not be transferred, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransferFailure {
    /// The id.
    pub session_id: SessionId,
    /// The reason.
    pub reason: String,
}

impl TransferFailure {
    pub(super) fn new(session_id: &SessionId, reason: impl Into<String>) -> Self {
        Self { session_id: session_id.clone(), reason: reason.into() }
    }
}

/// A session to send.
#[derive(Debug, Clone)]
struct Queued {
    id: SessionId,
    /// Whether the other store has refused to go on after the rows before.
    is_whole: bool,
    attempts: u32,
}

/// A stream that is being sent.
struct OpenUpload {
    upload: Box<dyn RowUpload>,
    encoder: RowEncoder,
    sent: BTreeMap<SessionId, (Queued, SentRows)>,
}

/// A push that is running.
struct Push<'a> {
    store: &'a StoreContext,
    target: &'a dyn RowTarget,
    options: &'a PushOptions,
    on_progress: &'a (dyn Fn(TransferProgress) + Send + Sync),
    store_id: String,
    target_id: String,
    extents: HashMap<SessionId, SessionExtent>,
    upload: Option<OpenUpload>,
    /// The sessions that must be sent again.
    again: Vec<Queued>,
    report: PushReport,
    progress: TransferProgress,
}

impl SessionExchange<'_> {
    /// Sends the sessions of a user to another store: only what it lacks. Nothing is deleted there.
    ///
    /// # Errors
    ///
    /// Errors of `target` and of this store, with the number of stored sessions in their context as `pushed`. What was
    /// stored stays, and the next push goes on from there.
    pub async fn push(
        self,
        target: &dyn RowTarget,
        options: &PushOptions,
        on_progress: &(dyn Fn(TransferProgress) + Send + Sync),
    ) -> Result<PushReport> {
        let mut push = Push {
            store: self.store,
            target,
            options,
            on_progress,
            store_id: self.store_id().await?,
            target_id: String::new(),
            extents: HashMap::new(),
            upload: None,
            again: Vec::new(),
            report: PushReport::default(),
            progress: TransferProgress::default(),
        };
        match push.run().await {
            Ok(()) => Ok(push.report),
            Err(error) if push.report.sessions == 0 => Err(error),
            Err(error) => Err(error.with("pushed", counted(push.report.sessions, "session"))),
        }
    }
}

impl Push<'_> {
    async fn run(&mut self) -> Result<()> {
        let ids = SessionExchange::new(self.store).session_ids(&self.options.user_id).await?;
        let wanted = self.options.selection.sessions.as_ref();
        let ids: Vec<SessionId> =
            ids.into_iter().filter(|id| wanted.is_none_or(|wanted| wanted.contains(id))).collect();
        self.progress.total = ids.len() as u64;
        self.read_extents(wanted.map(|_| ids.clone())).await?;
        let queued = |id| Queued { id, is_whole: false, attempts: 0 };
        let mut round: Vec<Queued> = ids.into_iter().map(queued).collect();
        while !round.is_empty() {
            for queued in round {
                self.session(queued).await?;
                (self.on_progress)(self.progress);
            }
            self.close().await?;
            round = std::mem::take(&mut self.again);
            if !round.is_empty() {
                self.read_extents(Some(round.iter().map(|queued| queued.id.clone()).collect())).await?;
            }
        }
        Ok(())
    }

    /// Asks what the other store has of these sessions, or of all.
    async fn read_extents(&mut self, sessions: Option<Vec<SessionId>>) -> Result<()> {
        let user = self.options.user_id.clone();
        let mut query = ExtentQuery::new(user, self.store_id.clone()).with_sessions(sessions);
        loop {
            let page = self.target.extents(&query).await?;
            self.target_id = page.store;
            self.extents.extend(page.sessions.into_iter().map(|extent| (extent.session_id.clone(), extent)));
            query.after = page.next;
            if query.after.is_none() {
                return Ok(());
            }
        }
    }

    /// Sends what the other store lacks of a session.
    async fn session(&mut self, queued: Queued) -> Result<()> {
        let is_first = queued.attempts == 0 && !queued.is_whole;
        self.progress.done += u64::from(is_first);
        let key = SessionKey::new(self.options.user_id.clone(), queued.id.clone());
        let stored = match self.store.backend.get_session(&key).await {
            Err(error) if error.kind() == ErrorKind::Damaged => {
                self.report.failed.push(TransferFailure::new(&queued.id, error.to_string()));
                return Ok(());
            }
            stored => stored?,
        };
        // It may have been deleted after it was listed.
        let Some(stored) = stored else { return Ok(()) };
        if !self.options.selection.admits(&stored.session) {
            self.report.excluded += 1;
            return Ok(());
        }
        let extent = self.extents.get(&queued.id);
        let planned = match extent.filter(|_| queued.is_whole) {
            Some(_) => Some(SendRows::new(key).with_may_replace(true)),
            None => rows_to_send(self.store, &stored, extent, &self.target_id).await?,
        };
        match planned {
            None => self.report.unchanged += u64::from(is_first),
            Some(rows) if self.options.dry_run => {
                let planned = planned_transfer(&stored, &rows, extent.is_none());
                self.report.planned.push(planned);
            }
            Some(rows) => self.send(queued, rows).await?,
        }
        Ok(())
    }

    async fn send(&mut self, queued: Queued, rows: SendRows) -> Result<()> {
        let mut open = match self.upload.take() {
            Some(open) => open,
            None => OpenUpload {
                upload: self.target.upload(self.options.include_deleted).await?,
                encoder: RowEncoder::new()?,
                sent: BTreeMap::new(),
            },
        };
        let before = open.encoder.bytes();
        let rows = rows.with_max_bytes(Some(self.options.stream_bytes));
        let exchange = SessionExchange::new(self.store);
        let sent = exchange.send(&rows, &mut open.encoder, open.upload.as_mut()).await;
        self.progress.bytes += open.encoder.bytes() - before;
        match sent {
            Ok(sent) => _ = open.sent.insert(queued.id.clone(), (queued, sent)),
            Err(error) if error.kind() == ErrorKind::Conflict && queued.attempts + 1 < ATTEMPTS => {
                self.again.push(Queued { attempts: queued.attempts + 1, ..queued });
            }
            Err(error) if matches!(error.kind(), ErrorKind::Conflict | ErrorKind::Damaged) => {
                self.report.failed.push(TransferFailure::new(&queued.id, error.to_string()));
            }
            // It was deleted in the meantime.
            Err(error) if error.kind() == ErrorKind::SessionNotFound => {}
            Err(error) => return Err(better_reason(open, error).await),
        }
        let is_full = open.encoder.bytes() >= self.options.stream_bytes;
        self.upload = Some(open);
        if is_full { self.close().await } else { Ok(()) }
    }

    /// Ends the stream, and records what became of its sessions.
    async fn close(&mut self) -> Result<()> {
        let Some(OpenUpload { mut upload, encoder, mut sent }) = self.upload.take() else { return Ok(()) };
        let ended = encoder.end(upload.as_mut()).await;
        // If the other end has closed the stream, it knows the reason.
        let results = upload.finish().await?;
        self.report.bytes += ended?;
        for ReceivedSession { session_id, result, .. } in results {
            if let Some((queued, rows)) = sent.remove(&session_id) {
                self.result(queued, rows, result);
            }
        }
        for id in sent.into_keys() {
            self.report.failed.push(TransferFailure::new(&id, "the other store did not answer for it"));
        }
        Ok(())
    }

    fn result(&mut self, queued: Queued, sent: SentRows, result: ReceiveResult) {
        let retried = Queued { attempts: queued.attempts + 1, ..queued.clone() };
        match result {
            ReceiveResult::Stored { messages, events, superseded, secrets_masked, .. } => {
                self.report.messages += messages;
                self.report.events += events;
                self.report.superseded += superseded;
                self.report.secrets_masked += secrets_masked;
                self.stored(queued, retried, sent);
            }
            ReceiveResult::Unchanged => self.stored(queued, retried, sent),
            ReceiveResult::Conflict { extent } if retried.attempts < ATTEMPTS => {
                self.extents.insert(queued.id.clone(), extent);
                self.again.push(Queued { is_whole: true, ..retried });
            }
            ReceiveResult::Conflict { .. } => {
                let reason = "the other store has other rows before those that were sent";
                self.report.failed.push(TransferFailure::new(&queued.id, reason));
            }
            ReceiveResult::Deleted => self.report.deleted.push(queued.id),
            ReceiveResult::Failed { is_retryable: true, .. } if retried.attempts < ATTEMPTS => {
                self.again.push(retried);
            }
            ReceiveResult::Failed { reason, .. } => {
                self.report.failed.push(TransferFailure::new(&queued.id, reason));
            }
        }
    }

    fn stored(&mut self, queued: Queued, retried: Queued, sent: SentRows) {
        if !sent.is_part {
            self.report.sessions += 1;
            return;
        }
        let has_progressed = sent.messages + sent.events > 0;
        if has_progressed {
            self.again.push(Queued { is_whole: false, ..queued });
        } else if retried.attempts < ATTEMPTS {
            self.again.push(Queued { is_whole: false, ..retried });
        } else {
            let reason = "the session changes faster than it can be sent";
            self.report.failed.push(TransferFailure::new(&queued.id, reason));
        }
    }
}

/// If the other end has closed the stream, it knows the reason.
async fn better_reason(open: OpenUpload, error: crate::Error) -> crate::Error {
    match open.upload.finish().await {
        Err(reason) => reason,
        Ok(_) => error,
    }
}

fn planned_transfer(stored: &StoredSession, rows: &SendRows, is_new: bool) -> PlannedTransfer {
    let session = &stored.session;
    PlannedTransfer {
        session_id: session.session_id.clone(),
        project_slug: session.project_slug.clone(),
        title: session.title().to_owned(),
        messages: session.message_count.saturating_sub(rows.before.messages.count),
        events: session.event_count.saturating_sub(rows.before.events.count),
        is_new,
    }
}
