//! Who holds the lock that a call waits for.
//!
//! After the server has ended a statement that waited too long, it no longer knows for whom. So another connection asks
//! while the call waits.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use amplifier_session_core::{Error, ErrorKind, HELD_BY};
use tokio::{runtime::Handle, time::sleep};
use tokio_postgres::SimpleQueryMessage;

use crate::connect::Connector;

/// The sessions that hold what sessions of this role wait for, and do not wait themselves. Behind a pooler, it is not
/// known which session of the server runs a call.
const HOLDERS: &str = "SELECT DISTINCT holder.pid, coalesce(holder.usename::text, '')
    FROM pg_stat_activity waiting, unnest(pg_blocking_pids(waiting.pid)) AS blocking (pid), pg_stat_activity holder
    WHERE waiting.usename = current_user AND waiting.datname = current_database()
        AND waiting.pid IN (SELECT pid FROM pg_locks WHERE NOT granted)
        AND holder.pid = blocking.pid
        AND holder.pid NOT IN (SELECT pid FROM pg_locks WHERE NOT granted)
    ORDER BY 1";

/// How often it is asked during the time that a call may wait.
const ASKED: u32 = 4;

/// A session that holds a lock.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Holder {
    pid: String,
    role: String,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.role.as_str() {
            "" => write!(f, "process {}", self.pid),
            role => write!(f, "the role {role}, process {}", self.pid),
        }
    }
}

/// Asks again and again who holds locks, as long as a call takes long.
#[derive(Debug)]
pub(crate) struct LockWatch {
    seen: Arc<ObservedLocks>,
    longest: Duration,
}

/// The calls, and the answers.
#[derive(Debug, Default)]
struct ObservedLocks {
    calls: Mutex<Calls>,
    /// The last holders, and when they were seen.
    holders: Mutex<Option<(Instant, Vec<Holder>)>>,
}

/// The calls that have not ended, with the time at which they began.
#[derive(Debug, Default)]
struct Calls {
    last: u64,
    began: BTreeMap<u64, Instant>,
}

/// A call, until this is dropped.
#[derive(Debug)]
pub(crate) struct RunningCall<'a> {
    seen: &'a ObservedLocks,
    number: u64,
}

impl Drop for RunningCall<'_> {
    fn drop(&mut self) {
        lock(&self.seen.calls).began.remove(&self.number);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl LockWatch {
    /// Begins. `longest` is how long a call may wait for a lock.
    pub(crate) fn start(runtime: &Handle, connector: Arc<Connector>, longest: Duration) -> Self {
        let seen = Arc::new(ObservedLocks::default());
        runtime.spawn(watch(connector, longest / ASKED, Arc::clone(&seen)));
        Self { seen, longest }
    }

    /// Begins a call.
    pub(crate) fn call(&self) -> RunningCall<'_> {
        let mut calls = lock(&self.seen.calls);
        calls.last += 1;
        let number = calls.last;
        calls.began.insert(number, Instant::now());
        RunningCall { seen: &self.seen, number }
    }

    /// The error of a call that waited too long.
    pub(crate) fn describe(&self, error: Error) -> Error {
        let seen = lock(&self.seen.holders).clone();
        let holders =
            seen.filter(|(at, _)| at.elapsed() <= self.longest).map_or_else(Vec::new, |(_, holders)| holders);
        let names: Vec<String> = holders.iter().map(Holder::to_string).collect();
        let message = format!("another session of the database held a lock for {:?}", self.longest);
        let described = Error::new(ErrorKind::StorageIo, message)
            .with(HELD_BY, if names.is_empty() { "an unknown session".to_owned() } else { names.join("; ") })
            .with_hint(match holders.first() {
                None => "try again later; pg_blocking_pids shows who holds a lock while a session waits".to_owned(),
                Some(holder) => format!(
                    "wait until its transaction ends, or end it as an administrator: SELECT pg_terminate_backend({})",
                    holder.pid
                ),
            })
            .retryable();
        match error.operation().map(str::to_owned) {
            Some(operation) => described.with_operation(operation).with_source(error),
            None => described.with_source(error),
        }
    }
}

async fn watch(connector: Arc<Connector>, pause: Duration, seen: Arc<ObservedLocks>) {
    loop {
        sleep(pause).await;
        let takes_long = lock(&seen.calls).began.values().any(|began| began.elapsed() >= pause);
        if !takes_long {
            continue;
        }
        match holders(&connector).await {
            Ok(holders) if !holders.is_empty() => *lock(&seen.holders) = Some((Instant::now(), holders)),
            Ok(_) => {}
            Err(error) => tracing::debug!(%error, "the holders of locks can't be read"),
        }
    }
}

async fn holders(connector: &Connector) -> Result<Vec<Holder>, tokio_postgres::Error> {
    let client = connector.connect().await?;
    let rows = client.simple_query(HOLDERS).await?;
    let holder = |message| match message {
        SimpleQueryMessage::Row(row) => {
            let column = |at| row.get(at).unwrap_or_default().to_owned();
            Some(Holder { pid: column(0), role: column(1) })
        }
        _ => None,
    };
    Ok(rows.into_iter().filter_map(holder).collect())
}
