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
    ClientWrapper, Hook, HookError, Manager, ManagerConfig, Object, Pool as Deadpool, RecyclingMethod,
    Runtime,
};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::{
    PostgresConfig,
    connection::{Read, Write, wait},
    error, tls,
};

/// How long a call waits for a connection.
const WAIT: Duration = Duration::from_secs(30);

/// The statements that every connection begins with, after the search path. If tables are distributed over servers,
/// joins and counts then run where the rows are.
const FIRST: &str = "SET TimeZone TO 'UTC'; SET lock_timeout TO '60s'; SET jit TO off;
    SET enable_partitionwise_join TO on; SET enable_partitionwise_aggregate TO on";

/// How often to run a transaction if it conflicts with others or the connection is lost.
const ATTEMPTS: u32 = 20;

/// The pause before another attempt. It doubles up to a second, and is random, so that two conflicting transactions do
/// not meet again.
fn pause(attempt: u32) {
    let most = (2_u64 << attempt.min(9)).min(1_000);
    thread::sleep(Duration::from_millis(fastrand::u64(most / 2..=most)));
}

/// Connections, which are opened when needed, and kept.
pub struct Pool {
    connections: Deadpool,
    /// The address of the server, for errors.
    place: String,
    patience: Duration,
    /// Whether the server was reached before.
    was_reached: AtomicBool,
    /// Whether row level security restricts the role.
    is_restricted: bool,
}

impl fmt::Debug for Pool {
    /// Without the configuration, which contains the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pool").field(&self.connections.status()).finish()
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
    fn begin(self) -> &'static str {
        match self {
            Self::Shared => {
                "BEGIN ISOLATION LEVEL REPEATABLE READ; LOCK TABLE schema_meta IN ROW EXCLUSIVE MODE"
            }
            Self::All => {
                "BEGIN ISOLATION LEVEL REPEATABLE READ; LOCK TABLE schema_meta IN SHARE ROW EXCLUSIVE MODE"
            }
            Self::TextIndex => {
                "BEGIN ISOLATION LEVEL REPEATABLE READ; LOCK TABLE schema_meta IN ROW EXCLUSIVE MODE;
                 LOCK TABLE text_blocks IN SHARE UPDATE EXCLUSIVE MODE"
            }
        }
    }
}

impl Pool {
    /// No connections yet to the server of `config`.
    pub(crate) fn new(config: &PostgresConfig) -> Result<Self> {
        let tls = MakeRustlsConnect::new(tls::client(config)?);
        let manager = Manager::from_config(
            config.connection.clone(),
            tls,
            ManagerConfig { recycling_method: RecyclingMethod::Fast },
        );
        let first: Arc<str> =
            format!("SET search_path TO {}, public; {FIRST}", quote::name(&config.schema)).into();
        let prepare = Hook::async_fn(move |client: &mut ClientWrapper, _| {
            let first = Arc::clone(&first);
            Box::pin(async move { client.batch_execute(&first).await.map_err(HookError::Backend) })
        });
        let pool = Deadpool::builder(manager)
            .max_size(config.connections)
            .runtime(Runtime::Tokio1)
            .wait_timeout(Some(WAIT))
            .create_timeout(Some(WAIT))
            .post_create(prepare)
            .build();
        let connections = pool.map_err(|source| {
            Error::new(ErrorKind::StorageConnection, "can't connect to PostgreSQL").with_source(source)
        })?;
        Ok(Self {
            connections,
            place: config.place(),
            patience: config.patience,
            was_reached: AtomicBool::new(false),
            is_restricted: false,
        })
    }

    /// Sets whether row level security restricts the role.
    pub(crate) fn with_restriction(mut self, is_restricted: bool) -> Self {
        self.is_restricted = is_restricted;
        self
    }

