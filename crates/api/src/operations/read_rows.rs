//! Gives the rows of one session to another store.

use amplifier_session_core::{
    Scope,
    model::UserId,
    storage::{RowChains, RowEncoder, RowSink, SendRows, SentRows, SentSuperseded},
};
use serde::{Deserialize, Serialize};

use crate::{AccessRight, Api, ApiAnswer, ApiError};

/// The rows of a session that another store lacks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadRowsRequest {
    /// The session: its address.
    pub session: String,
    /// Its owner. Default: the caller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<UserId>,
    /// The rows that the other store has. If they are not the first ones of the session, all rows of their kind are
    /// sent. Default: none.
    #[serde(default)]
    pub before: RowChains,
    /// The superseded lines that the other store has. Default: none.
    #[serde(default)]
    pub superseded: SentSuperseded,
    /// Whether the other store may have other rows in place of those that are sent. Then their digests come first.
    #[serde(default)]
    pub may_replace: bool,
    /// The size of the lines after which the rest is left for the next request, in bytes. Default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_bytes: Option<u64>,
}

impl ReadRowsRequest {
    /// All rows of a session of the caller.
    #[must_use]
    pub fn new(session: impl Into<String>) -> Self {
        Self {
            session: session.into(),
            user: None,
            before: RowChains::default(),
            superseded: SentSuperseded::default(),
            may_replace: false,
            max_bytes: None,
        }
    }
}

impl Api<'_> {
    /// Writes the rows of one session of the caller to `sink`, as a stream that [`Self::write_rows`] takes: its original
    /// lines, also the superseded ones, as they are stored. A request that can't be answered writes nothing; a stream
    /// that ends early has no end of its session, and the other store does not take it for complete.
    ///
    /// # Errors
    ///
    /// [`ApiError::MissingRight`] without the right to read, and to administer the store for a session of another user;
    /// `SessionNotFound`; `Conflict` (retryable) if rows are replaced meanwhile; errors of `sink` and of the store.
    #[crate::compiled_here]
    pub async fn read_rows(
        &self,
        request: &ReadRowsRequest,
        sink: &mut dyn RowSink,
    ) -> Result<ApiAnswer<SentRows>, ApiError> {
        let user = self.owner_of_rows(request.user.as_ref(), &[AccessRight::Read])?;
        let mut notices = Vec::new();
        let found = self.find(&Scope::User(user), &request.session, &mut notices).await?.session;
        let rows = SendRows::new(found.key())
            .with_before(request.before)
            .with_superseded(request.superseded)
            .with_may_replace(request.may_replace)
            .with_max_bytes(request.max_bytes);
        let mut encoder = RowEncoder::new()?;
        let sent = self.storage.exchange().send(&rows, &mut encoder, sink).await?;
        encoder.end(sink).await?;
        Ok(ApiAnswer { response: sent, notices })
    }
}
