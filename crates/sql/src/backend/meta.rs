//! Information about the store, and its table of keys and values.

use std::collections::BTreeMap;

use amplifier_session_core::{
    Result,
    backend::{Meta, StoreInfo},
};
use async_trait::async_trait;

use super::SqlBackend;
use crate::{
    backend::{DerivedIndex, write},
    read,
};

#[async_trait]
impl<D: DerivedIndex> Meta for SqlBackend<D> {
    fn info(&self) -> StoreInfo {
        self.0.info()
    }

    async fn meta(&self) -> Result<BTreeMap<String, String>> {
        self.read(|reader| read::meta::meta(reader)).await
    }

    async fn swap_meta(&self, key: &str, expected: Option<&str>, value: &str) -> Result<Option<String>> {
        let (key, expected, value) = (key.to_owned(), expected.map(str::to_owned), value.to_owned());
        self.run(move |database| write::swap_meta(database, &key, expected.as_deref(), &value)).await
    }
}
