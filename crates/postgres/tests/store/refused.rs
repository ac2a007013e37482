//! What the server refuses: connections, rights, encodings and values. Each error says what to do.

use amplifier_session_core::{
    Error, ErrorKind,
    backend::prelude::*,
    storage::{Extent, SessionIngest},
};
use amplifier_session_postgres::Postgres;
use amplifier_session_testkit::{
    Store, lines,
    store::{target, time},
};

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

/// Otherwise, names would mean the tables of the schema `public`.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a PostgreSQL server"]
async fn a_role_that_may_not_use_the_schema_gets_no_other() {
    let database = Database::create(1).await;
    let role = create_role(&database, "").await;
    drop(Store::open(database.clone()).await);
    let public = Postgres::open(database.config(None).with_schema("public")).await.unwrap();
    drop(public);
    let grant = format!("GRANT SELECT ON ALL TABLES IN SCHEMA public TO {role}");
    administrate(&database.name, &[&grant]).await;
    let error = Postgres::open(database.config(Some(&role))).await.unwrap_err();
    assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::StorageConnection, false), "{error:?}");
    assert!(error.to_string().contains("may not use the schema \"amplifier_sessions\""), "{error}");
    let hint = format!("GRANT USAGE ON SCHEMA \"amplifier_sessions\" TO \"{role}\"");
    assert!(error.hint().unwrap().contains(&hint), "{error:?}");
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

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a PostgreSQL server"]
async fn a_database_that_cannot_hold_every_text_is_refused() {
    let database = Database::create(1).await;
    let name = &database.name;
    for encoding in ["LATIN1", "SQL_ASCII"] {
        let again = format!("CREATE DATABASE {name} ENCODING '{encoding}' LOCALE 'C' TEMPLATE template0");
        administrate("postgres", &[&format!("DROP DATABASE {name}"), &again]).await;
        let error = Postgres::open(database.config(None)).await.unwrap_err();
        assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::StorageConnection, false), "{error:?}");
        assert!(error.to_string().contains(&format!("{name} has the encoding {encoding}")), "{error}");
        assert!(error.hint().unwrap().contains("ENCODING 'UTF8' TEMPLATE template0"), "{error:?}");
        let client = connect(name, None).await;
        let sql = "SELECT FROM pg_namespace WHERE nspname = 'amplifier_sessions'";
        assert!(client.query(sql, &[]).await.unwrap().is_empty());
    }
    database.remove().await;
}

async fn ingest(store: &Store, session: &str, text: &str) -> SessionIngest {
    let mut ingest = store.storage.ingestion().ingest(target(session)).await.unwrap();
    ingest.begin_transcript(0).await.unwrap();
    ingest.transcript_line(lines::user(text).raw(), time("2026-01-01T00:00:00Z")).await.unwrap();
    ingest.end_transcript(Extent::Whole);
    ingest
}

/// A store that an earlier version created in such a database.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a PostgreSQL server"]
async fn a_message_that_the_database_cannot_hold_fails_alone() {
    let database = Database::create(1).await;
    drop(Store::open(database.clone()).await);
    let sql = format!(
        "UPDATE pg_database SET encoding = pg_char_to_encoding('LATIN1') WHERE datname = '{}'",
        database.name
    );
    administrate("postgres", &[&sql]).await;
    let store = Store::open(database.clone()).await;
    let ingests = vec![
        ingest(&store, "a", "one apple").await,
        ingest(&store, "b", "two 漢字").await,
        ingest(&store, "c", "three café").await,
    ];
    let outcomes = store.storage.ingestion().commit_all(ingests).await;
    let error = outcomes[1].as_ref().unwrap_err();
    // This kind is about one session: a sync reports it and goes on.
    assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Validation, false), "{error:?}");
    assert!(outcomes[0].is_ok() && outcomes[2].is_ok(), "{outcomes:?}");
    assert_eq!(store.find(&target("c"), "café").await, [0]);
    assert!(store.messages(&target("b")).await.is_empty());
    drop(store);
    database.remove().await;
}
