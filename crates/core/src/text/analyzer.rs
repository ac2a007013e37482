//! Splits text into terms.

use std::{fmt, ops::Range};

use super::{
    characters::{Byte, Class, fold},
    codes::end_before_word,
    places::{UNCHANGED, form_of, place_of},
    stems::Stems,
};
use crate::KnownPart;

/// Longer runs of letters and digits (mostly encoded files) are split into tokens of this size.
pub const MAX_TOKEN_BYTES: usize = 1024;

/// Splits text into terms.
///
/// - A token is a run of letters and digits; all other characters, including the underscore, are separators. Hashes and
///   long identifiers are one token, up to [`MAX_TOKEN_BYTES`]. Each emoji is a token, without its skin tone.
/// - Chinese, Japanese, Korean, Thai, Lao, Khmer and Burmese are split into overlapping pairs of characters, so that any
///   part of a word is found. A character includes its marks. The last character of a run is a token too: each character
///   then begins a token. A query has only the pairs.
/// - Its term is the token in lower case, without accents, and stemmed as English if only ASCII letters are left.
///
/// An analyzer has buffers and a cache of stems, so use one for many texts. Creating one is cheap.
///
/// ```
/// use amplifier_session_core::text::Analyzer;
///
/// let mut analyzer = Analyzer::new();
/// let mut tokens = analyzer.tokens("Cafés, storage_backends");
/// let mut terms = Vec::new();
/// while tokens.advance() {
///     terms.push((tokens.term().to_owned(), tokens.range()));
/// }
/// assert_eq!(terms, [("cafe".into(), 0..6), ("storag".into(), 8..15), ("backend".into(), 16..24)]);
/// ```
#[derive(Clone)]
pub struct Analyzer {
    stems: Stems,
    term: String,
    /// The form of the word of the term.
    form: u32,
    wanted: PrefixBits,
}

/// How tokens of wanted terms begin: a bit for each second byte, under the first one. A token of one byte has the second
/// byte 0.
type PrefixBits = [u128; 128];

impl Analyzer {
    /// An analyzer with empty buffers.
    #[must_use]
    pub fn new() -> Self {
        Self { stems: Stems::new(), term: String::new(), form: UNCHANGED, wanted: [u128::MAX; 128] }
    }

    /// An analyzer that only looks for `terms`: it finds all tokens, but the terms of others may be empty. It is
    /// several times as fast, because most words begin with other letters, and stemming does not change the first two
    /// letters, except `y` to `i`, unless it leaves only one (`aing`).
    #[must_use]
    pub fn looking_for(terms: &[String]) -> Self {
        let mut wanted: PrefixBits = [0; 128];
        for term in terms {
            let (first, second) = beginning(term.as_bytes());
            if let Some(seconds) = wanted.get_mut(first) {
                *seconds |= if term.len() == 1 { u128::MAX } else { second };
            }
        }
        Self { wanted, ..Self::new() }
    }

    fn may_be_wanted(&self, token: &[u8]) -> bool {
        let (first, second) = beginning(token);
        self.wanted.get(first).is_some_and(|seconds| seconds & second != 0)
    }

    /// The term of a text with a single token; `None` if it has none or several.
    pub(crate) fn only_term(&mut self, text: &str) -> Option<String> {
        let mut tokens = self.tokens(text);
        let term = tokens.advance().then(|| tokens.term().to_owned());
        term.filter(|_| !tokens.advance())
    }

    /// The tokens of `text`.
    pub fn tokens<'a>(&'a mut self, text: &'a str) -> Tokens<'a> {
        Tokens {
            analyzer: self,
            text,
            range: 0..0,
            next: 0,
            number: u32::MAX,
            is_query: false,
            is_last_of_run: false,
        }
    }

    /// The tokens of a query: like those of a text, without the last character of a run of pairs.
    pub fn query_tokens<'a>(&'a mut self, query: &'a str) -> Tokens<'a> {
        Tokens { is_query: true, ..self.tokens(query) }
    }

    /// Replaces the term with its stem.
    fn stem(&mut self) {
        let (length, last) = (self.term.len(), self.term.bytes().last());
        self.stems.stem(&mut self.term);
        if (self.term.len(), self.term.bytes().last()) != (length, last) {
            self.form = form_of(last);
        }
    }
}

/// The first byte of a token or a term, and the bit of the second one. `y` counts as `i`: the stem of `dying` is `die`.
fn beginning(token: &[u8]) -> (usize, u128) {
    let byte = |at: usize| token.get(at).map_or(0, u8::to_ascii_lowercase);
    let second = if byte(1) == b'y' { b'i' } else { byte(1) };
    (byte(0).into(), 1_u128.checked_shl(second.into()).unwrap_or(0))
}

