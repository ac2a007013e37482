//! Takes the sessions of a user from another store.

use std::collections::{BTreeSet, HashSet};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::{
    extent::{ExtentPage, ExtentQuery, SessionExtent},
    intake::{ReceiveOptions, ReceiveResult, ReceivedSession, RowIntake},
    push::{TransferFailure, TransferProgress},
    row_digests,
    send::SendRows,
    wire::RowSink,
};
use crate::{
    Result,
    backend::{SessionDeletion, StorageBackendExt, StoredSession},
    model::{LineKind, SessionId, SessionKey, SupersededReason, UserId},
    storage::{
        archive::{RowChain, RowChains},
        ingest::{Extent, IngestTarget, ReceivedRows, Remaining},
        session_rows::changing,
        store::{Ingestion, SessionExchange, StoreContext},
    },
    text::counted,
};

/// The most attempts to take a session that changes meanwhile.
const ATTEMPTS: u32 = 3;

/// A store that gives sessions.
#[async_trait]
pub trait RowOrigin: Send + Sync {
    /// The extents of a user's sessions.
    ///
    /// # Errors
    ///
    /// Errors of the store, or of the connection to it.
    async fn extents(&self, query: &ExtentQuery) -> Result<ExtentPage>;

    /// Writes a stream with the rows of one session to `sink`: see
    /// [`SessionExchange::send`](crate::storage::SessionExchange::send).
    ///
    /// # Errors
    ///
    /// As [`Self::extents`], and those of `sink`.
    async fn read(&self, rows: &SendRows, sink: &mut dyn RowSink) -> Result<()>;
}

/// Options of a pull.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PullOptions {
    /// The user whose sessions are taken.
    pub user_id: UserId,
    /// Only these sessions. Default: all.
    pub sessions: Option<BTreeSet<SessionId>>,
    /// Whether sessions and rows that the other store has removed are hidden here: they become superseded lines. This
    /// is only done to rows that it sent. Default: no; they stay.
    pub follow: bool,
    /// Whether sessions that were deleted from the other store are deleted here, in place of hiding them. Default: no.
    pub mirror_deletes: bool,
    /// Whether to take sessions that were deleted from this store. Default: no.
    pub include_deleted: bool,
}

impl PullOptions {
    /// All sessions of a user.
    #[must_use]
    pub fn new(user_id: UserId) -> Self {
        Self { user_id, sessions: None, follow: false, mirror_deletes: false, include_deleted: false }
    }

    setters! {
        /// Only takes these sessions.
        with_sessions(sessions: Option<BTreeSet<SessionId>>);
        /// Sets whether removed sessions and rows are hidden here.
        with_follow(follow: bool);
        /// Sets whether removed sessions are deleted here.
        with_mirror_deletes(mirror_deletes: bool);
        /// Sets whether to take sessions that were deleted from this store.
        with_include_deleted(include_deleted: bool);
    }
}

/// The report of a pull.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PullReport {
    /// The number of sessions that were stored.
    pub sessions: u64,
    /// The number of sessions that were stored already.
    pub unchanged: u64,
    /// The number of messages that were stored.
    pub messages: u64,
    /// The number of events that were stored.
    pub events: u64,
    /// The number of lines that were stored as superseded lines.
    pub superseded: u64,
    /// The number of secrets that were masked in lines.
    pub secrets_masked: u64,
    /// Sessions that the other store has removed, and whose rows are superseded lines now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hidden: Vec<SessionId>,
    /// Sessions that were deleted from the other store, and here too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<SessionId>,
    /// Sessions that were deleted from this store, and were not stored again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deleted: Vec<SessionId>,
    /// Sessions that could not be taken. The next pull tries again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<TransferFailure>,
}

/// A pull that is running.
struct Pull<'a> {
    store: &'a StoreContext,
    origin: &'a dyn RowOrigin,
    options: &'a PullOptions,
    report: PullReport,
}

impl SessionExchange<'_> {
    /// Takes the sessions of a user from another store: only what this one lacks. Nothing is deleted here, unless
    /// [`PullOptions::mirror_deletes`] is set.
    ///
    /// # Errors
    ///
    /// Errors of `origin` and of this store, with the number of stored sessions in their context as `pulled`. What was
    /// stored stays, and the next pull goes on from there.
    pub async fn pull(
        self,
        origin: &dyn RowOrigin,
        options: &PullOptions,
        on_progress: &(dyn Fn(TransferProgress) + Send + Sync),
    ) -> Result<PullReport> {
        let mut pull = Pull { store: self.store, origin, options, report: PullReport::default() };
        match pull.run(on_progress).await {
            Ok(()) => Ok(pull.report),
            Err(error) if pull.report.sessions == 0 => Err(error),
            Err(error) => Err(error.with("pulled", counted(pull.report.sessions, "session"))),
        }
    }
}

