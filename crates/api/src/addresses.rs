//! Sessions and lines by the addresses that people type.

use std::collections::HashSet;

use amplifier_session_core::{
    Error, ErrorKind, Scope,
    model::Session,
    search::SessionFilter,
    storage::{Addressed, AddressedLine},
};

use crate::{Api, ApiError, InvalidRequest, Notice, PlaceFields};

impl Api<'_> {
    /// The session and the line that `address` names. Adds a notice if `latest` had to leave a session out.
    pub(crate) async fn find(
        &self,
        scope: &Scope,
        address: &str,
        notices: &mut Vec<Notice>,
    ) -> Result<Addressed, ApiError> {
        let found = self.storage.sessions().find_address(scope, address).await;
        let mut found = match found {
            Err(error) if is_latest(&error) => match self.only_others(scope).await? {
                Some(Notice::OnlyOthersHaveSessions { user, other }) => {
                    return Err(ApiError::OnlyOthersHaveSessions { user, other });
                }
                _ => return Err(error.into()),
            },
            found => found?,
        };
        notices.extend(found.notice.take().map(|text| Notice::Sentence { text }));
        Ok(found)
    }

    /// The sessions that `addresses` name, each once.
    pub(crate) async fn find_all(
        &self,
        scope: &Scope,
        addresses: &[String],
        notices: &mut Vec<Notice>,
    ) -> Result<Vec<Session>, ApiError> {
        let (mut sessions, mut seen) = (Vec::new(), HashSet::new());
        for address in addresses {
            let session = self.find(scope, address, notices).await?.session;
            if seen.insert(session.key()) {
                sessions.push(session);
            }
        }
        Ok(sessions)
    }
}

/// The filter `sessions` for only this session, which was found in `scope`.
pub(crate) fn only_session(sessions: SessionFilter, scope: &Scope, found: &Session) -> SessionFilter {
    let sessions = sessions.with_session(found.session_id.clone());
    match scope {
        // Another user may share a session with the same id.
        Scope::Visible(_) => sessions.with_only([found.key()]),
        _ => sessions,
    }
}

/// Whether the error is that `latest` names no session because there are no sessions.
fn is_latest(error: &Error) -> bool {
    let is_latest = |typed: &str| typed.eq_ignore_ascii_case("latest");
    error.kind() == ErrorKind::SessionNotFound && error.context("session").is_some_and(is_latest)
}

/// The message that `address` names, if it names one, in a request with these fields.
pub(crate) fn named_message(
    address: &str,
    line: Option<AddressedLine>,
    fields: PlaceFields,
) -> Result<Option<u32>, InvalidRequest> {
    match line {
        None => Ok(None),
        Some(AddressedLine::Message(sequence)) => Ok(Some(sequence)),
        Some(_) => Err(InvalidRequest::NamesEvent { address: address.to_owned(), fields }),
    }
}

/// The event that `address` names, if it names one.
pub(crate) fn named_event(address: &str, line: Option<AddressedLine>) -> Result<Option<u32>, InvalidRequest> {
    match line {
        Some(AddressedLine::Message(sequence)) => {
            Err(InvalidRequest::NamesMessage { address: address.to_owned(), sequence })
        }
        Some(AddressedLine::Event(sequence)) => Ok(Some(sequence)),
        _ => Ok(None),
    }
}
