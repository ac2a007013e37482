//! Finds and masks secrets in whole lines.
//!
//! A whole line is searched unchanged, because names of fields describe their values. Each of its strings is also
//! searched with its JSON escapes decoded, as other machines would receive it.
//!
//! Masking keeps the line valid: it replaces only characters in strings, each by one character whose escape has the
//! same number of bytes. So spans of characters stay valid. Line breaks are kept.

mod literals;

use std::{borrow::Cow, collections::HashSet, ops::Range};

use self::literals::{Decoded, Literal, character, literals};
use super::{Certainty, Redactor, SecretSpan, redact::merge_secrets};
use crate::{
    KnownPart, Result,
    model::{Digest, RawJson},
};

/// The version of the rules for masking lines. If it increases, masked stores are masked again.
pub const MASKING: u32 = 2;

/// The minimum length of a string, in bytes, that can contain the name and the value of a secret.
const SHORTEST: usize = 6;

/// Strings of at least this length, in bytes, are searched only by themselves, which takes half the time. No rule
/// regards a longer value as a secret because of its name.
const LONG: usize = 4_096;

/// After secrets are masked, the rest may match another rule. Real lines need one or two passes.
const PASSES: usize = 16;

/// The minimum length of a string, in bytes, that is remembered if it has no secrets. Shorter ones may belong to a secret
/// that extends over several strings.
const REMEMBERED: usize = 128;
/// The beginnings of the lines that begin and end a key.
const BOUNDARIES: [&str; 2] = ["-----BEGIN ", "-----END "];
/// The maximum number of such strings.
const MOST_REMEMBERED: usize = 100_000;

/// Digests of strings without secrets, with the names of their fields. The same text recurs in many lines of a session,
/// because each request to a model contains the conversation so far.
#[derive(Debug, Default)]
pub struct CleanTexts(HashSet<Digest>);

/// Findings that a person has judged to be harmless: digests of their rules and values.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IgnoredSecrets(HashSet<Digest>);

impl IgnoredSecrets {
    /// The digest of a finding, which does not reveal the value.
    #[must_use]
    pub fn digest(rule: &str, value: &[u8]) -> Digest {
        Digest::of(&[rule.as_bytes(), b"\0", value].concat())
    }

    /// Whether the finding is among them.
    #[must_use]
    pub fn contains(&self, rule: &str, value: &[u8]) -> bool {
        !self.0.is_empty() && self.0.contains(&Self::digest(rule, value))
    }

    /// Whether the finding with this digest is among them.
    #[must_use]
    pub fn contains_digest(&self, digest: &Digest) -> bool {
        self.0.contains(digest)
    }
}

impl FromIterator<Digest> for IgnoredSecrets {
    fn from_iter<T: IntoIterator<Item = Digest>>(digests: T) -> Self {
        Self(digests.into_iter().collect())
    }
}

/// Finds the secrets in a line, even those that are only possible, in order and without overlaps. Ranges count the bytes
/// of the line. `clean` has strings of earlier lines that are not searched again.
///
/// # Errors
///
/// Errors of the redactor.
pub fn secrets_in_line(
    redactor: &dyn Redactor,
    line: &RawJson,
    clean: &mut CleanTexts,
) -> Result<Vec<SecretSpan>> {
    let text = text_of(line.as_bytes());
    let literals = literals(&text);
    let mut found = find(redactor, &text, &literals, clean)?;
    let mut masking = Masking::new(&text, &literals, false);
    // If masking would not change it, it is already masked, or can't be a secret.
    found.retain(|secret| masking.replacements(&secret.span).iter().any(|change| !change.is_nothing(&text)));
    Ok(found)
}

/// Masks the secrets in a line that are at least `least` certain and not `ignored`, and counts them. Returns `None` if
/// the line has none. The line and each of its strings keep their number of characters. Masking a masked line changes
/// nothing.
///
/// # Errors
///
/// Errors of the redactor.
pub fn mask_line(
    redactor: &dyn Redactor,
    line: &RawJson,
    least: Certainty,
    ignored: &IgnoredSecrets,
) -> Result<Option<(RawJson, usize)>> {
    let is_masked = |secret: &SecretSpan, bytes: &[u8]| {
        let value = bytes.get(secret.span.clone()).unwrap_or_default();
        secret.certainty >= least && !ignored.contains(&secret.rule, value)
    };
    let masked = mask(redactor, line, &is_masked, false)?;
    let Some((after, _)) = &masked else { return Ok(None) };
    // A secret that extends over several strings may have covered the fields that determine the kind of the line.
    if kind_of(line) != kind_of(after) { mask(redactor, line, &is_masked, true) } else { Ok(masked) }
}

