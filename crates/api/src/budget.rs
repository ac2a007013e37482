//! Answers with a limited number of tokens: a face renders a portion of a response, and searches for the largest that
//! fits.

use amplifier_session_core::content::tokens::{count, count_up_to};

use crate::{ApiError, InvalidRequest};

/// Lengths, longest first, to which the first message that does not fit is cut.
const CUTS: [usize; 7] = [4_000, 2_000, 1_000, 500, 200, 100, 50];

/// The part of an answer that is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Portion {
    /// The number of items, the most important first.
    pub items: usize,
    /// The length in characters to which the last of them is cut.
    pub last_chars: Option<usize>,
}

/// Limits of the length of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AnswerLimits {
    /// The maximum length of each message in characters.
    pub max_chars: Option<usize>,
    /// The maximum length of the whole answer in tokens.
    pub budget: Option<usize>,
}

impl AnswerLimits {
    /// The same limits, without one for each message.
    #[must_use]
    pub fn without_max_chars(self) -> Self {
        Self { max_chars: None, ..self }
    }

    /// The number of `items` that a portion leaves out, if there is a budget.
    #[must_use]
    pub fn left_out(self, items: usize, portion: Portion) -> Option<usize> {
        self.budget.map(|_| items.saturating_sub(portion.items))
    }
}

/// The items of an answer.
#[derive(Debug, Clone, Copy)]
pub struct Items {
    /// Their number.
    pub count: usize,
    /// Whether items can be cut.
    pub can_be_cut: bool,
}

impl Portion {
    /// All of this many items.
    #[must_use]
    pub fn all(items: usize) -> Self {
        Self { items, last_chars: None }
    }

    /// The length in characters to which the item at `rank` is cut, if `most` is the limit of each item.
    #[must_use]
    pub fn chars_of(self, rank: usize, most: Option<usize>) -> Option<usize> {
        match self.last_chars.filter(|_| rank + 1 == self.items) {
            Some(last) => Some(most.map_or(last, |most| most.min(last))),
            None => most,
        }
    }
}

/// The largest portion of an answer that has at most `budget` tokens, and its text. `rendered` makes the text of a
/// portion.
///
/// # Errors
///
/// [`InvalidRequest::BudgetTooSmall`] if not even the text without items fits; errors of `rendered`.
pub fn largest<E: From<ApiError>>(
    budget: usize,
    items: Items,
    rendered: impl FnMut(Portion) -> Result<String, E>,
) -> Result<(Portion, String), E> {
    largest_that_fits(items, |text| count_up_to(text, budget).is_some(), rendered)?.map_err(|without_items| {
        let least = count(&without_items);
        ApiError::from(InvalidRequest::BudgetTooSmall { budget, least }).into()
    })
}

/// The largest portion of an answer whose text `fits`, and its text; or the text without items, if not even that fits.
/// `rendered` makes the text of a portion.
///
/// # Errors
///
/// Errors of `rendered`.
pub fn largest_that_fits<E>(
    items: Items,
    fits: impl Fn(&str) -> bool,
    mut rendered: impl FnMut(Portion) -> Result<String, E>,
) -> Result<Result<(Portion, String), String>, E> {
    let mut rendered = |items, last_chars| -> Result<(Portion, String), E> {
        let portion = Portion { items, last_chars };
        Ok((portion, rendered(portion)?))
    };
    let all = rendered(items.count, None)?;
    if fits(&all.1) {
        return Ok(Ok(all));
    }
    let mut best = rendered(0, None)?;
    if !fits(&best.1) {
        return Ok(Err(best.1));
    }
    // The length grows with the number of items, so the largest number that fits is found by bisection.
    let (mut fitting, mut too_long) = (0, items.count);
    while too_long - fitting > 1 {
        let middle = fitting + (too_long - fitting) / 2;
        let candidate = rendered(middle, None)?;
        if fits(&candidate.1) {
            (fitting, best) = (middle, candidate);
        } else {
            too_long = middle;
        }
    }
    if items.can_be_cut {
        for chars in CUTS {
            let candidate = rendered(fitting + 1, Some(chars))?;
            if fits(&candidate.1) {
                return Ok(Ok(candidate));
            }
        }
    }
    Ok(Ok(best))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn portion(budget: usize, lengths: &[usize], can_be_cut: bool) -> Option<(Portion, usize)> {
        let items = Items { count: lengths.len(), can_be_cut };
        let rendered = |portion: Portion| -> Result<String, ApiError> {
            let words = lengths.iter().take(portion.items).enumerate();
            let words = words
                .map(|(rank, words)| portion.chars_of(rank, None).map_or(*words, |c| (c / 5).min(*words)));
            Ok(format!("head{}", " word".repeat(words.sum())))
        };
        let (portion, text) = largest(budget, items, rendered).ok()?;
        Some((portion, count(&text)))
    }

    #[test]
    fn an_answer_that_fits_is_complete() {
        let whole = Portion { items: 3, last_chars: None };
        assert_eq!(portion(31, &[10, 10, 10], true), Some((whole, 31)));
    }

    #[test]
    fn items_that_do_not_fit_are_left_out_or_cut() {
        assert_eq!(portion(25, &[10, 10, 10], false), Some((Portion { items: 2, last_chars: None }, 21)));
        let cut = Portion { items: 2, last_chars: Some(500) };
        assert_eq!(portion(150, &[10, 1_000, 10], true), Some((cut, 111)));
        assert_eq!(portion(1, &[10], true), Some((Portion { items: 0, last_chars: None }, 1)));
        assert_eq!(portion(0, &[10], true), None);
    }
}
