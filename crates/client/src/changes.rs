//! The sessions that changed on a server.

use std::{collections::BTreeSet, time::Duration};

use amplifier_session_core::{Result, model::SessionId};
use serde::Deserialize;

use crate::HttpStore;

/// The sessions of a user that changed on a server after a cursor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerChanges {
    /// The sessions, also those that are gone.
    pub sessions: BTreeSet<SessionId>,
    /// The cursor for the next request.
    pub cursor: String,
    /// Whether the changes since the given cursor are unknown, so that all sessions must be compared.
    pub is_reset: bool,
}

/// The answer of `/v1/changes`, as far as it matters here: what a session is now is asked for afterwards.
#[derive(Debug, Deserialize)]
struct ChangesAnswer {
    changes: Vec<ChangedId>,
    cursor: String,
    reset: bool,
}

#[derive(Debug, Deserialize)]
struct ChangedId {
    session_id: SessionId,
}

impl HttpStore {
    /// The sessions of the token's user that changed after a cursor. Waits up to `patience`, at most a minute, until there
    /// are some. Without a cursor, there are none, and the cursor is that of now.
    ///
    /// # Errors
    ///
    /// Errors of the server and of the connection.
    pub async fn changes(&self, after: Option<&str>, patience: Duration) -> Result<ServerChanges> {
        let mut parameters = vec![("limit", "1000".to_owned())];
        if let Some(after) = after {
            parameters.push(("after", after.to_owned()));
            parameters.push(("wait", patience.as_secs().to_string()));
        }
        let answer: ChangesAnswer = self.requests.json(&["v1", "changes"], &parameters).await?;
        let sessions = answer.changes.into_iter().map(|change| change.session_id).collect();
        Ok(ServerChanges { sessions, cursor: answer.cursor, is_reset: answer.reset })
    }
}
