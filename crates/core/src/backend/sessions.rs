//! Sessions: reading, listing, writing, deleting.

use async_trait::async_trait;

use super::{
    Deletion, RowCounts, SessionChange, SessionDeletion, SessionName, SessionQuery, StoredSession,
    StoredSyncState, Version,
};
use crate::{
    Result,
    model::{Session, SessionId, SessionKey, UserId},
    scope::Scope,
};

/// Stores and reads sessions. A session is written together with its messages and events.
#[async_trait]
pub trait Sessions: Send + Sync {
    /// A session with the data stored beside its fields.
    async fn get_session(&self, key: &SessionKey) -> Result<Option<StoredSession>>;

    /// Sessions in the order of [`SessionCursor`](super::SessionCursor). Fewer than `limit` means the end of the list.
    async fn list_sessions(&self, query: &SessionQuery) -> Result<Vec<Session>>;

    /// The ids of all sessions in `scope` and of their parents, in any order.
    async fn session_names(&self, scope: &Scope) -> Result<Vec<SessionName>>;

    /// The number of rows of a session, their highest sequence, and their times.
    async fn session_rows(&self, key: &SessionKey) -> Result<RowCounts>;

    /// The sync states of a user's sessions after `after`, in order of session id. Leaves out sessions without one. An
    /// empty answer means the end.
    async fn sync_states(
        &self,
        user: &UserId,
        after: Option<&SessionId>,
        limit: usize,
    ) -> Result<Vec<(SessionId, StoredSyncState)>>;

    /// Writes sessions with their messages and events. Returns a result for each change, in order; each succeeds or
    /// fails independently. May write several in one transaction.
    ///
    /// - Fails with `Conflict` (retryable) and changes nothing if the stored version is not the expected one.
    /// - The vectors of messages that are put or removed are removed.
    /// - A retimed message gets the new time, also in searches by time. Its line, turn, vectors and their state do not
    ///   change. A message that does not exist is ignored. A change never retimes a message that it also puts or
    ///   removes.
    /// - An event that is put replaces the event with its sequence. It may have the id of another event that is put or
    ///   removed by the same change. Callers use [`find_events`](super::Events::find_events) to check whether an id is
    ///   taken; if another session took it in the meantime, a backend that notices fails with `Conflict` (retryable).
    /// - Superseded lines are stored no later than the change removes the rows. A piece whose id is already stored
    ///   does not change.
    /// - If the project of the session changes, its messages, vectors and events follow.
    /// - With [`atomic_writes`](super::StoreInfo::atomic_writes), each change is written completely or not at all, even
    ///   if the process is killed. Otherwise, repeating the call completes it.
    async fn write(&self, changes: Vec<SessionChange>) -> Vec<Result<Version>>;

    /// Removes sessions with their messages, vectors, events, chunks and superseded lines, and remembers that they were deleted.
    ///
    /// - Returns for each session, in order, whether it existed; each succeeds or fails independently.
    /// - Fails with `Conflict` (retryable) and removes nothing if a session has another version than the
    ///   [expected](SessionDeletion::expected) one. If another writer changes it between two steps of a deletion that expects a
    ///   version, the deletion fails in the same way: the session then has fewer rows, and what was written stays.
    /// - Needs the same memory for a session of any length. A long session may be removed in several steps, from its
    ///   end; until the last step, it exists with fewer rows. Repeating the call completes an interrupted deletion.
    /// - Then erases the words of the sessions from all files, once for all sessions. [`Deletion::remains`] lists the
    ///   files from which they cannot be erased, for example because the disk is full. The sessions are deleted
    ///   nevertheless, and the next write of any process tries again, even after a process was killed.
    async fn delete_sessions(&self, sessions: &[SessionDeletion]) -> Deletion;

    /// The sessions of a user that were deleted and have not been written since, in order of session id.
    async fn deleted_sessions(&self, user: &UserId) -> Result<Vec<SessionId>>;

    /// Changes the owner of all sessions of `from`, their data, and the list of deleted sessions to `to`, another user.
    /// Returns the number of sessions.
    ///
    /// - Fails with `Conflict` and changes nothing if both have a session or an event with the same id.
    /// - With [`atomic_writes`](super::StoreInfo::atomic_writes), either everything changes or nothing. Otherwise,
    ///   repeating the call completes it.
    async fn rename_user(&self, from: &UserId, to: &UserId) -> Result<u64>;
}
