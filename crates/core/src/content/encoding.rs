//! OpenAI's encoding `cl100k_base`: its tokens, and the regular expression that splits a text before it is encoded.
//!
//! Both are those of [tiktoken](https://github.com/openai/tiktoken/blob/main/tiktoken_ext/openai_public.py).

use std::{
    cell::RefCell,
    sync::{Arc, LazyLock, Mutex, PoisonError, Weak},
};

use bpe::byte_pair_encoding::BytePairEncoding;
use regex::Regex;

static LOADED: Mutex<Option<Arc<BytePairEncoding>>> = Mutex::new(None);

thread_local! {
    /// The encoding that this thread used last, so that it need not lock.
    static USED: RefCell<Weak<BytePairEncoding>> = const { RefCell::new(Weak::new()) };
}

/// The encoding. The first call in a process loads it, which takes about 25 ms.
pub(super) fn cl100k() -> Arc<BytePairEncoding> {
    USED.with_borrow_mut(|used| {
        used.upgrade().unwrap_or_else(|| {
            let encoding = loaded();
            *used = Arc::downgrade(&encoding);
            encoding
        })
    })
}

/// Frees the memory of the encoding until it is needed again.
pub(super) fn unload() {
    *LOADED.lock().unwrap_or_else(PoisonError::into_inner) = None;
}

fn loaded() -> Arc<BytePairEncoding> {
    let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
    Arc::clone(loaded.get_or_insert_with(|| Arc::new(load())))
}

#[expect(clippy::expect_used, reason = "the build script has written the tables, and tests load them")]
fn load() -> BytePairEncoding {
    let tables = include_bytes!(concat!(env!("OUT_DIR"), "/cl100k_base.tables"));
    rmp_serde::from_slice(tables).expect("tables of the encoding")
}

/// The length of the first piece of `text`; `None` if it is empty.
pub(super) fn first_piece(text: &str) -> Option<usize> {
    // tiktoken's expression has `\s+(?!\S)` before the last `\s+`, which this library does not support. It leaves the
    // last white space character to the following word; see below.
    #[expect(clippy::expect_used, reason = "a constant expression, which tests compile")]
    static PIECE: LazyLock<Regex> = LazyLock::new(|| {
        let piece = concat!(
            r"\A(?:(?i:'s|'t|'re|'ve|'m|'ll|'d)",
            r"|[^\r\n\p{L}\p{N}]?\p{L}+",
            r"|\p{N}{1,3}",
            r"| ?[^\s\p{L}\p{N}]+[\r\n]*",
            r"|\s*[\r\n]+",
            r"|\s+)"
        );
        Regex::new(piece).expect("a valid expression")
    });
    let piece = PIECE.find(text)?;
    let (end, last) = (piece.end(), piece.as_str().chars().next_back()?);
    let before_a_word = end < text.len() && !matches!(last, '\r' | '\n') && is_blank(piece.as_str());
    let first = end - last.len_utf8();
    Some(if before_a_word && first > 0 { first } else { end })
}

fn is_blank(text: &str) -> bool {
    text.chars().all(char::is_whitespace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_those_of_the_published_encoding() {
        let expected = bpe_openai::cl100k_base();
        let texts =
            ["hello world", "größe 中文 🔑", "fn main() {\n    run(1, 2)\n}", "aaaaaaaaaaaaaaaaaaaaaaaa", ""];
        for text in texts {
            let tokens = cl100k().encode_via_backtracking(text.as_bytes());
            assert_eq!(tokens, expected.bpe.encode_via_backtracking(text.as_bytes()), "{text:?}");
        }
    }

    #[test]
    fn tokens_are_loaded_again_after_they_were_unloaded() {
        let count = || cl100k().count(b"hello world");
        assert_eq!(count(), 2);
        unload();
        assert_eq!(count(), 2);
    }

    #[test]
    fn an_empty_text_has_no_piece() {
        assert_eq!(first_piece(""), None);
    }
}
