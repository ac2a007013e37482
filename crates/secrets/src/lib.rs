//! Finds and masks secrets in texts.
//!
//! The rules are those of gitleaks, and some of our own for secrets that appear in conversations but not in repositories
//! (`rules/README.md`). A rule is a regular expression with keywords, a minimum entropy, and lists of exceptions. Most
//! texts contain no keyword and need only one pass.
//!
//! In addition, a value is a secret if its name says so, whatever its characters are (`assignments`), and so is a
//! password in a URL (`urls`). All rules apply to the text as written and as a person reads it: JSON strings within
//! JSON strings are unescaped, level by level (`views`).
//!
//! Rules are wider than in gitleaks in two ways, see `rules.rs`: rules for certain files apply to all texts, and more
//! characters may follow a secret. On the other hand, a finding has a certainty (`grading`), and only those that are at
//! least likely are masked: a leaked secret can't be taken back, but neither can ordinary text that was masked when it
//! was stored.

mod assignments;
mod cursor;
mod extents;
mod grading;
mod judging;
mod match_context;
mod names;
mod operators;
mod pattern;
mod rule;
mod rules;
mod urls;
mod values;
mod views;

use std::{borrow::Cow, ops::Range, sync::OnceLock};

use aho_corasick::AhoCorasick;
use amplifier_session_core::{
    Error, ErrorKind, KnownPart, Result,
    content::{Certainty, Masked, Redactor, SecretSpan, merge_secrets},
};

use rule::{Allowlist, Rule};
use views::Views;

static GITLEAKS: &str = include_str!("../rules/gitleaks.toml");
static OWN: &str = include_str!("../rules/own.toml");

/// The gitleaks rule that applies to names of any kind.
const GENERIC: &str = "generic-api-key";

/// The rules, read once per process. The error is kept as text.
static BUILT_IN: OnceLock<Result<SecretRules, String>> = OnceLock::new();

/// The maximum number of passes over a text. After a secret is masked, the rest may match another rule, so passes are
/// repeated until nothing is found. Real texts need one or two.
const PASSES: usize = 32;

/// Rules that find secrets.
#[derive(Debug)]
pub struct SecretRules {
    rules: Vec<Rule>,
    keywords: AhoCorasick,
    /// For each keyword, the index of its rule.
    owners: Vec<usize>,
    /// The exceptions to all rules.
    allowlist: Option<Allowlist>,
}

/// Masks the secrets that the [built-in rules](SecretRules::built_in) find. The rules are read when they are first used.
#[derive(Debug, Clone, Copy, Default)]
pub struct BuiltInRedactor;

impl Redactor for BuiltInRedactor {
    fn mask<'a>(&self, text: &'a str) -> Result<Masked<'a>> {
        Ok(SecretRules::built_in()?.mask(text))
    }

    fn find(&self, text: &str) -> Result<Vec<SecretSpan>> {
        Ok(SecretRules::built_in()?.find(text))
    }
}

