//! The connections of this process to the server.

use std::{
    fmt,
    ops::Deref,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use amplifier_session_core::{Error, ErrorKind, Result};
use amplifier_session_sql::{backend::Connections, quote};
use deadpool_postgres::{
    ClientWrapper, Manager, ManagerConfig, Object, Pool as Deadpool, RecyclingMethod, Runtime,
};
use tokio::time::timeout_at;

use crate::{
    PostgresConfig,
    connect::Connector,
    connection::{PgReader, PgWriter},
    error::{self, ErrorContext},
    locks::LockWatch,
    runtime::ConnectionRuntime,
};

/// How long a call waits for a connection.
const WAIT: Duration = Duration::from_secs(30);

/// How long the answer to the end of a read transaction is waited for when the connections are closed.
const LAST_ANSWER: Duration = Duration::from_secs(1);

/// The settings of a transaction. They end with it: behind a pooler, the next one may be on another connection of the
/// server, and other programs on this one.
///
/// A temporary table of another program must not hide one of the store, so that `pg_temp` comes last. If tables are
/// distributed over servers, joins and counts run where the rows are.
fn settings(config: &PostgresConfig) -> String {
    format!(
        "SET LOCAL search_path TO {}, public, pg_temp; SET LOCAL lock_timeout TO {}; SET LOCAL TimeZone TO 'UTC';
         SET LOCAL jit TO off; SET LOCAL enable_partitionwise_join TO on;
         SET LOCAL enable_partitionwise_aggregate TO on;",
        quote::name(&config.schema),
        config.lock_timeout.as_millis().max(1)
    )
}

/// How often to run a transaction if it conflicts with others or the connection is lost.
const ATTEMPTS: u32 = 20;

/// Operations that can be run again after a commit whose result is unknown: the second run changes nothing and returns
/// the same. Others fail then, because they would report, for example, that the session to delete does not exist.
const REPEATABLE: [&str; 7] = [
    "write_vectors",
    "write_summaries",
    "complete_generation",
    "swap_meta",
    "update_index",
    "reindex_texts",
    "rebuild_index",
];

/// The pause before another attempt. It doubles up to a second, and is random, so that two conflicting transactions do
/// not meet again.
fn pause(attempt: u32) {
    let most = (2_u64 << attempt.min(9)).min(1_000);
    thread::sleep(Duration::from_millis(fastrand::u64(most / 2..=most)));
}

/// Connections, which are opened when needed, and kept.
pub struct PgPool {
    connections: Deadpool,
    connector: Arc<Connector>,
    runtime: ConnectionRuntime,
    locks: LockWatch,
    /// What every transaction begins with.
    settings: String,
    /// For errors.
    context: ErrorContext,
    patience: Duration,
    lock_timeout: Duration,
    /// Whether the server was reached before.
    was_reached: AtomicBool,
    /// Whether row level security restricts the role.
    is_restricted: bool,
}

impl fmt::Debug for PgPool {
    /// Without the configuration, which contains the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PgPool").field(&self.connections.status()).finish()
    }
}

/// The other transactions that wait for a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lock {
    /// Transactions with [`Lock::All`].
    Shared,
    /// All transactions that write.
    All,
    /// Transactions with [`Lock::All`], and transactions that update the index of texts.
    TextIndex,
}

impl Lock {
    /// The statement that takes the lock takes no snapshot, so the transaction sees what the previous one wrote.
    fn statement(self) -> &'static str {
        match self {
            Self::Shared => "LOCK TABLE schema_meta IN ROW EXCLUSIVE MODE",
            Self::All => "LOCK TABLE schema_meta IN SHARE ROW EXCLUSIVE MODE",
            Self::TextIndex => {
                "LOCK TABLE schema_meta IN ROW EXCLUSIVE MODE;
                 LOCK TABLE text_blocks IN SHARE UPDATE EXCLUSIVE MODE"
            }
        }
    }
}

