//! Verification: rows are stored within the data that they belong to, and there is no index, so little can be wrong.

use amplifier_session_core::{
    Result,
    backend::{IndexCheck, Integrity, StrayRows},
    model::{SessionKey, UserId},
};
use async_trait::async_trait;

use super::MemoryBackend;

#[async_trait]
impl Integrity for MemoryBackend {
    async fn stray_rows(&self, _: &SessionKey) -> Result<Vec<StrayRows>> {
        Ok(Vec::new())
    }

    async fn remove_stray_rows(&self, _: &SessionKey) -> Result<u64> {
        Ok(0)
    }

    async fn sessions_without_record(&self, _: &UserId) -> Result<Vec<SessionKey>> {
        Ok(Vec::new())
    }

    async fn vector_failures(&self, generation: u32, key: &SessionKey) -> Result<Vec<(u32, String)>> {
        let rows = self.rows();
        let messages = rows.sessions.get(key).into_iter().flat_map(|session| &session.messages);
        let failure = |(sequence, row): (&u32, &super::rows::MessageRow)| {
            Some((*sequence, row.vectors.get(&generation)?.failure.clone()?))
        };
        Ok(messages.filter_map(failure).collect())
    }

    async fn check_index(&self) -> Result<IndexCheck> {
        Ok(IndexCheck::default())
    }

    async fn rebuild_index(&self) -> Result<()> {
        Ok(())
    }
}
