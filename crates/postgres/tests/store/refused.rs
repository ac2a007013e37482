//! What the server refuses: connections and rights. Each error says what to do.

use amplifier_session_core::{Error, ErrorKind, backend::prelude::*};
use amplifier_session_postgres::Postgres;
use amplifier_session_testkit::{Store, lines, store::target};

use crate::support::{Database, administrate, connect};

/// The role of a database, created as `how` says.
async fn create_role(database: &Database, how: &str) -> String {
    let role = database.name.clone();
    administrate("postgres", &[&format!("CREATE ROLE {role} LOGIN {how}")]).await;
    role
}

async fn remove(database: &Database, role: &str) {
    database.remove().await;
    administrate("postgres", &[&format!("DROP ROLE {role}")]).await;
}

fn assert_explained(error: &Error, database: &Database, role: &str, message: &str, hint: &str) {
    assert!(error.to_string().contains(message), "{error}");
    assert!(error.context("server").unwrap().contains(&database.name), "{error:?}");
    assert_eq!(error.context("role"), Some(role), "{error:?}");
    assert!(error.hint().unwrap_or_default().contains(hint), "{error:?}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a PostgreSQL server"]
async fn too_many_connections_are_called_that() {
    let database = Database::create(1).await;
    let role = create_role(&database, "CONNECTION LIMIT 0").await;
    let error = Postgres::open(database.config(Some(&role))).await.unwrap_err();
    assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::StorageConnection, true), "{error:?}");
    let message = "can't connect to PostgreSQL: too many connections for role";
    assert_explained(&error, &database, &role, message, "AMPLIFIER_POSTGRES_CONNECTIONS");
    remove(&database, &role).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a PostgreSQL server"]
async fn a_role_that_may_not_create_a_schema_needs_an_administrator() {
    let database = Database::create(1).await;
    let role = create_role(&database, "").await;
    let error = Postgres::open(database.config(Some(&role))).await.unwrap_err();
    assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::StorageConnection, false), "{error:?}");
    let hint = format!("CREATE SCHEMA \"amplifier_sessions\" AUTHORIZATION \"{role}\"");
    assert_explained(&error, &database, &role, "permission denied for database", &hint);
    administrate(&database.name, &[&hint[hint.find("CREATE").unwrap()..]]).await;
    Postgres::open(database.config(Some(&role))).await.unwrap();
    remove(&database, &role).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a PostgreSQL server"]
async fn a_statement_that_the_role_has_no_time_for_is_an_error() {
    let database = Database::create(1).await;
    let role = create_role(&database, "SUPERUSER").await;
    let store = Store::open(database.clone()).await;
    store.sync(&target("s"), vec![lines::user("one")]).await;
    let admin = connect(&database.name, None).await;
    admin.batch_execute(&format!("ALTER ROLE {role} SET statement_timeout = '1s'")).await.unwrap();
    let limited = Postgres::open(database.config(Some(&role))).await.unwrap();
    admin.batch_execute("BEGIN; LOCK TABLE amplifier_sessions.sessions").await.unwrap();
    let error = limited.get_session(&target("s").key).await.unwrap_err();
    assert_explained(&error, &database, &role, "statement timeout", "SET statement_timeout");
    admin.batch_execute("ROLLBACK").await.unwrap();
    drop((store, limited, admin));
    remove(&database, &role).await;
}
