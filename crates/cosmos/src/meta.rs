//! The store as a whole. The table of keys and values is one document.

use std::collections::BTreeMap;

use amplifier_session_core::{
    Error, ErrorKind, Result,
    backend::{
        Meta, StoreInfo, StorePlace,
        meta::{self, Generations},
    },
};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::{
    batch::Operation,
    documents::{Document, kind},
    error,
    store::{CosmosBackend, Store},
};

/// The partition of the document. It belongs to no user, because a `UserId` is not empty.
const PARTITION: &str = "";
const ID: &str = "schema";

/// How often to try a change while other processes change the document.
const ATTEMPTS: usize = 20;

#[derive(Debug, Serialize, Deserialize)]
struct SchemaFields {
    user_id: String,
    entries: BTreeMap<String, String>,
}

type SchemaDocument = Document<SchemaFields>;

#[async_trait]
impl Meta for CosmosBackend {
    fn info(&self) -> StoreInfo {
        StoreInfo::new("cosmos")
            .with_atomic_writes(false)
            .with_places(vec![StorePlace::remote("store", self.0.config.location())])
            .with_usage(self.0.usage.total())
    }

    async fn meta(&self) -> Result<BTreeMap<String, String>> {
        Ok(read(&self.0).await?.fields.entries)
    }

    async fn swap_meta(&self, key: &str, expected: Option<&str>, value: &str) -> Result<Option<String>> {
        for _ in 0..ATTEMPTS {
            let mut document = read(&self.0).await?;
            if document.entries.get(key).map(String::as_str) != expected {
                return Ok(document.entries.remove(key));
            }
            document.entries.insert(key.to_owned(), value.to_owned());
            // Rejected if another process has changed an entry in the meantime.
            let replace = vec![Operation::save(&document)?];
            if self.0.sessions.write(PARTITION, replace).await?.is_some() {
                return Ok(Some(value.to_owned()));
            }
        }
        Err(error::conflict())
    }
}

/// Creates the document in a new store.
pub(crate) async fn create(store: &Store) -> Result<()> {
    let entries = BTreeMap::from([
        (meta::VERSION.to_owned(), meta::SCHEMA_VERSION.to_string()),
        (meta::WRITER.to_owned(), meta::WRITER_NAME.to_owned()),
    ]);
    let fields = SchemaFields { user_id: PARTITION.to_owned(), entries };
    let create = Operation::save(&SchemaDocument::of(kind::SCHEMA, ID.to_owned(), fields))?;
    // Rejected if it exists.
    store.sessions.write(PARTITION, vec![create]).await.map(drop)
}

/// The generations of vectors that the store has.
pub(crate) async fn generations(store: &Store) -> Result<Generations> {
    Ok(Generations::of(&read(store).await?.entries))
}

async fn read(store: &Store) -> Result<SchemaDocument> {
    let missing = || Error::new(ErrorKind::StorageIo, "the store's schema document does not exist");
    store.sessions.read(PARTITION, ID).await?.ok_or_else(missing)
}
