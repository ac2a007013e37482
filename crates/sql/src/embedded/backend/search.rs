//! Candidates for searches.

use amplifier_session_core::{
    Result,
    backend::{Candidates, Search, TermPattern, TextCandidate, TextQuery, VectorCandidate, VectorQuery},
    model::SessionKey,
};
use amplifier_session_index::WhenBusy;
use async_trait::async_trait;

use super::Embedded;
use crate::embedded::{Database, Nearest};

#[async_trait]
impl<D: Database> Search for Embedded<D> {
    async fn text_candidates(&self, query: &TextQuery) -> Result<Candidates<TextCandidate>> {
        self.database().index().text_candidates(query).await
    }

    async fn terms(&self, patterns: &[TermPattern], limit: usize) -> Result<Vec<Vec<String>>> {
        self.database().index().terms(patterns, limit).await
    }

    async fn vector_candidates(&self, query: &VectorQuery) -> Result<Candidates<VectorCandidate>> {
        let asked = query.clone();
        let reason = match self.run(move |database| database.nearest(&asked)).await? {
            Nearest::Found(items) => return Ok(Candidates::new(items)),
            Nearest::NotAsked => None,
            Nearest::Unavailable(reason) => Some(reason),
        };
        let mut found = self.database().index().vector_candidates(query).await?;
        let notices: Vec<String> = found.notice.into_iter().chain(reason).collect();
        found.notice = (!notices.is_empty()).then(|| notices.join("; "));
        Ok(found)
    }

    /// Also removes what deleted, changed and rewound rows have left in the files of the database.
    async fn update_index(&self) -> Result<()> {
        self.database().check_writable()?;
        let updated = self.database().index().fold(WhenBusy::Wait).await;
        let tidied = self.run(D::tidy).await;
        self.erase_remains().await;
        tidied.and(updated)
    }

    async fn renew_texts(&self, _: &SessionKey, _: &[u32]) -> Result<()> {
        // The index knows which rules it follows.
        Ok(())
    }
}
