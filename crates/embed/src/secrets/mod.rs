//! Finding secrets in texts, and masking them.
//!
//! The rules are those of gitleaks, and a few of our own for what a conversation holds and a repository does not
//! (`rules/README.md`). A rule is a regular expression with keywords, the entropy that a secret has at least, and
//! lists of what is none. Most texts contain no keyword and cost one pass.
//!
//! Besides, what a name says to be a secret is one, whatever characters it is made of (`assignments`), and so is the
//! password in a URL (`urls`). All of them look at the text as it is, and at the text as a person reads it: strings of
//! JSON in strings of JSON are unwrapped, level by level (`views`).
//!
//! A masker and a scanner of repositories differ in what a mistake costs: a secret that gets away can't be called back,
//! while a text with a few stars too many is found all the same. So two things are wider here than in gitleaks, see
//! `rules.rs`: rules for certain files apply to all texts, and more characters may follow a secret.

mod assignments;
mod cursor;
mod extents;
mod judging;
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
    Error, ErrorKind, Result,
    content::{Masked, Redactor},
};

use rule::{Allowlist, Rule};
use views::Views;

static GITLEAKS: &str = include_str!("../../rules/gitleaks.toml");
static OWN: &str = include_str!("../../rules/own.toml");

/// The rule of gitleaks for any name.
const GENERIC: &str = "generic-api-key";

/// One set for the whole process; the error as text, since it is kept.
static BUILT_IN: OnceLock<Result<SecretRules, String>> = OnceLock::new();

/// Once a secret is masked, what is left may match a rule that it did not match before. So a text is looked at again
/// until nothing is found, but not more often than this. Real texts take one or two passes.
const PASSES: usize = 32;

/// Rules that find secrets.
#[derive(Debug)]
pub struct SecretRules {
    rules: Vec<Rule>,
    keywords: AhoCorasick,
    /// The rule of each keyword.
    owners: Vec<usize>,
    /// What is no secret for any rule.
    allowlist: Option<Allowlist>,
}

/// Masks what the [built-in rules](SecretRules::built_in) find; they are read when the first text is masked.
#[derive(Debug, Clone, Copy, Default)]
pub struct BuiltInRedactor;

impl Redactor for BuiltInRedactor {
    fn mask<'a>(&self, text: &'a str) -> Result<Masked<'a>> {
        Ok(SecretRules::built_in()?.mask(text))
    }
}

/// Where a secret is. The secret itself is not part of it, so that it can be logged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundSecret<'a> {
    /// The rule that found it, for example `github-pat`.
    pub rule: &'a str,
    /// Its bytes in the text; begin and end are boundaries of characters.
    pub span: Range<usize>,
}

impl SecretRules {
    /// The rules that are compiled in. The first call of a process reads them, which takes some milliseconds; the
    /// regular expression of each is compiled when one of its keywords is met.
    ///
    /// # Errors
    ///
    /// `Embedding` when they can't be read, which is a mistake in the build.
    pub fn built_in() -> Result<&'static Self> {
        let failed = |reason: &String| {
            Error::new(ErrorKind::Embedding, format!("the rules for secrets can't be read: {reason}"))
        };
        BUILT_IN.get_or_init(|| Self::parse(&[GITLEAKS, OWN])).as_ref().map_err(failed)
    }

    /// The secrets in `text`, in their order, none overlapping another. Takes time linear in the length of the text.
    #[must_use]
    pub fn find(&self, text: &str) -> Vec<FoundSecret<'_>> {
        let views = Views::of(text);
        let mut found = Vec::new();
        for (level, seen) in views.levels().enumerate() {
            for FoundSecret { rule, span } in self.find_as_written(seen) {
                found.push(FoundSecret { rule, span: widen(text, views.original(level, widen(seen, span))) });
            }
        }
        merge(found)
    }

    /// The secrets in `text` as it is, without a look at what its escapes stand for.
    fn find_as_written(&self, text: &str) -> Vec<FoundSecret<'_>> {
        let mut found = Vec::new();
        for rule in self.candidates(text) {
            let mut spans = rule.find(text.as_bytes(), self.allowlist.as_ref());
            if rule.id() == GENERIC {
                spans.retain(|span| is_generic_secret(text, span));
            }
            found.extend(spans.into_iter().map(|span| FoundSecret { rule: rule.id(), span }));
        }
        let named = |rule| move |span| FoundSecret { rule, span };
        found.extend(assignments::find(text).into_iter().map(named("named-secret")));
        found.extend(urls::find(text).into_iter().map(named("url-password")));
        found.retain(|secret| {
            text.get(widen(text, secret.span.clone())).is_some_and(|hidden| !is_masked(hidden))
        });
        found
    }

    /// `text` with a `*` for each character of a secret, so that the places of all others stay what they are. The line
    /// breaks of a secret stay too. A masked text is not changed any further.
    #[must_use]
    pub fn mask<'a>(&self, text: &'a str) -> Masked<'a> {
        let mut masked = Masked::nothing(text);
        for _ in 0..PASSES {
            let found = self.find(&masked.text);
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

/// Whether what the rule for any name has found is more than a name, a hash or an identifier beside a word such as
/// `key`.
fn is_generic_secret(text: &str, span: &Range<usize>) -> bool {
    const NAME: usize = 80;
    let Some(value) = text.get(span.clone()) else { return true };
    let is_hexadecimal = value.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    if !is_hexadecimal {
        return !values::is_wordy(value);
    }
    let start = (span.start.saturating_sub(NAME)..=span.start).find(|at| text.is_char_boundary(*at));
    let before = start.and_then(|start| text.get(start..span.start)).unwrap_or_default();
    before.split(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-' | '.'))).any(|name| {
        matches!(names::kind_of(name, None), Some(names::NameKind::Password | names::NameKind::Secret))
    })
}

/// Whether there is nothing left to mask.
fn is_masked(hidden: &str) -> bool {
    hidden.chars().all(|c| c == '*' || c.is_whitespace())
}

/// The span with the whole of the characters at its ends: rules work on bytes.
fn widen(text: &str, span: Range<usize>) -> Range<usize> {
    let start = (0..=span.start).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let end = (span.end..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
    start..end
}

/// In order of their places, with overlapping ones made one.
fn merge(mut found: Vec<FoundSecret<'_>>) -> Vec<FoundSecret<'_>> {
    found.sort_by_key(|secret| (secret.span.start, secret.span.end));
    let mut merged: Vec<FoundSecret<'_>> = Vec::with_capacity(found.len());
    for secret in found {
        match merged.last_mut() {
            Some(last) if secret.span.start < last.span.end => {
                last.span.end = last.span.end.max(secret.span.end);
            }
            _ => merged.push(secret),
        }
    }
    merged
}

fn overwrite(text: &str, secrets: &[FoundSecret<'_>]) -> String {
    let mut masked = String::with_capacity(text.len());
    let mut done = 0;
    for secret in secrets {
        masked.push_str(text.get(done..secret.span.start).unwrap_or_default());
        let hidden = text.get(secret.span.clone()).unwrap_or_default();
        masked.extend(hidden.chars().map(|c| if matches!(c, '\n' | '\r') { c } else { '*' }));
        done = secret.span.end;
    }
    masked.push_str(text.get(done..).unwrap_or_default());
    masked
}

#[cfg(test)]
mod tests;
