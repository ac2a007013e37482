//! A schema, a database or a server for one test.

use std::sync::Arc;

use amplifier_session_core::{backend::StorageBackend, config::Settings};
use amplifier_session_postgres::{Postgres, PostgresBackend, PostgresConfig};
use amplifier_session_testkit::{
    Subject,
    postgres::{self, PostgresServer},
};
use async_trait::async_trait;
use tokio_postgres::{Client, NoTls};

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
    let client = connect(database, None).await;
    for statement in statements {
        client.batch_execute(statement).await.unwrap();
    }
}

/// A database of its own, with its name.
pub(crate) struct Database {
    pub(crate) name: String,
    connections: usize,
}

impl Database {
    /// Creates it. A store uses at most `connections`.
    pub(crate) async fn create(connections: usize) -> Arc<Self> {
        let name = unique_name();
        administrate("postgres", &[&format!("CREATE DATABASE {name}")]).await;
        Arc::new(Self { name, connections })
    }

    /// How to connect to it, as a role or as that of the tests.
    pub(crate) fn config(&self, role: Option<&str>) -> PostgresConfig {
        let (login, host) = postgres::url().rsplit_once('/').unwrap().0.rsplit_once('@').unwrap();
        let login = role.unwrap_or_else(|| login.rsplit_once('/').unwrap().1);
        let address = format!("//{login}@{host}/{}", self.name);
        let mut config = PostgresConfig::new(&address, &Settings::default()).unwrap();
        config.connections = self.connections;
        config
    }

    /// Ends all connections to it.
    pub(crate) async fn cut(&self) {
        let cut = format!(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
             WHERE datname = '{}' AND pid <> pg_backend_pid()",
            self.name
        );
        administrate("postgres", &[&cut]).await;
    }

    /// Drops it, also while it is used.
    pub(crate) async fn remove(&self) {
        administrate("postgres", &[&format!("DROP DATABASE {} WITH (FORCE)", self.name)]).await;
    }
}

#[async_trait]
impl Subject for Database {
    async fn open(&self) -> Arc<dyn StorageBackend> {
        Arc::new(Postgres::open(self.config(None)).await.unwrap())
    }

    async fn open_again(&self) -> Arc<dyn StorageBackend> {
        self.open().await
    }
}

/// A store on a server of its own.
pub(crate) struct OnServer(pub(crate) Arc<PostgresServer>);

#[async_trait]
impl Subject for OnServer {
    async fn open(&self) -> Arc<dyn StorageBackend> {
        let url = self.0.url();
        let (_, address) = url.split_once(':').unwrap();
        let config = PostgresConfig::new(address, &Settings::default()).unwrap();
        Arc::new(Postgres::open(config).await.unwrap())
    }

    async fn open_again(&self) -> Arc<dyn StorageBackend> {
        self.open().await
    }
}

/// A connection to a database as a role, or as that of the tests.
pub(crate) async fn connect(database: &str, role: Option<&str>) -> Client {
    let mut config: tokio_postgres::Config = postgres::url().parse().unwrap();
    if let Some(role) = role {
        config.user(role);
    }
    let (client, connection) = config.dbname(database).connect(NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// Whether there is a schema with this name.
pub(crate) async fn exists(schema: &str) -> bool {
    let client = connect("postgres", None).await;
    let found = client.query("SELECT FROM pg_namespace WHERE nspname = $1", &[&schema]).await;
    !found.unwrap().is_empty()
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
