//! A role that may not create the extension pgvector, until an administrator does.

use std::sync::Arc;

use amplifier_session_core::{backend::StorageBackend, config::Settings, search::SearchResults};
use amplifier_session_postgres::{Postgres, PostgresConfig, VectorSupport};
use amplifier_session_testkit::{
    Store, Subject, lines, postgres,
    store::{meaning, target},
};
use async_trait::async_trait;

use crate::support::{administrate, unique_name};

/// A database with a schema for a role that may do nothing else. All three have the same name.
struct Limited(String);

impl Limited {
    async fn create() -> Self {
        let name = unique_name();
        administrate(
            "postgres",
            &[&format!("CREATE DATABASE {name}"), &format!("CREATE ROLE {name} LOGIN PASSWORD 'x'")],
        )
        .await;
        administrate(&name, &[&format!("CREATE SCHEMA {name} AUTHORIZATION {name}")]).await;
        Self(name)
    }

    fn config(&self) -> PostgresConfig {
        let Self(name) = self;
        let host = postgres::url().split_once('@').and_then(|(_, rest)| rest.split('/').next()).unwrap();
        PostgresConfig::new(&format!("//{name}:x@{host}/{name}"), &Settings::default())
            .unwrap()
            .with_schema(name)
    }

    async fn drop(self) {
        let Self(name) = self;
        administrate(
            "postgres",
            &[&format!("DROP DATABASE {name} WITH (FORCE)"), &format!("DROP ROLE {name}")],
        )
        .await;
    }
}

#[async_trait]
impl Subject for Limited {
    async fn open(&self) -> Arc<dyn StorageBackend> {
        Arc::new(Postgres::open(self.config()).await.unwrap())
    }

    async fn open_again(&self) -> Arc<dyn StorageBackend> {
        self.open().await
    }
}

async fn nearest(store: &Store) -> (Vec<u32>, Vec<String>) {
    let SearchResults { results, notices, .. } = store.search(&target("s"), &meaning("a pear")).await;
    (results.iter().map(|result| result.sequence).collect(), notices)
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a PostgreSQL server"]
async fn vectors_are_compared_without_pgvector() {
    let limited = Arc::new(Limited::create().await);
    let store = Store::open(limited.clone()).await;
    store.sync(&target("s"), ["an apple", "a pear", "a basket"].map(lines::user).to_vec()).await;
    let (found, notices) = nearest(&store).await;
    assert_eq!((found[0], found.len()), (1, 3));
    assert!(notices.iter().any(|notice| notice.contains("run CREATE EXTENSION vector")), "{notices:?}");
    assert_eq!(store.find(&target("s"), "basket").await, [2]);

    administrate(&limited.0, &["CREATE EXTENSION vector"]).await;
    let again = Postgres::open(limited.config()).await.unwrap();
    assert_eq!(*again.vector_support(), VectorSupport::Copies);
    assert_eq!(nearest(&store.again().await).await, (found, Vec::new()));
    drop((store, again));
    Arc::into_inner(limited).unwrap().drop().await;
}
