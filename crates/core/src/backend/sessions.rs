//! Sessions: reading, listing, writing, deleting.

use async_trait::async_trait;

use super::{SessionChange, SessionName, SessionQuery, SessionRows, StoredSession, Version};
use crate::{
    Result,
    model::{Session, SessionId, SessionKey, UserId},
    scope::Scope,
};

/// Stores and reads sessions. A session is written together with its messages and events.
#[async_trait]
pub trait Sessions: Send + Sync {
    /// A session with what is stored beside its fields.
    async fn get_session(&self, key: &SessionKey) -> Result<Option<StoredSession>>;

    /// Sessions in the order of [`SessionCursor`](super::SessionCursor). Fewer than `limit` means the end of the list.
    async fn list_sessions(&self, query: &SessionQuery) -> Result<Vec<Session>>;

    /// The ids of all sessions of `scope`, with those of their parents, in any order.
    async fn session_names(&self, scope: &Scope) -> Result<Vec<SessionName>>;

    /// How many rows a session has, how far they go, and from when they are.
    async fn session_rows(&self, key: &SessionKey) -> Result<SessionRows>;

    /// The sync states of a user's sessions after `after`, in order of session id. Leaves out sessions without one. An empty
    /// answer means the end.
    async fn sync_states(
        &self,
        user: &UserId,
        after: Option<&SessionId>,
        limit: usize,
    ) -> Result<Vec<(SessionId, String)>>;

    /// Writes sessions with their messages and events. Answers in the order of `changes`; each fails or succeeds on its own.
    /// May write several in one transaction.
    ///
    /// - Fails with `Conflict` (retryable) and changes nothing if the stored version is not the expected one.
    /// - A message that is put loses its vectors; a removed one takes its vectors with it.
    /// - A retimed message gets the new time, also in searches by time. Its line, turn, vectors and their state stay. One
    ///   that does not exist is ignored. A change never retimes a message that it also puts or removes.
    /// - An event that is put replaces the event of its sequence. It may carry the id of another event that is put or
    ///   removed by the same change. Callers use [`find_events`](super::Events::find_events) to check whether an id is
    ///   taken; if another session took it in the meantime, a backend that notices fails with `Conflict` (retryable).
    /// - If the project of the session changes, its messages, vectors and events follow.
    /// - With [`atomic_writes`](super::StoreInfo::atomic_writes), each change happens as a whole or not at all, also under
    ///   `kill -9`. Otherwise, repeating the call completes it.
    async fn write(&self, changes: Vec<SessionChange>) -> Vec<Result<Version>>;

    /// Removes a session with its messages, vectors, events and chunks, and remembers that it was deleted. Returns whether
    /// there was one.
    async fn delete_session(&self, key: &SessionKey) -> Result<bool>;

    /// The sessions of a user that were deleted and have not been written since, in order of session id.
    async fn deleted_sessions(&self, user: &UserId) -> Result<Vec<SessionId>>;

    /// Gives all sessions of `from`, with everything that belongs to them and the list of deleted ones, to `to`, another
    /// user. Returns how many sessions.
    ///
    /// - Fails with `Conflict` and changes nothing if both have a session or an event of the same id.
    /// - With [`atomic_writes`](super::StoreInfo::atomic_writes), all of it happens or nothing. Otherwise, repeating the
    ///   call completes it.
    async fn rename_user(&self, from: &UserId, to: &UserId) -> Result<u64>;
}
