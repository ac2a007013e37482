//! The indexes as the shared backend uses them.

use std::sync::Arc;

use amplifier_session_core::{
    Result,
    backend::{
        Candidates, DatedMessage, IndexCheck, NotErased, TermPattern, TextCandidate, TextQuery,
        VectorCandidate, VectorQuery,
    },
    model::SessionKey,
};
use amplifier_session_sql::backend::{Connections as _, Database as _, DerivedIndex, on_thread};

use super::{text, vectors};
use crate::{Postgres, pool::Lock};

impl DerivedIndex for Postgres {
    async fn text_candidates(self: &Arc<Self>, query: &TextQuery) -> Result<Candidates<TextCandidate>> {
        let query = query.clone();
        on_thread(self, move |database| {
            database.connections().read_snapshot(|reader| text::candidates(reader, &query))
        })
        .await
    }

    async fn newest_messages(self: &Arc<Self>, query: &TextQuery) -> Result<Candidates<DatedMessage>> {
        let query = query.clone();
        on_thread(self, move |database| {
            database.connections().read_snapshot(|reader| text::newest(reader, &query))
        })
        .await
    }

    async fn vector_candidates(self: &Arc<Self>, query: &VectorQuery) -> Result<Candidates<VectorCandidate>> {
        let query = query.clone();
        on_thread(self, move |database| {
            let support = database.vector_support();
            database.connections().read_snapshot(|reader| vectors::candidates(reader, &query, support))
        })
        .await
    }

    async fn terms(self: &Arc<Self>, patterns: &[TermPattern], limit: usize) -> Result<Vec<Vec<String>>> {
        let patterns = patterns.to_vec();
        on_thread(self, move |database| {
            database.connections().read_snapshot(|reader| text::terms(reader, &patterns, limit))
        })
        .await
    }

    async fn update_index(self: &Arc<Self>) -> Result<()> {
        on_thread(self, |database| {
            database.check_writable()?;
            let connections = database.connections();
            connections.transaction("update_index", Lock::TextIndex, |writer| text::update(writer))?;
            if database.vector_support().has_copies() { vectors::update(connections) } else { Ok(()) }
        })
        .await
    }

    async fn reindex_texts(self: &Arc<Self>, key: &SessionKey, sequences: &[u32]) -> Result<()> {
        let (key, sequences) = (key.clone(), sequences.to_vec());
        on_thread(self, move |database| {
            database
                .connections()
                .transaction("reindex_texts", Lock::Shared, |writer| text::reindex(writer, &key, &sequences))
        })
        .await
    }

    async fn check_index(self: &Arc<Self>) -> Result<IndexCheck> {
        on_thread(self, |database| database.connections().read_snapshot(text::check)).await
    }

    async fn rebuild_index(self: &Arc<Self>) -> Result<()> {
        on_thread(self, |database| {
            database.check_writable()?;
            database.connections().transaction("rebuild_index", Lock::All, text::rebuild)
        })
        .await
    }

    async fn wrote(self: &Arc<Self>, _: usize) -> Result<()> {
        // The transaction has written the index as well.
        Ok(())
    }

    /// Takes the words of removed messages from the index. The database itself reuses the space of removed rows.
    async fn erase(self: &Arc<Self>) -> Vec<NotErased> {
        if let Err(error) = self.update_index().await {
            tracing::warn!(%error, "words of deleted messages stay in the index until its next update");
        }
        Vec::new()
    }
}