impl Default for Analyzer {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Analyzer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Analyzer").finish_non_exhaustive()
    }
}

/// The tokens of a text; see [`Analyzer::tokens`].
///
/// This is not an iterator, because each term is borrowed only until the next one.
#[derive(Debug)]
pub struct Tokens<'a> {
    analyzer: &'a mut Analyzer,
    text: &'a str,
    range: Range<usize>,
    /// Where the next token is looked for: before the end of this one if they overlap.
    next: usize,
    /// The number of the token; that before the first one is the largest number.
    number: u32,
    is_query: bool,
    is_last_of_run: bool,
}

impl Tokens<'_> {
    /// Advances to the next token. Returns `false` if there is none.
    pub fn advance(&mut self) -> bool {
        let mut from = self.next;
        loop {
            let Some(start) = self.skip(from) else { return false };
            match self.take(start) {
                Ok(()) => return true,
                Err(next) => from = next,
            }
        }
    }

    /// The term of the current token.
    #[must_use]
    pub fn term(&self) -> &str {
        &self.analyzer.term
    }

    /// The place of the current token: see [`TermPhrase`](super::TermPhrase). That of a token of a query is relative to
    /// its beginning.
    #[must_use]
    pub fn place(&self) -> u32 {
        place_of(self.number, self.analyzer.form)
    }

    /// The range of the current token in the text, in bytes. It may overlap that of the token before.
    #[must_use]
    pub fn range(&self) -> Range<usize> {
        self.range.clone()
    }

    /// Whether the current token is the last character of a run of pairs, and so part of the token before.
    #[must_use]
    pub fn is_last_of_run(&self) -> bool {
        self.is_last_of_run
    }

    /// The first byte at or after `from` that is not an ASCII separator.
    fn skip(&self, from: usize) -> Option<usize> {
        let rest = self.text.as_bytes().get(from..)?;
        rest.iter().position(|byte| Byte::of(*byte) != Byte::Separator).map(|skipped| from + skipped)
    }

    /// Takes the token that starts at `start`. If there is none, returns where to look next.
    fn take(&mut self, start: usize) -> Result<(), usize> {
        let rest = self.text.as_bytes().part(start..);
        if rest.first().is_some_and(u8::is_ascii_digit)
            && let Some(end) = end_before_word(self.text, start)
        {
            return Err(end);
        }
        let mut letters_only = true;
        let mut end = start;
        for byte in rest.iter().take(MAX_TOKEN_BYTES) {
            let class = Byte::of(*byte);
            if !class.is_word() {
                if class == Byte::Wide {
                    return self.take_wide(start);
                }
                break;
            }
            letters_only &= class == Byte::Letter;
            end += 1;
        }
        self.put(start..end, end, false);
        self.analyzer.term.clear();
        let token = self.text.part(start..end);
        if !self.analyzer.may_be_wanted(token.as_bytes()) {
            return Ok(());
        }
        let term = &mut self.analyzer.term;
        term.push_str(token);
        term.make_ascii_lowercase();
        if letters_only {
            self.analyzer.stem();
        }
        Ok(())
    }

    /// [`Self::take`] for a token with characters beyond ASCII.
    fn take_wide(&mut self, start: usize) -> Result<(), usize> {
        let rest = self.text.part(start..);
        let (class, length) = first_unit(rest);
        let next = start + length;
        // The pair before ends with this character.
        let is_last_of_run = self.range.end > start;
        let end = match class {
            Class::Separator | Class::Mark => return Err(next),
            Class::Word | Class::Emoji => next,
            Class::Unspaced => match first_unit(rest.part(length..)) {
                (Class::Unspaced, second) => next + second,
                _ if is_last_of_run && self.is_query => {
                    // It is a token of a text, so it counts.
                    self.number = self.number.wrapping_add(1);
                    return Err(next);
                }
                _ => next,
            },
        };
        let term = &mut self.analyzer.term;
        fold(self.text.part(start..end), term);
        if term.is_empty() {
            return Err(next);
        }
        let is_plain = term.bytes().all(|byte| byte.is_ascii_lowercase());
        self.put(start..end, next, is_last_of_run && end == next);
        if is_plain {
            self.analyzer.stem();
        }
        Ok(())
    }

    fn put(&mut self, range: Range<usize>, next: usize, is_last_of_run: bool) {
        (self.range, self.next, self.is_last_of_run) = (range, next, is_last_of_run);
        (self.number, self.analyzer.form) = (self.number.wrapping_add(1), UNCHANGED);
    }
}

