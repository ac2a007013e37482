//! Embeddings and summaries of turns.

use std::collections::BTreeMap;

use async_trait::async_trait;

use super::SequenceRange;
use crate::{
    Result,
    model::{Digest, EmbeddingSpace, MessageRef, MessageState, SessionKey, TurnEmbedding, TurnSummary},
    scope::Scope,
    search::{SearchFilter, SessionFilter},
};

/// Stores the embeddings of turns. They belong to the user's message of the turn, and are deleted and renamed with their
/// session.
///
/// [`Sessions::write`](super::Sessions::write) removes an embedding if it removes or replaces the user's or the
/// assistant's message: see [`SessionChange::removed_messages`](super::SessionChange::removed_messages).
#[async_trait]
pub trait Turns: Send + Sync {
    /// Stores embeddings of any sessions. Each replaces the one with the same user message, provider and model. Ignores
    /// embeddings of messages that are gone or whose line has changed. Returns the number of stored embeddings.
    /// `Validation` if one has a wrong vector ([`TurnEmbedding::validate`]); then nothing is stored. After other errors,
    /// some may be stored; storing them again does no harm.
    async fn write_turns(&self, turns: Vec<NewTurn>) -> Result<usize>;

    /// A page of the embeddings of one session by a provider's model, in order of `user_sequence`. May return fewer
    /// than requested; only an empty answer means the end.
    async fn read_turns(&self, query: &TurnQuery) -> Result<Vec<TurnEmbedding>>;

    /// The turns nearest to a vector, nearest first, by exact comparison.
    async fn nearest_turns(&self, query: &TurnVectorQuery) -> Result<Vec<TurnCandidate>>;
}

/// An embedding to store, with the lines that it was made from.
#[derive(Debug, Clone, PartialEq)]
pub struct NewTurn {
    /// The session.
    pub session: SessionKey,
    /// The embedding.
    pub embedding: TurnEmbedding,
    /// The digest of the user's line.
    pub user_digest: Digest,
    /// The digest of the assistant's line, if there is one.
    pub assistant_digest: Option<Digest>,
}

impl NewTurn {
    /// An embedding of messages of a session in these states, by sequence; `None` if there are no such messages.
    #[must_use]
    pub fn of(session: &SessionKey, embedding: TurnEmbedding, states: &[MessageState]) -> Option<Self> {
        let digest = |sequence: u32| Some(states.get(sequence as usize)?.digest);
        let user_digest = digest(embedding.user_sequence)?;
        let assistant_digest = match embedding.assistant_sequence {
            Some(sequence) => Some(digest(sequence)?),
            None => None,
        };
        Some(Self { session: session.clone(), embedding, user_digest, assistant_digest })
    }

    /// Whether its messages still have the lines that it was made from. `digest_of` is the digest of the stored line.
    #[must_use]
    pub fn is_current(&self, digest_of: impl Fn(u32) -> Option<Digest>) -> bool {
        digest_of(self.embedding.user_sequence) == Some(self.user_digest)
            && self
                .embedding
                .assistant_sequence
                .is_none_or(|sequence| digest_of(sequence) == self.assistant_digest)
    }

    /// Keeps the last one for each user message, provider and model, and sorts them by session.
    ///
    /// # Errors
    ///
    /// `Validation` if one has a wrong vector.
    pub fn checked(turns: Vec<Self>) -> Result<Vec<Self>> {
        let mut last = BTreeMap::new();
        for turn in turns {
            turn.embedding.validate()?;
            let TurnEmbedding { user_sequence, provider, model, .. } = &turn.embedding;
            let place = (turn.session.clone(), *user_sequence, provider.clone(), model.clone());
            last.insert(place, turn);
        }
        Ok(last.into_values().collect())
    }

    /// The embeddings of each session, if they are sorted by session.
    pub fn by_session(turns: &[Self]) -> impl Iterator<Item = (&SessionKey, &[Self])> {
        let of_session = turns.chunk_by(|a, b| a.session == b.session);
        of_session.filter_map(|turns| Some((&turns.first()?.session, turns)))
    }

    /// The sequences of its messages.
    pub fn sequences(&self) -> impl Iterator<Item = u32> {
        [Some(self.embedding.user_sequence), self.embedding.assistant_sequence].into_iter().flatten()
    }
}

