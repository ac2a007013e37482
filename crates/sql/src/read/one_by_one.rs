//! Reading sessions one by one, if a part of the database can't be read.

use std::{collections::BTreeMap, ops::ControlFlow};

use amplifier_session_core::{
    Error, ErrorKind, Result,
    model::{SessionId, SessionKey, UserId},
};

use crate::{Query, Reader};

/// A session that is read alone.
#[derive(Debug)]
pub(super) struct OneSession {
    /// The key of its row.
    pub(super) key: i64,
    /// All sessions, read in the first way that finds all of them. Fails with `error` if no way does.
    pub(super) name: SessionKey,
}

/// Whether a part of the database can't be read, and the error does not say which row it is.
pub(super) fn is_unnamed_damage(error: &Error) -> bool {
    error.kind() == ErrorKind::Damaged && error.context("session").is_none()
}

/// All sessions, by the first way that leads to all of them. Fails with `error` if none does.
pub(super) fn sessions<R: Reader>(reader: &R, error: Error) -> Result<Vec<OneSession>> {
    let decode = |row: &dyn crate::Columns| {
        let name = SessionKey::new(UserId::new(row.text(1)?)?, SessionId::new(row.text(2)?)?);
        Ok((row.integer(0)?, name))
    };
    for statement in R::DIALECT.session_keys {
        let mut found = BTreeMap::new();
        let read = reader.each(&Query::new("list_sessions", *statement, [], decode), |(key, name)| {
            found.insert(key, name);
            ControlFlow::Continue(())
        });
        match read {
            Ok(()) => {
                return Ok(found.into_iter().map(|(key, name)| OneSession { key, name }).collect());
            }
            Err(error) if is_unnamed_damage(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Err(error)
}

/// The result of reading one session alone, with its name in the error.
pub(super) fn named<T>(session: &OneSession, read: Result<T>) -> Result<T> {
    read.map_err(|error| {
        if is_unnamed_damage(&error) {
            let SessionKey { user_id, session_id } = &session.name;
            error.with("user", user_id).with("session", session_id)
        } else {
            error
        }
    })
}

/// The rows that `read` finds for each session. Leaves out what can't be read.
pub(super) fn readable<R: Reader, T>(
    reader: &R,
    error: Error,
    mut read: impl FnMut(&OneSession) -> Result<Vec<T>>,
) -> Result<Vec<T>> {
    let mut found = Vec::new();
    for session in sessions(reader, error)? {
        match read(&session) {
            Ok(rows) => found.extend(rows),
            Err(error) if error.kind() == ErrorKind::Damaged => {
                tracing::debug!(session = %session.name.session_id, %error, "a session that can't be read is left out");
            }
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}
