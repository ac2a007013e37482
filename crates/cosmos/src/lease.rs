//! One write of a session at a time, over several batches that are each atomic, and together recoverable.
//!
//! 1. The session's document is marked with who writes it, under the ETag that it was read with.
//! 2. The fences of the partitions are taken, by the first batch of rows or before it (see `fence`): a writer that was
//!    there before can't write any more.
//! 3. Rows are written in batches.
//! 4. The session gets its new fields and version, and the mark goes.
//!
//! A writer that meets the mark of another one waits while that one's fence moves. When it has stood still for
//! [`takeover_after`](crate::CosmosConfig::takeover_after), the other counts as dead: its mark and fences are taken, and the
//! session gets another version, for its rows may be half changed. Whoever is wrong about that loses nothing but time:
//! its next batch is refused.

use std::time::Duration;

use amplifier_session_core::{
    Error, Result,
    backend::Version,
    model::{Session, SessionKey},
};
use tokio::time::{Instant, sleep};

use crate::{
    client::{Container, Operation, Outcome},
    documents::{DeletedDocument, FilesDocument, Rows, SessionDocument, new_version},
    error,
    fence::{Fence, pulse},
    ids,
    store::Store,
};

/// How often a waiting writer looks whether the other one is done.
const LOOKS: u32 = 10;

/// The right to write a session.
#[derive(Debug)]
pub(crate) struct WriteLease<'a> {
    store: &'a Store,
    /// The session as it was read, with the mark.
    pub(crate) document: SessionDocument,
    mark: String,
    /// What is known of the rows; nothing after a write that did not come to its end.
    known: Known,
    /// Whether it has the session from a writer that stood still, and that may come on.
    took_over: bool,
}

/// What a session's document says about its rows.
#[derive(Debug, Clone, Default)]
pub(crate) struct Known {
    pub(crate) messages: Option<Rows>,
    pub(crate) events: Option<Rows>,
}

/// What a writer expects of the session.
#[derive(Debug, Clone)]
pub(crate) enum Expected {
    /// None, or this one with this version.
    Exactly(Option<Version>),
    /// Any that is there.
    Any,
}

impl Expected {
    fn admits(&self, found: Option<&SessionDocument>) -> bool {
        let found = found.filter(|document| document.committed).map(|document| document.version.as_str());
        match self {
            Self::Exactly(version) => version.as_ref().map(|version| version.0.as_str()) == found,
            Self::Any => true,
        }
    }
}

impl Known {
    fn nothing_there() -> Self {
        Self { messages: Some(Rows::default()), events: Some(Rows::default()) }
    }
}

pub(crate) async fn read(store: &Store, key: &SessionKey) -> Result<Option<SessionDocument>> {
    store.sessions.read(key.user_id.as_str(), key.session_id.as_str()).await
}

/// Whether reads show the session. What a first write that did not come to its end left of it is nobody's.
pub(crate) async fn is_there(store: &Store, key: &SessionKey) -> Result<bool> {
    Ok(read(store, key).await?.is_some_and(|document| document.committed))
}

impl<'a> WriteLease<'a> {
    /// Takes the right to write `key`. With `new`, a session that is not there is begun; else the answer is `None`.
    pub(crate) async fn begin(
        store: &'a Store,
        key: &SessionKey,
        expected: &Expected,
        new: Option<&Session>,
    ) -> Result<Option<Self>> {
        let mark = new_version();
        let mut took_over = false;
        loop {
            let found = read(store, key).await?;
            if !expected.admits(found.as_ref()) {
                return Err(error::conflict());
            }
            let (mut document, known) = match (found, new) {
                (Some(mut document), _) => {
                    let known =
                        Known { messages: document.message_rows.take(), events: document.event_rows.take() };
                    (document, known)
                }
                // Where there is no session, there are no rows: they go before it does.
                (None, Some(session)) => (SessionDocument::new(session.clone()), Known::nothing_there()),
                (None, None) => return Ok(None),
            };
            // The answer to our own mark may have been lost.
            let is_marked = document.pending.as_ref() == Some(&mark);
            if !is_marked {
                took_over = document.pending.is_some();
                if took_over && !stands_still(store, key, &document).await? {
                    continue;
                }
                document.pending = Some(mark.clone());
            }
            let mut writer = Self { store, document, mark: mark.clone(), known, took_over };
            if !is_marked && !writer.put(Vec::new()).await? {
                continue;
            }
            if took_over && writer.document.committed {
                writer.bury(key).await?;
                return Err(error::conflict());
            }
            return Ok(Some(writer));
        }
    }

    /// Takes the right to write the fields of a session whose rows stay as they are, without a mark. `None` where somebody
    /// is writing it, or began to and never came to an end.
    pub(crate) async fn for_fields(
        store: &'a Store,
        expected: &Expected,
        session: &Session,
    ) -> Result<Option<Self>> {
        let found = read(store, &session.key()).await?;
        if !expected.admits(found.as_ref()) {
            return Err(error::conflict());
        }
        let document = match found {
            Some(document) if !document.committed || document.pending.is_some() => return Ok(None),
            Some(document) => document,
            None => SessionDocument::new(session.clone()),
        };
        let nothing_there = (!document.committed).then(Rows::default);
        let document = SessionDocument {
            message_rows: document.message_rows.clone().or_else(|| nothing_there.clone()),
            event_rows: document.event_rows.clone().or(nothing_there),
            ..document
        };
        Ok(Some(Self { store, document, mark: String::new(), known: Known::default(), took_over: false }))
    }

