//! A schema for one test.

use std::sync::Arc;

use amplifier_session_core::{backend::StorageBackend, config::Settings};
use amplifier_session_postgres::{Postgres, PostgresBackend, PostgresConfig};
use amplifier_session_testkit::{Subject, postgres};
use async_trait::async_trait;
use tokio_postgres::NoTls;

/// A schema with a name of its own, which is dropped with this.
pub(crate) struct Schema {
    name: String,
}

impl Schema {
    /// A schema that does not exist yet.
    pub(crate) fn new() -> Self {
        Self { name: unique_name() }
    }

    /// Where it is.
    pub(crate) fn config(&self) -> PostgresConfig {
        config().with_schema(self.name.as_str())
    }

    /// Its name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Where it is, for a role.
    pub(crate) fn config_of(&self, role: &str) -> PostgresConfig {
        let (_, place) = postgres::url().split_once('@').unwrap();
        PostgresConfig::new(&format!("//{role}@{place}"), &Settings::default())
            .unwrap()
            .with_schema(self.name())
    }

    /// Opens the store in it.
    pub(crate) async fn backend(&self) -> PostgresBackend {
        Postgres::open(self.config()).await.unwrap()
    }
}

/// The server for tests.
fn config() -> PostgresConfig {
    let (_, address) = postgres::url().split_once(':').unwrap();
    let mut config = PostgresConfig::new(address, &Settings::default()).unwrap();
    config.connections = 4;
    config
}

/// Runs statements in a database as the role of the tests, each in a transaction of its own.
pub(crate) async fn administrate(database: &str, statements: &[&str]) {
    let mut config: tokio_postgres::Config = postgres::url().parse().unwrap();
    let (client, connection) = config.dbname(database).connect(NoTls).await.unwrap();
    tokio::spawn(connection);
    for statement in statements {
        client.batch_execute(statement).await.unwrap();
    }
}

/// A name that nothing else on the server has.
pub(crate) fn unique_name() -> String {
    let unique = tempfile::Builder::new().prefix("test_").rand_bytes(16).tempdir().unwrap();
    let name = unique.path().file_name().unwrap().to_str().unwrap().to_lowercase();
    format!("{name}_{}", std::process::id())
}

#[async_trait]
impl Subject for Schema {
    async fn open(&self) -> Arc<dyn StorageBackend> {
        Arc::new(self.backend().await)
    }

    async fn open_again(&self) -> Arc<dyn StorageBackend> {
        self.open().await
    }
}

impl Drop for Schema {
    /// Drops the schema on a thread of its own: a runtime may be running on this one.
    fn drop(&mut self) {
        let (config, name) = (config(), self.name.clone());
        let dropped = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let backend = Postgres::open(config.with_schema(name)).await.unwrap();
                tokio::task::spawn_blocking(move || backend.drop_schema()).await.unwrap().unwrap();
            });
        });
        dropped.join().unwrap();
    }
}
