//! Finds a session, or a line of one, by an address that a person types.

use super::short_ids::{parts, top_of};
use crate::{
    Error, ErrorField, Result, Scope,
    backend::SessionQuery,
    model::{Session, SessionId, SessionSource, Timestamp},
    search::SessionFilter,
    storage::store::SessionCatalog,
};

/// Number of sessions read at a time.
pub(in crate::storage) const PAGE: usize = 500;

/// Maximum number of candidates in an error.
const SHOWN: usize = 5;

/// The address of the most recently updated session.
const LATEST: &str = "latest";

/// Clocks of machines that share a store may differ by this many microseconds.
const CLOCK_TOLERANCE: i64 = 600_000_000;

/// The minimum length of an address that is a part of an id.
const SHORTEST_PART: usize = 4;

/// The line of a session's files in an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum AddressedLine {
    /// The message with this sequence.
    Message(u32),
    /// The event with this sequence.
    Event(u32),
}

/// The session for an address, with the line if it names one.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Addressed {
    /// The session.
    pub session: Session,
    /// The line, if the address names one. The session may not have this line.
    pub line: Option<AddressedLine>,
    /// A note for users: the address is `latest`, and a session has a later time, which is in the future.
    pub notice: Option<String>,
}

impl Addressed {
    fn new(session: Session, line: Option<AddressedLine>) -> Self {
        Self { session, line, notice: None }
    }
}

impl Session {
    /// Whether it changed after `now`, by more than clocks of machines that share a store may differ. Its files state a
    /// time that is wrong, or were written by a machine whose clock is.
    #[must_use]
    pub fn is_from_future(&self, now: Timestamp) -> bool {
        self.updated.as_micros() > now.as_micros().saturating_add(CLOCK_TOLERANCE)
    }
}

