//! Which texts go through the transformer together.

/// The most tokens of a batch, counting each text as long as its longest, which is what it is padded to.
///
/// It bounds the memory: attention takes `texts * heads * length²` floats several times over, 25 MB each for 2,048 tokens
/// in texts of 256 with 12 heads.
pub(super) const TOKENS: usize = 2048;

/// A text, by its place among all, and how many tokens it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Length {
    pub(super) at: usize,
    pub(super) tokens: usize,
}

/// The places of the texts of each batch. Texts of like length go together, so that little is padded; a text that is
/// longer than `most` tokens goes alone.
pub(super) fn batches(mut lengths: Vec<Length>, most: usize) -> Vec<Vec<usize>> {
    lengths.sort_by_key(|length| (length.tokens, length.at));
    let mut batches: Vec<Vec<usize>> = Vec::new();
    for Length { at, tokens } in lengths {
        match batches.last_mut() {
            // They come in the order of their length: this one is the longest so far.
            Some(batch) if (batch.len() + 1) * tokens <= most => batch.push(at),
            _ => batches.push(vec![at]),
        }
    }
    batches
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn made(lengths: &[usize], most: usize) -> Vec<Vec<usize>> {
        batches(lengths.iter().enumerate().map(|(at, tokens)| Length { at, tokens: *tokens }).collect(), most)
    }

    #[test]
    fn texts_of_like_length_go_together() {
        assert_eq!(made(&[10, 100, 12, 90, 11], 200), [vec![0, 4, 2], vec![3, 1]]);
        assert_eq!(made(&[500, 3], 200), [vec![1], vec![0]]);
        assert!(made(&[], 200).is_empty());
    }

    proptest! {
        #[test]
        fn every_text_is_in_one_batch_and_no_batch_is_too_large(
            lengths in proptest::collection::vec(1_usize..600, 0..80),
        ) {
            let made = made(&lengths, 512);
            let mut all: Vec<usize> = made.iter().flatten().copied().collect();
            all.sort_unstable();
            prop_assert_eq!(all, (0..lengths.len()).collect::<Vec<_>>());
            for batch in made {
                let longest = batch.iter().map(|at| lengths[*at]).max().unwrap();
                prop_assert!(batch.len() == 1 || longest * batch.len() <= 512);
            }
        }
    }
}
