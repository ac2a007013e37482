//! Secrets stay on this machine.

use std::{
    borrow::Cow,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use amplifier_session_core::{
    Result,
    embedding::{EmbeddingProvider, EmbeddingPurpose, Masked},
};
use async_trait::async_trait;

use super::forward;
use crate::secrets::SecretRules;

/// Masks secrets in every text before the provider sees it, unless the provider is on this machine.
///
/// `mask` masks them in a whole text, where more of them are found than in its chunks, and `embed` in whatever it is
/// given. A text that was masked stays as it is.
#[derive(Debug)]
pub struct Redacting {
    inner: Arc<dyn EmbeddingProvider>,
    rules: &'static SecretRules,
    always: bool,
    masked: AtomicU64,
}

impl Redacting {
    /// Masks what the built-in rules find.
    ///
    /// # Errors
    ///
    /// `Embedding` when the built-in rules can't be read, which is a mistake in the build.
    pub fn new(inner: Arc<dyn EmbeddingProvider>) -> Result<Self> {
        let rules = SecretRules::built_in()?;
        Ok(Self { inner, rules, always: false, masked: AtomicU64::new(0) })
    }

    /// Masks for a provider on this machine as well.
    #[must_use]
    pub fn always(mut self) -> Self {
        self.always = true;
        self
    }

    /// How many secrets were masked in the texts given to `mask` and `embed` so far.
    #[must_use]
    pub fn masked(&self) -> u64 {
        self.masked.load(Ordering::Relaxed)
    }

    fn mask_here<'a>(&self, text: &'a str) -> Masked<'a> {
        if self.inner.is_local() && !self.always {
            return Masked { text: Cow::Borrowed(text), secrets: 0 };
        }
        let masked = self.rules.mask(text);
        self.masked.fetch_add(masked.secrets as u64, Ordering::Relaxed);
        masked
    }
}

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl EmbeddingProvider for Redacting {
    forward!(space, limits, strength, is_local, address);

    fn mask<'a>(&self, text: &'a str) -> Masked<'a> {
        let inner = self.inner.mask(text);
        let (text, secrets) = match inner.text {
            Cow::Borrowed(text) => {
                let masked = self.mask_here(text);
                (masked.text, masked.secrets)
            }
            Cow::Owned(text) => {
                let masked = self.mask_here(&text);
                (Cow::Owned(masked.text.into_owned()), masked.secrets)
            }
        };
        Masked { text, secrets: inner.secrets + secrets }
    }

    async fn embed(&self, texts: &[String], purpose: EmbeddingPurpose) -> Result<Vec<Vec<f32>>> {
        let masked: Vec<_> = texts.iter().map(|text| self.mask_here(text)).collect();
        if masked.iter().all(|masked| masked.secrets == 0) {
            return self.inner.embed(texts, purpose).await;
        }
        let texts: Vec<String> = masked.into_iter().map(|masked| masked.text.into_owned()).collect();
        self.inner.embed(&texts, purpose).await
    }
}
