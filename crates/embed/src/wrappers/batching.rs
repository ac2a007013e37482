//! Splits calls to the size that the service accepts.

use std::sync::Arc;

use amplifier_session_core::{
    Result,
    content::tokens,
    embedding::{EmbeddingLimits, EmbeddingProvider, EmbeddingPurpose},
};
use async_trait::async_trait;
use futures_util::{StreamExt, TryStreamExt, stream};

use super::{check_count, forward};

/// Accepts any number of texts, and embeds them with as few calls as the provider's limits allow.
///
/// Adjacent texts share a call until it has `batch_texts` texts or `batch_tokens` tokens. A text with more tokens than
/// that gets a separate call. Up to `concurrent_calls` calls are made at the same time. If one fails, the others are
/// dropped and its error is returned.
#[derive(Debug, Clone)]
pub struct Batching {
    inner: Arc<dyn EmbeddingProvider>,
}

impl Batching {
    /// Batches the calls to `inner` by its limits.
    #[must_use]
    pub fn new(inner: Arc<dyn EmbeddingProvider>) -> Self {
        Self { inner }
    }
}

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl EmbeddingProvider for Batching {
    forward!(inner: space, limits, strength, is_local, address);

    async fn embed(&self, texts: &[String], purpose: EmbeddingPurpose) -> Result<Vec<Vec<f32>>> {
        let limits = self.inner.limits();
        let batches = batches(texts, &limits);
        if let [batch] = batches[..] {
            return self.inner.embed(batch, purpose).await;
        }
        let calls: Vec<_> = batches.iter().map(|batch| self.inner.embed(batch, purpose)).collect();
        let made: Vec<_> = stream::iter(calls).buffered(limits.concurrent_calls.max(1)).try_collect().await?;
        for (batch, vectors) in batches.iter().zip(&made) {
            check_count(batch, vectors)?;
        }
        Ok(made.into_iter().flatten().collect())
    }
}

/// Splits `texts` into batches within the limits.
fn batches<'a>(texts: &'a [String], limits: &EmbeddingLimits) -> Vec<&'a [String]> {
    // No text has more tokens than bytes, so most calls need no counting.
    let all_fit = texts.iter().map(String::len).sum::<usize>() <= limits.batch_tokens;
    let mut rest = texts;
    let mut batches = Vec::new();
    while !rest.is_empty() {
        let most = limits.batch_texts.clamp(1, rest.len());
        let texts = if all_fit { most } else { within_tokens(rest, most, limits.batch_tokens) };
        let (batch, others) = rest.split_at(texts);
        batches.push(batch);
        rest = others;
    }
    batches
}

/// How many of the first `most` texts have at most `budget` tokens in total; at least one.
fn within_tokens(texts: &[String], most: usize, budget: usize) -> usize {
    let mut left = budget;
    let fits = |text: &&String| match tokens::count_up_to(text, left) {
        Some(tokens) => {
            left -= tokens;
            true
        }
        None => false,
    };
    texts.iter().take(most).take_while(fits).count().max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(texts: &[&str], batch_texts: usize, batch_tokens: usize) -> Vec<usize> {
        let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
        let limits = EmbeddingLimits {
            chunk_threshold_tokens: 100,
            chunk_target_tokens: 100,
            batch_texts,
            batch_tokens,
            concurrent_calls: 1,
        };
        let batches = batches(&texts, &limits);
        assert_eq!(batches.concat(), texts);
        batches.iter().map(|batch| batch.len()).collect()
    }

    #[test]
    fn batches_are_limited_by_texts_and_tokens() {
        assert_eq!(sizes(&[], 2, 100), [0; 0]);
        assert_eq!(sizes(&["a", "b", "c"], 2, 100), [2, 1]);
        assert_eq!(sizes(&["one two three", "one two three", "one"], 9, 7), [3]);
        assert_eq!(sizes(&["one two three", "one two three", "one two"], 9, 7), [2, 1]);
    }

    #[test]
    fn a_text_above_the_budget_has_its_own_batch() {
        let long = "one two three four five";
        assert_eq!(sizes(&["one", long, "two"], 9, 4), [1, 1, 1]);
        assert_eq!(sizes(&[long], 9, 4), [1]);
    }

    #[test]
    fn limits_of_zero_mean_one() {
        assert_eq!(sizes(&["a", "b"], 0, 0), [1, 1]);
    }
}
