//! Writing in batches, as a store must that has no transactions across partitions or above a size.

use std::sync::Arc;

use amplifier_session_core::{
    Error, ErrorKind, Result,
    backend::{SessionChange, StoredSession, Version},
    model::SessionKey,
};
use tokio::sync::{Mutex, OwnedMutexGuard};

use super::{
    MemoryBackend,
    documents::{Documents, Step},
};

impl MemoryBackend {
    /// The rows first, the session last: until it is there with its new version, the write can be repeated.
    pub(super) async fn write_change(&self, change: SessionChange) -> Result<Version> {
        let key = change.session.key();
        let _lease = self.lease(&key).await;
        let steps = {
            let documents = self.documents();
            check_version(documents.session(&key), &change)?;
            plan(&documents, &key, &change)
        };
        self.run(&key, steps, |documents| {
            let version = documents.next_etag();
            let stored = merged(documents.session(&key), change, version.clone());
            documents.sessions.put(&key.user_id, key.session_id.clone(), stored);
            version
        })
        .await
    }

    /// The rows first here too: while the session is there, the deletion can be repeated.
    pub(super) async fn delete(&self, key: &SessionKey) -> Result<bool> {
        let _lease = self.lease(key).await;
        let steps = removals(&self.documents(), key, 0, 0);
        self.run(key, steps, |documents| {
            let deleted = documents.sessions.remove(&key.user_id, &key.session_id);
            if deleted {
                documents.deleted.put(&key.user_id, key.session_id.clone(), ());
            }
            deleted
        })
        .await
    }

    /// Applies `steps` and then `finish`: all at once, or a batch at a time with others in between.
    async fn run<T>(
        &self,
        key: &SessionKey,
        mut steps: Vec<Step>,
        finish: impl FnOnce(&mut Documents) -> T,
    ) -> Result<T> {
        while !self.settings.atomic_writes && !steps.is_empty() {
            self.shared.interruption.check()?;
            let batch = steps.drain(..steps.len().min(self.settings.batch_size));
            self.documents().apply(key, batch);
            tokio::task::yield_now().await;
        }
        self.shared.interruption.check()?;
        let mut documents = self.documents();
        documents.apply(key, steps);
        Ok(finish(&mut documents))
    }

    /// One writer a session at a time; a store over the network takes a lease for this.
    async fn lease(&self, key: &SessionKey) -> OwnedMutexGuard<()> {
        let lease: Arc<Mutex<()>> = {
            let mut leases = self.shared.leases.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            leases.entry(key.clone()).or_default().clone()
        };
        lease.lock_owned().await
    }
}

fn check_version(stored: Option<StoredSession>, change: &SessionChange) -> Result<()> {
    if stored.map(|stored| stored.version) == change.expected {
        return Ok(());
    }
    let error = Error::new(ErrorKind::Conflict, "the session was changed by somebody else");
    Err(error.with("session", &change.session.session_id).retryable())
}

/// All that is to be done beside the session itself.
fn plan(documents: &Documents, key: &SessionKey, change: &SessionChange) -> Vec<Step> {
    let messages = change.messages.truncate.unwrap_or(u32::MAX);
    let events = change.events.truncate.unwrap_or(u32::MAX);
    let mut steps = removals(documents, key, messages, events);
    let project = &change.session.project_slug;
    if documents.session(key).is_some_and(|stored| stored.session.project_slug != *project) {
        let messages = documents.messages.ids(key, ..messages).into_iter();
        let events = documents.events.ids(key, ..events).into_iter();
        steps.extend(messages.map(|sequence| Step::MoveMessage(sequence, project.clone())));
        steps.extend(events.map(|sequence| Step::MoveEvent(sequence, project.clone())));
    }
    steps.extend(change.messages.put.iter().map(|message| Step::PutMessage(Box::new(message.clone()))));
    steps.extend(change.retimed.iter().copied().map(Step::RetimeMessage));
    steps.extend(change.events.put.iter().map(|event| Step::PutEvent(Box::new(event.clone()))));
    steps
}

/// Removes messages and events from these sequences on.
fn removals(documents: &Documents, key: &SessionKey, messages: u32, events: u32) -> Vec<Step> {
    let messages = documents.messages.ids(key, messages..).into_iter().map(Step::RemoveMessage);
    let events = documents.events.ids(key, events..).into_iter().map(Step::RemoveEvent);
    messages.chain(events).collect()
}

/// The session's document after `change`.
fn merged(stored: Option<StoredSession>, change: SessionChange, version: Version) -> StoredSession {
    let (files, skipped, sync_state) =
        stored.map_or_else(Default::default, |s| (s.metadata_files, s.skipped, s.sync_state));
    StoredSession {
        session: change.session,
        version,
        metadata_files: change.metadata_files.unwrap_or(files),
        skipped: change.skipped.unwrap_or(skipped),
        sync_state: change.sync_state.or(sync_state),
    }
}
