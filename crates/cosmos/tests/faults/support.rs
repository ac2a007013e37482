//! Hosts, their writes, and the stored result.

use std::{sync::Arc, time::Duration};

use amplifier_session_core::{
    Result, Scope, Secret, SessionStorage,
    backend::prelude::*,
    embedding::EmbeddingProvider,
    model::{HostId, ProjectSlug, RawJson, SessionId, SessionKey, UserId},
    storage::{EventLines, IngestTarget, SyncLines},
};
use amplifier_session_cosmos::{Authentication, CosmosBackend, CosmosConfig};
use amplifier_session_testkit::{
    FakeEmbedding,
    cosmos::{AccountOptions, CosmosAccount},
    lines,
};

/// Every fault ends within this number of attempts.
const ATTEMPTS: usize = 10;

pub(crate) async fn account() -> CosmosAccount {
    CosmosAccount::start(AccountOptions::default()).await.unwrap()
}

pub(crate) fn config(account: &CosmosAccount) -> CosmosConfig {
    let mut config = CosmosConfig::new(account.endpoint());
    config.authentication = Authentication::Key(Secret::new(account.key()));
    config.vector_dimensions = Some(64);
    config.takeover_after = Duration::from_millis(100);
    config
}

/// A host with a client of its own.
pub(crate) async fn host(account: &CosmosAccount) -> SessionStorage {
    storage(CosmosBackend::connect(config(account)).await.unwrap())
}

pub(crate) fn storage(backend: CosmosBackend) -> SessionStorage {
    let embedding: Arc<dyn EmbeddingProvider> = Arc::new(FakeEmbedding::new());
    SessionStorage::new(Arc::new(backend)).with_embedding(Some(embedding))
}

pub(crate) fn target() -> IngestTarget {
    IngestTarget {
        key: SessionKey::new(UserId::new("ana").unwrap(), SessionId::new("s").unwrap()),
        host_id: HostId::new("laptop").unwrap(),
        project_slug: ProjectSlug::new("shop").unwrap(),
    }
}

/// The lines of a transcript by `who`.
pub(crate) fn transcript(who: &str, count: usize) -> Vec<RawJson> {
    (0..count).map(|n| lines::user(&format!("{who} says {n}")).raw()).collect()
}

pub(crate) fn log(count: usize) -> Vec<RawJson> {
    (0..count).map(|n| lines::hook_event(&format!("tool:call{n}")).raw()).collect()
}

pub(crate) async fn sync(storage: &SessionStorage, lines: &[RawJson]) -> Result<()> {
    storage.ingestion().sync_transcript_lines(&target(), SyncLines::whole(lines.to_vec())).await.map(drop)
}

pub(crate) async fn sync_events(storage: &SessionStorage, lines: &[RawJson]) -> Result<()> {
    storage.ingestion().sync_event_lines(&target(), SyncLines::whole(lines.to_vec())).await.map(drop)
}

/// Syncs until it succeeds. Every failure must be retryable.
pub(crate) async fn sync_until_done(storage: &SessionStorage, lines: &[RawJson]) {
    for _ in 0..ATTEMPTS {
        match sync(storage, lines).await {
            Ok(()) => return,
            Err(error) => assert!(error.is_retryable(), "{error:?}"),
        }
    }
    panic!("not done after {ATTEMPTS} attempts");
}

/// The stored lines, as a new host reads them.
pub(crate) async fn stored(account: &CosmosAccount) -> Vec<RawJson> {
    let scope = Scope::User(target().key.user_id);
    let reader = host(account).await;
    let read = reader.reading().get_transcript_lines(&scope, &target().key.session_id, None, 100_000).await;
    read.unwrap().into_iter().map(|message| message.raw).collect()
}

pub(crate) async fn stored_events(account: &CosmosAccount) -> usize {
    let scope = Scope::User(target().key.user_id);
    let every = EventLines::default().with_limit(100_000);
    host(account)
        .await
        .reading()
        .get_event_lines(&scope, &target().key.session_id, every)
        .await
        .unwrap()
        .len()
}

/// Checks that all lines are stored with their vectors.
pub(crate) async fn assert_complete(account: &CosmosAccount, lines: &[RawJson]) {
    account.heal();
    assert_eq!(stored(account).await, lines);
    let backend = CosmosBackend::connect(config(account)).await.unwrap();
    let counts = backend.count_vectors(&Scope::User(target().key.user_id)).await.unwrap();
    let made = &counts.generations[&0];
    assert_eq!((made.messages, made.pending), (counts.embeddable, 0), "{counts:?}");
    assert_eq!(account.refused_queries(), Vec::<String>::new());
}
