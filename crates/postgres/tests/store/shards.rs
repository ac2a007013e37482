//! A store that is divided by user between three databases, by
//! `deploy/postgresql/shards.sql`.

use std::{collections::BTreeSet, path::PathBuf, process::Command, sync::Arc};

use amplifier_session_core::{ErrorKind, backend::StorageBackend, config::Settings, model::UserId};
use amplifier_session_postgres::{Postgres, PostgresBackend, PostgresConfig};
use amplifier_session_testkit::{Store, Subject, lines, postgres, store::target_of};
use async_trait::async_trait;
use tokio::sync::OnceCell;
use tokio_postgres::{Client, NoTls};

use crate::support::unique_name;

const COORDINATOR: &str = "divided";
const SHARDS: [&str; 3] = ["shard_0", "shard_1", "shard_2"];

/// A schema with a name of its own in all databases, which is created inside the runtime of the test.
struct Divided {
    name: String,
    created: OnceCell<()>,
}

impl Divided {
    fn new() -> Self {
        Self { name: unique_name(), created: OnceCell::new() }
    }

    async fn backend(&self, database: &str) -> PostgresBackend {
        let url = url(database);
        let (_, address) = url.split_once(':').unwrap();
        let mut config = PostgresConfig::new(address, &Settings::default()).unwrap();
        config.connections = 4;
        Postgres::open(config.with_schema(self.name.as_str())).await.unwrap()
    }

    async fn create(&self) {
        create_databases().await;
        for database in SHARDS {
            self.backend(database).await;
        }
        self.backend(COORDINATOR).await;
        let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../deploy/postgresql/shards.sql");
        let mut psql = Command::new(postgres::programs().join("psql"));
        psql.args([
            "--no-psqlrc",
            "--quiet",
            &url(COORDINATOR),
            "-v",
            &format!("schema={}", self.name),
            "-f",
        ]);
        let output = psql.arg(script).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

#[async_trait]
impl Subject for Divided {
    async fn open(&self) -> Arc<dyn StorageBackend> {
        self.created.get_or_init(|| self.create()).await;
        Arc::new(self.backend(COORDINATOR).await)
    }

    async fn open_again(&self) -> Arc<dyn StorageBackend> {
        self.open().await
    }
}

impl Drop for Divided {
    /// Drops the schemas on a thread of its own: a runtime may be running on this one.
    fn drop(&mut self) {
        let name = self.name.clone();
        let dropped = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                for database in [COORDINATOR].into_iter().chain(SHARDS) {
                    let drop = format!("DROP SCHEMA IF EXISTS {name}, {name}_shards CASCADE");
                    connect(database).await.batch_execute(&drop).await.unwrap();
                }
            });
        });
        dropped.join().unwrap();
    }
}

/// The URL of a database of the server for tests.
fn url(database: &str) -> String {
    format!("{}/{database}", postgres::url().rsplit_once('/').unwrap().0)
}

async fn connect(database: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(&url(database), NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// Creates the databases unless another test has done so, and connects the first one to the others.
async fn create_databases() {
    let administrator = connect("postgres").await;
    administrator.batch_execute("SELECT pg_advisory_lock(3)").await.unwrap();
    for database in SHARDS.into_iter().chain([COORDINATOR]) {
        let exists = "SELECT 1 FROM pg_database WHERE datname = $1";
        if administrator.query(exists, &[&database]).await.unwrap().is_empty() {
            administrator.batch_execute(&format!("CREATE DATABASE {database}")).await.unwrap();
        }
    }
    let coordinator = connect(COORDINATOR).await;
    coordinator.batch_execute("CREATE EXTENSION IF NOT EXISTS postgres_fdw").await.unwrap();
    for shard in SHARDS {
        let create = format!(
            "DO $$ BEGIN EXECUTE format('CREATE SERVER IF NOT EXISTS {shard} FOREIGN DATA WRAPPER postgres_fdw
                 OPTIONS (host ''127.0.0.1'', port %L, dbname ''{shard}'', extensions ''vector'',
                     fetch_size ''1000'', batch_size ''1000'', async_capable ''true'')',
                 current_setting('port')); END $$;
             CREATE USER MAPPING IF NOT EXISTS FOR PUBLIC SERVER {shard} OPTIONS (user 'amplifier')"
        );
        coordinator.batch_execute(&create).await.unwrap();
    }
}

amplifier_session_testkit::conformance_tests! { @with [ignore = "needs a PostgreSQL server"] Divided::new();
    sessions: [
        a_write_of_a_stale_version_is_a_conflict,
        rows_follow_their_session_to_another_project,
    ]
    messages: [
        lines_come_back_byte_for_byte,
    ]
    events: [
        lines_come_back_byte_for_byte,
    ]
    vectors: [
        vectors_come_back_bit_for_bit,
        vectors_of_texts_of_several_sessions_are_returned,
    ]
    search_text: [] + [
        candidates_are_scored_by_bm25,
    ]
    search_vectors: [
        semantic_search_agrees_with_brute_force,
    ]
    isolation: [] + [
        searches_stay_in_scope,
    ]
    deletion: [
        no_read_returns_a_deleted_session,
    ]
    changes: [
        every_write_of_a_session_is_reported,
        changes_stay_in_scope,
        no_concurrent_change_is_missed,
    ]
    concurrency: [
        concurrent_appends_lose_no_line,
    ]
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a PostgreSQL server"]
async fn all_rows_of_a_user_are_on_one_shard() {
    let divided = Arc::new(Divided::new());
    let store = Store::open(divided.clone()).await;
    let users: Vec<String> = (0..12).map(|number| format!("user{number}")).collect();
    for user in &users {
        let session = target_of(user, "shop", "s");
        store.sync(&session, vec![lines::user("a red apple"), lines::assistant("a green pear")]).await;
        store.sync_events(&session, vec![lines::logger_event("e")]).await;
    }
    let mut held = Vec::new();
    for shard in SHARDS {
        let client = connect(shard).await;
        let mut of_tables = Vec::new();
        for table in ["sessions", "transcripts", "transcript_vectors", "events", "text_blocks", "postings"] {
            let sql = format!("SELECT DISTINCT user_id FROM {}.{table} ORDER BY 1", divided.name);
            let rows = client.query(&sql, &[]).await.unwrap();
            of_tables.push(rows.iter().map(|row| row.get(0)).collect::<Vec<String>>());
        }
        of_tables.dedup();
        assert_eq!(of_tables.len(), 1, "{of_tables:?}");
        assert!(!of_tables[0].is_empty(), "{shard} has no user");
        held.append(&mut of_tables[0]);
    }
    held.sort_unstable();
    assert_eq!(held, BTreeSet::from_iter(users).into_iter().collect::<Vec<_>>());

    let (from, to) = (UserId::new("user1").unwrap(), UserId::new("eve").unwrap());
    let refused = store.storage.users().rename_user(&from, &to).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unsupported);
    assert!(refused.to_string().contains("cannot move to another user"), "{refused}");
}
