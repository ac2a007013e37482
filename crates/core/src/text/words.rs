//! Plain search for words, for short texts such as names.

use unicode_normalization::UnicodeNormalization as _;

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

fn folded(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    text.nfkd()
        .filter(|c| !unicode_normalization::char::is_combining_mark(*c))
        .flat_map(char::to_lowercase)
        .collect()
}