    /// Runs `write` in one transaction. Runs it again if it conflicts with other transactions, or if the connection is
    /// lost before the commit.
    pub(crate) fn transaction<T>(
        &self,
        operation: &'static str,
        lock: Lock,
        mut write: impl FnMut(&mut Write<'_>) -> Result<T>,
    ) -> Result<T> {
        let mut attempt = 1;
        loop {
            match self.attempt(operation, lock, &mut write) {
                Err(Failed::BeforeCommit(error)) if attempt < ATTEMPTS && error::may_run_again(&error) => {
                    tracing::debug!(operation, attempt, %error, "retrying a transaction");
                    pause(attempt);
                    attempt += 1;
                }
                Err(Failed::BeforeCommit(error) | Failed::Finally(error)) => return Err(error),
                Ok(answer) => return Ok(answer),
            }
        }
    }

    fn attempt<T>(
        &self,
        operation: &'static str,
        lock: Lock,
        write: &mut impl FnMut(&mut Write<'_>) -> Result<T>,
    ) -> std::result::Result<T, Failed> {
        let transaction = self.begin(operation, lock.begin()).map_err(Failed::Finally)?;
        let mut writer = Write::new(self.reader(&transaction));
        let answer = write(&mut writer).and_then(|answer| writer.flush(operation).map(|()| answer));
        drop(writer);
        let answer = answer.map_err(Failed::BeforeCommit)?;
        transaction.commit(operation).map_err(|error| {
            match error::may_run_again(&error) && !error::is_lost(&error) {
                true => Failed::BeforeCommit(error),
                false => Failed::Finally(error),
            }
        })?;
        Ok(answer)
    }

    fn begin(&self, operation: &'static str, sql: &str) -> Result<Transaction> {
        self.patiently(|| {
            let transaction = Transaction { client: self.get()?, is_open: true };
            batch(&transaction, operation, sql)?;
            Ok(transaction)
        })
    }

    fn client(&self) -> Result<Object> {
        self.patiently(|| self.get())
    }

    fn get(&self) -> Result<Object> {
        wait(self.connections.get()).map_err(|source| error::connection(source).with("server", &self.place))
    }

    /// Connects. If the server was reachable before but does not answer, retries for a while.
    fn patiently<T>(&self, connect: impl Fn() -> Result<T>) -> Result<T> {
        let (began, mut attempt) = (Instant::now(), 1);
        loop {
            let error = match connect() {
                Ok(connected) => {
                    self.was_reached.store(true, Ordering::Relaxed);
                    return Ok(connected);
                }
                Err(error) => error,
            };
            let may_come_back = error::is_unavailable(&error) && self.was_reached.load(Ordering::Relaxed);
            if !may_come_back || began.elapsed() >= self.patience {
                return Err(error);
            }
            tracing::debug!(attempt, %error, "waiting for the server");
            pause(attempt);
            attempt += 1;
        }
    }

    fn reader<'a>(&self, client: &'a ClientWrapper) -> Read<'a> {
        Read::new(client, self.is_restricted)
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

impl Connections for Pool {
    type Reader<'a> = Read<'a>;

    fn read<T>(&self, read: impl FnOnce(&Read<'_>) -> Result<T>) -> Result<T> {
        let client = self.client()?;
        read(&self.reader(&client))
    }

    fn read_snapshot<T>(&self, read: impl FnOnce(&Read<'_>) -> Result<T>) -> Result<T> {
        let snapshot = self.begin("read", "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")?;
        let answer = read(&self.reader(&snapshot))?;
        snapshot.commit("read")?;
        Ok(answer)
    }
}

fn batch(client: &ClientWrapper, operation: &'static str, sql: &str) -> Result<()> {
    wait(client.batch_execute(sql)).map_err(error::storage(operation))
}

/// A connection with an open transaction, which is rolled back when this is dropped.
struct Transaction {
    client: Object,
    is_open: bool,
}

impl Transaction {
    fn commit(mut self, operation: &'static str) -> Result<()> {
        batch(&self.client, operation, "COMMIT")?;
        self.is_open = false;
        Ok(())
    }
}

impl Deref for Transaction {
    type Target = ClientWrapper;

    fn deref(&self) -> &ClientWrapper {
        &self.client
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        // If the connection is lost, so is the transaction, and the pool drops the connection.
        if self.is_open
            && let Err(error) = batch(&self.client, "roll back", "ROLLBACK")
        {
            tracing::debug!(%error, "a transaction could not be rolled back");
        }
    }
}
