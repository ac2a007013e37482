//! An open store: its containers, and reading the documents of a session.

use std::sync::Arc;

use amplifier_session_core::{
    Result,
    backend::{ChangeSignal, SessionLocks},
    model::{SessionKey, UserId},
};
use serde::de::DeserializeOwned;

use crate::{
    client::Container,
    config::CosmosConfig,
    containers::order,
    documents::{DeletedDocument, FilesDocument, SessionDocument, kind},
    ids,
    query::{CosmosQuery, Select},
    totals::CachedTotals,
    usage::UsageCounter,
};

/// Sessions in Azure Cosmos DB. Cheap to clone; clones share connections.
#[derive(Debug, Clone)]
pub struct CosmosBackend(pub(crate) Arc<Store>);

/// The containers of a store, and their known properties.
#[derive(Debug)]
pub(crate) struct Store {
    pub(crate) config: CosmosConfig,
    pub(crate) sessions: Container,
    pub(crate) messages: Container,
    pub(crate) events: Container,
    pub(crate) chunks: Container,
    pub(crate) usage: Arc<UsageCounter>,
    /// The length of the vectors that the service compares, if it compares vectors.
    pub(crate) vector_dimensions: Option<usize>,
    /// Whether the terms of texts have a full-text index.
    pub(crate) full_text: bool,
    pub(crate) totals: CachedTotals,
    /// Locks out other writers in this process. Fences lock out other processes.
    pub(crate) locks: SessionLocks,
    /// Tells readers in this process of changes.
    pub(crate) signal: ChangeSignal,
}

impl Store {
    pub(crate) async fn session(&self, key: &SessionKey) -> Result<Option<SessionDocument>> {
        self.sessions.read(key.user_id.as_str(), &ids::session(&key.session_id)).await
    }

    /// The data stored beside the fields of a session.
    pub(crate) async fn files(&self, key: &SessionKey) -> Result<Option<FilesDocument>> {
        self.sessions.read(key.user_id.as_str(), &ids::files(&key.session_id)).await
    }

    /// The records of a user's deleted sessions. They stay when a session is created again.
    pub(crate) async fn deletions(&self, user: &UserId) -> Result<Vec<DeletedDocument>> {
        let select = Select::rows(kind::DELETED, user.as_str()).ordered(order::SESSION_ID);
        self.sessions.all(select.documents()).await
    }

    /// The answers to a query for rows of a session; empty if reads do not show the session yet, before its first write
    /// has completed.
    pub(crate) async fn rows<T: DeserializeOwned + Send + 'static>(
        &self,
        container: &Container,
        key: &SessionKey,
        query: CosmosQuery<T>,
    ) -> Result<Vec<T>> {
        let is_shown = self.session(key).await?.is_some_and(|document| document.committed);
        if is_shown { container.all(query).await } else { Ok(Vec::new()) }
    }
}
