//! Opening stores: several clients at once, stores that do not exist, and what is shown of the connection.

use std::sync::Arc;

use amplifier_session_core::{ErrorKind, backend::prelude::*};
use amplifier_session_postgres::{Postgres, VectorSupport};
use amplifier_session_testkit::{
    adr::{self, DescribedColumn, DescribedIndex},
    earlier,
};

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

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a PostgreSQL server"]
async fn vectors_of_turns_are_in_the_table_of_the_adr() {
    let schema = Schema::new();
    schema.backend().await;
    let client = connect("postgres", None).await;
    let columns = client
        .query(
            "SELECT a.attname::text, format_type(a.atttypid, NULL), a.attnotnull FROM pg_attribute a
             WHERE a.attrelid = ($1 || '.message_embeddings')::regclass AND a.attnum > 0 AND NOT a.attisdropped",
            &[&schema.name()],
        )
        .await
        .unwrap();
    let column = |row: &tokio_postgres::Row| DescribedColumn {
        name: row.get(0),
        data_type: row.get(1),
        is_required: row.get(2),
    };
    let types = [
        ("uuid", "text"),
        ("text", "text"),
        ("int", "bigint"),
        ("bool", "boolean"),
        ("vector", "real[]"),
        ("timestamptz", "timestamp with time zone"),
    ];
    adr::check_columns(&columns.iter().map(column).collect::<Vec<_>>(), &types);
    let indexes = client
        .query(
            "SELECT i.indisunique, array(SELECT a.attname::text FROM unnest(i.indkey) WITH ORDINALITY k (number, place)
                 JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.number ORDER BY k.place)
             FROM pg_index i WHERE i.indrelid = ($1 || '.message_embeddings')::regclass",
            &[&schema.name()],
        )
        .await
        .unwrap();
    let index = |row: &tokio_postgres::Row| DescribedIndex { is_unique: row.get(0), columns: row.get(1) };
    adr::check_indexes(&indexes.iter().map(index).collect::<Vec<_>>());
}