/// The class and the length of what `text` begins with: a run of letters and digits, another character with its marks,
/// or a separator. The length is 0 only for an empty text.
fn first_unit(text: &str) -> (Class, usize) {
    let mut characters = text.chars();
    let Some(first) = characters.next() else { return (Class::Separator, 0) };
    let class = Class::of(first);
    let mut end = first.len_utf8();
    if matches!(class, Class::Separator | Class::Mark) {
        return (class, end);
    }
    for c in characters {
        let next = end + c.len_utf8();
        let goes_on = match Class::of(c) {
            Class::Mark => true,
            Class::Word => class == Class::Word,
            Class::Separator | Class::Unspaced | Class::Emoji => false,
        };
        if !goes_on || next > MAX_TOKEN_BYTES {
            break;
        }
        end = next;
    }
    (class, end)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn terms(text: &str) -> Vec<String> {
        let mut analyzer = Analyzer::new();
        let mut tokens = analyzer.tokens(text);
        let mut terms = Vec::new();
        while tokens.advance() {
            terms.push(tokens.term().to_owned());
        }
        terms
    }

    #[test]
    fn texts_are_split_into_terms() {
        let cases: [(&str, &[&str]); 24] = [
            ("read_file(path: &str) -> io::Result", &["read", "file", "path", "str", "io", "result"]),
            ("StorageBackend x86_64 v1.2", &["storagebackend", "x86", "64", "v1", "2"]),
            ("a%b_c\"d*e'f", &["a", "b", "c", "d", "e", "f"]),
            (" \n%_\"*—“”…", &[]),
            // Colour codes without an escape character.
            ("[31merror[0m: [0;1mfile[10min]", &["error", "0m", "file", "10min"]),
            (r"\u001b[32m東京", &["u001b", "東京", "京"]),
            // Only words of letters are stemmed.
            ("Running tests running2", &["run", "test", "running2"]),
            ("Straße STRASSE strasse", &["strass", "strass", "strass"]),
            ("naïve—naive", &["naiv", "naiv"]),
            // Chinese, Japanese and Korean: pairs of characters, and the last one of each run.
            ("東京タワー2024年", &["東京", "京タ", "タワ", "ワー", "ー", "2024", "年"]),
            ("ab漢字cd、字", &["ab", "漢字", "字", "cd", "字"]),
            ("한국어 검색", &["한국", "국어", "어", "검색", "색"]),
            ("\u{1112}\u{1161}\u{11AB}\u{1100}\u{116E}\u{11A8}", &["한국", "국"]),
            ("Привет, мир!", &["привет", "мир"]),
            ("हिन्दी में", &["हिन्दी", "में"]),
            // So are Thai, Lao, Khmer and Burmese; a character has its marks.
            ("ภาษาไทย x", &["ภา", "าษ", "ษา", "าไ", "ไท", "ทย", "ย", "x"]),
            ("เพื่อน๒๕", &["เพื่", "พื่อ", "อน", "น", "๒๕"]),
            ("ພາສາລາວ", &["ພາ", "າສ", "ສາ", "າລ", "ລາ", "າວ", "ວ"]),
            ("ភាសាខ្មែរ", &["ភាសា", "សាខ្", "ខ្មែ", "មែរ", "រ"]),
            ("မြန်မာ", &["မြန်", "န်မာ", "မာ"]),
            // Marks without a letter are ignored.
            ("\u{301}\u{302} \u{FE0F}", &[]),
            ("\u{301}a \u{200D}b", &["a", "b"]),
            // Each emoji is a word, in any skin tone.
            ("done👍🏽next👍", &["done", "👍", "next", "👍"]),
            ("❤️🎉 👩\u{200D}💻", &["❤", "🎉", "👩", "💻"]),
        ];
        for (text, expected) in cases {
            assert_eq!(terms(text), expected, "{text}");
        }
    }

    #[test]
    fn the_forms_of_a_word_are_the_same() {
        for form in ["café", "cafe\u{301}", "CAFÉ", "cafe", "ｃａｆé"] {
            assert_eq!(terms(form), ["cafe"], "{form}");
        }
        assert_eq!(terms("résumés"), terms("resumes"));
        assert_eq!(terms("が"), terms("か\u{3099}"));
        assert_eq!(terms("ｶﾞｽ"), terms("ガス"));
    }

    #[test]
    fn a_query_has_no_last_characters() {
        let mut analyzer = Analyzer::new();
        let mut terms = |query: &str| {
            let mut tokens = analyzer.query_tokens(query);
            let mut terms = Vec::new();
            while tokens.advance() {
                assert!(!tokens.is_last_of_run());
                terms.push(tokens.term().to_owned());
            }
            terms.join(" ")
        };
        assert_eq!(terms("東京タワー"), "東京 京タ タワ ワー");
        assert_eq!(terms("東 京都, 검색 결과 x"), "東 京都 검색 결과 x");
        assert_eq!(terms("เพื่อน พื่"), "เพื่ พื่อ อน พื่");
        let mut analyzer = Analyzer::new();
        let mut tokens = analyzer.tokens("東京 都");
        let mut last = Vec::new();
        while tokens.advance() {
            last.push((tokens.range(), tokens.is_last_of_run()));
        }
        assert_eq!(last, [(0..6, false), (3..6, true), (7..10, false)]);
    }

    #[test]
    fn hashes_are_one_word_and_very_long_words_are_cut() {
        let sha256 = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
        assert_eq!(terms(&format!("sha256:{sha256}.")), ["sha256", sha256]);
        assert_eq!(terms(&sha256.to_uppercase()), [sha256]);
        let lengths = |text: &str| terms(text).iter().map(String::len).collect::<Vec<_>>();
        assert_eq!(lengths(&"a".repeat(2500)), [1024, 1024, 452]);
        assert_eq!(lengths(&"é".repeat(2500)), [512, 512, 512, 512, 452]);
    }

    #[test]
    fn words_are_found_whose_stem_has_another_second_letter() {
        for word in
            ["dying", "lying", "tying", "skies", "ties", "ye", "by", "x", "ay", "aing", "eing", "oed", "ieds"]
        {
            let wanted = terms(word);
            let mut analyzer = Analyzer::looking_for(&wanted);
            let mut tokens = analyzer.tokens(word);
            assert!(tokens.advance() && tokens.term() == wanted[0], "{word}: {wanted:?}");
        }
    }

    proptest! {
        #[test]
        fn tokens_ascend_and_hold_all_letters(text in "(\\PC|[a-zé漢字ไทยื่\u{301}\n_ ]){0,80}") {
            let mut analyzer = Analyzer::new();
            let mut tokens = analyzer.tokens(&text);
            let mut end = 0;
            while tokens.advance() {
                let range = tokens.range();
                let skipped = text.get(end.min(range.start)..range.start).unwrap();
                prop_assert!(!skipped.chars().any(|c| c.is_ascii_alphanumeric()), "{skipped:?}");
                prop_assert!(!text.get(range.clone()).unwrap().is_empty() && !tokens.term().is_empty());
                // Tokens overlap by one character.
                prop_assert_eq!(tokens.is_last_of_run(), range.start < end && range.end == end);
                prop_assert!(range.end >= end);
                end = range.end;
            }
            prop_assert!(!text.get(end..).unwrap().chars().any(|c| c.is_ascii_alphanumeric()));
        }

        #[test]
        fn terms_of_a_query_are_found_where_the_analysis_finds_them(text in "([a-z]{1,9}(s|ed|ing|ies|ly|ness)?|[A-Zé漢_\n ]| ){0,40}", letters in "[a-z]{1,3}") {
            let all = |analyzer: &mut Analyzer| {
                let mut tokens = analyzer.tokens(&text);
                let mut found = Vec::new();
                while tokens.advance() {
                    found.push((tokens.range(), tokens.term().to_owned()));
                }
                found
            };
            let expected = all(&mut Analyzer::new());
            let is_wanted = |term: &String| term.starts_with(|c| letters.contains(c));
            let terms: Vec<String> = expected.iter().map(|(_, term)| term.clone()).filter(is_wanted).collect();
            let found = all(&mut Analyzer::looking_for(&terms));
            prop_assert_eq!(found.len(), expected.len());
            for ((place, term), (expected_place, expected)) in found.iter().zip(&expected) {
                prop_assert_eq!(place, expected_place);
                prop_assert_eq!(terms.contains(term), terms.contains(expected));
                prop_assert!(term == expected || !terms.contains(expected), "{} is {}", expected, term);
            }
        }

        #[test]
        fn case_does_not_matter_in_ascii(text in "[a-zA-Z0-9 _.]{0,80}") {
            prop_assert_eq!(terms(&text), terms(&text.to_ascii_uppercase()));
        }
    }
}