fn mask(
    redactor: &dyn Redactor,
    line: &RawJson,
    is_masked: &dyn Fn(&SecretSpan, &[u8]) -> bool,
    clipped: bool,
) -> Result<Option<(RawJson, usize)>> {
    let mut current: Option<RawJson> = None;
    let mut count = 0;
    for _ in 0..PASSES {
        let bytes = current.as_ref().unwrap_or(line).as_bytes();
        let text = text_of(bytes);
        let literals = literals(&text);
        // Masking a secret may uncover one that begins in a string without secrets and ends in another.
        let mut found = find(redactor, &text, &literals, &mut CleanTexts::default())?;
        found.retain(|secret| is_masked(secret, bytes));
        let mut masking = Masking::new(&text, &literals, clipped);
        let mut changes = Vec::new();
        for secret in &found {
            let of_secret = masking.replacements(&secret.span);
            count += usize::from(of_secret.iter().any(|change| !change.is_nothing(&text)));
            changes.extend(of_secret);
        }
        if changes.iter().all(|change| change.is_nothing(&text)) {
            break;
        }
        current = Some(RawJson::new(replaced(bytes, &changes)));
    }
    Ok(current.map(|line| (line, count)))
}

/// The fields that determine the kind of a line.
fn kind_of(line: &RawJson) -> Option<[serde_json::Value; 3]> {
    let mut object = line.parse_object().ok()?;
    Some(["role", "event", "type"].map(|name| object.remove(name).unwrap_or_default()))
}

/// The text of a line. Each byte that is not UTF-8 is replaced by one other byte, so that positions stay the same.
fn text_of(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Cow::Borrowed(text);
    }
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| NOT_UTF8));
    }
    Cow::Owned(text)
}

/// Replaces a byte that is not UTF-8. JSON text does not contain this character.
const NOT_UTF8: char = '\u{1a}';

/// The line with long and known strings blanked out. Positions stay the same.
fn outline<'a>(text: &'a str, literals: &[Literal], known: &HashSet<usize>) -> Cow<'a, str> {
    let is_blank = |(at, literal): &(usize, &Literal)| literal.span.len() > LONG || known.contains(at);
    let (mut outline, mut done) = (String::new(), 0);
    for (_, literal) in literals.iter().enumerate().filter(is_blank) {
        outline.push_str(text.part(done..literal.span.start));
        outline.extend(std::iter::repeat_n(' ', literal.span.len()));
        done = literal.span.end;
    }
    if done == 0 {
        return Cow::Borrowed(text);
    }
    outline.push_str(text.part(done..));
    Cow::Owned(outline)
}

/// Finds secrets in the whole line, and in each of its strings.
fn find(
    redactor: &dyn Redactor,
    text: &str,
    literals: &[Literal],
    clean: &mut CleanTexts,
) -> Result<Vec<SecretSpan>> {
    let digests: Vec<_> = (0..literals.len()).map(|at| digest(text, literals, at)).collect();
    let is_known = |at: &usize| matches!(digests.get(*at), Some(Some(digest)) if clean.0.contains(digest));
    let known: HashSet<usize> = (0..literals.len()).filter(is_known).collect();
    let mut found = redactor.find(&outline(text, literals, &known))?;
    for (at, literal) in literals.iter().enumerate() {
        if literal.span.len() < SHORTEST || known.contains(&at) {
            continue;
        }
        let decoded = Decoded::of(text, literal);
        let in_line =
            |secret: SecretSpan| SecretSpan { span: decoded.original(secret.span.clone()), ..secret };
        found.extend(redactor.find(&decoded.text)?.into_iter().map(in_line));
    }
    let found = merge_secrets(found);
    for (literal, digest) in literals.iter().zip(digests) {
        let next = found.partition_point(|secret| secret.span.end <= literal.span.start);
        let is_clean = found.get(next).is_none_or(|secret| literal.span.end <= secret.span.start);
        if let Some(digest) = digest.filter(|_| is_clean && clean.0.len() < MOST_REMEMBERED) {
            clean.0.insert(digest);
        }
    }
    Ok(found)
}

