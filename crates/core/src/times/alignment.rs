//! Aligns two sequences of texts.

use super::line::TextId;
use crate::KnownPart;

/// The maximum number of pairs to compare.
const MOST_PAIRS: usize = 1_000_000;

/// The positions of matching texts: a longest common subsequence of both. Of several equal texts, the first ones are
/// used, or the last ones with `from_end`. Items without text match nothing.
///
/// Empty if the sequences are too long to compare.
pub(super) fn align(
    left: &[Option<TextId>],
    right: &[Option<TextId>],
    from_end: bool,
) -> Vec<(usize, usize)> {
    if right.iter().all(Option::is_none) {
        return Vec::new();
    }
    if !from_end {
        return from_beginning(left, right);
    }
    let reversed = |texts: &[Option<TextId>]| texts.iter().rev().copied().collect::<Vec<_>>();
    let pairs = from_beginning(&reversed(left), &reversed(right));
    pairs.into_iter().rev().map(|(at, of)| (left.len() - 1 - at, right.len() - 1 - of)).collect()
}

fn from_beginning(left: &[Option<TextId>], right: &[Option<TextId>]) -> Vec<(usize, usize)> {
    let is_same = |left: Option<&Option<TextId>>, right: Option<&Option<TextId>>| match (left, right) {
        (Some(Some(left)), Some(Some(right))) => left == right,
        _ => false,
    };
    let same =
        (0..left.len().min(right.len())).take_while(|at| is_same(left.get(*at), right.get(*at))).count();
    let mut pairs: Vec<(usize, usize)> = (0..same).map(|at| (at, at)).collect();
    let (left, right) = (left.part(same..), right.part(same..));
    if left.is_empty() || right.is_empty() || left.len().saturating_mul(right.len()) > MOST_PAIRS {
        return pairs;
    }
    // The number of matches from a position in each sequence on.
    let width = right.len() + 1;
    let mut longest = vec![0_u32; (left.len() + 1) * width];
    let at = |longest: &[u32], i: usize, j: usize| {
        let length = longest.get(i * width + j);
        debug_assert!(length.is_some(), "the table has a field for each pair of positions");
        length.copied().unwrap_or_default()
    };
    for i in (0..left.len()).rev() {
        for j in (0..right.len()).rev() {
            let length = if is_same(left.get(i), right.get(j)) {
                at(&longest, i + 1, j + 1) + 1
            } else {
                at(&longest, i + 1, j).max(at(&longest, i, j + 1))
            };
            if let Some(cell) = longest.get_mut(i * width + j) {
                *cell = length;
            }
        }
    }
    let (mut i, mut j) = (0, 0);
    while i < left.len() && j < right.len() {
        if is_same(left.get(i), right.get(j)) {
            pairs.push((same + i, same + j));
            (i, j) = (i + 1, j + 1);
        } else if at(&longest, i + 1, j) > at(&longest, i, j + 1) {
            i += 1;
        } else {
            j += 1;
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A letter is a text; a dot is an item without text.
    fn texts(letters: &str) -> Vec<Option<TextId>> {
        letters.bytes().map(|letter| (letter != b'.').then_some(letter.into())).collect()
    }

    fn of(left: &str, right: &str, from_end: bool) -> Vec<(usize, usize)> {
        align(&texts(left), &texts(right), from_end)
    }

    #[test]
    fn as_many_texts_as_possible_match() {
        /// Left, right, whether from the end, and the pairs.
        type Case<'a> = (&'a str, &'a str, bool, &'a [(usize, usize)]);
        let cases: [Case<'_>; 12] = [
            ("abc", "abc", false, &[(0, 0), (1, 1), (2, 2)]),
            ("abcd", "cd", false, &[(2, 0), (3, 1)]),
            ("ab", "abcd", true, &[(0, 0), (1, 1)]),
            ("axbyc", "abzc", false, &[(0, 0), (2, 1), (4, 3)]),
            ("gagbg", "agb", false, &[(1, 0), (2, 1), (3, 2)]),
            // The first or the last of equal texts.
            ("ggg", "gg", false, &[(0, 0), (1, 1)]),
            ("ggg", "gg", true, &[(1, 0), (2, 1)]),
            ("g", "gg", false, &[(0, 0)]),
            ("g", "gg", true, &[(0, 1)]),
            // Items without text match nothing.
            ("...", "...", false, &[]),
            (".a.", ".a", true, &[(1, 1)]),
            ("", "a", false, &[]),
        ];
        for (left, right, from_end, expected) in cases {
            assert_eq!(of(left, right, from_end), expected, "{left} {right} {from_end}");
        }
    }

    #[test]
    fn common_ends_of_long_sequences_match() {
        let (left, right) = ("ab".repeat(1_000), "cd".repeat(1_000));
        assert_eq!(of(&left, &right, false), []);
        assert_eq!(of(&left, &left, true).len(), 2_000);
        assert_eq!(of(&format!("{left}{left}"), &format!("{left}{right}"), false).len(), 2_000);
    }
}