impl SecretRules {
    /// The compiled-in rules. The first call in a process reads them, which takes some milliseconds. The regular
    /// expression of a rule is compiled when one of its keywords is first found.
    ///
    /// # Errors
    ///
    /// `Embedding` if they can't be read, which would be a mistake in the build.
    pub fn built_in() -> Result<&'static Self> {
        let failed = |reason: &String| {
            Error::new(ErrorKind::Embedding, format!("the rules for secrets can't be read: {reason}"))
        };
        BUILT_IN.get_or_init(|| Self::parse(&[GITLEAKS, OWN])).as_ref().map_err(failed)
    }

    /// Finds the secrets in `text`, even those that are only possible: in order, without overlaps, and in linear time.
    #[must_use]
    pub fn find(&self, text: &str) -> Vec<SecretSpan> {
        let views = Views::of(text);
        let mut found = Vec::new();
        for (level, seen) in views.levels().enumerate() {
            for secret in self.find_as_written(seen) {
                let span = widen(text, views.original(level, widen(seen, secret.span)));
                found.push(SecretSpan { span, ..secret });
            }
        }
        merge_secrets(found)
    }

    /// Finds the secrets in `text` without unescaping it.
    fn find_as_written(&self, text: &str) -> Vec<SecretSpan> {
        let mut found = Vec::new();
        let mut add = |rule: &str, span: Range<usize>, certainty: Option<Certainty>| {
            let hidden = text.get(widen(text, span.clone()));
            if let Some(certainty) = certainty.filter(|_| hidden.is_some_and(|hidden| !is_masked(hidden))) {
                found.push(SecretSpan { rule: rule.to_owned(), certainty, span });
            }
        };
        for rule in self.candidates(text) {
            for span in rule.find(text.as_bytes(), self.allowlist.as_ref()) {
                let certainty = match text.get(widen(text, span.clone())) {
                    Some(_) if rule.id == GENERIC && !is_generic_secret(text, &span) => None,
                    Some(value) => grading::of_rule(rule, value),
                    None => None,
                };
                add(&rule.id, span, certainty);
            }
        }
        for (span, certainty) in assignments::find(text) {
            add("named-secret", span, Some(certainty));
        }
        for (span, certainty) in urls::find(text) {
            add("url-password", span, Some(certainty));
        }
        found
    }

    /// Replaces each character of a secret that is at least likely by `*`, except for line breaks, so that all others keep
    /// their places. Masking a masked text does not change it.
    #[must_use]
    pub fn mask<'a>(&self, text: &'a str) -> Masked<'a> {
        let mut masked = Masked::nothing(text);
        for _ in 0..PASSES {
            let mut found = self.find(&masked.text);
            found.retain(|secret| secret.certainty.is_masked());
            if found.is_empty() {
                break;
            }
            masked.secrets += found.len();
            masked.text = Cow::Owned(overwrite(&masked.text, &found));
        }
        masked
    }

    /// The rules that have a keyword in `text`.
    fn candidates(&self, text: &str) -> impl Iterator<Item = &Rule> {
        let mut is_candidate = vec![false; self.rules.len()];
        for hit in self.keywords.find_overlapping_iter(text) {
            let owner = self.owners.get(hit.pattern().as_usize());
            if let Some(flag) = owner.and_then(|owner| is_candidate.get_mut(*owner)) {
                *flag = true;
            }
        }
        self.rules.iter().zip(is_candidate).filter_map(|(rule, is_candidate)| is_candidate.then_some(rule))
    }
}

/// Whether a value found by the generic rule is more than a name, a hash or an identifier near a word such as `key`.
fn is_generic_secret(text: &str, span: &Range<usize>) -> bool {
    const NAME: usize = 80;
    let Some(value) = text.get(span.clone()) else { return true };
    let is_hexadecimal = value.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    if !is_hexadecimal {
        return !values::is_wordy(value);
    }
    let start = (span.start.saturating_sub(NAME)..span.start).find(|at| text.is_char_boundary(*at));
    let before = text.part(start.unwrap_or(span.start)..span.start);
    before.split(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-' | '.'))).any(|name| {
        matches!(names::kind_of(name, None), Some(names::NameKind::Password | names::NameKind::Secret))
    })
}

/// Whether a secret is masked already.
fn is_masked(hidden: &str) -> bool {
    hidden.chars().all(|c| c == '*' || c.is_whitespace())
}

/// Extends a span to character boundaries, since rules work on bytes.
fn widen(text: &str, span: Range<usize>) -> Range<usize> {
    let start = (0..=span.start).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let end = (span.end..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
    start..end
}

fn overwrite(text: &str, secrets: &[SecretSpan]) -> String {
    let mut masked = String::with_capacity(text.len());
    let mut done = 0;
    for secret in secrets {
        masked.push_str(text.part(done..secret.span.start));
        let hidden = text.part(secret.span.clone());
        masked.extend(hidden.chars().map(|c| if matches!(c, '\n' | '\r') { c } else { '*' }));
        done = secret.span.end;
    }
    masked.push_str(text.part(done..));
    masked
}

#[cfg(test)]
mod tests;
