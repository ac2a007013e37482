//! The backend: what a store does, in the words of the trait.

use std::{collections::BTreeMap, sync::Arc};

use amplifier_session_core::{
    Error, Result, Scope,
    backend::{
        Candidates, EventCount, EventTime, Events, MessageCount, MessageVectors, Messages, Meta, OweAgain,
        OwingQuery, Scheduling, Search, SequenceRange, SessionChange, SessionName, SessionQuery, SessionRows,
        Sessions, StoreInfo, StorePlace, StoredSession, TextCandidate, TextQuery, VectorCandidate,
        VectorCounts, VectorQuery, Vectors, Version,
    },
    model::{
        ContentType, ContentTypes, Digest, Event, Message, MessageState, Payload, Place, Session, SessionId,
        SessionKey, UserId, VectorRecord,
    },
    search::{EventFilter, EventSearchOptions, SearchFilter},
};
use async_trait::async_trait;
use azure_core::credentials::TokenCredential;
use azure_data_cosmos::CosmosRuntimeBuilder;

use crate::{
    config::CosmosConfig,
    counts, events, generations, messages, rename, schema, search, sessions,
    store::{Store, Transport},
    texts, vectors, write,
};

/// Sessions in Azure Cosmos DB. Cheap to clone; clones share connections.
#[derive(Debug, Clone)]
pub struct CosmosBackend(pub(crate) Arc<Store>);

impl CosmosBackend {
    /// Connects to the account with a key. The database and its containers are made where they are missing.
    ///
    /// # Errors
    ///
    /// `Authentication` when the key is refused, or when the configuration asks for Entra ID, for which there is
    /// [`CosmosBackend::connect_with`]; `StorageConnection` when the account can't be reached; `Validation` when a
    /// container is other than expected.
    pub async fn connect(config: CosmosConfig) -> Result<Self> {
        Self::open(config, Transport::default()).await
    }

    /// Connects with a credential of Entra ID. The database and its containers must be there: with such a credential
    /// they can't be made.
    ///
    /// # Errors
    ///
    /// As [`CosmosBackend::connect`]; `StorageConnection` also when a container is missing.
    pub async fn connect_with(config: CosmosConfig, credential: Arc<dyn TokenCredential>) -> Result<Self> {
        Self::open(config, Transport { credential: Some(credential), ..Transport::default() }).await
    }

    /// Connects through a transport of one's own: for tests.
    ///
    /// # Errors
    ///
    /// As [`CosmosBackend::connect`].
    #[doc(hidden)]
    pub async fn connect_through(config: CosmosConfig, runtime: CosmosRuntimeBuilder) -> Result<Self> {
        Self::open(config, Transport { credential: None, runtime }).await
    }

    async fn open(config: CosmosConfig, transport: Transport) -> Result<Self> {
        let account = config.endpoint.clone();
        let opened = Store::connect(config, transport).await;
        let failed = |error: Error| error.with_operation("connect").with("account", account);
        opened.map(|store| Self(Arc::new(store))).map_err(failed)
    }
}

#[async_trait]
impl Meta for CosmosBackend {
    fn info(&self) -> StoreInfo {
        StoreInfo::new("cosmos")
            .with_atomic_writes(false)
            .with_places(vec![StorePlace::remote("store", self.0.location())])
            .with_usage(self.0.usage.total())
    }

    async fn meta(&self) -> Result<BTreeMap<String, String>> {
        schema::entries(&self.0).await
    }

    async fn swap_meta(&self, key: &str, expected: Option<&str>, value: &str) -> Result<Option<String>> {
        schema::swap(&self.0, key, expected, value).await
    }
}

#[async_trait]
impl Sessions for CosmosBackend {
    async fn get_session(&self, key: &SessionKey) -> Result<Option<StoredSession>> {
        sessions::get(&self.0, key).await
    }

    async fn list_sessions(&self, query: &SessionQuery) -> Result<Vec<Session>> {
        sessions::list(&self.0, query).await
    }

    async fn session_names(&self, scope: &Scope) -> Result<Vec<SessionName>> {
        sessions::names(&self.0, scope).await
    }

    async fn session_rows(&self, key: &SessionKey) -> Result<SessionRows> {
        counts::rows_of(&self.0, key).await
    }

    async fn sync_states(
        &self,
        user: &UserId,
        after: Option<&SessionId>,
        limit: usize,
    ) -> Result<Vec<(SessionId, String)>> {
        sessions::sync_states(&self.0, user, after, limit).await
    }

    async fn write(&self, changes: Vec<SessionChange>) -> Vec<Result<Version>> {
        let mut versions = Vec::with_capacity(changes.len());
        for change in changes {
            versions.push(write::write(&self.0, change).await);
        }
        versions
    }

