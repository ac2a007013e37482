//! An embedding provider for tests.

use std::sync::{Mutex, MutexGuard, PoisonError};

use amplifier_session_core::{
    Error, ErrorKind, Result,
    content::tokens,
    embedding::{EmbeddingLimits, EmbeddingProvider, EmbeddingPurpose, ModelStrength, NO_VECTOR},
    model::EmbeddingSpace,
};
use async_trait::async_trait;

use crate::random::Random;

/// A model of words: the vector of a text is the sum of fixed random vectors of its words. Texts that share words are
/// near to each other, and others are not. The same text has the same vector in every process.
///
/// It rejects batches above its limits, as a real service does, and can simulate failures.
#[derive(Debug)]
pub struct FakeEmbedding {
    space: EmbeddingSpace,
    limits: EmbeddingLimits,
    is_local: bool,
    strength: ModelStrength,
    state: Mutex<State>,
}

/// The kind of response of a [`FakeEmbedding`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Answer {
    /// A correct response.
    #[default]
    Right,
    /// One vector too few: the first is missing, so that all others are shifted.
    TooFew,
    /// One vector too many.
    TooMany,
    /// Vectors that are one dimension short.
    WrongDimensions,
    /// Vectors that contain a number that is not finite.
    NotFinite,
}

#[derive(Debug, Default)]
struct State {
    calls: usize,
    texts: Vec<String>,
    answer: Answer,
    fail_always: bool,
    fail_next: usize,
    fail_on: Option<String>,
    refuse: Option<String>,
    nothing_of: Option<String>,
}

impl Default for FakeEmbedding {
    fn default() -> Self {
        Self::new()
    }
}

impl FakeEmbedding {
    /// A model named `fake-words` with 64 dimensions and a limit of 8,192 tokens for each text.
    #[must_use]
    pub fn new() -> Self {
        Self {
            space: EmbeddingSpace { model: "fake-words".to_owned(), dimensions: 64 },
            limits: EmbeddingLimits {
                chunk_threshold_tokens: 8_192,
                chunk_target_tokens: 1_024,
                batch_texts: 16,
                batch_tokens: 100_000,
                concurrent_calls: 1,
            },
            is_local: true,
            strength: ModelStrength::Contextual,
            state: Mutex::default(),
        }
    }

    /// Sets the name of the model.
    #[must_use]
    pub fn with_model(mut self, model: &str) -> Self {
        model.clone_into(&mut self.space.model);
        self
    }

    /// Sets the number of dimensions.
    #[must_use]
    pub fn with_dimensions(mut self, dimensions: usize) -> Self {
        self.space.dimensions = dimensions;
        self
    }

    /// Sets the limits.
    #[must_use]
    pub fn with_limits(mut self, limits: EmbeddingLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the length above which texts are cut, and the length of the chunks, both in tokens.
    #[must_use]
    pub fn with_chunks(mut self, threshold: usize, target: usize) -> Self {
        self.limits.chunk_threshold_tokens = threshold;
        self.limits.chunk_target_tokens = target;
        self
    }

    /// Sets how reliable its similarities are.
    #[must_use]
    pub fn with_strength(mut self, strength: ModelStrength) -> Self {
        self.strength = strength;
        self
    }

    /// Makes it a remote model.
    #[must_use]
    pub fn on_another_machine(mut self) -> Self {
        self.is_local = false;
        self
    }

    /// Sets whether every call fails from now on.
    pub fn fail_always(&self, fail: bool) {
        self.state().fail_always = fail;
    }

    /// Fails the next `calls` calls.
    pub fn fail_next(&self, calls: usize) {
        self.state().fail_next = calls;
    }

    /// Fails every call with a text that contains `text`; `None` fails no call.
    pub fn fail_on(&self, text: Option<&str>) {
        self.state().fail_on = text.map(str::to_owned);
    }

    /// Rejects every text that contains `text`, as if a service rejected only that text; `None` rejects no text.
    pub fn refuse(&self, text: Option<&str>) {
        self.state().refuse = text.map(str::to_owned);
    }

    /// Returns a vector of zeros for a text that contains `text`, as some services do; `None` for no text.
    pub fn return_zeros_for(&self, text: Option<&str>) {
        self.state().nothing_of = text.map(str::to_owned);
    }

    /// Sets the kind of response from now on.
    pub fn answer_with(&self, answer: Answer) {
        self.state().answer = answer;
    }

    /// The number of calls.
    pub fn calls(&self) -> usize {
        self.state().calls
    }

    /// All received texts in order, including those of failed calls.
    pub fn texts(&self) -> Vec<String> {
        self.state().texts.clone()
    }

    /// Forgets calls and texts.
    pub fn reset_counts(&self) {
        let mut state = self.state();
        state.calls = 0;
        state.texts.clear();
    }

    /// The vector of a text: of unit length, or zeros if it has no words.
    pub fn vector(&self, text: &str) -> Vec<f32> {
        let mut sum = vec![0.0; self.space.dimensions];
        for word in text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
            add_word(&mut sum, &word.to_lowercase());
        }
        let length = sum.iter().map(|x| x * x).sum::<f32>().sqrt();
        if length > 0.0 {
            sum.iter_mut().for_each(|x| *x /= length);
        }
        sum
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn check_limits(&self, texts: &[String]) -> Result<()> {
        let too_large =
            |what: &str| Err(Error::new(ErrorKind::Embedding, format!("the batch has too many {what}")));
        if texts.len() > self.limits.batch_texts {
            return too_large("texts");
        }
        let tokens = || texts.iter().map(|text| tokens::count(text)).sum::<usize>();
        if texts.len() > 1 && tokens() > self.limits.batch_tokens {
            return too_large("tokens");
        }
        Ok(())
    }
}

#[async_trait]
impl EmbeddingProvider for FakeEmbedding {
    fn space(&self) -> &EmbeddingSpace {
        &self.space
    }

