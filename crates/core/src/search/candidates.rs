//! Search candidates: the texts and vectors that a backend finds, before fusion and ranking.

use crate::{
    model::{ContentType, Digest, Message, MessageRef, TimeSource, Timestamp},
    text::bm25::CollectionStatistics,
};

/// Candidates, with a notice about the search if the user should know of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidates<T> {
    /// The candidates, best first.
    pub items: Vec<T>,
    /// Of a text query: the statistics that the scores were computed with. Of a vector query: empty.
    pub statistics: CollectionStatistics,
    /// Why the search was slow, for example because an index was missing. The answer is still correct.
    pub notice: Option<String>,
    /// How many were compared with the conditions of the search, if others were not; `core` sets it.
    pub examined: Option<u64>,
}

impl<T> Candidates<T> {
    /// Candidates without statistics or a notice.
    #[must_use]
    pub fn new(items: Vec<T>) -> Self {
        Self { items, statistics: CollectionStatistics::default(), notice: None, examined: None }
    }

    /// Sets the notice.
    #[must_use]
    pub fn with_notice(mut self, notice: Option<String>) -> Self {
        self.notice = notice;
        self
    }

    /// Sets the statistics.
    #[must_use]
    pub fn with_statistics(mut self, statistics: CollectionStatistics) -> Self {
        self.statistics = statistics;
        self
    }
}

/// A text that matches a text query.
#[derive(Debug, Clone, PartialEq)]
pub struct TextCandidate {
    /// The message.
    pub message_ref: MessageRef,
    /// The content type of the text.
    pub content_type: ContentType,
    /// The BM25 score.
    pub score: f32,
}

impl TextCandidate {
    /// Keeps the `limit` best candidates, best first.
    pub fn keep_best(candidates: &mut Vec<Self>, limit: usize) {
        candidates.sort_by(|a, b| {
            let text = || (&a.message_ref, a.content_type).cmp(&(&b.message_ref, b.content_type));
            b.score.total_cmp(&a.score).then_with(text)
        });
        candidates.truncate(limit);
    }
}

/// A message with its time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatedMessage {
    /// The message.
    pub message_ref: MessageRef,
    /// When it was written.
    pub ts: Timestamp,
    /// Where that time comes from.
    pub ts_source: TimeSource,
    /// The digest of its line.
    pub digest: Digest,
}

impl DatedMessage {
    /// The newest first: by time, then by session, and the last of a session first.
    pub fn sort(messages: &mut [Self]) {
        messages.sort_by(|a, b| {
            let (one, other) = (&a.message_ref, &b.message_ref);
            let session = || one.session.cmp(&other.session);
            b.ts.cmp(&a.ts).then_with(session).then_with(|| other.sequence.cmp(&one.sequence))
        });
    }

    /// Keeps the `limit` newest messages, newest first.
    pub fn keep_newest(messages: &mut Vec<Self>, limit: usize) {
        Self::sort(messages);
        messages.truncate(limit);
    }
}

impl From<&Message> for DatedMessage {
    fn from(message: &Message) -> Self {
        let Message { ts, ts_source, digest, .. } = *message;
        Self { message_ref: message.message_ref(), ts, ts_source, digest }
    }
}

/// A chunk that is near to a query vector.
#[derive(Debug, Clone, PartialEq)]
pub struct VectorCandidate {
    /// The message.
    pub message_ref: MessageRef,
    /// The content type of the text.
    pub content_type: ContentType,
    /// The first character of the chunk.
    pub span_start: u32,
    /// One past its last character.
    pub span_end: u32,
    /// The cosine similarity to the query.
    pub similarity: f32,
    /// Its vector, for diversification; `core` does not return it.
    pub vector: Vec<f32>,
}

impl VectorCandidate {
    /// Keeps the `limit` nearest candidates, nearest first.
    pub fn keep_nearest(candidates: &mut Vec<Self>, limit: usize) {
        candidates.sort_by(|a, b| {
            b.similarity.total_cmp(&a.similarity).then_with(|| a.message_ref.cmp(&b.message_ref))
        });
        candidates.truncate(limit);
    }
}