    async fn delete_session(&self, key: &SessionKey) -> Result<bool> {
        write::delete(&self.0, key).await
    }

    async fn deleted_sessions(&self, user: &UserId) -> Result<Vec<SessionId>> {
        sessions::deleted(&self.0, user).await
    }

    async fn rename_user(&self, from: &UserId, to: &UserId) -> Result<u64> {
        rename::rename(&self.0, from, to).await
    }
}

#[async_trait]
impl Messages for CosmosBackend {
    async fn message_states(&self, key: &SessionKey) -> Result<Vec<MessageState>> {
        messages::states(&self.0, key).await
    }

    async fn read_messages(&self, key: &SessionKey, range: SequenceRange) -> Result<Vec<Message>> {
        messages::read(&self.0, key, range).await
    }

    async fn messages_at(&self, places: &[Place]) -> Result<Vec<Message>> {
        messages::at(&self.0, places).await
    }

    async fn count_messages(&self, scope: &Scope, filter: &SearchFilter) -> Result<Vec<MessageCount>> {
        counts::messages(&self.0, scope, filter).await
    }
}

#[async_trait]
impl Events for CosmosBackend {
    async fn event_digests(&self, key: &SessionKey, range: SequenceRange) -> Result<Vec<Digest>> {
        events::digests(&self.0, key, range).await
    }

    async fn read_events(&self, key: &SessionKey, range: SequenceRange) -> Result<Vec<Event>> {
        events::read(&self.0, key, range).await
    }

    async fn event_times(&self, key: &SessionKey, range: SequenceRange) -> Result<Vec<EventTime>> {
        Ok(self.read_events(key, range).await?.into_iter().map(EventTime::from).collect())
    }

    async fn event_payloads(&self, key: &SessionKey, sequences: &[u32]) -> Result<Vec<(u32, Payload)>> {
        events::payloads(&self.0, key, sequences).await
    }

    async fn find_events(&self, user: &UserId, event_ids: &[String]) -> Result<Vec<(String, Place)>> {
        events::find(&self.0, user, event_ids).await
    }

    async fn search_events(&self, scope: &Scope, options: &EventSearchOptions) -> Result<Vec<Event>> {
        events::search(&self.0, scope, options).await
    }

    async fn count_events(&self, scope: &Scope, filter: &EventFilter) -> Result<Vec<EventCount>> {
        events::count(&self.0, scope, filter).await
    }
}

#[async_trait]
impl Vectors for CosmosBackend {
    async fn messages_owing_vectors(&self, query: &OwingQuery) -> Result<Vec<Message>> {
        messages::owing(&self.0, query).await
    }

    async fn write_vectors(
        &self,
        key: &SessionKey,
        generation: u32,
        vectors: Vec<MessageVectors>,
    ) -> Result<usize> {
        vectors::write(&self.0, key, generation, vectors).await
    }

    async fn owe_vectors(&self, key: &SessionKey, which: OweAgain) -> Result<u64> {
        vectors::owe(&self.0, key, &which).await
    }

    async fn complete_generation(&self, generation: u32) -> Result<bool> {
        generations::complete(&self.0, generation).await
    }

    async fn prune_vectors(&self, limit: usize) -> Result<usize> {
        generations::prune(&self.0, limit).await
    }

    async fn count_vectors(&self, scope: &Scope) -> Result<VectorCounts> {
        generations::count(&self.0, scope).await
    }

    async fn vectors_of(
        &self,
        generation: u32,
        texts: &[(Place, ContentType)],
    ) -> Result<Vec<(Place, VectorRecord)>> {
        vectors::of_texts(&self.0, generation, texts).await
    }

    async fn vector_types(
        &self,
        generation: u32,
        key: &SessionKey,
        range: SequenceRange,
    ) -> Result<Vec<(u32, ContentTypes)>> {
        vectors::types(&self.0, generation, key, range).await
    }
}

#[async_trait]
impl Search for CosmosBackend {
    async fn text_candidates(&self, query: &TextQuery) -> Result<Candidates<TextCandidate>> {
        search::texts(&self.0, query).await
    }

    async fn vector_candidates(&self, query: &VectorQuery) -> Result<Candidates<VectorCandidate>> {
        search::vectors(&self.0, query).await
    }

    async fn update_index(&self) -> Result<()> {
        // The service keeps its indexes with each write.
        Ok(())
    }

    async fn renew_texts(&self, key: &SessionKey, sequences: &[u32]) -> Result<()> {
        texts::renew(&self.0, key, sequences).await
    }
}

impl Scheduling for CosmosBackend {}
