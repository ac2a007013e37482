//! Another name for a user.

use std::collections::HashSet;

use amplifier_session_core::{
    Error, ErrorKind, Result,
    model::{SessionId, SessionKey, UserId},
};

use super::{MemoryBackend, container::Container, documents::Documents};

impl MemoryBackend {
    /// Partitions carry the user's name, so that every document moves.
    pub(super) fn rename(&self, from: &UserId, to: &UserId) -> Result<u64> {
        let mut documents = self.documents();
        if let Some(twice) = documents.in_both(from, to) {
            let message = format!("{from} and {to} both have {twice}");
            return Err(Error::new(ErrorKind::Conflict, message));
        }
        let sessions = documents.sessions.ids(from, ..);
        for id in &sessions {
            documents.rename_session(id, from, to);
        }
        for id in documents.deleted.ids(from, ..) {
            documents.deleted.remove(from, &id);
            documents.deleted.put(to, id, ());
        }
        Ok(sessions.len() as u64)
    }
}

impl Documents {
    /// A session or event id that both have.
    fn in_both(&self, from: &UserId, to: &UserId) -> Option<String> {
        let ids = |user: &UserId| self.sessions.ids(user, ..).into_iter();
        let others: HashSet<SessionId> = ids(to).collect();
        let events = |user: &UserId| -> Vec<String> {
            let keys = ids(user).map(|id| SessionKey::new(user.clone(), id));
            let events = keys.flat_map(|key| self.events.page(&key, .., usize::MAX));
            events.map(|(_, document)| document.event.event_id).collect()
        };
        let known: HashSet<String> = events(to).into_iter().collect();
        ids(from).find(|id| others.contains(id)).map(|id| format!("a session {id}")).or_else(|| {
            events(from).into_iter().find(|id| known.contains(id)).map(|id| format!("an event {id}"))
        })
    }

    fn rename_session(&mut self, id: &SessionId, from: &UserId, to: &UserId) {
        let old = SessionKey::new(from.clone(), id.clone());
        let new = SessionKey::new(to.clone(), id.clone());
        move_all(&mut self.messages, &old, &new, |message| message.user_id = to.clone());
        move_all(&mut self.events, &old, &new, |document| document.event.user_id = to.clone());
        move_all(&mut self.vectors, &old, &new, |_| {});
        move_all(&mut self.failures, &old, &new, |_| {});
        move_all(&mut self.rebuilt, &old, &new, |_| {});
        move_all(&mut self.chunks, &old, &new, |_| {});
        if let Some(mut stored) = self.session(&old) {
            stored.session.user_id = to.clone();
            stored.version = self.next_etag();
            self.sessions.remove(from, id);
            self.sessions.put(to, id.clone(), stored);
        }
    }
}

fn move_all<I: Ord + Clone, D: Clone>(
    container: &mut Container<SessionKey, I, D>,
    old: &SessionKey,
    new: &SessionKey,
    change: impl Fn(&mut D),
) {
    for (id, mut document) in container.page(old, .., usize::MAX) {
        change(&mut document);
        container.remove(old, &id);
        container.put(new, id, document);
    }
}
