//! Takes sessions from another store, row by row.

use amplifier_session_core::{
    Result,
    model::UserId,
    storage::{ReceiveOptions, ReceivedSession, RowIntake, RowSink},
};
use serde::{Deserialize, Serialize};

use crate::{AccessRight, Api, ApiError};

/// Sessions that another store sends, as a stream.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WriteRowsRequest {
    /// The owner of all sessions. Default: the caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<UserId>,
    /// Whether to store sessions also if they were deleted from the store.
    pub include_deleted: bool,
    /// Whether nothing is stored, and the response only says what would be.
    pub dry_run: bool,
}

/// The results for the sessions of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WriteRowsResponse {
    /// The sessions, in any order. One that is not among them was not in the stream.
    pub sessions: Vec<ReceivedSession>,
}

/// Takes the bytes of a stream of sessions, in pieces of any size.
#[derive(Debug)]
pub struct RowWriting {
    intake: RowIntake,
}

impl RowWriting {
    /// The size of the line that is not complete yet, in bytes. It is in memory until it is.
    #[must_use]
    pub fn pending_line(&self) -> usize {
        self.intake.pending_line()
    }

    /// Takes the next bytes.
    ///
    /// # Errors
    ///
    /// `Validation` (`archive`) if it is not a stream of sessions that this version can read; errors of the store. What
    /// was stored before stays, and can be sent again.
    #[crate::compiled_here]
    pub async fn put(&mut self, bytes: Vec<u8>) -> Result<(), ApiError> {
        Ok(self.intake.put(bytes).await?)
    }

    /// Ends the stream, also one that was cut off. Returns what became of its sessions, after they are stored.
    ///
    /// # Errors
    ///
    /// As [`Self::put`].
    #[crate::compiled_here]
    pub async fn finish(self) -> Result<WriteRowsResponse, ApiError> {
        Ok(WriteRowsResponse { sessions: self.intake.finish().await? })
    }
}

impl Api<'_> {
    /// Begins to take sessions of the caller from another store. Only their lines are believed; visibility and vectors
    /// are not taken over, and nothing is deleted. A session that can't be stored does not keep the others from it.
    /// Vectors are pending afterwards. If the store has no user yet, it becomes the caller's.
    ///
    /// # Errors
    ///
    /// [`ApiError::MissingRight`] without the right to write, and to administer the store for the sessions of another
    /// user; errors of the store.
    #[crate::compiled_here]
    pub async fn write_rows(&self, request: &WriteRowsRequest) -> Result<RowWriting, ApiError> {
        let owner = self.owner_of_rows(request.user.as_ref(), &[AccessRight::Write])?;
        if !request.dry_run {
            self.storage.users().pin_user(self.caller.user()).await?;
        }
        let options = ReceiveOptions::default()
            .with_owner(Some(owner))
            .with_include_deleted(request.include_deleted)
            .with_dry_run(request.dry_run);
        Ok(RowWriting { intake: self.storage.exchange().receive(options) })
    }
}
