//! The store to be filled.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use amplifier_session_core::{
    Error, ErrorKind, Result,
    backend::{
        IndexUpdate, StorageBackend, StorageBackendExt, StoredSession,
        meta::{EMBEDDING_SPACE, Generation, Generations, USER_ID},
    },
    model::{EmbeddingSpace, SessionId, SessionKey, UserId},
};
use tokio::runtime::Handle;

/// Key of the session that an upgrade is writing in several steps. If the process is killed, the next upgrade writes
/// this session again; all other sessions in the store are complete.
const UNFINISHED: &str = "upgrade_unfinished";
/// The sync state of a session while it is written in parts.
pub(crate) const UPGRADING: &str = "upgrading";

/// A store to which sessions are written.
#[derive(Debug)]
pub(crate) struct TargetStore {
    pub(crate) backend: Arc<dyn StorageBackend>,
    runtime: Handle,
    /// Whether the store was empty before.
    is_new: bool,
    /// The value of [`UNFINISHED`].
    unfinished: Option<String>,
    deleted: HashMap<UserId, BTreeSet<SessionId>>,
    /// The generation of the vectors that are written.
    pub(crate) generation: u32,
}

/// How a session is written.
#[derive(Debug)]
pub(crate) enum Start {
    /// Not at all: the store has it, or it was deleted there.
    Skip,
    /// As a new session.
    New,
    /// Replacing the rows that a killed upgrade left.
    Again(Box<StoredSession>),
}

impl TargetStore {
    pub(crate) fn new(backend: Arc<dyn StorageBackend>, runtime: Handle, is_new: bool) -> Result<Self> {
        let unfinished = if is_new { None } else { runtime.block_on(backend.meta())?.remove(UNFINISHED) };
        Ok(Self { backend, runtime, is_new, unfinished, deleted: HashMap::new(), generation: 0 })
    }

    pub(crate) fn wait<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.block_on(work)
    }

    /// Makes `space` the space of the store's vectors, unless the store has one. Returns the store's space.
    pub(crate) fn claim(&mut self, space: &EmbeddingSpace) -> Result<EmbeddingSpace> {
        let first = Generation { space: space.clone(), number: 0 };
        self.wait(self.backend.put_meta_if_absent(EMBEDDING_SPACE, &first.to_value()))?;
        let generations = Generations::of(&self.wait(self.backend.meta())?);
        self.generation = generations.current_number();
        Ok(generations.current.map_or_else(|| space.clone(), |generation| generation.space))
    }

    /// Prepares to write a session.
    pub(crate) fn begin(&mut self, key: &SessionKey) -> Result<Start> {
        if self.is_new {
            return Ok(Start::New);
        }
        let name = format!("{}\t{}", key.user_id, key.session_id);
        if let Some(stored) = self.wait(self.backend.get_session(key))? {
            // A sync has written the session since, so the stored rows are newer.
            let is_ours = stored
                .sync_state
                .as_ref()
                .is_none_or(|state| state.files.is_empty() || state.files == UPGRADING);
            let again = is_ours && self.unfinished.as_ref() == Some(&name);
            return Ok(if again { Start::Again(Box::new(stored)) } else { Start::Skip });
        }
        if self.is_deleted(key)? {
            return Ok(Start::Skip);
        }
        self.set_unfinished(name)?;
        Ok(Start::New)
    }

    fn is_deleted(&mut self, key: &SessionKey) -> Result<bool> {
        if !self.deleted.contains_key(&key.user_id) {
            let deleted = self.wait(self.backend.deleted_sessions(&key.user_id))?;
            self.deleted.insert(key.user_id.clone(), deleted.into_iter().collect());
        }
        Ok(self.deleted.get(&key.user_id).is_some_and(|deleted| deleted.contains(&key.session_id)))
    }

    fn set_unfinished(&mut self, name: String) -> Result<()> {
        let stored = self.wait(self.backend.swap_meta(UNFINISHED, self.unfinished.as_deref(), &name))?;
        if stored.as_ref() != Some(&name) {
            let message = "another process is upgrading a file into the same store";
            return Err(Error::new(ErrorKind::Conflict, message).with_operation("upgrade").retryable());
        }
        self.unfinished = stored;
        Ok(())
    }

    /// Completes the store. If all sessions belong to one user, `user` is the store's owner.
    pub(crate) fn finish(mut self, user: Option<&UserId>) -> Result<()> {
        if let Some(user) = user {
            self.wait(self.backend.put_meta_if_absent(USER_ID, user.as_str()))?;
        }
        if self.unfinished.as_ref().is_some_and(|name| !name.is_empty()) {
            self.set_unfinished(String::new())?;
        }
        self.wait(self.backend.update_index(IndexUpdate::Now))
    }
}
