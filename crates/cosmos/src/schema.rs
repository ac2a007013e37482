//! The schema meta table: entries of one document.

use std::collections::BTreeMap;

use amplifier_session_core::{
    Result,
    backend::meta::{self, Generations},
};
use serde::{Deserialize, Serialize};

use crate::{
    client::{Operation, Outcome},
    error,
    store::Store,
};

/// The partition of the document. No user is called so: a [`UserId`](amplifier_session_core::model::UserId) is not empty.
const PARTITION: &str = "";
const ID: &str = "schema";

/// How often a change is tried while others change the document.
const ATTEMPTS: usize = 20;

#[derive(Debug, Serialize, Deserialize)]
struct SchemaDocument {
    id: String,
    #[serde(rename = "type")]
    kind: String,
    user_id: String,
    entries: BTreeMap<String, String>,
    #[serde(rename = "_etag", default, skip_serializing)]
    etag: String,
}

/// Makes the document of a new store.
pub(crate) async fn put_first(store: &Store) -> Result<()> {
    let entries = BTreeMap::from([
        (meta::VERSION.to_owned(), meta::SCHEMA_VERSION.to_string()),
        (meta::WRITER.to_owned(), meta::WRITER_NAME.to_owned()),
    ]);
    let document = SchemaDocument {
        id: ID.to_owned(),
        kind: ID.to_owned(),
        user_id: PARTITION.to_owned(),
        entries,
        etag: String::new(),
    };
    // Refused when it is there already.
    store.sessions.write(PARTITION, vec![Operation::create(&document)?]).await.map(drop)
}

async fn read(store: &Store) -> Result<SchemaDocument> {
    let document = store.sessions.read(PARTITION, ID).await?;
    document.ok_or_else(|| {
        let message = "the store's schema document is gone";
        amplifier_session_core::Error::new(amplifier_session_core::ErrorKind::StorageIo, message)
    })
}

pub(crate) async fn entries(store: &Store) -> Result<BTreeMap<String, String>> {
    Ok(read(store).await?.entries)
}

pub(crate) async fn generations(store: &Store) -> Result<Generations> {
    Ok(Generations::of(&entries(store).await?))
}

/// Stores `value` under `key` if the stored one is `expected`. Returns the one that is stored then.
pub(crate) async fn swap(
    store: &Store,
    key: &str,
    expected: Option<&str>,
    value: &str,
) -> Result<Option<String>> {
    for _ in 0..ATTEMPTS {
        let mut document = read(store).await?;
        if document.entries.get(key).map(String::as_str) != expected {
            return Ok(document.entries.remove(key));
        }
        document.entries.insert(key.to_owned(), value.to_owned());
        let replace = Operation::replace(ID.to_owned(), &document, &document.etag)?;
        // Refused when somebody else has changed an entry in the meantime.
        if store.sessions.write(PARTITION, vec![replace]).await? != Outcome::Refused {
            return Ok(Some(value.to_owned()));
        }
    }
    Err(error::conflict())
}
