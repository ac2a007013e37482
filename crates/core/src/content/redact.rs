//! Masking secrets before texts leave this machine, or before they are stored.

use std::{borrow::Cow, cmp::Reverse, fmt::Debug, ops::Range};

use serde::{Deserialize, Serialize};

use crate::{Result, embedding::EmbeddingProvider};

/// Finds the secrets in a text and masks them.
pub trait Redactor: Debug + Send + Sync {
    /// `text` with every secret masked that is at least [likely](Certainty::is_masked). Other characters keep their places, so that spans of the result are spans of
    /// `text`.
    ///
    /// Mask whole texts before they are cut into chunks, because a cut may split a secret.
    ///
    /// # Errors
    ///
    /// If the search for secrets fails. The text is not sent then.
    fn mask<'a>(&self, text: &'a str) -> Result<Masked<'a>>;

    /// The secrets in `text`, even those that are only possible, in order and without overlaps. Does not find masked
    /// secrets.
    ///
    /// # Errors
    ///
    /// If the search for secrets fails.
    fn find(&self, text: &str) -> Result<Vec<SecretSpan>>;
}

/// How certain it is that a finding is a secret. Ordered from the least certain to the most certain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Certainty {
    /// It may be a secret, and is more often a word, a name or an example. Such findings are listed, but not masked.
    Possible,
    /// Its name says that it is a secret, and it looks like one.
    Likely,
    /// It has the form of a known kind of secret.
    Certain,
}

names! {
    Certainty { Possible: "possible", Likely: "likely", Certain: "certain" }
}

impl Certainty {
    /// Whether findings of this certainty are masked.
    #[must_use]
    pub fn is_masked(self) -> bool {
        self >= Self::Likely
    }
}

/// The place of a secret. It does not contain the secret itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretSpan {
    /// The rule that found it, for example `github-pat`.
    pub rule: String,
    /// How certain it is.
    pub certainty: Certainty,
    /// Its range in bytes. Both ends are on character boundaries.
    pub span: Range<usize>,
}

/// Sorts findings by their places. Overlapping ones become one, with the rule of the more certain one. A finding that
/// would be masked does not grow because of one that would not be.
#[must_use]
pub fn merge_secrets(found: Vec<SecretSpan>) -> Vec<SecretSpan> {
    let (masked, possible): (Vec<_>, Vec<_>) =
        found.into_iter().partition(|secret| secret.certainty.is_masked());
    let mut merged = merge_overlaps(masked);
    let is_free = |secret: &SecretSpan| {
        let next = merged.partition_point(|other| other.span.end <= secret.span.start);
        merged.get(next).is_none_or(|other| secret.span.end <= other.span.start)
    };
    let possible: Vec<_> = merge_overlaps(possible).into_iter().filter(is_free).collect();
    merged.extend(possible);
    merged.sort_by_key(|secret| secret.span.start);
    merged
}

fn merge_overlaps(mut found: Vec<SecretSpan>) -> Vec<SecretSpan> {
    found.sort_by_key(|secret| (secret.span.start, Reverse(secret.span.end)));
    found.dedup_by(|next, last| {
        let overlaps = next.span.start < last.span.end;
        if overlaps {
            last.span.end = last.span.end.max(next.span.end);
            if next.certainty > last.certainty {
                last.certainty = next.certainty;
                last.rule = std::mem::take(&mut next.rule);
            }
        }
        overlaps
    });
    found
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

#[cfg(test)]
mod tests {
    use super::{Certainty::*, *};

    #[test]
    fn overlapping_findings_become_the_more_certain_one() {
        let merged = |found: &[(&str, Certainty, Range<usize>)]| -> Vec<_> {
            let span = |(rule, certainty, span): &(&str, Certainty, Range<usize>)| SecretSpan {
                rule: (*rule).to_owned(),
                certainty: *certainty,
                span: span.clone(),
            };
            let merged = merge_secrets(found.iter().map(span).collect());
            merged.into_iter().map(|secret| (secret.rule, secret.certainty, secret.span)).collect()
        };
        let one = |rule: &str, certainty, span| (rule.to_owned(), certainty, span);
        assert_eq!(
            merged(&[("b", Certain, 6..9), ("a", Likely, 2..7), ("c", Likely, 9..12)]),
            [one("b", Certain, 2..9), one("c", Likely, 9..12)]
        );
        assert_eq!(
            merged(&[("a", Possible, 0..20), ("b", Likely, 5..9), ("c", Possible, 20..22)]),
            [one("b", Likely, 5..9), one("c", Possible, 20..22)]
        );
    }
}
