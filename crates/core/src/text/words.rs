//! Plain search for words, for short texts such as names.

use std::borrow::Cow;

use unicode_normalization::{UnicodeNormalization as _, is_nfc};

/// `text` in Unicode's normalisation form C. macOS writes the names of folders decomposed (`e` and an accent), and people
/// type `é`: names that are compared must have one form.
///
/// ```
/// use amplifier_session_core::text::composed;
///
/// assert_eq!(composed("cafe\u{301}"), "café");
/// ```
#[must_use]
pub fn composed(text: &str) -> Cow<'_, str> {
    if is_nfc(text) { Cow::Borrowed(text) } else { Cow::Owned(text.nfc().collect()) }
}

/// Whether every word of `wanted` is in one of `texts`, as a whole word or within a longer one. Case and accents are
/// ignored. True if `wanted` has no words.
///
/// ```
/// use amplifier_session_core::text::holds_words;
///
/// assert!(holds_words(&["Café payments", "retries"], "cafe"));
/// assert!(holds_words(&["Café payments", "retries"], "PAY retr"));
/// assert!(!holds_words(&["Café payments", "retries"], "pay refund"));
/// ```
#[must_use]
pub fn holds_words(texts: &[&str], wanted: &str) -> bool {
    let texts: Vec<String> = texts.iter().map(|text| folded(text)).collect();
    folded(wanted).split_whitespace().all(|word| texts.iter().any(|text| text.contains(word)))
}

/// The runs of ASCII letters and digits in the words of `wanted`, in lower case. An ASCII text that has the words
/// contains all of them, so a database that can't ignore accents can use them to narrow down the rows to check.
///
/// ```
/// use amplifier_session_core::text::ascii_parts;
///
/// assert_eq!(ascii_parts("Café auth-Service 東京"), ["cafe", "auth", "service"]);
/// ```
#[must_use]
pub fn ascii_parts(wanted: &str) -> Vec<String> {
    let folded = folded(wanted);
    let parts = folded.split(|c: char| !c.is_alphanumeric());
    parts.filter(|part| !part.is_empty() && part.is_ascii()).map(str::to_owned).collect()
}

fn folded(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    text.nfkd()
        .filter(|c| !unicode_normalization::char::is_combining_mark(*c))
        .flat_map(char::to_lowercase)
        .collect()
}
