//! A scripted provider, and the tests of each wrapper around it.

mod batching;
mod breaking;
mod caching;
mod limiting;
#[cfg(feature = "redact")]
mod redacting;
mod retrying;
mod stack;

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use amplifier_session_core::{
    Error, ErrorField, ErrorKind, Result,
    embedding::{EmbeddingLimits, EmbeddingProvider, EmbeddingPurpose, ModelStrength},
    model::EmbeddingSpace,
};
use async_trait::async_trait;
use tokio::sync::Semaphore;

pub(super) const DIMENSIONS: usize = 4;

/// Fails according to its script; otherwise, its vectors come from [`vector`].
#[derive(Debug)]
pub(super) struct Scripted {
    pub(super) space: EmbeddingSpace,
    pub(super) limits: EmbeddingLimits,
    pub(super) is_local: bool,
    /// The results of the next calls; all others succeed.
    pub(super) script: Mutex<VecDeque<Result<()>>>,
    /// The percentage of other calls that fail, at random.
    failures: Mutex<(u32, fastrand::Rng)>,
    /// If there is a gate, each call waits for a permit.
    pub(super) gate: Option<Semaphore>,
    pub(super) calls: Mutex<Vec<Vec<String>>>,
    running: AtomicUsize,
    pub(super) most_running: AtomicUsize,
}

impl Scripted {
    pub(super) fn new() -> Self {
        Self {
            space: EmbeddingSpace { model: "scripted".to_owned(), dimensions: DIMENSIONS },
            limits: EmbeddingLimits {
                chunk_threshold_tokens: 100,
                chunk_target_tokens: 100,
                batch_texts: 8,
                batch_tokens: 1_000,
                concurrent_calls: 3,
            },
            is_local: false,
            script: Mutex::default(),
            failures: Mutex::new((0, fastrand::Rng::with_seed(0))),
            gate: None,
            calls: Mutex::default(),
            running: AtomicUsize::new(0),
            most_running: AtomicUsize::new(0),
        }
    }

    pub(super) fn with_script(self, script: impl IntoIterator<Item = Result<()>>) -> Self {
        self.script.lock().unwrap().extend(script);
        self
    }

    pub(super) fn failing(self, percent: u32, seed: u64) -> Self {
        *self.failures.lock().unwrap() = (percent, fastrand::Rng::with_seed(seed));
        self
    }

    pub(super) fn gated(mut self) -> Self {
        self.gate = Some(Semaphore::new(0));
        self
    }

    pub(super) fn shared(self) -> Arc<Self> {
        Arc::new(self)
    }

    pub(super) fn calls(&self) -> usize {
        self.calls.lock().unwrap().len()
    }

    fn next(&self) -> Result<()> {
        if let Some(next) = self.script.lock().unwrap().pop_front() {
            return next;
        }
        let (percent, random) = &mut *self.failures.lock().unwrap();
        if random.u32(0..100) < *percent { Err(down()) } else { Ok(()) }
    }
}

#[async_trait]
impl EmbeddingProvider for Scripted {
    fn space(&self) -> &EmbeddingSpace {
        &self.space
    }

    fn limits(&self) -> EmbeddingLimits {
        self.limits
    }

    fn strength(&self) -> ModelStrength {
        ModelStrength::Contextual
    }

    fn is_local(&self) -> bool {
        self.is_local
    }

    async fn embed(&self, texts: &[String], _purpose: EmbeddingPurpose) -> Result<Vec<Vec<f32>>> {
        self.calls.lock().unwrap().push(texts.to_vec());
        let _running = Running::new(self);
        match &self.gate {
            Some(gate) => gate.acquire().await.unwrap().forget(),
            None => tokio::task::yield_now().await,
        }
        self.next()?;
        Ok(texts.iter().map(|text| vector(text)).collect())
    }
}

/// Counts a running call until it is dropped.
struct Running<'a>(&'a Scripted);

impl<'a> Running<'a> {
    fn new(provider: &'a Scripted) -> Self {
        let running = provider.running.fetch_add(1, Ordering::SeqCst) + 1;
        provider.most_running.fetch_max(running, Ordering::SeqCst);
        Self(provider)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The vector of a text. Different texts have different vectors.
pub(super) fn vector(text: &str) -> Vec<f32> {
    let hash = blake3::hash(text.as_bytes());
    hash.as_bytes().iter().take(DIMENSIONS).map(|byte| f32::from(*byte) / 255.0).collect()
}

pub(super) fn vectors(texts: &[String]) -> Vec<Vec<f32>> {
    texts.iter().map(|text| vector(text)).collect()
}

pub(super) fn texts(numbers: std::ops::Range<usize>) -> Vec<String> {
    numbers.map(|number| format!("text {number}")).collect()
}

/// The error of a service that is down.
pub(super) fn down() -> Error {
    Error::new(ErrorKind::Embedding, "the service is overloaded").retryable()
}

/// The error of a service that rejects a text.
pub(super) fn refused() -> Error {
    Error::validation(ErrorField::Texts, "the service rejects a text")
}

pub(super) async fn embed(provider: &dyn EmbeddingProvider, texts: &[String]) -> Result<Vec<Vec<f32>>> {
    provider.embed(texts, EmbeddingPurpose::Document).await
}

/// Embeds a single text.
pub(super) async fn call(provider: &dyn EmbeddingProvider) -> Result<Vec<Vec<f32>>> {
    embed(provider, &texts(0..1)).await
}

/// Checks that a wrapper describes its provider.
pub(super) fn assert_describes(wrapper: &dyn EmbeddingProvider, provider: &Scripted) {
    assert_eq!(wrapper.space(), provider.space());
    assert_eq!(wrapper.limits(), provider.limits());
    assert_eq!(wrapper.strength(), provider.strength());
    assert_eq!(wrapper.is_local(), provider.is_local());
}