impl Pull<'_> {
    async fn run(&mut self, on_progress: &(dyn Fn(TransferProgress) + Send + Sync)) -> Result<()> {
        let user = &self.options.user_id;
        let deleted: HashSet<SessionId> =
            self.store.backend.deleted_sessions(user).await?.into_iter().collect();
        let wanted = self.options.sessions.as_ref().map(|ids| ids.iter().cloned().collect());
        let store_id = SessionExchange::new(self.store).store_id().await?;
        let mut query = ExtentQuery::new(user.clone(), store_id).with_sessions(wanted);
        let (mut listed, mut progress) = (HashSet::new(), TransferProgress::default());
        loop {
            let page = self.origin.extents(&query).await?;
            progress.total += page.sessions.len() as u64;
            for extent in page.sessions {
                if deleted.contains(&extent.session_id) && !self.options.include_deleted {
                    self.report.deleted.push(extent.session_id.clone());
                } else {
                    self.session(&page.store, &extent).await?;
                }
                listed.insert(extent.session_id);
                progress.done += 1;
                on_progress(progress);
            }
            query.after = page.next;
            if query.after.is_none() {
                if self.options.follow {
                    self.remove_missing(&page.store, &listed).await?;
                }
                return Ok(());
            }
        }
    }

    /// Takes what this store lacks of a session.
    async fn session(&mut self, origin: &str, extent: &SessionExtent) -> Result<()> {
        let key = SessionKey::new(self.options.user_id.clone(), extent.session_id.clone());
        for attempt in 1..=ATTEMPTS {
            let stored = self.store.backend.get_session(&key).await?;
            let received = stored.as_ref().map(ReceivedRows::of).unwrap_or_default();
            let is_known = received.sent_by(origin).is_some_and(|from| {
                // A store that was restored from a backup may give another state the same version.
                let counts = (from.messages.chain.count, from.events.chain.count);
                from.version.as_ref() == Some(&extent.version) && counts == (extent.messages, extent.events)
            });
            let is_own = stored.is_some() && extent.is_as_sent;
            if attempt == 1 && (is_own || is_known) {
                self.report.unchanged += 1;
                return Ok(());
            }
            let rows = self.rows_to_take(&key, stored.as_ref(), &received, (origin, extent)).await?;
            let options = ReceiveOptions::default()
                .with_owner(Some(key.user_id.clone()))
                .with_include_deleted(self.options.include_deleted)
                .with_follow(self.options.follow);
            let mut intake: RowIntake = SessionExchange::new(self.store).receive(options);
            self.origin.read(&rows, &mut intake).await?;
            let received = intake.finish().await?.pop();
            if self.result(&key, received, attempt == ATTEMPTS) {
                return Ok(());
            }
        }
        Ok(())
    }

    /// The rows that this store has, in the terms of the other one.
    async fn rows_to_take(
        &self,
        key: &SessionKey,
        stored: Option<&StoredSession>,
        received: &ReceivedRows,
        (origin, extent): (&str, &SessionExtent),
    ) -> Result<SendRows> {
        let rows = SendRows::new(key.clone());
        let Some(stored) = stored else { return Ok(rows) };
        let (messages, events) = (stored.session.message_count, stored.session.event_count);
        let (before, superseded) = match received.sent_by(origin) {
            Some(from) => {
                // Rows that were removed here since then are taken again with all others.
                let has = |kind, stored| {
                    let of = from.of_kind(kind);
                    if of.is_diverged || of.row <= stored { of.chain } else { RowChain::default() }
                };
                let chains = RowChains {
                    messages: has(LineKind::Message, messages),
                    events: has(LineKind::Event, events),
                };
                (chains, from.superseded)
            }
            None => {
                let first = async |kind, count| {
                    row_digests(self.store, key, kind, count).await.map(|rows| RowChain::of(&rows))
                };
                let chains = RowChains {
                    messages: first(LineKind::Message, messages.min(extent.messages)).await?,
                    events: first(LineKind::Event, events.min(extent.events)).await?,
                };
                (chains, Default::default())
            }
        };
        // If the other store has other rows before, it sends all of them.
        Ok(rows.with_before(before).with_superseded(superseded).with_may_replace(true))
    }

    /// Records what became of a session. Returns whether that is the end of it.
    fn result(&mut self, key: &SessionKey, received: Option<ReceivedSession>, is_last: bool) -> bool {
        let id = &key.session_id;
        let is_part = received.as_ref().is_some_and(|received| received.is_part);
        match received.map(|received| received.result) {
            Some(ReceiveResult::Stored { messages, events, superseded, secrets_masked, .. }) => {
                self.report.messages += messages;
                self.report.events += events;
                self.report.superseded += superseded;
                self.report.secrets_masked += secrets_masked;
                let is_end = is_last || !is_part;
                self.report.sessions += u64::from(is_end);
                is_end
            }
            Some(ReceiveResult::Unchanged) => {
                let is_end = is_last || !is_part;
                self.report.unchanged += u64::from(is_end);
                is_end
            }
            Some(ReceiveResult::Deleted) => {
                self.report.deleted.push(id.clone());
                true
            }
            Some(ReceiveResult::Failed { is_retryable: true, .. } | ReceiveResult::Conflict { .. })
                if !is_last =>
            {
                false
            }
            Some(ReceiveResult::Conflict { .. }) => {
                let reason = "the rows before those that were sent are not stored";
                self.report.failed.push(TransferFailure::new(id, reason));
                true
            }
            Some(ReceiveResult::Failed { reason, .. }) => {
                self.report.failed.push(TransferFailure::new(id, reason));
                true
            }
            None => {
                self.report.failed.push(TransferFailure::new(id, "the other store sent nothing"));
                true
            }
        }
    }

    /// Hides the wanted sessions that came from the other store and that it no longer has, or deletes those that were
    /// deleted there.
    async fn remove_missing(&mut self, origin: &str, listed: &HashSet<SessionId>) -> Result<()> {
        let user = &self.options.user_id;
        let ids = match &self.options.sessions {
            Some(wanted) => wanted.iter().cloned().collect(),
            None => SessionExchange::new(self.store).session_ids(user).await?,
        };
        let mut missing = Vec::new();
        for id in ids.into_iter().filter(|id| !listed.contains(id)) {
            let key = SessionKey::new(user.clone(), id);
            if self.of_origin(&key, origin).await?.is_some() {
                missing.push(key.session_id);
            }
        }
        let deleted =
            if self.options.mirror_deletes { self.deleted_there(&missing).await? } else { HashSet::new() };
        for id in missing {
            let key = SessionKey::new(user.clone(), id.clone());
            if deleted.contains(&id) {
                if self.store.retry_conflicts(|| self.remove(&key, origin)).await? {
                    self.report.removed.push(id);
                }
            } else if self.store.retry_conflicts(|| self.hide(&key, origin)).await? {
                self.report.hidden.push(id);
            }
        }
        Ok(())
    }

    /// Those of these sessions that were deleted from the other store. Others that it lacks belong to another user there, or
    /// it was restored from a backup.
    async fn deleted_there(&self, missing: &[SessionId]) -> Result<HashSet<SessionId>> {
        let mut deleted = HashSet::new();
        if missing.is_empty() {
            return Ok(deleted);
        }
        let store_id = SessionExchange::new(self.store).store_id().await?;
        let mut query = ExtentQuery::new(self.options.user_id.clone(), store_id);
        query.sessions = Some(missing.to_vec());
        loop {
            let page = self.origin.extents(&query).await?;
            deleted.extend(page.deleted);
            query.after = page.next;
            if query.after.is_none() {
                return Ok(deleted);
            }
        }
    }

    /// The session, if it came from the other store, and nobody here has added rows since.
    async fn of_origin(&self, key: &SessionKey, origin: &str) -> Result<Option<StoredSession>> {
        let stored = self.store.backend.get_session(key).await?;
        Ok(stored.filter(|stored| ReceivedRows::of(stored).came_from(origin)))
    }

    /// Deletes a session that came from the other store, as it is now. Returns whether there was one.
    async fn remove(&self, key: &SessionKey, origin: &str) -> Result<bool> {
        let Some(stored) = self.of_origin(key, origin).await? else { return Ok(false) };
        let session = SessionDeletion::new(key.clone()).with_expected(Some(stored.version));
        self.store.backend.delete_version(session).await
    }

    /// Makes all rows of a session that came from the other store superseded lines. Returns whether there were some.
    async fn hide(&self, key: &SessionKey, origin: &str) -> Result<bool> {
        let Some(stored) = self.of_origin(key, origin).await? else { return Ok(false) };
        if stored.session.message_count + stored.session.event_count == 0 {
            return Ok(false);
        }
        let target = IngestTarget {
            key: key.clone(),
            host_id: stored.session.host_id.clone(),
            project_slug: stored.session.project_slug.clone(),
        };
        let mut ingest = Ingestion::new(self.store).ingest(target).await?;
        if ingest.stored().map(|now| &now.version) != Some(&stored.version) {
            return Err(changing(key));
        }
        let mut received = ingest.received().clone();
        // If the session comes back, all of it is taken.
        received.from.clear();
        received.posted = None;
        ingest.set_received(received);
        for kind in [LineKind::Message, LineKind::Event] {
            ingest.begin(kind, 0).await?;
            let remaining = Remaining { decided: Some(SupersededReason::CutOff), ..Remaining::default() };
            ingest.supersede(kind, &remaining);
            ingest.end(kind, Extent::Whole);
        }
        ingest.commit().await.map(|_| true)
    }
}