/// Which embeddings of turns to read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TurnQuery {
    /// The session.
    pub session: SessionKey,
    /// The provider of the vectors, as in [`TurnEmbedding::provider`].
    pub provider: String,
    /// The embedding model.
    pub model: String,
    /// The first `user_sequence`, and the maximum number.
    pub range: SequenceRange,
    /// Whether to read texts and vectors too. Default: no.
    pub with_content: bool,
}

impl TurnQuery {
    /// The first 1,000 embeddings of a session.
    #[must_use]
    pub fn new(session: SessionKey, provider: impl Into<String>, model: impl Into<String>) -> Self {
        let range = SequenceRange { start: 0, limit: 1_000 };
        Self { session, provider: provider.into(), model: model.into(), range, with_content: false }
    }

    setters! {
        /// Sets the first `user_sequence`, and the maximum number.
        with_range(range: SequenceRange);
        /// Sets whether to read texts and vectors.
        with_content(with_content: bool);
    }
}

/// A search for the turns nearest to a vector.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnVectorQuery {
    /// The scope of their sessions.
    pub scope: Scope,
    /// The filter. Time and role are those of the user's message.
    pub filter: SearchFilter,
    /// The provider of the vectors, as in [`TurnEmbedding::provider`].
    pub provider: String,
    /// Only vectors of this model and length.
    pub space: EmbeddingSpace,
    /// The vector, of unit length.
    pub vector: Vec<f32>,
    /// Maximum number of turns.
    pub limit: usize,
}

impl TurnVectorQuery {
    /// The similarity of a vector to that of the query.
    #[must_use]
    pub fn similarity(&self, vector: &[f32]) -> f32 {
        self.vector.iter().zip(vector).map(|(x, y)| x * y).sum()
    }
}

/// A turn that is near to a query vector.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnCandidate {
    /// The user's message.
    pub message_ref: MessageRef,
    /// The cosine similarity to the query.
    pub similarity: f32,
}

impl TurnCandidate {
    /// Keeps the `limit` nearest candidates, nearest first.
    pub fn keep_nearest(candidates: &mut Vec<Self>, limit: usize) {
        candidates.sort_by(|a, b| {
            b.similarity.total_cmp(&a.similarity).then_with(|| a.message_ref.cmp(&b.message_ref))
        });
        candidates.truncate(limit);
    }
}

/// Finds the nearest of many turns without holding them all in memory.
#[derive(Debug)]
pub struct NearestTurns<'a> {
    query: &'a TurnVectorQuery,
    found: Vec<TurnCandidate>,
}

impl<'a> NearestTurns<'a> {
    /// Contains no turns yet.
    #[must_use]
    pub fn new(query: &'a TurnVectorQuery) -> Self {
        Self { query, found: Vec::new() }
    }

    /// Adds a turn. A vector of zeros is near to nothing.
    pub fn add(&mut self, message_ref: MessageRef, vector: &[f32]) {
        let most = self.query.limit.saturating_mul(4).max(1_000);
        if vector.iter().any(|x| *x != 0.0) {
            self.found.push(TurnCandidate { message_ref, similarity: self.query.similarity(vector) });
        }
        if self.found.len() >= most {
            TurnCandidate::keep_nearest(&mut self.found, self.query.limit);
        }
    }

    /// The nearest turns, nearest first.
    #[must_use]
    pub fn finish(mut self) -> Vec<TurnCandidate> {
        TurnCandidate::keep_nearest(&mut self.found, self.query.limit);
        self.found
    }
}

/// Which summaries to list.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct SummaryQuery {
    /// The scope of their sessions.
    pub scope: Scope,
    /// The filter of their sessions.
    pub filter: SessionFilter,
    /// Continue after this user's message, the last one of the previous page.
    pub after: Option<MessageRef>,
    /// Maximum number of summaries. Default: 1,000.
    pub limit: usize,
}

impl SummaryQuery {
    /// The first 1,000 summaries of `scope`.
    #[must_use]
    pub fn new(scope: impl Into<Scope>) -> Self {
        Self { scope: scope.into(), filter: SessionFilter::default(), after: None, limit: 1_000 }
    }

    setters! {
        /// Sets the filter of the sessions.
        with_filter(filter: SessionFilter);
        /// Continues after a message.
        with_after(after: Option<MessageRef>);
        /// Sets the maximum number of summaries.
        with_limit(limit: usize);
    }
}

impl TurnSummary {
    /// The user's message.
    #[must_use]
    pub fn message_ref(&self) -> MessageRef {
        MessageRef::new(self.session.clone(), self.user_sequence)
    }
}
