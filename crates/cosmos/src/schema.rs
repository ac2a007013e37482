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

/// Changes the entries, again when somebody else did so meanwhile. An `Err` of `change` is an answer too: nothing is to be written.
async fn change<T>(
    store: &Store,
    mut change: impl FnMut(&mut BTreeMap<String, String>) -> Result<T, T>,
) -> Result<T> {
    for _ in 0..ATTEMPTS {
        let mut document = read(store).await?;
        let etag = document.etag.clone();
        let answer = match change(&mut document.entries) {
            Ok(answer) => answer,
            Err(unchanged) => return Ok(unchanged),
        };
        let replace = Operation::replace(ID.to_owned(), &document, &etag)?;
        if store.sessions.write(PARTITION, vec![replace]).await? != Outcome::Refused {
            return Ok(answer);
        }
    }
    Err(error::conflict())
}

pub(crate) async fn put_if_absent(store: &Store, key: &str, value: &str) -> Result<String> {
    change(store, |entries| match entries.get(key) {
        Some(found) => Err(found.clone()),
        None => {
            entries.insert(key.to_owned(), value.to_owned());
            Ok(value.to_owned())
        }
    })
    .await
}

pub(crate) async fn replace(store: &Store, key: &str, expected: &str, value: &str) -> Result<bool> {
    let mut is_tried = false;
    change(store, |entries| match entries.get_mut(key) {
        Some(found) if found == expected => {
            is_tried = true;
            value.clone_into(found);
            Ok(true)
        }
        // Perhaps the answer to our own replacement was lost.
        Some(found) if is_tried && found == value => Err(true),
        _ => Err(false),
    })
    .await
}
