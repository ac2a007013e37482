//! Verification: rows that belong to nothing, and the search index.

use amplifier_session_core::{
    Result,
    backend::{IndexCheck, Integrity, StrayRows},
    model::{SessionKey, UserId},
};
use async_trait::async_trait;

use super::SqlBackend;
use crate::{
    Reader,
    backend::{DerivedIndex, write},
    read,
};

#[async_trait]
impl<D: DerivedIndex> Integrity for SqlBackend<D> {
    async fn stray_rows(&self, key: &SessionKey) -> Result<Vec<StrayRows>> {
        let key = key.clone();
        self.read_snapshot(move |reader| read::integrity::stray(reader, &key)).await
    }

    async fn remove_stray_rows(&self, key: &SessionKey) -> Result<u64> {
        let key = key.clone();
        self.run(move |database| write::remove_stray_rows(database, &key)).await
    }

    async fn sessions_without_record(&self, user: &UserId) -> Result<Vec<SessionKey>> {
        let user = user.clone();
        self.read(move |reader| read::integrity::sessions_without_record(reader, &user)).await
    }

    async fn vector_failures(&self, generation: u32, key: &SessionKey) -> Result<Vec<(u32, String)>> {
        let failures = read::integrity::failures(generation, key);
        self.read(move |reader| reader.rows(&failures)).await
    }

    async fn check_index(&self) -> Result<IndexCheck> {
        self.0.check_index().await
    }

    async fn rebuild_index(&self) -> Result<()> {
        self.0.rebuild_index().await
    }
}
