//! Finding a session, or a line of one, by what a person types.

use std::collections::HashMap;

use super::{SessionStorage, sessions::PAGE};
use crate::{
    Error, Result, Scope,
    backend::SessionQuery,
    model::{Session, SessionId},
};

/// What stands for the most recently updated session.
const LATEST: &str = "latest";

/// The least characters of a short id.
const SHORTEST_ID: usize = 8;

/// A line of a session's files that an address names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum AddressedLine {
    /// The message with this sequence.
    Message(u32),
    /// The event with this sequence.
    Event(u32),
}

/// What an address names: a session, and perhaps a line of it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Addressed {
    /// The session.
    pub session: Session,
    /// The line, where the address names one. Whether the session has it is not checked.
    pub line: Option<AddressedLine>,
}

impl SessionStorage {
    /// The session that `address` names, and the line of it if it names one.
    ///
    /// An address is the id of a session, the beginning of one that no other session shares, or `latest`: the
    /// session of the reader that was updated last. `#4` after it names the message with sequence 4; so do the ids of
    /// messages (`{session}_msg_4`) and events (`{session}_evt_4`). Upper and lower case make no difference, except
    /// that an id in the case that was typed comes first.
    ///
    /// # Errors
    ///
    /// `SessionNotFound` when there is no such session, `Validation` with the candidates when there are several, or
    /// when no number follows `#`; those of the backend.
    pub async fn find_address(&self, scope: &Scope, address: &str) -> Result<Addressed> {
        if let Some((session, sequence)) = address.rsplit_once('#') {
            let Ok(sequence) = sequence.parse() else {
                let message = format!("{address:?} is no address: the number of a message follows '#'");
                return Err(Error::validation("session_id", message));
            };
            let session = self.session_named(scope, session).await?;
            let session = session.ok_or_else(|| Error::session_not_found(address))?;
            return Ok(Addressed { session, line: Some(AddressedLine::Message(sequence)) });
        }
        if let Ok(id) = SessionId::new(address)
            && let Some(session) = self.get_session(scope, &id).await?
        {
            return Ok(Addressed { session, line: None });
        }
        if let Some((session, line)) = id_of_line(address)
            && let Some(session) = self.session_named(scope, session).await?
        {
            return Ok(Addressed { session, line: Some(line) });
        }
        let session = self.session_named(scope, address).await?;
        let session = session.ok_or_else(|| Error::session_not_found(address))?;
        Ok(Addressed { session, line: None })
    }

    /// The session that `address` names; see [`Self::find_address`].
    ///
    /// # Errors
    ///
    /// Those of [`Self::find_address`].
    pub async fn find_session(&self, scope: &Scope, address: &str) -> Result<Session> {
        Ok(self.find_address(scope, address).await?.session)
    }

    /// The beginnings of `ids` that no other session of `scope` shares, of at least 8 characters.
    ///
    /// # Errors
    ///
    /// Those of the backend.
    pub async fn short_ids<'a>(
        &self,
        scope: &Scope,
        ids: impl IntoIterator<Item = &'a SessionId>,
    ) -> Result<HashMap<SessionId, String>> {
        let mut short = HashMap::new();
        for id in ids {
            if !short.contains_key(id) {
                short.insert(id.clone(), self.short_id(scope, id).await?);
            }
        }
        Ok(short)
    }

    async fn short_id(&self, scope: &Scope, id: &SessionId) -> Result<String> {
        /// The ids of sub-agents may begin alike by the thousand: a few of them tell how far to go.
        const COMPARED: usize = 20;
        let id = id.as_str();
        let mut length = SHORTEST_ID;
        // Ids are ASCII.
        while let Some(prefix) = id.get(..length).filter(|prefix| prefix.len() < id.len()) {
            let query =
                SessionQuery::new(scope.clone()).with_id_prefix(Some(prefix.to_owned())).with_limit(COMPARED);
            let others = self.search_sessions(&query).await?;
            let others =
                others.iter().map(|session| session.session_id.as_str()).filter(|other| *other != id);
            let Some(shared) = others.map(|other| shared_length(id, other)).max() else {
                return Ok(prefix.to_owned());
            };
            length = shared.max(length) + 1;
        }
        Ok(id.to_owned())
    }

    /// The session of this id, or whose id begins so.
    async fn session_named(&self, scope: &Scope, name: &str) -> Result<Option<Session>> {
        if let Ok(id) = SessionId::new(name)
            && let Some(session) = self.get_session(scope, &id).await?
        {
            return Ok(Some(session));
        }
        if name.is_empty() {
            return Ok(None);
        }
        if name.eq_ignore_ascii_case(LATEST) {
            let whose = match scope {
                Scope::Visible(viewer) => Scope::User(viewer.user_id.clone()),
                scope => scope.clone(),
            };
            return Ok(self.search_sessions(&SessionQuery::new(whose).with_limit(1)).await?.pop());
        }
        let found = self.sessions_beginning_with(scope, name).await?;
        if !found.is_empty() {
            return one_of(found, name);
        }
        let mut found = self.sessions_beginning_in_any_case(scope, name).await?;
        if let Some(whole) = found.iter().position(|session| session.session_id.as_str().len() == name.len())
        {
            return Ok(Some(found.swap_remove(whole)));
        }
        one_of(found, name)
    }

    async fn sessions_beginning_with(&self, scope: &Scope, prefix: &str) -> Result<Vec<Session>> {
        let query = SessionQuery::new(scope.clone()).with_id_prefix(Some(prefix.to_owned())).with_limit(PAGE);
        self.all_sessions(query).await
    }

    /// Sessions whose ids begin with `prefix`, whatever the case of its letters. Backends compare exactly, so that what
    /// they are asked for ends at the first letter.
    async fn sessions_beginning_in_any_case(&self, scope: &Scope, prefix: &str) -> Result<Vec<Session>> {
        let Some(letter) = prefix.find(|c: char| c.is_ascii_alphabetic()) else { return Ok(Vec::new()) };
        let Some(head) = prefix.get(..=letter) else { return Ok(Vec::new()) };
        let mut found = self.sessions_beginning_with(scope, &head.to_ascii_lowercase()).await?;
        found.extend(self.sessions_beginning_with(scope, &head.to_ascii_uppercase()).await?);
        let begins = |session: &Session| {
            let id = session.session_id.as_str();
            id.get(..prefix.len()).is_some_and(|beginning| beginning.eq_ignore_ascii_case(prefix))
        };
        found.retain(begins);
        Ok(found)
    }
}

/// The session and the line that the id of a message or an event names.
fn id_of_line(id: &str) -> Option<(&str, AddressedLine)> {
    let (rest, number) = id.rsplit_once('_')?;
    let number = number.parse().ok()?;
    let (session, kind) = rest.rsplit_once('_')?;
    match kind.to_ascii_lowercase().as_str() {
        "msg" => Some((session, AddressedLine::Message(number))),
        "evt" => Some((session, AddressedLine::Event(number))),
        _ => None,
    }
}

fn shared_length(a: &str, b: &str) -> usize {
    a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count()
}

/// The one that was found, if it is only one.
pub(super) fn one_of(mut found: Vec<Session>, id: &str) -> Result<Option<Session>> {
    const SHOWN: usize = 5;
    if found.len() <= 1 {
        return Ok(found.pop());
    }
    let shown: Vec<String> = found
        .iter()
        .take(SHOWN)
        .map(|session| format!("{} of {}", session.session_id, session.user_id))
        .collect();
    let more = if found.len() > SHOWN { ", …" } else { "" };
    Err(Error::validation("session_id", format!("{id:?} may be {}{more}", shown.join(", "))))
}
