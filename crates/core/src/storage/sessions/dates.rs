//! Finds out whether the dates of sessions are estimates.

use std::collections::HashSet;

use crate::{
    ErrorKind, Result,
    backend::{SequenceRange, StorageBackendExt},
    metadata::Metadata,
    model::{MessageRef, Session, SessionKey, TimeSource, Timestamp},
    storage::store::{SessionCatalog, StoreContext},
};

/// Number of messages read at a time.
const MESSAGES: usize = 100;
/// Number of events read at a time. If any event states a time, one of the first does.
const EVENTS: usize = 100;

impl SessionCatalog<'_> {
    /// The sessions whose [`Session::created`] and [`Session::updated`] are estimates: no metadata file, message or
    /// event states a time, so the dates are the modification time of the files. Sessions that can't be read are left
    /// out.
    ///
    /// For most sessions, the first message is enough: if any source is better than the file, its time comes from
    /// there.
    ///
    /// # Errors
    ///
    /// Errors of the backend.
    pub async fn estimated_dates(self, sessions: &[Session]) -> Result<HashSet<SessionKey>> {
        let (spoken, silent): (Vec<_>, Vec<_>) =
            sessions.iter().partition(|session| session.message_count > 0);
        let mut doubtful: Vec<(&Session, Option<Timestamp>)> =
            silent.into_iter().map(|session| (session, None)).collect();
        for some in spoken.chunks(MESSAGES) {
            let message_refs: Vec<MessageRef> =
                some.iter().map(|session| MessageRef { session: session.key(), sequence: 0 }).collect();
            let first = self.store.readable_messages_at(message_refs).await?.rows;
            let of_file = first.into_iter().filter(|message| message.ts_source == TimeSource::File);
            doubtful.extend(of_file.filter_map(|message| {
                let is_its = |session: &&&Session| {
                    session.session_id == message.session_id && session.user_id == message.user_id
                };
                Some((*some.iter().find(is_its)?, Some(message.ts)))
            }));
        }
        let mut estimated = HashSet::new();
        for (session, first) in doubtful {
            match self.store.is_estimated(session, first).await {
                Ok(true) => drop(estimated.insert(session.key())),
                Ok(false) => {}
                Err(error) if error.kind() == ErrorKind::Damaged => {}
                Err(error) => return Err(error),
            }
        }
        Ok(estimated)
    }
}

impl StoreContext {
    /// Whether the dates of a session are estimates, for a session without messages or whose first message has a time,
    /// `first`, that comes from the file.
    async fn is_estimated(&self, session: &Session, first: Option<Timestamp>) -> Result<bool> {
        let key = session.key();
        let Some(stored) = self.backend.get_session(&key).await? else { return Ok(false) };
        let Ok(metadata) = Metadata::read(&stored.metadata_files) else { return Ok(false) };
        if metadata.created().is_some() || metadata.updated().is_some() {
            return Ok(false);
        }
        // If a session was not synced from files, its creator stated its time, unless that is the time of its first
        // message.
        if stored.sync_state.is_none() && first != Some(session.created) {
            return Ok(false);
        }
        let mut start = 0;
        while first.is_none() {
            let events = self.backend.event_times(&key, SequenceRange { start, limit: EVENTS }).await?;
            if events.iter().any(|event| !event.ts_estimated) {
                return Ok(false);
            }
            let Some(last) = events.last() else { break };
            start = last.sequence.saturating_add(1);
        }
        Ok(true)
    }
}
