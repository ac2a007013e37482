//! The terms of a query.

use super::Analyzer;

/// The maximum number of terms in a query; further ones are ignored.
pub const MAX_QUERY_TERMS: usize = 64;

/// The distinct terms of `query`, in order.
///
/// A query is plain text: `%`, `"`, `*` and other punctuation separate words, and `AND` is an ordinary word. English
/// stop words and question words are left out, unless there are no others.
///
/// ```
/// use amplifier_session_core::text::query_terms;
///
/// assert_eq!(query_terms("How did we fix the failing tests?"), ["fix", "fail", "test"]);
/// assert_eq!(query_terms("what was it"), ["what", "was", "it"]);
/// ```
#[must_use]
pub fn query_terms(query: &str) -> Vec<String> {
    let mut analyzer = Analyzer::new();
    let mut tokens = analyzer.tokens(query);
    let (mut terms, mut stop_terms) = (Vec::new(), Vec::new());
    while terms.len() < MAX_QUERY_TERMS && tokens.advance() {
        let word = query.get(tokens.range()).unwrap_or_default();
        let list = if is_stop_word(word) { &mut stop_terms } else { &mut terms };
        if list.len() < MAX_QUERY_TERMS && !list.iter().any(|known| known == tokens.term()) {
            list.push(tokens.term().to_owned());
        }
    }
    if terms.is_empty() { stop_terms } else { terms }
}

/// Whether `word` is an English stop word, ignoring case.
fn is_stop_word(word: &str) -> bool {
    let longest = 10;
    word.len() <= longest && STOP_WORDS.binary_search(&word.to_ascii_lowercase().as_str()).is_ok()
}

/// Articles, pronouns, prepositions, conjunctions, auxiliaries, question words, and parts of contractions, sorted.
/// Words with a meaning in code or commands (`for`, `if`, `while`, `not`) are included only if the ordinary meaning is
/// far more frequent.
#[rustfmt::skip]
static STOP_WORDS: &[&str] = &[
    "a", "about", "am", "an", "and", "any", "are", "aren", "as", "at",
    "be", "because", "been", "being", "but", "by",
    "can", "could", "couldn",
    "d", "did", "didn", "do", "does", "doesn", "doing", "don", "during",
    "for", "from",
    "had", "hadn", "has", "hasn", "have", "haven", "having", "he", "her", "hers", "him", "his", "how",
    "i", "if", "in", "into", "is", "isn", "it", "its",
    "just",
    "ll",
    "m", "may", "me", "might", "must", "my",
    "not",
    "of", "on", "or", "our", "ours", "over",
    "please",
    "re",
    "s", "shall", "she", "should", "shouldn", "so", "some", "such",
    "t", "than", "that", "the", "their", "theirs", "them", "then", "there", "these", "they", "this", "those",
    "to", "too",
    "us",
    "ve", "very",
    "was", "wasn", "we", "were", "weren", "what", "when", "where", "whether", "which", "who", "whom", "whose",
    "why", "will", "with", "won", "would", "wouldn",
    "you", "your", "yours",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stop_words_are_left_out_unless_there_are_no_others() {
        assert_eq!(query_terms("When did I ask about the authentication?"), ["ask", "authent"]);
        assert_eq!(query_terms("WHAT Is THE Deadline"), ["deadlin"]);
        assert_eq!(query_terms("to be or not to be"), ["to", "be", "or", "not"]);
        assert_eq!(query_terms("don't we've it's"), ["don", "t", "we", "ve", "it", "s"]);
        assert!(query_terms("").is_empty());
    }

    #[test]
    fn operators_are_plain_text() {
        assert_eq!(
            query_terms("100% \"exact phrase\" foo* AND bar_baz"),
            ["100", "exact", "phrase", "foo", "bar", "baz"]
        );
        assert!(query_terms("%_\"*' -- ;").is_empty());
        assert_eq!(query_terms("title:rust^2 (a OR b) NEAR/3"), ["titl", "rust", "2", "b", "near", "3"]);
    }

    #[test]
    fn terms_are_unique_and_bounded() {
        assert_eq!(query_terms("test tests Testing TEST"), ["test"]);
        let long: String = (0..5_000).map(|n| format!("word{n} ")).collect();
        assert_eq!(query_terms(&long).len(), MAX_QUERY_TERMS);
    }

    #[test]
    fn the_list_is_sorted_and_short_enough() {
        assert!(STOP_WORDS.is_sorted());
        assert!(STOP_WORDS.iter().all(|word| word.len() <= 10));
    }
}
