//! One write of a session at a time, over several batches, each of which is atomic. An interrupted write can be
//! completed.
//!
//! 1. The writer puts its id into the session's document, provided that it still has the ETag that the writer read.
//! 2. It takes the fences of the partitions, with the first batch of rows or before it (see `fence`). Afterwards, an
//!    earlier writer can no longer write.
//! 3. It writes the rows in batches.
//! 4. It writes the new fields and version of the session, and removes its id.
//!
//! A writer that finds the id of another one waits as long as the other's fences keep changing. If they have not
//! changed for [`takeover_after`](crate::CosmosConfig::takeover_after), it takes over the session: it replaces the id,
//! takes the fences, and gives the session another version, because the rows may be only partly changed. If the other
//! writer was merely slow, its next batch is rejected.

use std::time::Duration;

use amplifier_session_core::{
    Error, Result,
    backend::Version,
    model::{Session, SessionKey, Visibility},
};
use tokio::time::{Instant, sleep};

use crate::{
    batch::Operation,
    client::Container,
    documents::{
        DeletedDocument, FilesDocument, KnownRows, RemovalDocument, RenamedFrom, RowsState, SessionDocument,
        new_version,
    },
    error,
    fence::{self, RowFence},
    ids,
    store::Store,
};

/// How often a waiting writer checks the other one before it takes over.
const CHECKS: u32 = 10;

/// The right to write a session.
#[derive(Debug)]
pub(crate) struct WriteLease<'a> {
    store: &'a Store,
    /// The session as it was read, with the id of this writer.
    pub(crate) document: SessionDocument,
    /// The known state of the rows: nothing after an incomplete write.
    pub(crate) known: KnownRows,
    /// Whether the session was taken over from a writer that may merely be slow.
    pub(crate) took_over: bool,
}

/// The state that a writer expects of the session.
#[derive(Debug, Clone)]
pub(crate) enum Expected {
    /// This version; `None` if the session must not exist.
    Exactly(Option<Version>),
    /// This version, if the session exists.
    IfStored(Version),
    Any,
}

impl Expected {
    fn check(&self, found: Option<&SessionDocument>) -> Result<()> {
        let found = found.filter(|document| document.committed).map(|document| &document.version);
        error::check(match self {
            Self::Exactly(version) => version.as_ref().map(|version| &version.0) == found,
            Self::IfStored(version) => found.is_none_or(|found| *found == version.0),
            Self::Any => true,
        })
    }
}

impl<'a> WriteLease<'a> {
    /// Takes the right to write `key`. If the session does not exist, begins `new`; without `new`, returns `None`.
    pub(crate) async fn begin(
        store: &'a Store,
        key: &SessionKey,
        expected: &Expected,
        new: Option<&Session>,
    ) -> Result<Option<Self>> {
        let writer = new_version();
        let mut took_over = false;
        loop {
            let found = store.session(key).await?;
            expected.check(found.as_ref())?;
            let Some(mut document) = found.or_else(|| new.cloned().map(SessionDocument::new)) else {
                return Ok(None);
            };
            let known = std::mem::take(&mut document.rows);
            // The answer to our own write may have been lost.
            let is_ours = document.pending.as_ref() == Some(&writer);
            if !is_ours {
                took_over = document.pending.is_some();
                if took_over && !has_stopped(store, key, &document).await? {
                    continue;
                }
                document.pending = Some(writer.clone());
            }
            let mut lease = Self { store, document, known, took_over };
            if !is_ours && !lease.put(Vec::new()).await? {
                continue;
            }
            if took_over && lease.document.committed {
                lease.revoke(key).await?;
                return Err(error::conflict());
            }
            return Ok(Some(lease));
        }
    }

    /// Takes the right to write only the fields of a session, without its id in the document. `None` if another writer
    /// is active or did not complete, or if the rows must change with the project.
    pub(crate) async fn for_fields(
        store: &'a Store,
        expected: &Expected,
        session: &Session,
    ) -> Result<Option<Self>> {
        let found = store.session(&session.key()).await?;
        expected.check(found.as_ref())?;
        let is_free = found.as_ref().is_none_or(|found| {
            found.committed && found.pending.is_none() && found.session.project_slug == session.project_slug
        });
        let document = found.unwrap_or_else(|| SessionDocument::new(session.clone()));
        let known = KnownRows::default();
        Ok(is_free.then_some(Self { store, document, known, took_over: false }))
    }

    /// The id of this writer.
    fn writer(&self) -> &str {
        debug_assert!(self.document.pending.is_some(), "only a lease with a writer takes fences");
        self.document.pending.as_deref().unwrap_or_default()
    }

