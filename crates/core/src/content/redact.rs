//! Masking secrets before texts leave this machine, or before they are stored.

use std::{borrow::Cow, fmt::Debug, ops::Range};

use crate::{Result, embedding::EmbeddingProvider};

/// Finds the secrets in a text and masks them.
pub trait Redactor: Debug + Send + Sync {
    /// `text` with every secret masked. Other characters keep their places, so that spans of the result are spans of
    /// `text`.
    ///
    /// Whole texts are masked before they are cut into chunks, since a cut may go through a secret.
    ///
    /// # Errors
    ///
    /// If the search for secrets fails. Then the text is not sent.
    fn mask<'a>(&self, text: &'a str) -> Result<Masked<'a>>;

    /// The places of the secrets in `text`, in order and without overlaps. Masked secrets are not found.
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

/// A text without its secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Masked<'a> {
    /// The text, with as many characters as the original.
    pub text: Cow<'a, str>,
    /// How many secrets were masked in it.
    pub secrets: usize,
}

impl<'a> Masked<'a> {
    /// `text` unchanged.
    #[must_use]
    pub fn nothing(text: &'a str) -> Self {
        Self { text: Cow::Borrowed(text), secrets: 0 }
    }
}

/// For which models secrets are masked.
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
