//! Words that say nothing about the topic of a query.

/// Whether `word` is an English stop word, ignoring case.
pub(super) fn is_stop_word(word: &str) -> bool {
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
    fn the_list_is_sorted_and_short_enough() {
        assert!(STOP_WORDS.is_sorted());
        assert!(STOP_WORDS.iter().all(|word| word.len() <= 10));
    }
}