impl SessionCatalog<'_> {
    /// The session that `address` names, and the line if it names one.
    ///
    /// An address is the id of a session, a unique beginning of one, or `latest`. Ids of other programs than Amplifier
    /// count without the name of the program ([`SessionId::native`]). `latest` is the reader's most recently updated
    /// session. A session that changed in the future according to its files is only `latest` if all are. A beginning
    /// that a session shares only with its own sub-agents and forks names that session. If no id begins with the
    /// address, an address of at least 4 characters may be the beginning of a part of an id after `-` or `_`, if that
    /// is unique: ids of sub-agents have the same beginning. `#4` at the end names the message with sequence 4, unless
    /// only the whole address is an id. Ids of messages (`{session}_msg_4`) and events (`{session}_evt_4`) are
    /// addresses too. Case is ignored, but an exact match takes precedence.
    ///
    /// # Errors
    ///
    /// `SessionNotFound` if no session matches; `Validation` if several match, with the candidates, or if no session
    /// matches and `#` is not followed by a number; errors of the backend.
    pub async fn find_address(self, scope: &Scope, address: &str) -> Result<Addressed> {
        let hash = address.rsplit_once('#');
        let numbered = hash.and_then(|(session, number)| Some((session, number.parse().ok()?)));
        let message = |session, sequence| Addressed::new(session, Some(AddressedLine::Message(sequence)));
        // Whole ids before beginnings of ids, so that no other session makes them ambiguous.
        if let Some((session, sequence)) = numbered
            && let Some(session) = self.session_with_id(scope, session).await?
        {
            return Ok(message(session, sequence));
        }
        if let Some(session) = self.session_with_id(scope, address).await? {
            return Ok(Addressed::new(session, None));
        }
        let (name, line) = numbered
            .map_or((address, None), |(session, sequence)| (session, Some(AddressedLine::Message(sequence))));
        if name.eq_ignore_ascii_case(LATEST) {
            let latest = self.latest(scope).await?;
            let (session, notice) = latest.ok_or_else(|| Error::session_not_found(address))?;
            return Ok(Addressed { session, line, notice });
        }
        if let Some((session, sequence)) = numbered
            && let Some(session) = self.session_named(scope, session).await?
        {
            return Ok(message(session, sequence));
        }
        if let Some((session, line)) = id_of_line(address)
            && let Some(session) = self.session_named(scope, session).await?
        {
            return Ok(Addressed::new(session, Some(line)));
        }
        match self.session_named(scope, address).await? {
            Some(session) => Ok(Addressed::new(session, None)),
            None if hash.is_some() && numbered.is_none() => {
                let message =
                    format!("{address:?} is not an address: '#' must be followed by the number of a message");
                Err(Error::validation(ErrorField::Address, message))
            }
            None => Err(Error::session_not_found(address)),
        }
    }

    /// The session with exactly this id. `latest` always names the newest session.
    async fn session_with_id(self, scope: &Scope, id: &str) -> Result<Option<Session>> {
        match SessionId::new(id) {
            Ok(id) if !id.as_str().eq_ignore_ascii_case(LATEST) => self.get_session(scope, &id).await,
            _ => Ok(None),
        }
    }

    /// The session that `address` names; see [`Self::find_address`].
    ///
    /// # Errors
    ///
    /// As [`Self::find_address`].
    pub async fn find_session(self, scope: &Scope, address: &str) -> Result<Session> {
        Ok(self.find_address(scope, address).await?.session)
    }

    /// The session with this id, or a session whose id or a part of it begins with this text.
    async fn session_named(self, scope: &Scope, name: &str) -> Result<Option<Session>> {
        if let Some(session) = self.session_with_id(scope, name).await? {
            return Ok(Some(session));
        }
        if name.is_empty() {
            return Ok(None);
        }
        if name.eq_ignore_ascii_case(LATEST) {
            return Ok(self.latest(scope).await?.map(|(session, _)| session));
        }
        let mut found = self.sessions_beginning_with(scope, name).await?;
        // An id of Amplifier was found above: these are sessions of other programs.
        if found.iter().any(|session| session.session_id.native() == name) {
            found.retain(|session| session.session_id.native() == name);
            return one_of(found, name);
        }
        if !found.is_empty() {
            return top_or_only(found, name);
        }
        let mut found = self.sessions_beginning_in_any_case(scope, name).await?;
        if let Some(whole) = found.iter().position(|session| session.session_id.native().len() == name.len())
        {
            return Ok(Some(found.swap_remove(whole)));
        }
        if !found.is_empty() || name.len() < SHORTEST_PART {
            return top_or_only(found, name);
        }
        one_of(self.sessions_with_part(scope, name).await?, name)
    }

    /// The reader's most recently updated session, and a notice if another one was updated in the future.
    async fn latest(self, scope: &Scope) -> Result<Option<(Session, Option<String>)>> {
        let whose = match scope {
            Scope::Visible(viewer) if viewer.owner.is_none() => Scope::User(viewer.user_id.clone()),
            scope => scope.clone(),
        };
        let query = SessionQuery::new(whose).with_limit(1);
        let Some(newest) = self.search_sessions(&query).await?.pop() else { return Ok(None) };
        let now = self.store.now();
        if !newest.is_from_future(now) {
            return Ok(Some((newest, None)));
        }
        let notice =
            format!("session {} changed at {}, which is in the future", newest.session_id, newest.updated);
        let before =
            Timestamp::from_micros(now.as_micros().saturating_add(CLOCK_TOLERANCE).saturating_add(1));
        Ok(Some(match self.search_sessions(&query.with_until(Some(before))).await?.pop() {
            Some(session) => {
                let notice = format!("{notice}; `latest` is {}", session.session_id);
                (session, Some(notice))
            }
            None => (newest, Some(notice)),
        }))
    }

    /// Sessions whose ids have a part that begins with `beginning`; case is ignored if no part matches exactly.
    async fn sessions_with_part(self, scope: &Scope, beginning: &str) -> Result<Vec<Session>> {
        let names = self.store.backend.session_names(scope).await?;
        let having = |begins: &dyn Fn(&str) -> bool| -> Vec<SessionId> {
            let named = names.iter().filter(|name| parts(name.session_id.native()).any(begins));
            named.map(|name| name.session_id.clone()).collect()
        };
        let mut ids = having(&|part| part.starts_with(beginning));
        if ids.is_empty() {
            ids = having(&|part| {
                part.get(..beginning.len()).is_some_and(|head| head.eq_ignore_ascii_case(beginning))
            });
        }
        ids.sort_unstable();
        ids.dedup();
        let mut found = Vec::new();
        // One more than the error lists, to know whether there are more.
        for id in ids.into_iter().take(SHOWN + 1) {
            let filter = SessionFilter::default().with_session(id);
            let query = SessionQuery::new(scope.clone()).with_filter(filter).with_limit(PAGE);
            found.extend(self.all_sessions(query).await?);
        }
        Ok(found)
    }

    /// Sessions whose native ids begin with `prefix`, or whose ids do if it names a program.
    async fn sessions_beginning_with(self, scope: &Scope, prefix: &str) -> Result<Vec<Session>> {
        let (source, native) = SessionSource::split(prefix);
        let mut found = Vec::new();
        for id_prefix in SessionSource::ids(prefix) {
            let query = SessionQuery::new(scope.clone()).with_id_prefix(Some(id_prefix)).with_limit(PAGE);
            found.extend(self.all_sessions(query).await?);
        }
        // The name of a program is not the beginning of an id.
        found.retain(|session| {
            let id = &session.session_id;
            id.native().starts_with(native) && (source == SessionSource::Amplifier || source == id.source())
        });
        Ok(found)
    }

    /// Sessions whose ids begin with `prefix`, ignoring case. Backends compare exactly, so the query ends before the
    /// first letter.
    async fn sessions_beginning_in_any_case(self, scope: &Scope, prefix: &str) -> Result<Vec<Session>> {
        let Some(letter) = prefix.find(|c: char| c.is_ascii_alphabetic()) else { return Ok(Vec::new()) };
        let Some(head) = prefix.get(..=letter) else { return Ok(Vec::new()) };
        let mut found = self.sessions_beginning_with(scope, &head.to_ascii_lowercase()).await?;
        found.extend(self.sessions_beginning_with(scope, &head.to_ascii_uppercase()).await?);
        let begins = |session: &Session| {
            let id = session.session_id.native();
            id.get(..prefix.len()).is_some_and(|beginning| beginning.eq_ignore_ascii_case(prefix))
        };
        found.retain(begins);
        Ok(found)
    }
}

/// The session and the line for the id of a message or an event.
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

/// The only session, or the one of which all others are sub-agents or forks.
fn top_or_only(mut found: Vec<Session>, id: &str) -> Result<Option<Session>> {
    let top = top_of(found.iter().map(|session| (&session.session_id, session.parent_id.as_ref())));
    let top = top.map(str::to_owned);
    let mut tops =
        found.iter().enumerate().filter(|(_, one)| Some(one.session_id.as_str()) == top.as_deref());
    // Several users may have a session with the same id.
    if let (Some((at, _)), None) = (tops.next(), tops.next()) {
        return Ok(Some(found.swap_remove(at)));
    }
    one_of(found, id)
}

/// The session, if there is only one.
pub(super) fn one_of(mut found: Vec<Session>, id: &str) -> Result<Option<Session>> {
    if found.len() <= 1 {
        return Ok(found.pop());
    }
    let shown: Vec<String> = found
        .iter()
        .take(SHOWN)
        .map(|session| format!("{} of {}", session.session_id, session.user_id))
        .collect();
    let more = if found.len() > SHOWN { ", …" } else { "" };
    Err(Error::validation(ErrorField::SessionId, format!("{id:?} is ambiguous: {}{more}", shown.join(", "))))
}