/// What a transaction sees, and whether it may write.
mod mode {
    pub(super) const WRITE: &str = "ISOLATION LEVEL REPEATABLE READ";
    pub(super) const SNAPSHOT: &str = "ISOLATION LEVEL REPEATABLE READ READ ONLY";
    /// Each statement sees data that others committed before it.
    pub(super) const READ: &str = "ISOLATION LEVEL READ COMMITTED READ ONLY";
    pub(super) const DEFINE: &str = "ISOLATION LEVEL READ COMMITTED";
}

impl PgPool {
    /// No connections yet to the server of `config`.
    pub(crate) fn new(config: &PostgresConfig) -> Result<Self> {
        let connector = Connector::new(config)?;
        let manager = Manager::from_config(
            connector.config().clone(),
            connector.tls().clone(),
            ManagerConfig { recycling_method: RecyclingMethod::Fast },
        );
        let pool = Deadpool::builder(manager)
            .max_size(config.connections)
            .runtime(Runtime::Tokio1)
            .wait_timeout(Some(WAIT))
            .create_timeout(Some(WAIT))
            .build();
        let connections = pool.map_err(|source| {
            Error::new(ErrorKind::StorageConnection, "can't connect to PostgreSQL").with_source(source)
        })?;
        let (connector, runtime) = (Arc::new(connector), ConnectionRuntime::new()?);
        Ok(Self {
            connections,
            locks: LockWatch::start(runtime.handle(), Arc::clone(&connector), config.lock_timeout),
            connector,
            runtime,
            settings: settings(config),
            context: ErrorContext::of(config),
            patience: config.patience,
            lock_timeout: config.lock_timeout,
            was_reached: AtomicBool::new(false),
            is_restricted: false,
        })
    }

    /// Sets whether row level security restricts the role.
    pub(crate) fn with_restriction(mut self, is_restricted: bool) -> Self {
        self.is_restricted = is_restricted;
        self
    }

