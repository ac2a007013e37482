//! The rows of a store by revision, which a backend passes to the index.

use std::{borrow::Cow, ops::ControlFlow};

use amplifier_session_core::{
    Result, Scope,
    model::{ContentType, Role, Timestamp},
    search::SessionFilter,
};
use serde::{Deserialize, Serialize};

/// A state of a store: of its rows, or of an index derived from them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreRevision {
    /// The random id of the store, made when it is created.
    pub store: [u8; 16],
    /// The number of writes so far: every transaction that changes rows takes the next number, from 1.
    pub revision: u64,
    /// A random number for the write of this revision. A store that was restored from a backup and written again has
    /// the same revisions with other nonces.
    pub nonce: u64,
}

/// The session of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionOfRow<'a> {
    /// The key of its row. It stays the same when the session changes, and can be reused after the session is removed
    /// with all its messages.
    pub key: u64,
    /// The owner.
    pub user: &'a str,
    /// The project's slug.
    pub project: &'a str,
    /// The session's id.
    pub session: &'a str,
}

/// A message for the index.
#[derive(Debug, Clone)]
pub struct MessageRow<'a> {
    /// The row's key. It stays the same when the message changes, and can be reused after it is removed.
    pub key: u64,
    /// The write that created or last changed the row.
    pub revision: u64,
    /// Its session.
    pub session: SessionOfRow<'a>,
    /// The role.
    pub role: Role,
    /// The time of the message.
    pub ts: Timestamp,
    /// The original line of the transcript.
    pub raw: Cow<'a, [u8]>,
}

/// A vector for the index: of a text, or of a turn. The keys of both are independent.
#[derive(Debug, Clone, Copy)]
pub struct VectorRow<'a> {
    /// The row's key. It stays the same when the row changes, and can be reused after it is removed.
    pub key: u64,
    /// The write that created or last changed the row, or the fields of its message and session below.
    pub revision: u64,
    /// Its session.
    pub session: SessionOfRow<'a>,
    /// The role of its message.
    pub role: Role,
    /// The type of the message's text that was embedded. Of a turn, [`ContentType::UserQuery`].
    pub content_type: ContentType,
    /// The time of its message.
    pub ts: Timestamp,
    /// The generation to which it belongs. Only vectors of one generation are compared.
    pub generation: u32,
    /// The vector, with unit length or zero.
    pub vector: &'a [f32],
}

/// A [`SessionOfRow`] that owns its names. Ordered like the rows in a segment.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct RowSession {
    pub(crate) user: String,
    pub(crate) session: String,
    pub(crate) project: String,
    pub(crate) key: u64,
}

impl RowSession {
    pub(crate) fn of_row(&self) -> SessionOfRow<'_> {
        let Self { user, session, project, key } = self;
        SessionOfRow { key: *key, user, project, session }
    }
}

impl From<SessionOfRow<'_>> for RowSession {
    fn from(row: SessionOfRow<'_>) -> Self {
        let SessionOfRow { key, user, project, session } = row;
        Self { user: user.to_owned(), session: session.to_owned(), project: project.to_owned(), key }
    }
}

/// The rows of a store as one consistent snapshot: one read transaction.
///
/// The snapshot should be taken by the first call of [`Rows::store_revision`], not earlier (as with a deferred
/// transaction): the index reads its own files first, so that a fold of another process can't make it newer than the
/// rows. If it still happens, the answer is correct, but slow.
///
/// All calls block.
pub trait Rows {
    /// The state of the rows in this snapshot.
    fn store_revision(&mut self) -> Result<StoreRevision>;

    /// The nonce of an earlier write of this store. `None` if there was no such write, or if removals after it are no
    /// longer known, so that an index of that revision can't be updated.
    ///
    /// The revision of every row has a nonce.
    fn nonce(&mut self, revision: u64) -> Result<Option<u64>>;

    /// Calls `each` with the messages of a revision above `revision` (0: all), in ascending order of revision, until it
    /// breaks.
    fn messages_after(
        &mut self,
        revision: u64,
        each: &mut dyn FnMut(MessageRow<'_>) -> Result<ControlFlow<()>>,
    ) -> Result<()>;

    /// Calls `each` with the vectors of texts or `turns` of a revision above `revision` (0: all), in ascending order of
    /// revision, until it breaks.
    fn vectors_after(
        &mut self,
        turns: bool,
        revision: u64,
        each: &mut dyn FnMut(VectorRow<'_>) -> Result<ControlFlow<()>>,
    ) -> Result<()>;

    /// The keys of messages that were removed by a write above `revision`, in any order. They may include keys that
    /// were reused since.
    fn removed_messages_after(&mut self, revision: u64) -> Result<Vec<u64>>;

    /// The keys of vectors of texts or `turns` that were removed by a write above `revision`, in any order. They may
    /// include keys that were reused since.
    fn removed_vectors_after(&mut self, turns: bool, revision: u64) -> Result<Vec<u64>>;

    /// The keys of the sessions that `scope` and `filter` admit, in any order, without duplicates.
    ///
    /// Used if a search needs more than the owner, project and id of a session.
    fn session_keys(&mut self, scope: &Scope, filter: &SessionFilter) -> Result<Vec<u64>>;

    /// The keys of the messages of vectors of texts, in any order: pairs of a vector's key and its message's. Missing ones
    /// are left out.
    fn messages_of_vectors(&mut self, keys: &[u64]) -> Result<Vec<(u64, u64)>>;

    /// The full vectors of texts or `turns`, in any order; keys that do not exist are left out.
    fn vectors(
        &mut self,
        turns: bool,
        keys: &[u64],
        each: &mut dyn FnMut(u64, &[f32]) -> Result<()>,
    ) -> Result<()>;
}
