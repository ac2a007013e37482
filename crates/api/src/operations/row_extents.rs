//! The extents of a user's sessions in the store, for another store that sends or takes some.

use amplifier_session_core::{
    model::{SessionId, UserId},
    storage::{ExtentPage, ExtentQuery},
};
use serde::{Deserialize, Serialize};

use crate::{AccessRight, Api, ApiAnswer, ApiError, InvalidRequest};

/// The most sessions of a page.
const MOST: usize = 10_000;

/// A page of what is stored of a user's sessions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RowExtentsRequest {
    /// The identity of the asking store.
    pub store: String,
    /// The owner of the sessions. Default: the caller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<UserId>,
    /// Only these sessions. Default: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sessions: Option<Vec<SessionId>>,
    /// Continue after this session: [`ExtentPage::next`] of the page before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<SessionId>,
    /// The maximum number of sessions, at most 10,000. Default: 1,000.
    #[serde(default = "usual")]
    pub limit: usize,
}

const fn usual() -> usize {
    1_000
}

impl RowExtentsRequest {
    /// The first page, for a store with this identity.
    #[must_use]
    pub fn new(store: impl Into<String>) -> Self {
        Self { store: store.into(), user: None, sessions: None, after: None, limit: usual() }
    }

    /// Checks everything that needs no store.
    ///
    /// # Errors
    ///
    /// [`ApiError::Invalid`].
    pub fn check(&self) -> Result<(), ApiError> {
        if self.limit == 0 { Err(InvalidRequest::NothingToList.into()) } else { Ok(()) }
    }
}

impl Api<'_> {
    /// The extents of the caller's sessions, in order of id: counts, and what the asking store has sent of them
    /// before. Reads no rows.
    ///
    /// # Errors
    ///
    /// [`ApiError::MissingRight`] without the right to read or to write, and to administer the store for the sessions
    /// of another user; [`ApiError::Invalid`]; errors of the store.
    #[crate::compiled_here]
    pub async fn row_extents(&self, request: &RowExtentsRequest) -> Result<ApiAnswer<ExtentPage>, ApiError> {
        request.check()?;
        let user = self.owner_of_rows(request.user.as_ref(), &[AccessRight::Read, AccessRight::Write])?;
        let query = ExtentQuery::new(user, request.store.clone())
            .with_sessions(request.sessions.clone())
            .with_after(request.after.clone())
            .with_limit(request.limit.min(MOST));
        Ok(self.storage.exchange().extents(&query).await?.into())
    }

    /// The owner of rows that are sent or taken by a caller who has one of these rights.
    pub(super) fn owner_of_rows(
        &self,
        named: Option<&UserId>,
        rights: &[AccessRight],
    ) -> Result<UserId, ApiError> {
        let mut lacking = Ok(());
        for right in rights {
            lacking = self.caller.scope_of_changes(*right).map(drop);
            if lacking.is_ok() {
                break;
            }
        }
        lacking?;
        match named {
            Some(user) if user != self.caller.user() => {
                self.caller.scope_of_all_changes()?;
                Ok(user.clone())
            }
            _ => Ok(self.caller.user().clone()),
        }
    }
}
