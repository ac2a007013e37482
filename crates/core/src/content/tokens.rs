//! Counting tokens in the encoding `cl100k_base`.

use std::cell::RefCell;

use super::{
    encoding::{self, cl100k},
    pieces::pieces,
};

/// Frees the 10 MB of the vocabulary, for programs that are idle for a long time. The next call that needs it loads it
/// again.
pub fn unload() {
    encoding::unload();
}

/// The number of `cl100k_base` tokens in `text`.
///
/// Everything is plain text, including `<|endoftext|>`. The time is linear in the length of the text. The first call in
/// a process also loads the vocabulary, which takes about 25 ms.
#[must_use]
pub fn count(text: &str) -> usize {
    KNOWN.with_borrow_mut(|known| pieces(text).map(|piece| known.count(piece)).sum())
}

/// The number of tokens in `text` if it is at most `limit`. Otherwise, stops soon after the limit.
#[must_use]
pub fn count_up_to(text: &str, limit: usize) -> Option<usize> {
    KNOWN.with_borrow_mut(|known| {
        pieces(text).try_fold(0, |tokens, piece| Some(tokens + known.count_up_to(piece, limit - tokens)?))
    })
}

/// The number of tokens in one piece of a text, or in a part of one.
pub(super) fn count_piece(piece: &str) -> usize {
    KNOWN.with_borrow_mut(|known| known.count(piece))
}

thread_local! {
    static KNOWN: RefCell<TokenCountCache> = const { RefCell::new(TokenCountCache { slots: Vec::new() }) };
}

/// A cache of the token counts of short pieces. Most words of a text repeat, and encoding a word takes many times as
/// long as looking it up.
struct TokenCountCache {
    /// Keys with their counts in the highest bits. Several keys share a slot, which contains the last one.
    slots: Vec<u128>,
}

impl TokenCountCache {
    /// 32,768 slots are 512 KB, which fits into a processor's cache.
    const SLOT_BITS: u32 = 15;

    fn count(&mut self, piece: &str) -> usize {
        let encode = || cl100k().count(piece.as_bytes());
        let Some(key) = key(piece) else { return encode() };
        let slot = self.slot(key);
        if *slot & KEY_BITS != key {
            *slot = key | (encode() as u128) << KEY_BITS.count_ones();
        }
        (*slot >> KEY_BITS.count_ones()) as usize
    }

    fn count_up_to(&mut self, piece: &str, limit: usize) -> Option<usize> {
        match key(piece) {
            Some(_) => Some(self.count(piece)).filter(|tokens| *tokens <= limit),
            // The piece may be as long as the text.
            None => cl100k().count_till_limit(piece.as_bytes(), limit),
        }
    }

    fn slot(&mut self, key: u128) -> &mut u128 {
        const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
        if self.slots.is_empty() {
            self.slots = vec![0; 1 << Self::SLOT_BITS];
        }
        let mixed = ((key >> 64) as u64).wrapping_mul(ODD).rotate_left(32) ^ key as u64;
        &mut self.slots[(mixed.wrapping_mul(ODD) >> (u64::BITS - Self::SLOT_BITS)) as usize]
    }
}

/// The mask for 15 bytes of a piece and half a byte for its length. The other half byte is for the number of tokens,
/// which is not greater.
const KEY_BITS: u128 = u128::MAX >> 4;

/// The bytes and length of a short piece, never 0. `None` if the piece is too long.
fn key(piece: &str) -> Option<u128> {
    let mut bytes = [0; size_of::<u128>()];
    let (length, rest) = bytes.split_last_mut()?;
    rest.get_mut(..piece.len())?.copy_from_slice(piece.as_bytes());
    *length = piece.len() as u8;
    (!piece.is_empty()).then(|| u128::from_le_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use bpe_openai::cl100k_base;

    use super::*;

    #[test]
    fn counts_are_those_of_the_encoding() {
        // Known counts of `cl100k_base`.
        assert_eq!(count(""), 0);
        assert_eq!(count("hello world"), 2);
        assert_eq!(count("antidisestablishmentarianism"), 6);
        assert_eq!(count("2 + 2 = 4"), 7);
        // Special tokens are plain text.
        assert_eq!(count("<|endoftext|>"), 7);
    }

    #[test]
    fn counts_are_correct_even_if_slots_are_shared() {
        let text: String =
            (0..40_000).map(|n: u32| format!(" {}x{n:o} größe", n.wrapping_mul(2_654_435_761))).collect();
        for _ in 0..2 {
            assert_eq!(count(&text), cl100k_base().count(text.as_str()));
        }
    }

    #[test]
    fn the_limit_is_inclusive() {
        assert_eq!(count_up_to("hello world", 2), Some(2));
        assert_eq!(count_up_to("hello world", 1), None);
        assert_eq!(count_up_to("", 0), Some(0));
        assert_eq!(count_up_to(&"word ".repeat(50_000), 1000), None);
    }
}
