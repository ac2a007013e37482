//! What a backend gives to the index: its rows, by revision.

use std::ops::ControlFlow;

use amplifier_session_core::{
    Result, Scope,
    model::{ContentType, Role, Timestamp},
    search::SessionFilter,
};
use serde::{Deserialize, Serialize};

/// Which state of which store: of the rows, or of an index made from them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreRevision {
    /// The store's random identity, made once when it is created.
    pub store: [u8; 16],
    /// How many writes the store has seen: every transaction that changes rows takes the next number, from 1.
    pub revision: u64,
    /// A random number drawn by the write of this revision: a store restored from a backup and written again has
    /// the same revisions with other nonces.
    pub nonce: u64,
}

/// A message, as the index wants it.
#[derive(Debug, Clone, Copy)]
pub struct MessageRow<'a> {
    /// The row's key: kept when the message changes, free for another message once it is removed.
    pub key: u64,
    /// The write that made or last changed the row.
    pub revision: u64,
    /// The key of its session's row: kept when the session changes, free for another once it is removed with all its
    /// messages.
    pub session_key: u64,
    /// The owner.
    pub user: &'a str,
    /// The project's slug.
    pub project: &'a str,
    /// The session's id.
    pub session: &'a str,
    /// Who speaks.
    pub role: Role,
    /// When it was written.
    pub ts: Timestamp,
    /// The transcript line as it came in.
    pub raw: &'a [u8],
}

/// A vector, as the index wants it.
#[derive(Debug, Clone, Copy)]
pub struct VectorRow<'a> {
    /// The row's key: kept when the row changes, free for another vector once it is removed.
    pub key: u64,
    /// The write that made or last changed the row (or the fields of its message and session that stand here).
    pub revision: u64,
    /// The key of its session's row: kept when the session changes, free for another once it is removed with all its
    /// messages.
    pub session_key: u64,
    /// The owner.
    pub user: &'a str,
    /// The project's slug.
    pub project: &'a str,
    /// The session's id.
    pub session: &'a str,
    /// Who speaks in its message.
    pub role: Role,
    /// Which text of the message was embedded.
    pub content_type: ContentType,
    /// When its message was written.
    pub ts: Timestamp,
    /// The generation of vectors that it belongs to: others are not compared with it.
    pub generation: u32,
    /// The vector: of unit length, or zero.
    pub vector: &'a [f32],
}

/// The session of a row, as far as the row tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SessionOfRow<'a> {
    pub(crate) key: u64,
    pub(crate) user: &'a str,
    pub(crate) project: &'a str,
    pub(crate) session: &'a str,
}

impl<'a> MessageRow<'a> {
    pub(crate) fn of_session(&self) -> SessionOfRow<'a> {
        let Self { user, project, session, .. } = *self;
        SessionOfRow { key: self.session_key, user, project, session }
    }
}

impl<'a> VectorRow<'a> {
    pub(crate) fn of_session(&self) -> SessionOfRow<'a> {
        let Self { user, project, session, .. } = *self;
        SessionOfRow { key: self.session_key, user, project, session }
    }
}

/// The rows of a store as one consistent snapshot: one read transaction.
///
/// The snapshot should be taken by the first call of [`Rows::mark`], not earlier (a deferred transaction does just
/// that): the index reads its own files first, so that a fold of another process in between can't make it newer
/// than the rows. If it happens nevertheless the answer is still right, but slow.
///
/// All calls block.
pub trait Rows {
    /// The state of the rows in this snapshot.
    fn mark(&mut self) -> Result<StoreRevision>;

    /// The nonce of an earlier write of this store. `None` when there was no such write, or when removals after
    /// it have been forgotten: an index of that revision can't be brought up to date any more.
    ///
    /// Every revision that a row carries has a nonce.
    fn nonce(&mut self, revision: u64) -> Result<Option<u64>>;

    /// The messages of a revision above `revision` (0: all), in ascending order of revision. Stops when `each`
    /// says so.
    fn messages_after(
        &mut self,
        revision: u64,
        each: &mut dyn FnMut(MessageRow<'_>) -> Result<ControlFlow<()>>,
    ) -> Result<()>;

    /// The vectors of a revision above `revision` (0: all), in ascending order of revision. Stops when `each`
    /// says so.
    fn vectors_after(
        &mut self,
        revision: u64,
        each: &mut dyn FnMut(VectorRow<'_>) -> Result<ControlFlow<()>>,
    ) -> Result<()>;

    /// Keys of messages that were removed by a write above `revision`, in any order. A key that has been used
    /// again since may be among them.
    fn removed_messages_after(&mut self, revision: u64) -> Result<Vec<u64>>;

    /// Keys of vectors that were removed by a write above `revision`, in any order. A key that has been used
    /// again since may be among them.
    fn removed_vectors_after(&mut self, revision: u64) -> Result<Vec<u64>>;

    /// The keys of the sessions that `scope` and `filter` admit, in any order, each once.
    ///
    /// Asked for when a search needs to know more of a session than its owner, project and id.
    fn session_keys(&mut self, scope: &Scope, filter: &SessionFilter) -> Result<Vec<u64>>;

    /// The full vectors of rows, in any order; keys that do not exist are left out.
    fn vectors(&mut self, keys: &[u64], each: &mut dyn FnMut(u64, &[f32]) -> Result<()>) -> Result<()>;
}
