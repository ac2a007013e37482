//! Verification: rows are stored within the data that they belong to, and there is no index, so little can be wrong.

use amplifier_session_core::{
    Result,
    backend::{IndexCheck, Integrity, StrayRows},
    model::{SessionId, SessionKey, UserId},
};
use async_trait::async_trait;

use super::MemoryBackend;

#[async_trait]
impl Integrity for MemoryBackend {
    async fn stray_rows(&self, _: &UserId, _: Option<&SessionId>) -> Result<Vec<StrayRows>> {
        Ok(Vec::new())
    }

    async fn remove_stray_rows(&self, _: &SessionKey) -> Result<u64> {
        Ok(0)
    }

    async fn check_index(&self) -> Result<IndexCheck> {
        Ok(IndexCheck::default())
    }
}
