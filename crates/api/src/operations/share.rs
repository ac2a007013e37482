//! Sets who can see a session besides its owner.

use amplifier_session_core::storage::Sharing;
use serde::{Deserialize, Serialize};

use crate::{AccessRight, Api, ApiAnswer, ApiError, views::ChangedView};

/// A change of the users who can see a session besides its owner. It replaces earlier settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShareRequest {
    /// The address of the session.
    pub session: String,
    /// The users who can see it.
    #[serde(flatten)]
    pub with: SharedWith,
}

/// The users who can see a session besides its owner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "visibility", rename_all = "snake_case")]
pub enum SharedWith {
    /// Nobody.
    Private,
    /// The members of teams.
    Team {
        /// The teams, at least one.
        team_ids: Vec<String>,
    },
    /// The members of an organisation.
    Org {
        /// The organisation.
        org_id: String,
    },
    /// Everyone who can read the store.
    Public,
}

impl From<&SharedWith> for Sharing {
    fn from(with: &SharedWith) -> Self {
        match with {
            SharedWith::Private => Self::private(),
            SharedWith::Team { team_ids } => Self::teams(team_ids),
            SharedWith::Org { org_id } => Self::org(org_id),
            SharedWith::Public => Self::public(),
        }
    }
}

impl Api<'_> {
    /// Sets who can see one of the caller's sessions.
    ///
    /// # Errors
    ///
    /// [`ApiError`] if the right to write is missing; `Validation` if the name of a team or of the organisation is
    /// empty; `SessionNotFound`; errors of the store.
    #[crate::compiled_here]
    pub async fn share(&self, request: &ShareRequest) -> Result<ApiAnswer<ChangedView>, ApiError> {
        let scope = self.caller.scope_of_changes(AccessRight::Write)?;
        let mut notices = Vec::new();
        let session = self.find(&scope, &request.session, &mut notices).await?.session;
        let with = Sharing::from(&request.with);
        let session = self.storage.sessions().share_session(&session.key(), &with).await?;
        Ok(ApiAnswer { response: ChangedView::from(&session), notices })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_has_the_fields_of_a_session() {
        let with = SharedWith::Team { team_ids: vec!["web".to_owned()] };
        let request = ShareRequest { session: "38e6d1f5".to_owned(), with };
        let json = serde_json::to_string(&request).unwrap();
        assert_eq!(json, r#"{"session":"38e6d1f5","visibility":"team","team_ids":["web"]}"#);
        assert_eq!(serde_json::from_str::<ShareRequest>(&json).unwrap(), request);
    }
}
