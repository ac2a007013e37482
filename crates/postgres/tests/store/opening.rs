//! Opening stores: several clients at once, stores that do not exist, and what is shown of the connection.

use std::sync::Arc;

use amplifier_session_core::{ErrorKind, backend::prelude::*};
use amplifier_session_postgres::{Postgres, VectorSupport};
use amplifier_session_testkit::earlier;

use crate::support::{Schema, connect};

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a PostgreSQL server"]
async fn many_clients_create_a_store_at_once() {
    let schema = Schema::new();
    let clients: Vec<_> = (0..8).map(|_| tokio::spawn(Postgres::open(schema.config()))).collect();
    let mut ids = Vec::new();
    for client in clients {
        ids.push(client.await.unwrap().unwrap().meta().await.unwrap().remove("store_id").unwrap());
    }
    ids.dedup();
    assert_eq!(ids.len(), 1, "{ids:?}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a PostgreSQL server"]
async fn a_store_that_must_exist_is_not_created() {
    let schema = Schema::new();
    let mut config = schema.config();
    config.must_exist = true;
    let error = Postgres::open(config.clone()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StorageConnection);
    assert!(error.to_string().contains("there is no store in the schema"), "{error}");
    schema.backend().await;
    assert_eq!(*Postgres::open(config).await.unwrap().vector_support(), VectorSupport::Copies);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a PostgreSQL server"]
async fn a_store_with_three_migrations_is_carried_over() {
    // The extension belongs to the database.
    Schema::new().backend().await;
    let schema = Schema::new();
    let client = connect("postgres", None).await;
    let create = format!("CREATE SCHEMA {0}; SET search_path TO {0}, public", schema.name());
    client.batch_execute(&create).await.unwrap();
    client.batch_execute(include_str!("migration_3.sql")).await.unwrap();
    earlier::check_store(Arc::new(schema.backend().await)).await;
}
