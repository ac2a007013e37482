//! Masking secrets before texts leave this machine, or before they are stored.

use std::{borrow::Cow, fmt::Debug, ops::Range};

use crate::{Result, embedding::EmbeddingProvider};

/// Finds the secrets in a text and masks them.
pub trait Redactor: Debug + Send + Sync {
    /// `text` with every secret masked. Other characters keep their places, so that spans of the result are spans of
    /// `text`.
    ///
    /// Mask whole texts before they are cut into chunks, because a cut may split a secret.
    ///
    /// # Errors
    ///
    /// If the search for secrets fails. The text is not sent then.
    fn mask<'a>(&self, text: &'a str) -> Result<Masked<'a>>;

    /// The ranges of the secrets in `text`, in order and without overlaps. Does not find masked secrets.
    ///
    /// # Errors
    ///
    /// If the search for secrets fails.
    fn find(&self, text: &str) -> Result<Vec<SecretSpan>>;
}

/// The place of a secret. It does not contain the secret itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretSpan {
    /// The rule that found it, for example `github-pat`.
    pub rule: String,
    /// Its range in bytes. Both ends are on character boundaries.
    pub span: Range<usize>,
}

/// A text with its secrets masked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Masked<'a> {
    /// The text, with as many characters as the original.
    pub text: Cow<'a, str>,
    /// The number of masked secrets in it.
    pub secrets: usize,
}

impl<'a> Masked<'a> {
    /// `text` unchanged.
    #[must_use]
    pub fn nothing(text: &'a str) -> Self {
        Self { text: Cow::Borrowed(text), secrets: 0 }
    }
}

/// The models for which secrets are masked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Redaction {
    /// For models that are not on this machine.
    #[default]
    Remote,
    /// For all models.
    Always,
    /// For no model.
    Off,
}

impl Redaction {
    /// Whether secrets are masked in texts for `provider`.
    #[must_use]
    pub fn applies_to(self, provider: &dyn EmbeddingProvider) -> bool {
        match self {
            Self::Remote => !provider.is_local(),
            Self::Always => true,
            Self::Off => false,
        }
    }
}
