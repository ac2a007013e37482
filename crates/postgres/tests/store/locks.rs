//! Calls that wait for a lock of another session.

use std::{sync::Arc, time::Duration};

use amplifier_session_core::{ErrorKind, HELD_BY, backend::prelude::*};
use amplifier_session_postgres::Postgres;
use amplifier_session_testkit::{Store, lines, store::target};

use crate::support::{Database, administrate, connect};

/// A table, rows, and what every write locks first.
const LOCKS: [&str; 3] = [
    "LOCK TABLE amplifier_sessions.sessions IN ACCESS EXCLUSIVE MODE",
    "SELECT FROM amplifier_sessions.sessions FOR UPDATE",
    "LOCK TABLE amplifier_sessions.schema_meta IN ACCESS EXCLUSIVE MODE",
];

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a PostgreSQL server"]
async fn a_call_ends_after_a_time_and_names_the_role_that_blocks_it() {
    let database = Database::create(2).await;
    let store = Store::open(database.clone()).await;
    store.sync(&target("s"), vec![lines::user("one")]).await;
    let mut config = database.config(None);
    config.lock_timeout = Duration::from_secs(3);
    let backend = Arc::new(Postgres::open(config).await.unwrap());
    let role = format!("Carol {}", database.name);
    administrate("postgres", &[&format!("CREATE ROLE \"{role}\" LOGIN SUPERUSER")]).await;
    let carol = connect(&database.name, Some(&role)).await;
    let pid: i32 = carol.query_one("SELECT pg_backend_pid()", &[]).await.unwrap().get(0);
    let holder = format!("the role {role}, process {pid}");

    for lock in LOCKS {
        carol.batch_execute(&format!("BEGIN; {lock}")).await.unwrap();
        let deleted = backend.delete_session(&target("s").key).await;
        let error = deleted.unwrap_err();
        assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::StorageIo, true), "{lock}: {error:?}");
        assert_eq!(error.context(HELD_BY), Some(holder.as_str()), "{lock}: {error:?}");
        assert!(error.hint().unwrap().contains(&format!("pg_terminate_backend({pid})")), "{error:?}");
        carol.batch_execute("ROLLBACK").await.unwrap();
    }
    carol.batch_execute(&format!("BEGIN; {}", LOCKS[0])).await.unwrap();
    let error = backend.get_session(&target("s").key).await.unwrap_err();
    assert_eq!(error.context(HELD_BY), Some(holder.as_str()), "{error:?}");
    carol.batch_execute("ROLLBACK").await.unwrap();
    assert!(backend.delete_session(&target("s").key).await.unwrap());

    drop((store, backend, carol));
    database.remove().await;
    administrate("postgres", &[&format!("DROP ROLE \"{role}\"")]).await;
}