    /// Whether another writer may still come on.
    pub(crate) fn took_over(&self) -> bool {
        self.took_over
    }

    pub(crate) fn known(&self) -> &Known {
        &self.known
    }

    /// The fence of a partition. It is taken at once where nothing is known of the rows.
    pub(crate) async fn fence<'f>(
        &self,
        container: &'f Container,
        partition: &'f str,
        known: Option<&Rows>,
    ) -> Result<Fence<'f>> {
        let Some(known) = known else {
            let fence = Fence::take(container, partition, &self.mark).await?;
            self.check_mark().await?;
            return Ok(fence);
        };
        Ok(Fence::known(container, partition, &self.mark, known.fence.clone()))
    }

    /// Whether the session is still this writer's: a `Conflict` where it lost it before it took a fence.
    pub(crate) async fn check_mark(&self) -> Result<()> {
        let found = read(self.store, &self.document.session.key()).await?;
        let is_ours = found.is_some_and(|found| found.etag == self.document.etag);
        if is_ours { Ok(()) } else { Err(error::conflict()) }
    }

    /// Ends the write with these fields of the session.
    pub(crate) async fn finish(mut self, files: Option<&FilesDocument>) -> Result<Version> {
        self.document.version = new_version();
        self.document.pending = None;
        self.document.committed = true;
        let files = files.map(Operation::upsert).transpose()?;
        let is_put = self.put(files.into_iter().collect()).await?;
        self.store.totals.forget();
        // The answer may have been lost, and the repetition refused.
        if is_put || self.is_stored().await? {
            Ok(Version(self.document.version))
        } else {
            Err(error::conflict())
        }
    }

    async fn is_stored(&self) -> Result<bool> {
        let found = read(self.store, &self.document.session.key()).await?;
        Ok(found.is_some_and(|found| found.version == self.document.version))
    }

    /// Ends a deletion: nothing is left of the session, but that it was deleted, if that is to be remembered.
    pub(crate) async fn finish_deletion(self, files_exist: bool, remember: bool) -> Result<()> {
        let key = self.document.session.key();
        let (id, user) = (self.document.id.clone(), self.document.session.user_id.clone());
        let mut operations = vec![Operation::Delete { id, etag: Some(self.document.etag) }];
        if files_exist {
            operations
                .push(Operation::Delete { id: ids::files(&self.document.session.session_id), etag: None });
        }
        if remember {
            operations.push(Operation::upsert(&DeletedDocument::new(&user, &key.session_id))?);
        }
        let deleted = self.store.sessions.write(user.as_str(), operations).await?;
        self.store.totals.forget();
        match deleted {
            Outcome::Done(_) => Ok(()),
            // Or the answer was lost, and there is nothing left to delete.
            Outcome::Refused if read(self.store, &key).await?.is_none() => Ok(()),
            Outcome::Refused => Err(error::conflict()),
        }
    }

    /// Hides the session from reads, for its deletion.
    pub(crate) async fn hide(&mut self) -> Result<()> {
        self.document.committed = false;
        if self.put(Vec::new()).await? { Ok(()) } else { Err(error::conflict()) }
    }

    /// Gives the write up after `cause`, so that the next one does not have to wait. The rows may be half changed, which
    /// another version says.
    pub(crate) async fn give_up(mut self, cause: Error) -> Error {
        self.document.pending = None;
        self.document.version = new_version();
        (self.document.message_rows, self.document.event_rows) = (None, None);
        if let Err(error) = self.put(Vec::new()).await {
            tracing::debug!(%error, "the mark of a write that failed stays until it is taken over");
        }
        cause
    }

    /// Takes over what a dead writer left.
    async fn bury(mut self, key: &SessionKey) -> Result<()> {
        let partition = ids::partition(key);
        Fence::take(&self.store.messages, &partition, &self.mark).await?;
        Fence::take(&self.store.events, &partition, &self.mark).await?;
        self.document.pending = None;
        self.document.version = new_version();
        self.put(Vec::new()).await.map(drop)
    }

    /// Writes the session's document with others beside it; whether it was still as it was read.
    async fn put(&mut self, mut beside: Vec<Operation>) -> Result<bool> {
        let document = &self.document;
        let operation = if document.etag.is_empty() {
            Operation::create(document)?
        } else {
            Operation::replace(document.id.clone(), document, &document.etag)?
        };
        beside.insert(0, operation);
        match self.store.sessions.write(document.session.user_id.as_str(), beside).await? {
            Outcome::Done(etags) => {
                self.document.etag = etags.into_iter().next().unwrap_or_default();
                Ok(true)
            }
            Outcome::Refused => Ok(false),
        }
    }
}

/// Waits for the writer that marked `document`: false when it came on, true when it did not.
async fn stands_still(store: &Store, key: &SessionKey, document: &SessionDocument) -> Result<bool> {
    let partition = ids::partition(key);
    let patience = store.config.takeover_after;
    let pause = (patience / LOOKS).max(Duration::from_millis(1));
    let (mut since, mut seen) = (Instant::now(), None);
    loop {
        let messages = pulse(&store.messages, &partition).await?;
        let now = (messages, pulse(&store.events, &partition).await?);
        if read(store, key).await?.is_none_or(|found| found.etag != document.etag) {
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
