//! Keeps secrets on this machine.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use amplifier_session_core::{
    Result,
    content::Redaction,
    embedding::{EmbeddingProvider, EmbeddingPurpose},
};
use amplifier_session_secrets::SecretRules;
use async_trait::async_trait;

use super::forward;

/// Masks secrets in every text before the provider sees it.
///
/// A storage masks whole texts before it cuts them into chunks, because more secrets are found in whole texts; see
/// `SessionStorage::with_redactor`. This wrapper masks texts that reach a provider in other ways. It does not change a
/// text that is already masked.
#[derive(Debug)]
pub struct Redacting {
    inner: Arc<dyn EmbeddingProvider>,
    /// `None` if nothing is masked.
    rules: Option<&'static SecretRules>,
    masked: AtomicU64,
}

impl Redacting {
    /// Masks the secrets that the built-in rules find, if `redaction` applies to the provider.
    ///
    /// # Errors
    ///
    /// `Embedding` if the built-in rules can't be read, which would be a mistake in the build.
    pub fn new(inner: Arc<dyn EmbeddingProvider>, redaction: Redaction) -> Result<Self> {
        let applies = redaction.applies_to(inner.as_ref());
        let rules = applies.then(SecretRules::built_in).transpose()?;
        Ok(Self { inner, rules, masked: AtomicU64::new(0) })
    }

    /// The number of secrets that were masked so far.
    #[must_use]
    pub fn masked(&self) -> u64 {
        self.masked.load(Ordering::Relaxed)
    }
}

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl EmbeddingProvider for Redacting {
    forward!(inner: space, limits, strength, is_local, address);

    async fn embed(&self, texts: &[String], purpose: EmbeddingPurpose) -> Result<Vec<Vec<f32>>> {
        let Some(rules) = self.rules else { return self.inner.embed(texts, purpose).await };
        let masked: Vec<_> = texts.iter().map(|text| rules.mask(text)).collect();
        let secrets: usize = masked.iter().map(|masked| masked.secrets).sum();
        if secrets == 0 {
            return self.inner.embed(texts, purpose).await;
        }
        self.masked.fetch_add(secrets as u64, Ordering::Relaxed);
        let texts: Vec<String> = masked.into_iter().map(|masked| masked.text.into_owned()).collect();
        self.inner.embed(&texts, purpose).await
    }
}
