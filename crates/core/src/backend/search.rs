//! Candidates for searches, and the indexes that they come from.

use async_trait::async_trait;

use super::{TermPattern, TextQuery, VectorQuery};
use crate::{
    Result,
    model::SessionKey,
    search::{Candidates, DatedMessage, TextCandidate, VectorCandidate},
};

/// Finds candidates for a search. `core` fuses, filters and orders them.
#[async_trait]
pub trait Search: Send + Sync {
    /// The best texts for a text query by BM25, best first; each text of a message counts separately. Scores are those
    /// of [`bm25`](crate::text::bm25) with the statistics of all texts in the store, including those that the query
    /// excludes. A committed row is found, from any process.
    async fn text_candidates(&self, query: &TextQuery) -> Result<Candidates<TextCandidate>>;

    /// The newest messages that have a text that matches a text query, each once, newest first; in any order if they are
    /// equally old. The scores of texts do not count, and there need not be any terms. With a limit of `usize::MAX`,
    /// these are all messages that match. A committed row is found, from any process.
    async fn newest_messages(&self, query: &TextQuery) -> Result<Candidates<DatedMessage>>;

    /// The chunks nearest to a query vector by cosine similarity, nearest first, filtered before they are ranked. May
    /// contain several chunks of a message.
    async fn vector_candidates(&self, query: &VectorQuery) -> Result<Candidates<VectorCandidate>>;

    /// The terms in the texts of the store that match each pattern, in the order of the patterns: at most `limit` of
    /// each, those in the most texts first. Finds the terms of all committed rows. Until the next
    /// [`update_index`](Self::update_index), may also find terms that occurred only in changed or removed rows. All
    /// users' texts count, so anything shown about a term must come from a text in scope.
    ///
    /// `Unsupported` if the backend can't answer one of the patterns.
    async fn terms(&self, patterns: &[TermPattern], limit: usize) -> Result<Vec<Vec<String>>>;

    /// Brings derived indexes up to date with the rows. Searches are correct without it, only slower.
    async fn update_index(&self, update: IndexUpdate) -> Result<()>;

    /// Derives the stored texts of these messages again, because the rules of
    /// [`MessageLine::texts`](crate::content::MessageLine::texts) have changed. Does nothing in a backend that stores no texts, or
    /// whose index records the version of the rules.
    async fn reindex_texts(&self, key: &SessionKey, sequences: &[u32]) -> Result<()>;
}

/// How to update derived indexes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexUpdate {
    /// May leave a few new rows to a later call, unless rows were changed or removed. For changes that are so small that
    /// updating the indexes takes longer than everything else.
    IfDue,
    /// Adds all rows that are missing.
    Now,
    /// Makes them again from the rows, and the indexes of the database itself if they differ from its tables.
    Rebuild,
}
