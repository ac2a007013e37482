//! Counting tokens in the encoding `cl100k_base`.

use bpe_openai::cl100k_base;

/// The number of `cl100k_base` tokens in `text`.
///
/// Everything is plain text, `<|endoftext|>` included. Takes time linear in the length of the text; the first
/// call of a process also loads the vocabulary, which takes some 50 ms.
#[must_use]
pub fn count(text: &str) -> usize {
    cl100k_base().count(text)
}

/// The number of tokens in `text` if it is at most `limit`; gives up soon after the limit otherwise.
#[must_use]
pub fn count_up_to(text: &str, limit: usize) -> Option<usize> {
    let tokenizer = cl100k_base();
    tokenizer.count_till_limit(&tokenizer.normalize(text), limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_those_of_the_encoding() {
        // Known counts of `cl100k_base`.
        assert_eq!(count(""), 0);
        assert_eq!(count("hello world"), 2);
        assert_eq!(count("antidisestablishmentarianism"), 6);
        assert_eq!(count("2 + 2 = 4"), 7);
    }

    #[test]
    fn special_tokens_are_plain_text() {
        assert_eq!(count("<|endoftext|>"), 7);
    }

    #[test]
    fn the_limit_is_inclusive() {
        assert_eq!(count_up_to("hello world", 2), Some(2));
        assert_eq!(count_up_to("hello world", 1), None);
        assert_eq!(count_up_to("", 0), Some(0));
        assert_eq!(count_up_to(&"word ".repeat(50_000), 1000), None);
    }
}