    fn limits(&self) -> EmbeddingLimits {
        self.limits
    }

    fn strength(&self) -> ModelStrength {
        self.strength
    }

    fn is_local(&self) -> bool {
        self.is_local
    }

    /// An address, because it pretends to be a service.
    fn address(&self) -> Option<String> {
        Some("http://fake.test/v1".to_owned())
    }

    async fn embed(&self, texts: &[String], _purpose: EmbeddingPurpose) -> Result<Vec<Vec<f32>>> {
        let answer = self.state().note_call(texts)?;
        self.check_limits(texts)?;
        let mut vectors: Vec<Vec<f32>> = texts.iter().map(|text| self.vector(text)).collect();
        match answer {
            Answer::Right => {}
            Answer::TooFew => drop(vectors.drain(..1.min(texts.len()))),
            Answer::TooMany => vectors.push(self.vector("one too many")),
            Answer::WrongDimensions => {
                vectors.iter_mut().for_each(|vector| vector.truncate(vector.len().saturating_sub(1)))
            }
            Answer::NotFinite => vectors.iter_mut().flat_map(|v| v.first_mut()).for_each(|x| *x = f32::NAN),
        }
        if let Some(part) = self.state().nothing_of.as_ref() {
            let of_nothing = texts.iter().zip(&mut vectors).filter(|(text, _)| text.contains(part));
            of_nothing.for_each(|(_, vector)| vector.fill(NO_VECTOR));
        }
        Ok(vectors)
    }
}

impl State {
    /// Counts a call, and fails it if configured.
    fn note_call(&mut self, texts: &[String]) -> Result<Answer> {
        self.calls += 1;
        self.texts.extend_from_slice(texts);
        let fails_next = self.fail_next > 0;
        self.fail_next -= usize::from(fails_next);
        let fails_on = self.fail_on.as_ref().is_some_and(|part| texts.iter().any(|text| text.contains(part)));
        if self.fail_always || fails_next || fails_on {
            return Err(Error::new(ErrorKind::Embedding, "the fake model fails as scripted").retryable());
        }
        let refused = self.refuse.as_ref().is_some_and(|part| texts.iter().any(|text| text.contains(part)));
        if refused {
            return Err(Error::new(ErrorKind::Validation, "the fake model rejects a text as scripted"));
        }
        Ok(self.answer)
    }
}

/// Adds the random vector of a word, derived from a hash of the word (FNV-1a).
fn add_word(sum: &mut [f32], word: &str) {
    let hash = |seed: u64, byte: u8| (seed ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let mut random = Random(word.bytes().fold(0xcbf2_9ce4_8422_2325, hash));
    sum.iter_mut().for_each(|x| *x += (random.bits() >> 40) as f32 / (1 << 23) as f32 - 1.0);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::dot;

    #[test]
    fn texts_that_share_words_are_near() {
        let model = FakeEmbedding::new();
        let asked = model.vector("connection pool");
        assert!((dot(&asked, &asked) - 1.0).abs() < 1e-5);
        assert!(dot(&asked, &model.vector("The Connection to the pool")) > 0.5);
        assert!(dot(&asked, &model.vector("green apples")).abs() < 0.5);
        assert!(model.vector("?!").iter().all(|x| *x == 0.0));
    }

    #[tokio::test]
    async fn it_fails_on_request_and_counts() {
        let model = FakeEmbedding::new();
        let embed = async |text: &str| model.embed(&[text.to_owned()], EmbeddingPurpose::Document).await;
        model.fail_next(1);
        assert!(embed("a").await.is_err());
        assert_eq!(embed("a").await.unwrap().len(), 1);
        model.fail_on(Some("bad"));
        assert!(embed("a bad text").await.is_err());
        model.answer_with(Answer::TooFew);
        assert!(embed("a").await.unwrap().is_empty());
        assert_eq!((model.calls(), model.texts().len()), (4, 4));
        let many = vec![String::new(); model.limits().batch_texts + 1];
        assert!(model.embed(&many, EmbeddingPurpose::Document).await.is_err());
    }
}
