//! Reading everything of a kind, a page at a time: a document store that sorts or counts across partitions does
//! just the same.

use std::collections::HashSet;

use amplifier_session_core::{
    Scope,
    model::{Event, Message, Session, SessionKey},
    search::SessionFilter,
};

use super::MemoryBackend;

impl MemoryBackend {
    /// The sessions that a read looks at, as their documents are now: what they are shared with and labelled with
    /// is kept nowhere else.
    pub(super) fn sessions_within(&self, scope: &Scope, filter: &SessionFilter) -> HashSet<SessionKey> {
        let sessions = self.all_sessions().into_iter();
        let within = sessions.filter(|session| scope.allows(session) && filter.admits(session));
        within.map(|session| session.key()).collect()
    }

    pub(super) fn all_sessions(&self) -> Vec<Session> {
        let mut sessions = Vec::new();
        let mut after = None;
        loop {
            let page = self.documents().sessions.page_across(after.as_ref(), self.settings.page_size);
            let Some((last, _)) = page.last() else { return sessions };
            after = Some(last.clone());
            sessions.extend(page.into_iter().map(|(_, stored)| stored.session));
        }
    }

    pub(super) fn each_message(&self, mut each: impl FnMut(Message)) {
        let mut after = None;
        loop {
            let page = self.documents().messages.page_across(after.as_ref(), self.settings.page_size);
            let Some((last, _)) = page.last() else { return };
            after = Some(last.clone());
            page.into_iter().for_each(|(_, message)| each(message));
        }
    }

    pub(super) fn each_event(&self, mut each: impl FnMut(Event)) {
        let mut after = None;
        loop {
            let page = self.documents().events.page_across(after.as_ref(), self.settings.page_size);
            let Some((last, _)) = page.last() else { return };
            after = Some(last.clone());
            page.into_iter().for_each(|(_, document)| each(document.event));
        }
    }
}