    /// Waits for `work` on a connection.
    pub(crate) fn wait<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.wait(work)
    }

    fn reader<'a>(&'a self, client: &'a ClientWrapper) -> PgReader<'a> {
        PgReader::new(&self.runtime, client, self.is_restricted)
    }

    /// Runs `write` in one transaction. Runs it again if it conflicts with other transactions, or if the connection is
    /// lost before the commit, or during the commit of an operation in [`REPEATABLE`].
    pub(crate) fn transaction<T>(
        &self,
        operation: &'static str,
        lock: Lock,
        mut write: impl FnMut(&mut PgWriter<'_>) -> Result<T>,
    ) -> Result<T> {
        self.explained(|| {
            let mut attempt = 1;
            loop {
                match self.attempt(operation, lock, &mut write) {
                    Err(Failed::BeforeCommit(error))
                        if attempt < ATTEMPTS && error::may_run_again(&error) =>
                    {
                        tracing::debug!(operation, attempt, %error, "retrying a transaction");
                        pause(attempt);
                        attempt += 1;
                    }
                    Err(Failed::BeforeCommit(error) | Failed::Finally(error)) => return Err(error),
                    Ok(answer) => return Ok(answer),
                }
            }
        })
    }

    fn attempt<T>(
        &self,
        operation: &'static str,
        lock: Lock,
        write: &mut impl FnMut(&mut PgWriter<'_>) -> Result<T>,
    ) -> std::result::Result<T, Failed> {
        let begin = || self.begin(operation, mode::WRITE, lock.statement());
        let transaction = self.patiently(begin).map_err(Failed::Finally)?;
        let mut writer = PgWriter::new(self.reader(&transaction));
        let answer = write(&mut writer).and_then(|answer| writer.flush(operation).map(|()| answer));
        drop(writer);
        let answer = answer.map_err(Failed::BeforeCommit)?;
        transaction.commit(operation).map_err(|error| {
            if error::may_run_again(&error) && (!error::is_lost(&error) || REPEATABLE.contains(&operation)) {
                Failed::BeforeCommit(error)
            } else {
                Failed::Finally(error)
            }
        })?;
        Ok(answer)
    }

    /// Runs statements that create or change tables, in one transaction. Each of them sees data that others committed
    /// before it. If the connection is lost, `define` is run again, even if the transaction may have been committed.
    pub(crate) fn define<T>(
        &self,
        operation: &'static str,
        define: impl Fn(&PgReader<'_>) -> Result<T>,
    ) -> Result<T> {
        self.explained(|| {
            self.patiently(|| {
                let transaction = self.begin(operation, mode::DEFINE, "")?;
                let answer = define(&self.reader(&transaction))?;
                transaction.commit(operation)?;
                Ok(answer)
            })
        })
    }

    /// Runs a statement that can't run in a transaction. It must name schemas.
    pub(crate) fn outside_transactions(&self, operation: &'static str, sql: &str) -> Result<()> {
        self.explained(|| {
            let run = async {
                let client = self.connector.for_one_statement(self.lock_timeout).await?;
                client.batch_execute(sql).await
            };
            self.wait(run).map_err(error::storage(operation))
        })
    }

    /// Runs `read` in a read transaction, again and again while the connection is lost.
    ///
    /// `BEGIN` is sent together with the first statement, and the end is not waited for, so that a single statement
    /// takes no longer than without a transaction.
    fn read_in<T>(&self, mode: &str, mut read: impl FnMut(&PgReader<'_>) -> Result<T>) -> Result<T> {
        let begin = self.begin_sql(mode, "");
        self.explained(|| {
            self.patiently(|| {
                let client = self.get()?;
                read(&self.reader(&client).beginning(&begin))
            })
        })
    }

    fn begin_sql(&self, mode: &str, lock: &str) -> String {
        format!("BEGIN {mode}; {} {lock}", self.settings)
    }

    fn begin(&self, operation: &'static str, mode: &str, lock: &str) -> Result<Transaction<'_>> {
        let transaction = Transaction { client: self.get()?, pool: self, is_open: true };
        transaction.batch(operation, &self.begin_sql(mode, lock))?;
        Ok(transaction)
    }

    fn get(&self) -> Result<Object> {
        let client = self.wait(self.connections.get());
        let client = client.map_err(|source| self.context.name(error::connection(source)))?;
        self.was_reached.store(true, Ordering::Relaxed);
        Ok(client)
    }

    /// Runs `call`. If the server was reachable before and the connection is lost, or no other can be made, runs it again
    /// for a while.
    fn patiently<T>(&self, mut call: impl FnMut() -> Result<T>) -> Result<T> {
        let (mut lost_since, mut attempt) = (None, 1);
        loop {
            let error = match call() {
                Err(error) if error::is_unavailable(&error) => error,
                answer => return answer,
            };
            let since = *lost_since.get_or_insert_with(Instant::now);
            if !self.was_reached.load(Ordering::Relaxed) || since.elapsed() >= self.patience {
                return Err(error);
            }
            tracing::debug!(attempt, %error, "waiting for the server");
            pause(attempt);
            attempt += 1;
        }
    }

    /// Runs `call`, and says more in its error: the server and the role, and who holds the lock that it waited for.
    fn explained<T>(&self, call: impl FnOnce() -> Result<T>) -> Result<T> {
        let _call = self.locks.call();
        call().map_err(|error| {
            let waited = error::is_lock_timeout(&error);
            self.context.explain(if waited { self.locks.describe(error) } else { error })
        })
    }
}

impl Drop for PgPool {
    /// Waits until the last read transactions have ended. A pooler would close the connections to the server with which a
    /// client disappears in the middle of a transaction.
    fn drop(&mut self) {
        let (connections, runtime) = (self.connections.clone(), self.runtime.handle().clone());
        // On a thread of its own: this one may run tasks, which must not block.
        let waiting = thread::spawn(move || {
            let end = Instant::now() + LAST_ANSWER;
            connections.retain(|client, _| {
                // The server answers in order.
                let last = async { timeout_at(end.into(), client.batch_execute("")).await };
                client.is_closed() || matches!(runtime.block_on(last), Ok(Ok(())))
            });
        });
        // A panic there has no consequence.
        let _ = waiting.join();
    }
}

/// When a transaction failed.
enum Failed {
    /// Before the commit, so that nothing of it is stored.
    BeforeCommit(Error),
    /// The server could not be reached, or the commit failed. If the connection was lost during the commit, the
    /// transaction may be stored.
    Finally(Error),
}

impl Connections for PgPool {
    type Reader<'a> = PgReader<'a>;

    fn read<T>(&self, read: impl FnMut(&PgReader<'_>) -> Result<T>) -> Result<T> {
        self.read_in(mode::READ, read)
    }

    fn read_snapshot<T>(&self, read: impl FnMut(&PgReader<'_>) -> Result<T>) -> Result<T> {
        self.read_in(mode::SNAPSHOT, read)
    }
}

/// A connection with an open transaction, which is rolled back when this is dropped.
struct Transaction<'a> {
    client: Object,
    pool: &'a PgPool,
    is_open: bool,
}

impl Transaction<'_> {
    fn commit(mut self, operation: &'static str) -> Result<()> {
        self.batch(operation, "COMMIT")?;
        self.is_open = false;
        Ok(())
    }

    fn batch(&self, operation: &'static str, sql: &str) -> Result<()> {
        self.pool.wait(self.client.batch_execute(sql)).map_err(error::storage(operation))
    }
}

impl Deref for Transaction<'_> {
    type Target = ClientWrapper;

    fn deref(&self) -> &ClientWrapper {
        &self.client
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        // If the connection is lost, so is the transaction, and the pool drops the connection.
        if self.is_open
            && let Err(error) = self.batch("roll back", "ROLLBACK")
        {
            tracing::debug!(%error, "a transaction could not be rolled back");
        }
    }
}

#[cfg(test)]
mod tests {
    use amplifier_session_core::{
        backend::{IndexUpdate, prelude::*},
        config::Settings,
    };
    use amplifier_session_sql::{Columns as _, backend::Database as _};
    use amplifier_session_testkit::postgres;

    use super::*;
    use crate::{Postgres, columns::PgRow};

    /// Behind a pooler, another program would get the connection with whatever stays on it.
    const STATE: &str = "SELECT 'the setting ' || name FROM pg_settings WHERE source = 'session'
            AND name NOT IN ('application_name', 'client_encoding')
        UNION ALL SELECT 'the statement ' || statement FROM pg_prepared_statements
        UNION ALL SELECT 'the table ' || relname FROM pg_class WHERE relnamespace = pg_my_temp_schema()
        UNION ALL SELECT 'a lock' FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'advisory'";

    #[tokio::test(flavor = "multi_thread")]
    #[ignore = "needs a PostgreSQL server"]
    async fn nothing_stays_on_a_connection() {
        let unique = tempfile::Builder::new().prefix("pool_").rand_bytes(16).tempdir().unwrap();
        let schema = unique.path().file_name().unwrap().to_str().unwrap().to_lowercase();
        let (_, address) = postgres::url().split_once(':').unwrap();
        let mut config = PostgresConfig::new(address, &Settings::default()).unwrap().with_schema(schema);
        config.connections = 1;
        let store = Postgres::open(config).await.unwrap();
        store.swap_meta("key", None, "value").await.unwrap();
        store.meta().await.unwrap();
        store.update_index(IndexUpdate::Now).await.unwrap();
        tokio::task::spawn_blocking(move || {
            let pool = store.connections();
            let client = pool.get().unwrap();
            let rows = pool.wait(client.query_typed(STATE, &[])).unwrap();
            let state: Vec<_> = rows.iter().map(|row| PgRow(row).text(0).unwrap()).collect();
            assert!(state.is_empty(), "{state:?}");
            drop(client);
            store.drop_schema().unwrap();
        })
        .await
        .unwrap();
    }
}