    /// The fence of a partition. Takes it at once if the rows are unknown.
    pub(crate) async fn fence<'f>(
        &self,
        container: &'f Container,
        partition: &str,
        known: Option<&RowsState>,
    ) -> Result<RowFence<'f>> {
        if let Some(known) = known {
            return Ok(RowFence::known(container, partition, self.writer(), known.fence.clone()));
        }
        let fence = RowFence::take(container, partition, self.writer()).await?;
        self.check_ownership().await?;
        Ok(fence)
    }

    /// `Conflict` if another writer has taken the session over.
    pub(crate) async fn check_ownership(&self) -> Result<()> {
        let found = self.store.session(&self.document.session.key()).await?;
        error::check(found.is_some_and(|found| found.etag == self.document.etag))
    }

    /// Completes the write with these fields of the session.
    pub(crate) async fn finish(
        mut self,
        session: Session,
        files: Option<&FilesDocument>,
        renamed_from: Option<RenamedFrom>,
    ) -> Result<Version> {
        let removal = self.loses_readers(&session).then(|| RemovalDocument::new(&self.document.session));
        self.document.session = session;
        self.document.renamed_from = renamed_from;
        self.document.version = new_version();
        self.document.pending = None;
        self.document.committed = true;
        let files = files.map(Operation::upsert).transpose()?;
        let removal = removal.as_ref().map(Operation::upsert).transpose()?;
        let is_put = self.put(files.into_iter().chain(removal).collect()).await?;
        self.store.signal.send([&self.document.session.user_id]);
        self.store.totals.clear();
        if !is_put {
            // If the answer was lost, the repetition was rejected.
            let found = self.store.session(&self.document.session.key()).await?;
            error::check(found.is_some_and(|found| found.version == self.document.version))?;
        }
        Ok(Version(self.document.fields.version))
    }

    /// Whether somebody who can see the session may not be able to after this write.
    fn loses_readers(&self, session: &Session) -> bool {
        let shared = |of: &Session| (of.visibility, of.org_id.clone(), of.team_ids.clone());
        let before = &self.document.session;
        before.visibility != Visibility::Private && shared(before) != shared(session)
    }

    /// Completes a deletion: deletes what remains of the session, and records the deletion if `remember` is set.
    pub(crate) async fn finish_deletion(self, files_exist: bool, remember: bool) -> Result<()> {
        let SessionKey { user_id, session_id } = self.document.session.key();
        let mut operations = vec![Operation::delete_if(self.document.id.clone(), self.document.etag.clone())];
        if files_exist {
            operations.push(Operation::delete(ids::files(&session_id)));
        }
        if remember {
            operations.push(Operation::upsert(&DeletedDocument::new(&user_id, &session_id))?);
        }
        operations.push(Operation::upsert(&RemovalDocument::new(&self.document.session))?);
        let is_deleted = self.store.sessions.write(user_id.as_str(), operations).await?.is_some();
        self.store.totals.clear();
        self.store.signal.send([&user_id]);
        // Otherwise, the answer was lost, and nothing remains to be deleted.
        error::check(is_deleted || self.store.session(&self.document.session.key()).await?.is_none())
    }

    /// Hides the session from reads, before its deletion.
    pub(crate) async fn hide(&mut self) -> Result<()> {
        self.document.committed = false;
        error::check(self.put(Vec::new()).await?)
    }

    /// Abandons the write after `cause`, so that the next one does not have to wait. Changes the version, because the
    /// rows may be only partly changed.
    pub(crate) async fn abandon(mut self, cause: Error) -> Error {
        if let Err(error) = self.release().await {
            tracing::debug!(%error, "a failed write still holds its session; another writer has to take it over");
        }
        cause
    }

    /// Takes the fences of the writer from which the session was taken over, and ends its write.
    async fn revoke(mut self, key: &SessionKey) -> Result<()> {
        let partition = ids::partition(key);
        RowFence::take(&self.store.messages, &partition, self.writer()).await?;
        RowFence::take(&self.store.events, &partition, self.writer()).await?;
        self.release().await
    }

    /// Ends an incomplete write.
    async fn release(&mut self) -> Result<()> {
        self.document.pending = None;
        self.document.version = new_version();
        self.document.rows = KnownRows::default();
        self.put(Vec::new()).await.map(drop)
    }

    /// Writes the session's document, and `others` with it. Returns whether it had not changed since it was read.
    async fn put(&mut self, mut others: Vec<Operation>) -> Result<bool> {
        others.insert(0, Operation::save(&self.document)?);
        let etag = self.store.sessions.write(self.document.session.user_id.as_str(), others).await?;
        if let Some(etag) = &etag {
            self.document.etag.clone_from(etag);
        }
        Ok(etag.is_some())
    }
}

/// Waits for the writer of `document`. Returns false once the session has changed, and true if its fences have not changed
/// for too long.
async fn has_stopped(store: &Store, key: &SessionKey, document: &SessionDocument) -> Result<bool> {
    let partition = ids::partition(key);
    let patience = store.config.takeover_after;
    let pause = (patience / CHECKS).max(Duration::from_millis(1));
    let (mut since, mut seen) = (Instant::now(), None);
    loop {
        let messages = fence::etag(&store.messages, &partition).await?;
        let now = (messages, fence::etag(&store.events, &partition).await?);
        if store.session(key).await?.is_none_or(|found| found.etag != document.etag) {
            return Ok(false);
        }
        if seen.as_ref() != Some(&now) {
            (since, seen) = (Instant::now(), Some(now));
        }
        if since.elapsed() >= patience {
            return Ok(true);
        }
        sleep(pause).await;
    }
}
