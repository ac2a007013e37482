//! The indexes that searches use, which are derived from the rows.

use std::{future::Future, sync::Arc};

use amplifier_session_core::{
    Result,
    backend::{
        Candidates, DatedMessage, IndexCheck, NotErased, SyncGuard, TermPattern, TextCandidate, TextQuery,
        VectorCandidate, VectorQuery,
    },
    model::SessionKey,
};

use super::Database;

/// A database with indexes that find the candidates of searches: see [`Search`](amplifier_session_core::backend::Search).
///
/// Methods without a description behave like the methods of the same name in the traits of a backend.
pub trait DerivedIndex: Database {
    /// See [`Search`](amplifier_session_core::backend::Search).
    fn text_candidates(
        self: &Arc<Self>,
        query: &TextQuery,
    ) -> impl Future<Output = Result<Candidates<TextCandidate>>> + Send;

    /// See [`Search`](amplifier_session_core::backend::Search).
    fn newest_messages(
        self: &Arc<Self>,
        query: &TextQuery,
    ) -> impl Future<Output = Result<Candidates<DatedMessage>>> + Send;

    /// See [`Search`](amplifier_session_core::backend::Search).
    fn vector_candidates(
        self: &Arc<Self>,
        query: &VectorQuery,
    ) -> impl Future<Output = Result<Candidates<VectorCandidate>>> + Send;

    /// See [`Search`](amplifier_session_core::backend::Search).
    fn terms(
        self: &Arc<Self>,
        patterns: &[TermPattern],
        limit: usize,
    ) -> impl Future<Output = Result<Vec<Vec<String>>>> + Send;

    /// See [`Search`](amplifier_session_core::backend::Search).
    fn update_index(self: &Arc<Self>) -> impl Future<Output = Result<()>> + Send;

    /// See [`Search`](amplifier_session_core::backend::Search).
    fn update_index_if_due(self: &Arc<Self>) -> impl Future<Output = Result<()>> + Send {
        self.update_index()
    }

    /// See [`Search`](amplifier_session_core::backend::Search).
    fn reindex_texts(
        self: &Arc<Self>,
        key: &SessionKey,
        sequences: &[u32],
    ) -> impl Future<Output = Result<()>> + Send;

    /// See [`Integrity`](amplifier_session_core::backend::Integrity).
    fn check_index(self: &Arc<Self>) -> impl Future<Output = Result<IndexCheck>> + Send;

    /// See [`Integrity`](amplifier_session_core::backend::Integrity).
    fn rebuild_index(self: &Arc<Self>) -> impl Future<Output = Result<()>> + Send;

    /// Called after rows with about this many bytes of lines or vectors were written.
    fn wrote(self: &Arc<Self>, bytes: usize) -> impl Future<Output = Result<()>> + Send;

    /// Erases the words of deleted rows wherever they may still be. Returns the files from which they could not be erased.
    fn erase(self: &Arc<Self>) -> impl Future<Output = Vec<NotErased>> + Send;

    /// Called if the disk is full, to remove data that can be made again.
    fn make_room(self: &Arc<Self>) -> impl Future<Output = ()> + Send {
        async {}
    }

    /// See [`Scheduling`](amplifier_session_core::backend::Scheduling).
    fn prioritize(&self) {}

    /// See [`Scheduling`](amplifier_session_core::backend::Scheduling).
    fn yield_to_searches(&self) -> impl Future<Output = ()> + Send {
        async {}
    }

    /// See [`Scheduling`](amplifier_session_core::backend::Scheduling).
    fn begin_sync(&self) -> Option<SyncGuard> {
        Some(SyncGuard::default())
    }
}