/// The digest of a string with the name of its field, if it is to be remembered.
fn digest(text: &str, literals: &[Literal], at: usize) -> Option<Digest> {
    let literal = literals.get(at).filter(|literal| literal.span.len() >= REMEMBERED)?;
    // A key may begin in one string and end in another.
    let string = text.get(literal.span.clone())?;
    if BOUNDARIES.iter().any(|boundary| string.contains(boundary)) {
        return None;
    }
    let name = at.checked_sub(1).and_then(|before| literals.get(before)).filter(|before| before.is_key);
    let start = name.map_or(literal.span.start, |name| name.span.start);
    Some(Digest::of(text.get(start..literal.span.end)?.as_bytes()))
}

/// A character of a line, and its replacement.
#[derive(Debug)]
struct Replacement {
    /// The range of its written form.
    place: Range<usize>,
    mask: &'static str,
}

impl Replacement {
    fn is_nothing(&self, text: &str) -> bool {
        text.get(self.place.clone()) == Some(self.mask)
    }
}

/// Determines the replacements for the characters of secrets. Secrets must come in order.
struct Masking<'a> {
    text: &'a str,
    literals: &'a [Literal],
    /// Whether only the first string of a secret that extends over several ones is masked.
    clipped: bool,
    /// The last examined literal, and a character in it that begins at or before the next secret.
    next: usize,
    at: usize,
}

impl<'a> Masking<'a> {
    fn new(text: &'a str, literals: &'a [Literal], clipped: bool) -> Self {
        Self { text, literals, clipped, next: 0, at: 0 }
    }

    /// The replacements that mask a secret.
    fn replacements(&mut self, secret: &Range<usize>) -> Vec<Replacement> {
        let mut changes = Vec::new();
        let mut is_in_string = false;
        while let Some(literal) = self.literals.get(self.next) {
            if literal.span.start >= secret.end {
                break;
            }
            let touches = literal.span.end > secret.start;
            let is_whole = literal.contains(secret);
            is_in_string |= touches;
            let is_wanted = changes.is_empty() || !self.clipped;
            if touches && is_wanted && (is_whole || !literal.is_key) {
                self.mask_in(literal, secret, &mut changes);
            }
            if literal.span.end >= secret.end {
                break;
            }
            self.next += 1;
        }
        if !is_in_string {
            changes.extend(number(self.text, secret));
        }
        changes
    }

    /// Masks the characters of a string that belong to a secret.
    fn mask_in(&mut self, literal: &Literal, secret: &Range<usize>, changes: &mut Vec<Replacement>) {
        self.at = self.at.max(literal.span.start);
        while self.at < literal.span.end.min(secret.end) {
            let Some((decoded, length)) = character(self.text, self.at) else { return };
            let place = self.at..self.at + length;
            self.at = place.end;
            if place.end > secret.start
                && let Some(mask) = mask_of(decoded, length, self.text.get(place.clone()))
            {
                changes.push(Replacement { place, mask });
            }
        }
    }
}

/// The replacement of a character whose written form has `length` bytes; `None` if it stays.
fn mask_of(decoded: char, length: usize, written: Option<&str>) -> Option<&'static str> {
    let is_escape = written.is_some_and(|written| written.starts_with('\\'));
    match (decoded, is_escape.then_some(length)) {
        ('\n' | '\r' | '\t' | NOT_UTF8, _) => None,
        // A slash is the only character that has a short escape but does not need it.
        (_, Some(2)) => Some("\\/"),
        (_, Some(6)) => Some("\\u002a"),
        // A padlock, because an asterisk needs only half the bytes.
        (_, Some(12)) => Some("\\ud83d\\udd12"),
        _ => Some("*"),
    }
}

/// Masks a number. The result is a number, too.
fn number(text: &str, secret: &Range<usize>) -> Vec<Replacement> {
    let Some(written) = text.get(secret.clone()) else { return Vec::new() };
    if !written.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'-' | b'+' | b'e' | b'E'))
    {
        return Vec::new();
    }
    let digits = written.bytes().enumerate().filter(|(_, byte)| byte.is_ascii_digit());
    digits.map(|(at, _)| Replacement { place: secret.start + at..secret.start + at + 1, mask: "1" }).collect()
}

/// `bytes` with the replacements `changes`, which are in order and do not overlap.
fn replaced(bytes: &[u8], changes: &[Replacement]) -> Vec<u8> {
    let mut after = Vec::with_capacity(bytes.len());
    let mut done = 0;
    for Replacement { place, mask } in changes {
        after.extend_from_slice(bytes.part(done..place.start));
        after.extend_from_slice(mask.as_bytes());
        done = place.end;
    }
    after.extend_from_slice(bytes.part(done..));
    after
}

#[cfg(test)]
mod tests;
