//! Stores behind PgBouncer. `.ci/nightly` runs these tests.

use std::{net::SocketAddr, sync::Arc};

use amplifier_session_core::{
    ErrorKind,
    backend::{Integrity as _, StorageBackend},
    config::Settings,
};
use amplifier_session_postgres::{Postgres, PostgresConfig};
use amplifier_session_testkit::{
    PgBouncer, Store, Subject, conformance_suite, lines, postgres,
    store::{target, words},
};
use async_trait::async_trait;

use crate::support::{Schema, exists};

/// A store in a schema of its own, behind a pooler in transaction mode, with fewer connections than clients.
struct Pooled {
    schema: Schema,
    pooler: Arc<PgBouncer>,
}

impl Pooled {
    fn new() -> Self {
        Self::behind(Arc::new(pooler("transaction", 3)))
    }

    fn behind(pooler: Arc<PgBouncer>) -> Self {
        Self { schema: Schema::new(), pooler }
    }

    fn config(&self) -> PostgresConfig {
        let address = format!("//amplifier@127.0.0.1:{}/postgres", self.pooler.port());
        PostgresConfig::new(&address, &Settings::default()).unwrap().with_schema(self.schema.name())
    }
}

#[async_trait]
impl Subject for Pooled {
    async fn open(&self) -> Arc<dyn StorageBackend> {
        Arc::new(Postgres::open(self.config()).await.unwrap())
    }

    async fn open_again(&self) -> Arc<dyn StorageBackend> {
        self.open().await
    }
}

fn pooler(mode: &str, connections: usize) -> PgBouncer {
    let (_, place) = postgres::url().rsplit_once('@').unwrap();
    let server: SocketAddr = place.split('/').next().unwrap().parse().unwrap();
    PgBouncer::start(server, mode, connections, &["amplifier"])
}

conformance_suite!(Pooled::new(), ignore = "needs a PostgreSQL server and PgBouncer");

/// Both stores use the only connection to the server.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a PostgreSQL server and PgBouncer"]
async fn two_schemas_on_one_connection_are_not_mixed() {
    let pooler = Arc::new(pooler("transaction", 1));
    let mut stores = Vec::new();
    for _ in 0..2 {
        stores.push(Store::open(Arc::new(Pooled::behind(pooler.clone()))).await);
    }
    let names = ["apple", "pear"];
    for round in 1..=3_u32 {
        for (store, name) in stores.iter().zip(names) {
            let texts = (0..round).map(|n| lines::user(&format!("{name} number {n}")));
            store.sync(&target("s"), texts.collect()).await;
            store.sync(&target(name), vec![lines::user(name)]).await;
        }
    }
    for (store, (own, other)) in stores.iter().zip([("apple", "pear"), ("pear", "apple")]) {
        assert_eq!(store.messages(&target("s")).await.len(), 3);
        assert!(store.messages(&target(other)).await.is_empty());
        assert_eq!(store.search(&target("s"), &words(own)).await.results.len(), 4);
        assert!(store.search(&target("s"), &words(other)).await.results.is_empty());
        assert!(store.backend.check_index().await.unwrap().problems.is_empty());
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a PostgreSQL server and PgBouncer"]
async fn many_clients_share_few_connections() {
    let pooled = Arc::new(Pooled::new());
    let store = Store::open(pooled.clone()).await;
    let mut syncs = tokio::task::JoinSet::new();
    for n in 0..12 {
        let store = store.again().await;
        syncs.spawn(async move {
            let target = target(&format!("s{n}"));
            for length in 1..=6 {
                let texts = (0..length).map(|line| lines::user(&format!("line{line}")));
                store.sync(&target, texts.collect()).await;
            }
            assert_eq!(store.messages(&target).await.len(), 6);
        });
    }
    syncs.join_all().await;
    assert!(store.backend.check_index().await.unwrap().problems.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a PostgreSQL server and PgBouncer"]
async fn a_pooler_without_transactions_is_refused_before_the_first_write() {
    let pooled = Pooled::behind(Arc::new(pooler("statement", 3)));
    let error = Postgres::open(pooled.config()).await.unwrap_err();
    assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::StorageConnection, false), "{error:?}");
    assert!(error.to_string().contains("the connection pooler does not allow transactions"), "{error}");
    assert!(error.hint().unwrap().contains("pool_mode"), "{error:?}");
    assert!(!exists(pooled.schema.name()).await);
}

/// As for a transaction that is being run, a connection of the pooler may also be lost.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a PostgreSQL server and PgBouncer"]
async fn a_pooler_in_session_mode_works() {
    let store = Store::open(Arc::new(Pooled::behind(Arc::new(pooler("session", 3))))).await;
    store.sync(&target("s"), vec![lines::user("apple")]).await;
    assert_eq!(store.find(&target("s"), "apple").await, [0]);
}
