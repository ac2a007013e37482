//! A rule with its exceptions.

use std::{ops::Range, sync::OnceLock};

use aho_corasick::AhoCorasick;
use amplifier_session_core::KnownPart;

use super::pattern::Pattern;

/// How much of the line around a match is visible to exceptions, in bytes, because a line may be as long as the text.
const LINE_AROUND: usize = 1_000;

/// A rule in gitleaks' format.
#[derive(Debug)]
pub(super) struct Rule {
    pub(super) id: String,
    pub(super) pattern: Pattern,
    /// The group of the pattern that is the secret. Default: the first group that is not empty, else the whole match.
    pub(super) secret_group: Option<usize>,
    /// A secret must have more Shannon entropy than this, in bits per byte.
    pub(super) entropy: Option<f64>,
    /// Whether the secret has a form that other texts do not have. Otherwise, only what is around it makes it a secret.
    pub(super) has_form: bool,
    /// Whether it is a password, which may be any text. This matters only if it has no form.
    pub(super) is_password: bool,
    pub(super) allowlists: Vec<Allowlist>,
}

/// Exceptions: matches that are not secrets.
#[derive(Debug)]
pub(super) struct Allowlist {
    pub(super) target: Target,
    pub(super) patterns: Vec<Pattern>,
    /// Words, in lower case, that secrets don't contain.
    pub(super) stopwords: Vec<String>,
    pub(super) stopword_finder: OnceLock<Option<AhoCorasick>>,
}

/// The text to which the patterns of an [`Allowlist`] are applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Target {
    #[default]
    Secret,
    Match,
    Line,
}

impl Rule {
    /// Finds the spans of the secrets in `text`, in order.
    pub(super) fn find(&self, text: &[u8], everywhere: Option<&Allowlist>) -> Vec<Range<usize>> {
        let Some(regex) = self.pattern.regex() else { return Vec::new() };
        let mut groups = regex.capture_locations();
        let mut found = Vec::new();
        let mut from = 0;
        while let Some(whole) = regex.captures_read_at(&mut groups, text, from).map(|whole| whole.range()) {
            let secret = self.secret(&groups, &whole);
            let place = MatchPosition { text, whole: whole.clone(), secret: secret.clone() };
            let next = if self.accepts(&place, everywhere) {
                found.push(secret.clone());
                // The text after the secret may be the beginning of the next match.
                secret.end
            } else {
                whole.end
            };
            from = next.max(from + 1);
            if from > text.len() {
                break;
            }
        }
        found
    }

    fn secret(&self, groups: &regex::bytes::CaptureLocations, whole: &Range<usize>) -> Range<usize> {
        let group = |index| groups.get(index).map(|(start, end)| start..end).filter(|span| !span.is_empty());
        let span = match self.secret_group {
            Some(index) => group(index),
            None => (1..groups.len()).find_map(group),
        };
        span.unwrap_or_else(|| whole.clone())
    }

    fn accepts(&self, place: &MatchPosition<'_>, everywhere: Option<&Allowlist>) -> bool {
        let secret = place.secret();
        let is_masked = secret.iter().all(|byte| *byte == b'*' || byte.is_ascii_whitespace());
        !is_masked
            && self.entropy.is_none_or(|least| entropy(secret) > least)
            && !everywhere.into_iter().chain(&self.allowlists).any(|list| list.allows(place))
    }
}

/// The place of a match.
struct MatchPosition<'a> {
    text: &'a [u8],
    whole: Range<usize>,
    secret: Range<usize>,
}

impl<'a> MatchPosition<'a> {
    fn secret(&self) -> &'a [u8] {
        self.text.part(self.secret.clone())
    }

    fn target(&self, target: Target) -> &'a [u8] {
        match target {
            Target::Secret => self.secret(),
            Target::Match => self.text.part(self.whole.clone()),
            Target::Line => self.line(),
        }
    }

    fn line(&self) -> &'a [u8] {
        let earliest = self.whole.start.saturating_sub(LINE_AROUND);
        let latest = self.whole.end.saturating_add(LINE_AROUND).min(self.text.len());
        let before = self.text.part(earliest..self.whole.start);
        let after = self.text.part(self.whole.end..latest);
        let start = before.iter().rposition(|byte| *byte == b'\n').map_or(earliest, |at| earliest + at + 1);
        let end = after.iter().position(|byte| *byte == b'\n').map_or(latest, |at| self.whole.end + at);
        self.text.part(start..end)
    }
}

impl Allowlist {
    fn allows(&self, place: &MatchPosition<'_>) -> bool {
        let target = place.target(self.target);
        self.patterns.iter().any(|pattern| pattern.is_match(target)) || self.has_stopword(place.secret())
    }

    fn has_stopword(&self, secret: &[u8]) -> bool {
        let build = || AhoCorasick::builder().ascii_case_insensitive(true).build(&self.stopwords).ok();
        !self.stopwords.is_empty()
            && self.stopword_finder.get_or_init(build).as_ref().is_some_and(|finder| finder.is_match(secret))
    }
}

/// Shannon entropy in bits per byte.
fn entropy(bytes: &[u8]) -> f64 {
    let mut counts = [0_u32; 256];
    for byte in bytes {
        if let Some(count) = counts.get_mut(usize::from(*byte)) {
            *count += 1;
        }
    }
    let share = |count: u32| f64::from(count) / bytes.len() as f64;
    let shares = counts.into_iter().filter(|count| *count > 0).map(share);
    shares.map(|share| -share * share.log2()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entropy_is_that_of_shannon() {
        assert_eq!(entropy(b""), 0.0);
        assert_eq!(entropy(b"aaaa"), 0.0);
        assert_eq!(entropy(b"abab"), 1.0);
        assert_eq!(entropy(b"abcdefgh"), 3.0);
    }

    #[test]
    fn the_line_of_a_match_is_bounded() {
        let text = [b"one\ntwo key three\nfour".as_slice(), &[b'x'; 5_000]].concat();
        let line =
            |whole: Range<usize>| MatchPosition { text: &text, secret: whole.clone(), whole }.line().len();
        assert_eq!(line(8..11), "two key three".len());
        assert_eq!(line(4_000..4_010), 2_010);
        assert_eq!(line(0..0), 3);
    }
}
