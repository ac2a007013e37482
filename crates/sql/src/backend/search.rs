//! Candidates for searches.

use amplifier_session_core::{
    Result,
    backend::{
        Candidates, DatedMessage, IndexUpdate, Search, TermPattern, TextCandidate, TextQuery,
        VectorCandidate, VectorQuery,
    },
    model::SessionKey,
};
use async_trait::async_trait;

use super::SqlBackend;
use crate::backend::DerivedIndex;

#[async_trait]
impl<D: DerivedIndex> Search for SqlBackend<D> {
    async fn text_candidates(&self, query: &TextQuery) -> Result<Candidates<TextCandidate>> {
        self.0.text_candidates(query).await
    }

    async fn newest_messages(&self, query: &TextQuery) -> Result<Candidates<DatedMessage>> {
        self.0.newest_messages(query).await
    }

    async fn vector_candidates(&self, query: &VectorQuery) -> Result<Candidates<VectorCandidate>> {
        self.0.vector_candidates(query).await
    }

    async fn terms(&self, patterns: &[TermPattern], limit: usize) -> Result<Vec<Vec<String>>> {
        self.0.terms(patterns, limit).await
    }

    async fn update_index(&self, update: IndexUpdate) -> Result<()> {
        match update {
            IndexUpdate::IfDue => self.0.update_index_if_due().await,
            IndexUpdate::Now => self.0.update_index().await,
            IndexUpdate::Rebuild => self.0.rebuild_index().await,
        }
    }

    async fn reindex_texts(&self, key: &SessionKey, sequences: &[u32]) -> Result<()> {
        self.0.reindex_texts(key, sequences).await
    }
}
