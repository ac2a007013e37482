//! Groups texts into batches.

/// The maximum number of tokens in a batch, including the padding of each text to the longest one.
///
/// This bounds the memory: attention needs several arrays of `texts * heads * length²` floats, 25 MB each for 2,048
/// tokens in texts of 256 with 12 heads.
pub(super) const TOKENS: usize = 2048;

/// The index of a text and its number of tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Length {
    pub(super) at: usize,
    pub(super) tokens: usize,
}

/// Returns the indexes of the texts in each batch. Texts of similar length share a batch, so there is little padding. A
/// text with more than `most` tokens has its own batch.
pub(super) fn batches(mut lengths: Vec<Length>, most: usize) -> Vec<Vec<usize>> {
    lengths.sort_by_key(|length| (length.tokens, length.at));
    let mut batches: Vec<Vec<usize>> = Vec::new();
    for Length { at, tokens } in lengths {
        match batches.last_mut() {
            // Texts are sorted by length, so this one is the longest of the batch.
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
    fn texts_of_similar_length_are_batched_together() {
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
